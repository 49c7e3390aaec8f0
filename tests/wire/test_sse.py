"""Server-sent events: encoded, and read however the bytes were cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as st

from accord.wire.lines import SkippedMessage
from accord.wire.sse import KEEP_ALIVE, ServerSentEvent, SSEParser, encode

from tests.measure import assert_linear

LIMIT = 12


def read(chunks: list[bytes], limit: int = 1 << 20) -> list[ServerSentEvent | SkippedMessage]:
    parser = SSEParser(limit)
    return [event for chunk in chunks for event in parser.feed(chunk)]


def one_by_one(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


def cut(data: bytes, at: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]


def shapes(events: list[ServerSentEvent | SkippedMessage]) -> list[ServerSentEvent | tuple[str, bytes]]:
    """How much of a skipped event was there when it was told depends on the cuts; what is said of it does not."""
    return [event if isinstance(event, ServerSentEvent) else (event.reason, event.tail) for event in events]


fields = [b"data", b"data:", b"data: ", b"id: 7", b"id", b"id: a\0b", b"retry: 50", b"retry: x", b"event: told", b":"]
others = [b"\n", b"\n", b"\r", b"\r\n", b"\xef\xbb\xbf", b" ", b"{}", b"\xff", b"y" * 7, b"z" * 9_000]
pieces = st.sampled_from(fields + others)
streams = st.lists(pieces, max_size=30).map(b"".join)


@given(streams, st.lists(st.integers(0), max_size=8), st.sampled_from([LIMIT, 9_000, 1 << 20]))
@example(b"data: 1\r\n\r\ndata: 2\r\r", [8, 9, 10, 11], 100)
def test_any_chunking_gives_the_same_events(data: bytes, at: list[int], limit: int) -> None:
    whole = shapes(read([data], limit))
    assert shapes(read(cut(data, at), limit)) == whole
    assert shapes(read(one_by_one(data), limit)) == whole


@given(streams, st.lists(st.integers(0), max_size=8))
def test_where_to_resume_does_not_depend_on_the_chunks(data: bytes, at: list[int]) -> None:
    whole, chunked = SSEParser(LIMIT), SSEParser(LIMIT)
    whole.feed(data)
    for chunk in cut(data, at):
        chunked.feed(chunk)
    assert (chunked.last_id, chunked.retry) == (whole.last_id, whole.retry)


texts = st.text(st.characters(exclude_categories=["Cs"]))
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=50)


@given(texts, names | st.none(), names | st.none(), st.integers(0, 10**9) | st.none())
def test_what_is_encoded_is_read_again(text: str, event: str | None, id: str | None, retry: int | None) -> None:
    written = encode(text.encode(), event=event, id=id, retry=retry)
    expected = ServerSentEvent(text.replace("\r\n", "\n").replace("\r", "\n").encode(), event or "message", id, retry)
    assert read([written]) == read(one_by_one(written)) == [expected]


@given(texts)
@example("1\r\rdata: 2")
@example("1\n\ndata: 2")
def test_no_data_can_end_its_event(text: str) -> None:
    assert len(read([encode(text.encode()), encode(b"2")])) == 2


@pytest.mark.parametrize("text", ["4\n", "4\rdata: x", "\0", "\x1b[2J", "\x7f"])
def test_an_event_or_id_that_would_be_more_than_a_field_is_refused(text: str) -> None:
    for field in ("event", "id"):
        with pytest.raises(ValueError, match=f"the {field} of a server-sent event cannot have control characters"):
            encode(b"{}", **{field: text})  # type: ignore[arg-type]


def test_a_message_is_one_line() -> None:
    assert encode(b'{"id":1}') == b'data: {"id":1}\n\n'
    assert encode(b"{}", event="message", id="4-1", retry=500) == b"event: message\nid: 4-1\nretry: 500\ndata: {}\n\n"


# The examples of the HTML standard, 9.2.6.


def test_lines_of_data_are_joined() -> None:
    assert read([b"data: YHOO\ndata: +2\ndata: 10\n\n"]) == [ServerSentEvent(b"YHOO\n+2\n10")]


def test_comments_ids_and_spaces_are_read_as_the_standard_says() -> None:
    stream = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
    parser = SSEParser(100)
    assert parser.feed(stream[:44]) == [ServerSentEvent(b"first event", id="1")]
    assert parser.last_id == "1"
    assert parser.feed(stream[44:]) == [ServerSentEvent(b"second event", id=""), ServerSentEvent(b" third event")]
    assert parser.last_id is None


def test_data_may_be_empty_and_an_event_without_an_end_is_none() -> None:
    assert read([b"data\n\ndata\ndata\n\ndata:"]) == [ServerSentEvent(b""), ServerSentEvent(b"\n")]


def test_one_space_after_the_colon_is_passed_over() -> None:
    assert read([b"data:test\n\ndata: test\n\n"]) == [ServerSentEvent(b"test"), ServerSentEvent(b"test")]


# What else may come.


def test_a_priming_event_has_no_data() -> None:
    assert read([b"id: 1\nretry: 500\n\n"]) == [ServerSentEvent(b"", id="1", retry=500)]
    assert read([encode(b"", id="1")]) == [ServerSentEvent(b"", id="1")]


def test_comments_blank_lines_and_fields_nobody_knows_are_no_events() -> None:
    assert read([KEEP_ALIVE, b"\n\n: ping\r\nfoo: bar\n\nevent: x\n\nDATA: 1\n\n", b"data: 1\n\n"]) == [
        ServerSentEvent(b"1")
    ]


def test_an_id_counts_once_its_event_has_ended() -> None:
    parser = SSEParser(100)
    parser.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n")
    assert parser.last_id == "1"
    parser.feed(b"\n")
    assert parser.last_id == "2"


@pytest.mark.parametrize("id", [b"a\0b", b"\x1b[2J", b"x" * 9_000])
def test_an_id_that_no_header_can_carry_is_passed_over(id: bytes) -> None:
    parser = SSEParser(100)
    assert parser.feed(b"id: 1\n\nid: " + id + b"\ndata: x\n\n") == [
        ServerSentEvent(b"", id="1"),
        ServerSentEvent(b"x"),
    ]
    assert parser.last_id == "1"


@pytest.mark.parametrize("retry", [b"", b"-1", b"1.5", b"1e3", b"9" * 5_000, "٣".encode()])
def test_a_retry_that_is_no_number_of_milliseconds_is_passed_over(retry: bytes) -> None:
    parser = SSEParser(100)
    parser.feed(b"retry: 20\nretry: " + retry + b"\n\n")
    assert parser.retry == 20


def test_a_byte_order_mark_is_passed_over_once() -> None:
    mark = b"\xef\xbb\xbf"
    assert read(one_by_one(mark + b"data: 1\n\n")) == [ServerSentEvent(b"1")]
    assert read([b"\xef\xbbdata: 1\n\n", b"data: 2\n\n"]) == [ServerSentEvent(b"2")]
    assert read([mark + mark + b"data: 1\n\n"]) == []


def test_an_oversized_event_and_then_its_end_are_reported_and_the_next_is_read() -> None:
    big = b"id: 9\ndata: " + b"x" * 20_000 + b"\ndata: }\n\n"
    for chunks in ([big + b"data: 1\n\n"], one_by_one(big + b"data: 1\n\n")):
        told, ended, following = read(chunks, LIMIT)
        assert isinstance(told, SkippedMessage)
        assert isinstance(ended, SkippedMessage)
        assert "more than 12 bytes" in told.reason
        assert not told.tail
        assert told.head == ended.head == b"x" * len(told.head)
        assert 12 < len(told.head) <= 256
        assert ended.size == 20_002
        assert ended.tail == b"x" * 254 + b"\n}"
        assert following == ServerSentEvent(b"1")


def test_a_stream_is_resumed_after_an_oversized_event() -> None:
    parser = SSEParser(LIMIT)
    parser.feed(b"id: 8\n\ndata: " + b"x" * 40 + b"\nid: 9\n")
    assert parser.last_id == "8"
    parser.feed(b"\n")
    assert parser.last_id == "9"


def test_an_endless_event_is_reported_before_it_ends() -> None:
    parser = SSEParser(LIMIT)
    assert parser.feed(b"data: " + b"x" * 12) == []
    assert parser.feed(b"x" * 9_000) != []
    assert parser.feed(b"x" * 9_000) == []


def test_an_endless_comment_costs_nothing_and_loses_nothing() -> None:
    assert read([b"data: 1\n:", *[b"x" * 9_000] * 9, b"\n\n"], LIMIT) == [ServerSentEvent(b"1")]


def test_data_of_exactly_the_limit_is_an_event() -> None:
    assert read([encode(b"x" * LIMIT)], LIMIT) == [ServerSentEvent(b"x" * LIMIT)]


@pytest.mark.parametrize("size", [1, 2, 64 << 10])
@pytest.mark.parametrize("line", [b"", b"\ndata:"], ids=["one line", "many lines"])
def test_time_is_linear_in_the_length_of_an_event(size: int, line: bytes) -> None:
    def feed(total: int) -> None:
        parser, piece = SSEParser(1 << 30), b"x" * size + line
        parser.feed(b"data:")
        for _ in range(total // size):
            parser.feed(piece)
        (event,) = parser.feed(b"\n\n")
        assert isinstance(event, ServerSentEvent)
        assert event.data.count(b"x") == total // size * size

    assert_linear(feed, (64 << 10) if size < 100 else (8 << 20), 8)
