"""Chunked bodies: how much work their framing may be. What they mean is in the recorded conversations."""

from __future__ import annotations

import pytest

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
