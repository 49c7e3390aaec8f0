"""Chunked bodies: how much work their framing may be. What they mean is in the recorded conversations."""

from __future__ import annotations

import pytest

from accord.wire.http1 import chunked
from accord.wire.http1.chunked import LEAST_BYTES, SMALL_CHUNKS, ChunkedReader
from accord.wire.http1.lines import UnacceptableRequest


def read(chunk: bytes, count: int) -> ChunkedReader:
    reader = ChunkedReader(1000, 10, 0, 0)
    for _ in range(count):
        framed = b"%x\r\n%b\r\n" % (len(chunk), chunk)
        assert reader.read(framed, 0, []) == len(framed)
    return reader


def test_so_many_chunks_of_one_byte_are_read_and_then_no_more() -> None:
    enough = SMALL_CHUNKS + SMALL_CHUNKS // LEAST_BYTES
    read(b"x", enough)
    with pytest.raises(UnacceptableRequest) as refused:
        read(b"x", enough + 2)
    assert refused.value.status == 413


def test_chunks_that_are_not_small_are_read_in_any_number() -> None:
    read(b"x" * LEAST_BYTES, 10 * SMALL_CHUNKS)


def test_what_follows_the_body_is_left() -> None:
    chunks: list[bytes] = []
    reader = ChunkedReader(1000, 10, 0, 0)
    sent = b"??2\r\nhi\r\n1\r\n!\r\n0\r\na: b\r\n\r\nGET"
    assert reader.read(sent, 2, chunks) == len(sent) - 3
    assert (b"".join(chunks), reader.over) == (b"hi!", True)


@pytest.mark.parametrize("size", [1, 100])
def test_chunks_that_are_complete_are_parsed_in_one_step_each(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four connections with tiny chunks delayed all others."""
    lines: list[bytes] = []
    end_of_line = chunked.end_of_line

    def counting(data: bytes, start: int, seen: int, stop: int) -> int:
        lines.append(data[start:stop])
        return end_of_line(data, start, seen, stop)

    monkeypatch.setattr(chunked, "end_of_line", counting)
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    reader, chunks = ChunkedReader(1000, 10, 0, 0), list[bytes]()
    reader.read(chunk * 1000 + b"0\r\n\r\n", 0, chunks)
    assert b"".join(chunks) == b"x" * size * 1000
    assert reader.over
    assert len(lines) == 2  # of the last chunk, and of the end
