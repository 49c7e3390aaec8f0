"""318 JSON files, good and bad, as the argument inside a `tools/call`: accepted, or one error; never silence.

The files are found in `../shared/data/json-parsing` beside the checkout, or where `ACCORD_JSON_FILES` points. By their
names, `y_` must be accepted, `n_` refused, and `i_` may be either.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accord import Server

from tests.server.raw import raw_peer
from tests.server.test_stdio_process import INIT, lines

ROOT = Path(__file__).parents[2]
FOLDER = Path(os.environ.get("ACCORD_JSON_FILES", ROOT.parent / "shared/data/json-parsing"))
FILES = sorted(FOLDER.rglob("*.json"))

pytestmark = pytest.mark.skipif(not FILES, reason=f"no JSON files in {FOLDER}; set ACCORD_JSON_FILES")


def around(content: bytes) -> bytes:
    return (
        b'{"jsonrpc":"2.0","id":"it","method":"tools/call","params":{"name":"take","arguments":{"value":'
        + content
        + b"}}}"
    )


def judge(name: str, answers: list[Any]) -> None:
    """Exactly one answer, of the kind that the file's name asks for."""
    assert len(answers) == 1, answers
    (answer,) = answers
    refused = "error" in answer or answer["result"].get("isError") is True
    if name.startswith("y_"):
        assert answer.get("id") == "it"
        assert not refused, answer
    elif name.startswith("n_"):
        assert refused, answer


async def test_in_memory_each_file_is_accepted_or_one_error() -> None:
    server = Server("test", "1")

    @server.tool
    async def take(value: Any) -> str:
        return "taken"

    async with raw_peer(server) as peer:
        for file in FILES:
            peer.say(around(file.read_bytes()))
            answers = [await peer.hear()]
            peer.say({"jsonrpc": "2.0", "id": "after", "method": "ping"})
            while (answer := await peer.hear()).get("id") != "after":
                answers.append(answer)
            judge(file.name, answers)


def test_over_stdio_each_file_without_a_newline_is_accepted_or_one_error() -> None:
    program = [sys.executable, "-c", _PROGRAM]
    chosen = [file for file in FILES if b"\n" not in file.read_bytes()]
    assert len(chosen) > 200 or "ACCORD_JSON_FILES" in os.environ
    script = [lines(INIT)]
    for number, file in enumerate(chosen):
        script += [around(file.read_bytes()), b"\n", lines({"jsonrpc": "2.0", "id": number, "method": "ping"})]
    done = subprocess.run(program, input=b"".join(script), capture_output=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()][1:]
    for number, file in enumerate(chosen):
        at = next(at for at, answer in enumerate(answers) if answer.get("id") == number)
        judge(file.name, answers[:at])
        del answers[: at + 1]
    assert answers == []


_PROGRAM = """
from typing import Any
from accord import Server
server = Server("test", "1")
@server.tool
async def take(value: Any) -> str:
    return "taken"
server.run()
"""
