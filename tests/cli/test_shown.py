"""How content, rows, progress and messages are shown to people."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from accord.cli.columns import Row, rows
from accord.cli.content import answer_lines, binaries, block_text
from accord.cli.failures import exit_code, printable, tell
from accord.cli.progress import bar, describe
from accord.cli.trace import described
from accord.client.answers import ToolResult
from accord.errors import ConnectError, InvalidParams, RequestTimeout, TargetError
from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from accord.transport.base import Unreadable

DATA = base64.b64encode(b"12345").decode()
TEXT = TextContent(text="hi")

BLOCKS = [
    (TEXT, "hi"),
    (ImageContent(data=DATA, mime_type="image/png"), "[image] image/png, 5 bytes; --output FILE saves it"),
    (AudioContent(data=DATA, mime_type="audio/wav"), "[audio] audio/wav, 5 bytes; --output FILE saves it"),
    (ResourceLink(uri="a://b", name="b", mime_type="text/plain"), "[link] a://b  b · text/plain"),
    (EmbeddedResource(resource=ResourceContents(uri="a://b", text="in it")), "[resource] a://b\nin it"),
    ({"type": "hologram", "x": 1}, '[hologram] {\n  "type": "hologram",\n  "x": 1\n}'),
]


@pytest.mark.parametrize(("block", "shown"), BLOCKS, ids=[type(block).__name__ for block, _ in BLOCKS])
def test_each_kind_of_block_is_shown(block: Any, shown: str) -> None:
    assert unstyled(block_text(block)) == shown


def test_structured_content_takes_the_place_of_text() -> None:
    image = ImageContent(data=DATA, mime_type="image/png")
    result = ToolResult(content=[TEXT, image], structured_content={"a": 1})
    assert [unstyled(line) for line in answer_lines(result)] == ['{\n  "a": 1\n}', BLOCKS[1][1]]
    assert list(answer_lines(ToolResult(content=[TEXT], structured_content=None))) == ["null"]
    assert list(answer_lines(ToolResult(content=[TEXT]))) == ["hi"]


def test_what_is_not_quite_base64_is_saved_as_far_as_it_goes() -> None:
    (saved,) = binaries([TEXT, ImageContent(data="MTIz\nNDU", mime_type="image/png")])
    assert saved.data == b"12345"


def test_rows_are_aligned_and_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    items = [
        Row("one", "()", "short"),
        Row("two", "(a: string)", "a description that is long enough to be wrapped"),
        Row("three", "(a: string, b: string, c: string, d: string, e: string)", "about three"),
        Row("four", "", ""),
    ]
    assert [unstyled(line) for line in rows(items)] == [
        "  one()            short",
        "  two(a: string)   a description that is long enough to be",
        "                   wrapped",
        "  three(a: string, b: string, c: string, d: string, e:",
        "      string)",
        "                   about three",
        "  four",
    ]


def test_progress_in_words_and_drawn() -> None:
    assert describe(1, None, None) == "1"
    assert describe(0.5, 2, "half\nway\x1b") == r"0.5/2 half way\x1b"
    assert bar(1, 2) == "█" * 12 + "░" * 12
    assert bar(5, 2) == "█" * 24


MESSAGES = [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "#1 ping"),
    (b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"_meta":{"x":1},"b":2}}', '#a m {"b":2}'),
    (b'{"jsonrpc":"2.0","id":0,"result":{}}', "#0 {}"),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}', '#1 error {"code":-1,"message":"m"}'),
    (b"hello \xff", r"hello \xff"),
    (b"[1]", "[1]"),
    (Unreadable("too long", 9), "unreadable: too long"),
]


@pytest.mark.parametrize(("message", "shown"), MESSAGES)
def test_a_message_is_told_in_one_line(message: Any, shown: str) -> None:
    assert described(message) == shown


def test_what_would_steer_a_terminal_is_spelled_out() -> None:
    assert printable("a\tb\nö \x1b[31m\u202e\x9b") == "a\tb\nö \\x1b[31m\\u202e\\x9b"


def test_each_kind_of_error_has_its_code() -> None:
    late = ConnectError("late")
    late.__cause__ = TimeoutError()
    errors = [InvalidParams("x"), ConnectError("x"), late, RequestTimeout("x"), TargetError("x"), ValueError("x")]
    assert [exit_code(error) for error in errors] == [4, 3, 5, 5, 2, 70]


def test_a_defect_says_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert tell(ValueError("x")) == 70
    assert capsys.readouterr().err == "error: ValueError: x (a defect in accord; --traceback shows where)\n"


def unstyled(text: str) -> str:
    return text.replace("\x1b[0m", "").replace("\x1b[2m", "").replace("\x1b[36m", "")
