"""Lines of a session file in the index: none of them, whatever a peer wrote, ends the recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import UNSET

from accord.inspector.traffic.indexed_line import decode_line
from accord.inspector.traffic.recording import TrafficRecording


@pytest.mark.parametrize("params", ['{"inputResponses":{"a":{"n":1e400}}}', '{"name":{"n":-1e999}}', '{"level":1e400}'])
def test_a_number_beyond_every_float_hides_only_itself(params: str) -> None:
    line = decode_line(
        b'{"kind":"message","at":1.0,"connection":1,"direction":"sent",'
        b'"message":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":%b}}' % params.encode()
    )
    assert line.message is not UNSET
    assert (line.message.id, line.message.method) == (7, "tools/call")


@pytest.mark.parametrize("id", [b"1e400", b"9" * 5_000])
def test_an_unusual_id_has_a_row(id: bytes) -> None:
    line = decode_line(b'{"kind":"message","connection":1,"direction":"sent","message":{"id":%b}}' % id)
    assert (line.kind, line.connection) == ("message", 1)


async def test_a_message_that_is_nested_too_deep_does_not_end_the_recording(tmp_path: Path) -> None:
    recording = TrafficRecording(tmp_path / "traffic.jsonl", on_change=lambda rows: None)
    connection = recording.recorder.connection()
    for data in (b'{"id":%b1%b}' % (b"[" * 5_000, b"]" * 5_000), b'{"id":1}'):
        connection.message(data, "received")
    await recording.written()
    assert len(recording.index) >= 1
    await recording.close()
