"""Session files: what is written is read back exactly, and a damaged file is reported with its line."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import Raw

from accord.wire import session_file
from accord.wire.session_file import (
    ClosedEntry,
    ConnectedEntry,
    Entry,
    HTTPEntry,
    LimitEntry,
    LostEntry,
    MessageEntry,
    RemarkEntry,
    SessionFileError,
    SessionHeader,
    SkippedEntry,
    StderrEntry,
    UnansweredEntry,
    encode_line,
    message_entry,
    read_session,
)

HEADER = SessionHeader(version=1, at="2026-11-23T15:40:02.000Z", program="accord 1.0", target="python shop.py")

# JSON as peers write it: any spaces, escapes and numbers.
json_texts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda items: st.lists(items) | st.dictionaries(st.text(), items),
    max_leaves=10,
).flatmap(
    lambda value: st.builds(
        lambda **options: json.dumps(value, **options).encode(errors="surrogatepass"),
        ensure_ascii=st.booleans(),
        indent=st.none() | st.just(1),
        separators=st.sampled_from([(",", ":"), (" , ", "  :\t")]),
    )
)
data = st.binary() | st.text().map(str.encode) | json_texts
ids = st.none() | st.integers(-(2**63), 2**63) | st.text()
numbers = st.integers(0, 2**40)
times = st.floats(0, 1e9)
directions: st.SearchStrategy[Any] = st.sampled_from(["sent", "received"])
text = st.text()
common: dict[str, Any] = {"at": times, "connection": numbers}

messages = st.builds(message_entry, data, directions, **common, request=ids, exchange=numbers)
entries = st.one_of(
    messages,
    st.builds(ConnectedEntry, **common, name=text, transport=text),
    st.builds(SkippedEntry, **common, direction=directions, reason=text, size=numbers, exchange=numbers),
    st.builds(UnansweredEntry, **common, request=st.integers(0, 2**60) | text, reason=text),
    st.builds(
        HTTPEntry,
        **common,
        direction=directions,
        exchange=numbers,
        method=text,
        url=text,
        status=numbers,
        headers=st.dictionaries(text, text),
        repeats=numbers,
    ),
    st.builds(StderrEntry, **common, text=text),
    st.builds(LostEntry, **common, reason=text),
    st.builds(ClosedEntry, **common),
    st.builds(RemarkEntry, **common, text=text),
    st.builds(LimitEntry, **common, size=numbers),
)


def lines(*written: SessionHeader | Entry) -> list[bytes]:
    return b"".join(map(encode_line, written)).splitlines(keepends=True)


@given(data)
def test_a_message_is_read_back_byte_by_byte(message: bytes) -> None:
    entry = message_entry(message, "sent")
    assert entry.data == message
    read = read_session(lines(HEADER, entry)).entries[0]
    assert isinstance(read, MessageEntry)
    assert read.data == message


@given(st.lists(entries))
def test_what_is_written_is_read_back(written: list[Entry]) -> None:
    read = read_session(lines(HEADER, *written))
    assert read.header == HEADER
    assert read.entries == written
    assert not read.incomplete


@given(st.lists(entries, min_size=1), st.data())
def test_a_file_that_was_cut_off_loses_at_most_its_last_line(written: list[Entry], draw: st.DataObject) -> None:
    whole = b"".join(lines(HEADER, *written))
    first = len(encode_line(HEADER))
    end = draw.draw(st.integers(first, len(whole)))
    read = read_session(whole[:end].splitlines(keepends=True))
    complete = whole[:end].count(b"\n") - 1
    assert read.entries[:complete] == written[:complete]
    assert len(read.entries) - complete in (0, 1)
    assert read.incomplete == (not whole[:end].endswith(b"\n") and len(read.entries) == complete)


def test_json_is_embedded_as_it_is() -> None:
    message = b'{"id" : 1.0, "id":1, "x":"\\u00e9"}'
    line = encode_line(message_entry(message, "received", request=1))
    assert message in line
    assert msgspec.json.decode(line)["request"] == 1


@pytest.mark.parametrize("message", [b"", b" {}", b"{}\r", b'{"a":\n1}', b"{", b"[1,]", b"NaN", b"1 2", b"[" * 100_000])
def test_what_is_not_a_line_of_json_is_a_text(message: bytes) -> None:
    assert message_entry(message, "sent").text == message.decode()


def test_invalid_utf_8_is_base64() -> None:
    assert b'"base64":"/w=="' in encode_line(message_entry(b"\xff", "sent"))
    assert message_entry(b'"\xff"', "sent").base64 == b'"\xff"'


BEGIN = encode_line(HEADER)
WRONG = [
    (b"", "it has no header"),
    (b'{"kind":"closed"}\n', "line 1 stands before the header"),
    (BEGIN + BEGIN, "line 2 is a second header"),
    (b'{"kind":"session","version":2,"at":""}\n', "line 1 is invalid: version 2 of the format"),
    (BEGIN + b"{\n" + BEGIN, "line 2 is invalid"),
    (BEGIN + b'\n{"kind":"other"}\n', "line 3 is invalid"),
    (BEGIN + b'{"kind":"message","direction":"sent"}\n', "line 2 is invalid: a message has exactly one of"),
    (BEGIN + b'{"kind":"message","direction":"up","text":""}\n', "line 2 is invalid"),
    (BEGIN + b'{"kind":"message","direction":"sent","text":"","message":1}\n', "line 2 is invalid"),
    (BEGIN + b'{"kind":"message","direction":"sent","message":"\xff"}\n', "line 2 is invalid"),
    (BEGIN + b"[" * 100_000 + b"\n", "line 2 is invalid"),
]


@pytest.mark.parametrize(("content", "why"), WRONG)
def test_an_invalid_line_is_named(content: bytes, why: str) -> None:
    with pytest.raises(SessionFileError, match=why):
        read_session(content.splitlines(keepends=True))


def test_an_unknown_field_is_ignored() -> None:
    assert read_session([BEGIN, b'{"kind":"closed","later":1}\n']).entries == [ClosedEntry()]


def test_texts_that_are_no_utf_8_are_escaped() -> None:
    entry = HTTPEntry(direction="received", exchange=1, status=200, headers={"x-name": "caf\udce9", "a": "b"})
    line = encode_line(entry)
    assert read_session([b'{"kind":"session","version":1,"at":""}\n', line]).entries == [
        HTTPEntry(direction="received", exchange=1, status=200, headers={"x-name": "caf\\udce9", "a": "b"})
    ]
    assert encode_line(StderrEntry(text="\ud800")) == encode_line(StderrEntry(text="\\ud800"))


def test_the_length_of_a_line_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_file, "LINE_BYTES", 200)
    with pytest.raises(SessionFileError, match="line 2 is longer than 200 bytes"):
        read_session([BEGIN, b" " * 202])


def test_a_file_at_its_limit_says_so() -> None:
    assert read_session(lines(HEADER, LimitEntry(size=10))).limit_reached
    assert not read_session(lines(HEADER)).limit_reached


def test_an_embedded_message_may_be_any_json_value() -> None:
    for value in (b"null", b"false", b"0", b'""', b"[]"):
        entry = MessageEntry(direction="sent", message=Raw(value))
        read = read_session(lines(HEADER, entry)).entries[0]
        assert isinstance(read, MessageEntry)
        assert read.data == value
