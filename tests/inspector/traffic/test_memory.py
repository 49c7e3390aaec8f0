"""The index takes little memory, and only a search for a text reads the file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from accord.inspector.traffic.entry_reader import EntryReader
from accord.inspector.traffic.index import TrafficIndex
from accord.inspector.traffic.source import TrafficSource
from accord.wire.session_file import UnansweredEntry

from tests.inspector.traffic.sessions import Script

ROW_BYTES = 600


def long_session(calls: int) -> list[bytes]:
    script = Script()
    script.connected()
    for number in range(calls):
        script.request(f"request-{number}", "tools/call", name=f"tool {number}", arguments={"text": "x" * 1_000})
        script.result(f"request-{number}", content=[{"type": "text", "text": "y" * 1_000}])
    return script.content().splitlines(keepends=True)


def test_a_row_takes_little_memory_whatever_the_size_of_its_message() -> None:
    lines = long_session(5_000)
    index = TrafficIndex()
    tracemalloc.start()
    try:
        place = 0
        for line in lines:
            index.add_line(line, place)
            place += len(line)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(index) == 10_001
    assert used / len(index) < ROW_BYTES


def test_a_request_without_a_response_takes_little_memory_whatever_the_length_of_its_id() -> None:
    script = Script()
    script.connected()
    for number in range(100):
        long_id = f"{number}" + "x" * 100_000
        script.message({"jsonrpc": "2.0", "id": long_id, "method": "roots/list"}, "received")
        script.add(UnansweredEntry, request=f"other {long_id}", reason="lost")
    lines = script.content().splitlines(keepends=True)
    index = TrafficIndex()
    tracemalloc.start()
    try:
        for line in lines:
            index.add_line(line, 0)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(index) == 201
    assert used < 1_000_000


async def test_only_a_text_search_reads_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = long_session(50)
    index = TrafficIndex()
    for line in lines:
        index.add_line(line, 0)
    source = TrafficSource("x", tmp_path / "missing.jsonl", index)
    monkeypatch.setattr(EntryReader, "line", None)
    for text in ("method:tools/call status:ok", "time>1ms", "name:*7 kind:request size>1kB", "-id:request-3"):
        assert len(await source.rows(text)) > 0
    with pytest.raises(FileNotFoundError):
        await source.rows("text")
