"""What the inspector records: rows in an index, bytes in a file, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from accord import Client
from accord.inspector.traffic.index import KINDS
from accord.inspector.traffic.recording import TrafficRecording
from accord.testing.recording import read_recorded

from tests.testing.shops import shop


async def test_each_entry_of_the_file_is_a_row(tmp_path: Path) -> None:
    changes: list[int] = []
    recording = TrafficRecording(tmp_path / "f.jsonl", on_change=changes.append)
    async with Client(shop(), record=recording.recorder) as client:
        await client.call_tool("price", {"item": "bread"})
    await recording.written()
    entries = read_recorded(recording.file).entries
    index = recording.index
    assert len(index) == len(entries)
    assert [index.times[row] for row in range(len(index))] == [entry.at for entry in entries]
    content = recording.file.read_bytes()
    for row in range(len(index)):
        line = content[index.places[row] : index.places[row] + index.lengths[row]]
        assert line.startswith(b'{"kind":')
        assert line.endswith(b"}\n")
    assert KINDS[index.kinds[0]] == "connected"
    assert changes
    assert changes[-1] <= len(index)
    await recording.close()


async def test_two_clients_record_to_one_index(tmp_path: Path) -> None:
    recording = TrafficRecording(tmp_path / "f.jsonl", on_change=lambda rows: None)
    async with Client(shop(), record=recording.recorder), Client(shop(), record=recording.recorder):
        pass
    await recording.written()
    assert set(recording.index.connections) == {1, 2}
    await recording.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
async def test_a_full_disk_ends_the_recording_and_not_the_connection(tmp_path: Path) -> None:
    recording = TrafficRecording(tmp_path / "f.jsonl", on_change=lambda rows: None)
    async with Client(shop(), record=recording.recorder) as client:
        await recording.written()
        (tmp_path / "f.jsonl").unlink()
        (tmp_path / "f.jsonl").symlink_to("/dev/full")
        recording._queue._writer._close()
        assert (await client.call_tool("price", {"item": "bread"})).text == "2.0"
        await recording.written()
        assert "No space left on device" in recording.error
        assert (await client.call_tool("price", {"item": "bread"})).text == "2.0"
    await recording.close()


async def test_the_size_of_the_file_is_limited(tmp_path: Path) -> None:
    recording = TrafficRecording(tmp_path / "f.jsonl", limit=4_000, on_change=lambda rows: None)
    async with Client(shop(), record=recording.recorder) as client:
        for _ in range(20):
            await client.call_tool("price", {"item": "bread"})
    await recording.written()
    assert recording.file.stat().st_size <= 4_000
    assert KINDS[recording.index.kinds[len(recording.index) - 1]] == "limit"
    await recording.close()
