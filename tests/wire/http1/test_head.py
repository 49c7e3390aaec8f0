"""Heads: what is accepted is read by other parsers in the same way, so that no proxy in front sees another request."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from typing import Any

import h11
import httptools
import pytest
from hypothesis import example, given, settings, strategies as st

from accord.wire.http1.connection import (
    BodyReceived,
    ConnectionBudget,
    Event,
    HTTPConnection,
    RequestComplete,
    RequestRefused,
)
from accord.wire.http1.head import HeadReader, HeadReceived
from accord.wire.http1.lines import UnacceptableRequest

from tests.wire.http1.conversations import BAD, GOOD, HEAD_BYTES, LAST, chunked, post, request

BUDGET = ConnectionBudget(head_bytes=4096, fields=100, body_bytes=10_000)
Read = tuple[str, bytes, list[tuple[bytes, bytes]], bytes]
REFUSED: Read = ("refused", b"", [], b"")


def ours(sent: bytes) -> Read | None:
    """The first request, if it is complete."""
    events: list[Event] = HTTPConnection(BUDGET).receive(sent)
    if not events or not isinstance(events[-1], RequestComplete) or not isinstance(head := events[0], HeadReceived):
        return None
    body = b"".join(event.data for event in events if isinstance(event, BodyReceived))
    return head.method, head.target, head.headers, body


class _Llhttp:
    """The first request, as llhttp reads it."""

    def __init__(self, sent: bytes) -> None:
        self.target = self.body = b""
        self.method = ""
        self.headers: list[tuple[bytes, bytes]] = []
        self.in_head = True
        self.read: Read | None = None
        self.parser = httptools.HttpRequestParser(self)
        try:
            self.parser.feed_data(sent)
        except httptools.HttpParserUpgrade:
            self.read = self.read or (self.method, self.target, self.headers, b"")
        except httptools.HttpParserError:
            self.read = self.read or REFUSED

    def on_url(self, url: bytes) -> None:
        self.target += url if self.in_head else b""

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.in_head:
            self.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        self.method = self.method or self.parser.get_method().decode()
        self.in_head = False

    def on_body(self, body: bytes) -> None:
        self.body += body if self.read is None else b""

    def on_message_complete(self) -> None:
        self.read = self.read or (self.method, self.target, self.headers, self.body)


def of_h11(sent: bytes) -> Read | None:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(sent)
    head: Any = None
    body = b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                return head.method.decode(), head.target, list(head.headers), body
            else:
                return None
    except h11.RemoteProtocolError:
        return REFUSED


KNOWN = ("GET", "POST", "DELETE", "HEAD", "OPTIONS")


def agree(sent: bytes) -> None:
    """What is complete here is complete for the others, with the same headers and the same body; or they refuse it."""
    mine = ours(sent)
    if mine is None or mine[0] not in KNOWN:
        return
    method, target, headers, body = mine
    offers_upgrade = any(name == b"upgrade" for name, _ in headers)
    for theirs in (of_h11(sent.lstrip(b"\r\n")), _Llhttp(sent).read):
        assert theirs is not None, f"another parser waits for more of {sent!r}"
        if theirs is not REFUSED:
            assert (theirs[0], comparable(theirs[2])) == (method, comparable(headers))
            assert theirs[3] == body or (offers_upgrade and not theirs[3])  # llhttp leaves it to the other protocol
            assert theirs[1] == target or b"://" in theirs[1]


def comparable(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """As h11 has them: it writes this value in its own way."""
    return [(name, value.lower() if name == b"transfer-encoding" else value) for name, value in headers]


@pytest.mark.parametrize("sent", [each.sent for each in (*GOOD, *LAST, *BAD)], ids=repr)
def test_what_is_accepted_is_read_by_others_in_the_same_way(sent: bytes) -> None:
    agree(sent)
    agree(sent + request("GET", "/next"))


SNIPPETS = [
    b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b":", b";", b",", b"0", b"1", b"a", b"\xff", b"\x0b", b"chunked",
    b"content-length: 3\r\n", b"transfer-encoding: chunked\r\n", b"host: x\r\n", b"\r\n\r\n", b"0\r\n\r\n", b"HTTP/1.0",
]  # fmt: skip


@given(st.sampled_from([*GOOD, *LAST]), st.data())
@settings(deadline=None, max_examples=1500)
def test_nor_is_a_request_that_was_tampered_with(conversation: Any, data: st.DataObject) -> None:
    sent = bytearray(conversation.sent)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(sent)))
        sent[at : at + data.draw(st.integers(0, 3))] = data.draw(st.sampled_from(SNIPPETS))
    agree(bytes(sent))


@given(st.binary(max_size=60))
@example(b"")
@settings(deadline=None, max_examples=500)
def test_bytes_of_any_kind_are_refused_or_waited_for(sent: bytes) -> None:
    for event in HTTPConnection(BUDGET).receive(sent):
        assert isinstance(event, RequestRefused | HeadReceived | BodyReceived | RequestComplete)


# --- the bounds, and the work -------------------------------------------------------------------------------------


def of_size(size: int) -> bytes:
    head = request("GET", "/", "x: ")
    return request("GET", "/", "x: " + "x" * (size - len(head)))


@pytest.mark.parametrize("most", [200, 32 << 10])
def test_a_head_of_just_the_bound_is_read_and_a_byte_more_is_431(most: int) -> None:
    reader = HeadReader(most, 100)
    found = reader.read(of_size(most), 0)
    assert found is not None
    assert reader.size == most
    with pytest.raises(UnacceptableRequest) as refused:
        HeadReader(most, 100).read(of_size(most + 1), 0)
    assert refused.value.status == 431
    assert f"{most:,}" in refused.value.text


def test_a_head_that_begins_amid_other_bytes_is_read_there() -> None:
    reader = HeadReader(HEAD_BYTES, 10)
    sent = b"junk\0" + request("GET", "/") + b"\0more"
    for end in range(5, len(sent) - 5):
        assert reader.read(sent[:end], 5) is None
    found = reader.read(sent, 5)
    assert found is not None
    assert reader.size == len(request("GET", "/"))


def test_each_head_has_its_own_list_of_headers() -> None:
    reader = HeadReader(HEAD_BYTES, 10)
    for sent in (request("GET", "/", "a: b"), request("POST", "/", "content-length: 1")):
        first, second, third = (reader.read(sent, 0) for _ in range(3))
        assert first is not None
        assert second is not None
        assert third is not None
        whole = list(third.headers)
        first.headers.append((b"x", b"y"))
        second.headers.clear()
        assert third.headers == whole
        assert reader.read(sent, 0) == third


LENGTHS = ("1", "23", "0", "007", "1 ", " 1", "1 2", "12,3", "1, 1", "+1", "-1", "1a", "", "9" * 18, "9" * 19, "1\t")
OTHERS = ("", "a: b", "content-length: 1", "transfer-encoding: chunked", "expect: 100-continue", "connection: close")


@pytest.mark.parametrize("before", OTHERS)
def test_what_was_read_before_does_not_change_how_a_head_is_read(before: str) -> None:
    fields = [f"{name}:{length}" for name in ("content-length", "Content-Length", "x") for length in LENGTHS]
    fields += [f"content-length: {length}" for length in LENGTHS]
    heads = [request("POST", "/", *filter(None, (before, field, after))) for field in fields for after in ("", "a: 1")]
    expected = [read(HeadReader(HEAD_BYTES, 10), head) for head in heads]
    for first, its_reading in zip(heads, expected, strict=True):
        if isinstance(its_reading, str):
            continue
        reader = HeadReader(HEAD_BYTES, 10)
        for head, reading in zip(heads, expected, strict=True):
            assert read(reader, first) == its_reading
            assert read(reader, head) == reading, (first, head)
            if isinstance(reading, str):
                reader = HeadReader(HEAD_BYTES, 10)


def read(reader: HeadReader, sent: bytes) -> HeadReceived | str | None:
    """What one head says, or why it is refused."""
    try:
        return reader.read(sent, 0)
    except UnacceptableRequest as exc:
        return exc.text


def test_a_long_request_line_is_not_remembered() -> None:
    sent = request("GET", "/" + "x" * 20_000)
    readers = [HeadReader(2 * len(sent), 10) for _ in range(20)]
    tracemalloc.start()
    try:
        assert all(reader.read(sent, 0) is not None for reader in readers)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < len(readers) * len(sent) / 2


def test_the_next_head_with_the_same_access_token_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def head(length: int) -> bytes:
        lines = ["POST /mcp HTTP/1.1", "Host: e", f"Authorization: Bearer {'a' * 3_000}", f"Content-Length: {length}"]
        return "\r\n".join([*lines, "", ""]).encode()

    reader = HeadReader(10_000, 10)
    first = reader.read(head(7), 0)
    monkeypatch.setattr(HeadReader, "_parse", lambda *_: pytest.fail("it was parsed again"))
    again = reader.read(head(123), 0)
    assert first is not None
    assert again is not None
    assert (again.length, again.headers[:2]) == (123, first.headers[:2])


def test_a_line_that_comes_byte_by_byte_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: Counter[int] = Counter()

    class Bytes(bytes):
        def find(self, *arguments: Any) -> int:
            if arguments[0] == b"\r\n":
                looked[len(self)] += max(0, min(len(self), arguments[2]) - arguments[1])
            return super().find(*arguments)

    reader = HeadReader(10_000, 10)
    sent = b"GET /" + b"x" * 5_000
    for end in range(1, len(sent) + 1):
        assert reader.read(Bytes(sent[:end]), 0) is None
    assert max(looked.values()) <= 3


def test_empty_lines_that_come_byte_by_byte_are_looked_at_once() -> None:
    looks = 0

    class Bytes(bytes):
        def startswith(self, *arguments: Any) -> bool:
            nonlocal looks
            looks += 1
            return super().startswith(*arguments)

    reader = HeadReader(10_000, 10)
    sent = b"\r\n" * 2_000
    for end in range(1, len(sent) + 1):
        assert reader.read(Bytes(sent[:end]), 0) is None
    assert looks < 2 * len(sent)


def test_a_request_is_what_the_recorded_ones_say() -> None:
    head = ours(post("/a?b", "hi", "X-One: 1"))
    assert head == ("POST", b"/a?b", [(b"host", b"e"), (b"x-one", b"1"), (b"content-length", b"2")], b"hi")
    assert ours(chunked("/", "a", "b")) == ("POST", b"/", [(b"host", b"e"), (b"transfer-encoding", b"chunked")], b"ab")
