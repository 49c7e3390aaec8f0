"""The source of a pytest module from a recording: a test that replays all of it, and one for each plain call.

Texts of the recording appear only as literals, because a server may have chosen them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from pprint import pformat
from typing import Any

from accord.messages.base import JSONObject
from accord.testing.recorded_server import RecordedExchange, RecordedServer
from accord.testing.recording import read_recorded

_MOST_CALLS = 20
_WIDTH = 110
_MOST_FORMATTED = 10_000
"""Characters of a value that is written on several lines: `pformat` takes minutes for a long or deep one."""

_HEAD = """\
# Written by accord replay --test; {origin}.
# Put this file next to the recording.

from pathlib import Path

import pytest
{imports}
FILE = Path(__file__).with_name({name})


@pytest.fixture
def accord_server():
    {server}


def test_the_server_sends_the_recorded_messages(accord_replay):
    accord_replay(FILE)
"""
_CALL_HEAD = """\
import pytest


@pytest.fixture
def accord_server():
    return {server}
"""
_CALL = """

def test_{name}(accord_client):
    result = accord_client.call_tool({tool}, {arguments})
{assertions}
"""


def pytest_source(file: Path, target: str | None = None, *, name: str = "") -> str:
    """Return the tests of a recording, of the server `target`, or of `RecordedServer` until there is one.

    `name` is that of the file beside the tests, if it is another one. Raises `AssertionError` for a missing file,
    `ValueError` for an invalid one.
    """
    header = read_recorded(file).header
    recorded_on = f"recorded on {header.at[:10]!a} from {header.target!a}" if header.at else "from a transcript"
    if target is None:
        imports = "\nfrom accord.testing import RecordedServer\n"
        server = "return RecordedServer(FILE)  # sends the recorded messages; return your server in its place"
    else:
        imports, server = "", f"return {target!a}"
    head = _HEAD.format(origin=recorded_on, imports=imports, name=repr(name or file.name), server=server)
    return head + "".join(_calls(RecordedServer(file)))


def call_test(target: str, tool: str, arguments: JSONObject, result: JSONObject | None) -> str:
    """Return the source of a pytest module that calls a tool of `target`, and compares what it returns with `result`:
    all of its structured content or of its texts."""
    assertions = ["not result.is_error"] if result is None else list(_assertions(result))
    test = _CALL.format(
        name=_new_name(tool, set()),
        tool=repr(tool),
        arguments=_literal(arguments),
        assertions="\n".join(f"    assert {line}" for line in assertions),
    )
    return _CALL_HEAD.format(server=f"{target!a}") + test


def _calls(server: RecordedServer) -> Iterator[str]:
    """Yield a test for each tool call that needs nothing but a response."""
    seen: list[JSONObject] = []
    names: set[str] = {"the_server_sends_the_recorded_messages"}
    for exchange in server.exchanges:
        result = _plain_result(exchange)
        if result is None or exchange.key in seen or len(seen) == _MOST_CALLS:
            continue
        seen.append(exchange.key)
        tool = exchange.key["name"]
        yield _CALL.format(
            name=_new_name(tool, names),
            tool=repr(tool),
            arguments=_literal(exchange.key.get("arguments") or {}),
            assertions="\n".join(f"    assert {line}" for line in _assertions(result)),
        )


def _plain_result(exchange: RecordedExchange) -> JSONObject | None:
    """Return the result of a tool call for which the server requested nothing, or None."""
    if exchange.request.method != "tools/call" or "inputResponses" in exchange.key:
        return None
    if not isinstance(exchange.key.get("name"), str) or any(each.is_request for each in exchange.responses):
        return None
    answer = next((each.message for each in exchange.responses if each.is_answer), {})
    result = answer.get("result")
    if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
        return None
    return result if isinstance(result.get("content"), list) else None


def _assertions(result: JSONObject) -> Iterator[str]:
    yield "result.is_error" if result.get("isError") is True else "not result.is_error"
    texts = [block.get("text") for block in result["content"] if isinstance(block, dict)]
    if "structuredContent" in result:
        yield f"result.structured_content == {_literal(result['structuredContent'])}"
    elif texts and all(isinstance(text, str) for text in texts) and len(texts) == len(result["content"]):
        yield f"[block.text for block in result.content] == {_literal(texts)}"


def _new_name(tool: str, names: set[str]) -> str:
    """Return a new name of a test."""
    base = name = re.sub(r"\W+", "_", tool, flags=re.ASCII).strip("_").lower()[:60] or "call"
    number = 1
    while name in names:
        number += 1
        name = f"{base}_{number}"
    names.add(name)
    return name


def _literal(value: Any) -> str:
    text = repr(value)
    if len(text) > _MOST_FORMATTED:
        return text
    return pformat(value, width=_WIDTH, sort_dicts=False).replace("\n", "\n    ")
