"""Nothing of what others wrote hides, and nothing of it steers."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from accord.visible_text import encodable, is_hidden, single_line, truncate, visible

from tests.check.reports.hostile import TEXTS


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
