"""Nothing of what others wrote hides, and nothing of it steers."""

from __future__ import annotations

import shutil
import subprocess

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from accord.visible_text import encodable, indented, is_hidden, readable, shell_line, single_line, truncate, visible

from tests.check.reports.hostile import TEXTS
from tests.measure import costs_at_most


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain, é ☃ 𝄞\tand\nlines", "plain, é ☃ 𝄞\tand\nlines"),
        ("\x1b[31m\x07\r\x00\x7f", "\\x1b[31m\\x07\\x0d\\x00\\x7f"),
        ("a\u200bb\u202ec\u2066d\ufeff", "a\\u200bb\\u202ec\\u2066d\\ufeff"),
        ("tag \U000e0041, variation \ufe0f\U000e0100", "tag \\U000e0041, variation \\ufe0f\\U000e0100"),
        ("filler \u3164, blank \u2800, joiner \u034f", "filler \\u3164, blank \\u2800, joiner \\u034f"),
        ("half \ud800 \udc80", "half \\ud800 \\udc80"),
        ("a\u2028b\u00a0c", "a\\u2028b\\xa0c"),
    ],
)
def test_control_characters_are_printed_as_numbers(text: str, seen: str) -> None:
    assert visible(text) == seen


@given(TEXTS)
def test_nothing_hidden_is_left_and_the_rest_stays(text: str) -> None:
    seen = visible(text)
    assert not any(map(is_hidden, seen))
    assert seen.encode().decode() == seen
    rest = iter(seen)
    assert all(each in rest for each in text if not is_hidden(each))


@given(TEXTS)
def test_one_line_is_one_line(text: str) -> None:
    assert len(single_line(text).splitlines()) <= 1


@given(TEXTS)
def test_everything_can_be_stored_as_json(text: str) -> None:
    data = encodable({text: [text, (text, 1, None)]})
    assert msgspec.json.decode(msgspec.json.encode(data)) == data


def test_what_can_be_stored_stays_as_it_is() -> None:
    assert encodable({"a\x1b\u202e": "\u0000é"}) == {"a\x1b\u202e": "\u0000é"}


def test_what_is_cut_off_is_reported() -> None:
    assert truncate("x" * 10, 10) == "x" * 10
    assert truncate("x" * 1_500, 10) == "xxxxxxxxxx … (1,500 characters)"


def test_a_pasted_line_has_nothing_that_a_line_editor_acts_upon() -> None:
    words = ["accord", "call", "it's", "x\x15touch marker\r", "\x1b[201~\x03\n$(id)\u202e\\"]
    line = shell_line(words)
    assert line.isprintable()
    assert line.startswith("accord call 'it'\"'\"'s' $'x\\025touch marker\\015' ")


@pytest.mark.skipif(shutil.which("bash") is None, reason="a system without bash")
@given(st.lists(TEXTS.filter(lambda text: "\0" not in text and text.encode(errors="ignore").decode() == text)))
@settings(max_examples=10)
def test_a_shell_reads_the_words_of_a_line(words: list[str]) -> None:
    command = f"printf '%s\\0' {shell_line(['', *words])}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, check=True).stdout
    assert found.decode().split("\0") == ["", *words, ""]


def test_json_is_indented_unless_that_makes_it_too_long() -> None:
    assert indented(b'{"a":[1.0,{}],"b":"[[,"}', 100) == '{\n  "a": [\n    1.0,\n    {}\n  ],\n  "b": "[[,"\n}'
    assert indented(b"no JSON", 100) is None
    assert indented(b"[" * 2_000 + b"]" * 2_000, 1 << 30) is None
    flat, deep = b"[" + b"0," * 100_000 + b"0]", b"[" * 900 + b"0," * 100_000 + b"0" + b"]" * 900
    assert len(indented(flat, 1 << 20) or "") == 500_007
    with costs_at_most(20):
        assert indented(deep, 1 << 20) is None


def test_nesting_does_not_multiply_what_is_printed() -> None:
    deep = b"[" * 400 + b",".join([b"1"] * 100_000) + b"]" * 400
    assert readable(deep) == deep.decode()
    assert readable(b'{"a":[1]}') == '{\n  "a": [\n    1\n  ]\n}'
    assert readable(b"no JSON") == "no JSON"
