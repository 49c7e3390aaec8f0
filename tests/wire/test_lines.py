from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from accord.wire.lines import LineReader, SkippedMessage

from tests.measure import assert_linear

LIMIT = 12


def read(chunks: list[bytes], limit: int = LIMIT) -> list[bytes | SkippedMessage]:
    reader = LineReader(limit)
    found = [message for chunk in chunks for message in reader.feed(chunk)]
    return found + reader.end()


def one_by_one(data: bytes) -> list[bytes]:
    return [bytes([byte]) for byte in data]


def plainly(data: bytes) -> list[bytes | None]:
    """What the rules say, in three lines: two None stand for a line that is too long, and for its end."""
    lines = data.split(b"\n")
    lines = [line for line in lines if line and (len(line) > LIMIT or not line.isspace())]
    return [each for line in lines for each in ([None, None] if len(line) > LIMIT else [line])]


pieces = st.sampled_from([b"\n", b"\r\n", b"{}", b'"a"', b" ", b"\t", b"\xe2\x80\xa8", b"\xff", b"x" * 7, b"y" * 30])


@given(st.lists(pieces, max_size=30).map(b"".join), st.data())
def test_any_chunking_gives_the_same_lines(data: bytes, draw: st.DataObject) -> None:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(data)), max_size=8)))
    edges = [0, *cuts, len(data)]
    chunked = read([data[a:b] for a, b in pairwise(edges)])
    shapes = [message if isinstance(message, bytes) else None for message in chunked]
    assert shapes == plainly(data)
    whole = [message if isinstance(message, bytes) else None for message in read(one_by_one(data))]
    assert whole == shapes


@pytest.mark.parametrize("split", [one_by_one, lambda data: [data]])
def test_lines_end_at_newline_only(split: object) -> None:
    data = '"a\u2028b"\n"c\rd"\r\n"\x85"\n'.encode()
    assert callable(split)
    assert read(split(data)) == ['"a\u2028b"'.encode(), b'"c\rd"\r', '"\x85"'.encode()]


def test_blank_lines_are_no_messages() -> None:
    assert read([b"\n\r\n  \n\t\n{}\n\n"]) == [b"{}"]


def test_rest_without_newline_is_a_message_at_the_end() -> None:
    reader = LineReader(LIMIT)
    assert reader.feed(b"{}\n[") == [b"{}"]
    assert reader.feed(b"]") == []
    assert reader.end() == [b"[]"]
    assert reader.end() == []


def test_an_oversized_line_and_then_its_end_are_reported_and_the_next_is_read() -> None:
    for chunks in ([b"x" * 40 + b"\n{}\n"], one_by_one(b"x" * 40 + b"\n{}\n")):
        told, ended, following = read(chunks)
        assert isinstance(told, SkippedMessage)
        assert "more than 12 bytes" in told.reason
        assert LIMIT < told.size <= 40
        assert not told.tail
        assert isinstance(ended, SkippedMessage)
        assert (ended.reason, ended.size, ended.head) == (told.reason, 40, told.head)
        assert following == b"{}"


@given(
    st.binary(min_size=1, max_size=9_000).map(lambda data: data.replace(b"\n", b" ")),
    st.lists(st.integers(0, 9_000), max_size=5),
    st.integers(0, 8_000),
)
def test_the_beginning_and_the_end_of_an_oversized_line_are_stored(data: bytes, cuts: list[int], limit: int) -> None:
    data = data.ljust(limit + 1, b"-")
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    told, ended = read([data[a:b] for a, b in pairwise(edges)], limit)
    assert isinstance(told, SkippedMessage)
    assert isinstance(ended, SkippedMessage)
    assert told.head == ended.head == data[: len(told.head)]
    assert len(told.head) == min(256, told.size)
    assert ended.tail == data[-256:]


def test_an_endless_line_is_reported_before_it_ends() -> None:
    reader = LineReader(LIMIT)
    assert [type(message) for message in reader.feed(b"x" * 40)] == [SkippedMessage]
    assert reader.feed(b"x" * 40) == []
    (ended,) = reader.end()
    assert isinstance(ended, SkippedMessage)
    assert ended.size == 80
    assert reader.end() == []


def test_a_line_of_exactly_the_limit_is_a_message() -> None:
    assert read([b"x" * LIMIT + b"\n"]) == [b"x" * LIMIT]


@pytest.mark.parametrize("size", [1, 2, 64 << 10])
def test_time_is_linear_in_the_length_of_a_line(size: int) -> None:
    def feed(total: int) -> None:
        reader, piece = LineReader(1 << 30), b"x" * size
        for _ in range(total // size):
            reader.feed(piece)
        assert [len(message) for message in reader.feed(b"\n") if isinstance(message, bytes)] == [total]

    assert_linear(feed, (64 << 10) if size < 100 else (8 << 20), 8)
