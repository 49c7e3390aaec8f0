"""`Recording`: what a client and its server say to each other, to be played again."""

from __future__ import annotations

from pathlib import Path

from accord.testing.files import write_expected
from accord.transport.base import Transport
from accord.transport.recording import RecordingTransport
from accord.wire.transcript import Transcript


class Recording:
    """Records a client: `Client(target, record=recording)`, and after it `recording.save(file)`.

    A connection that is opened again is recorded from its beginning; what the one before it said is dropped.
    """

    def __init__(self) -> None:
        self.transcript: Transcript = Transcript()
        """What was said, on the last connection."""

    def __call__(self, inner: Transport) -> Transport:
        self.transcript = Transcript()
        return RecordingTransport(inner, self.transcript)

    def save(self, file: str | Path) -> None:
        """Write the transcript. Raises `ValueError` where nothing was said, or so much that not all was kept."""
        if not len(self.transcript):
            raise ValueError("nothing was recorded; make the client with record=recording, and connect it")
        if self.transcript.dropped:
            raise ValueError(f"too long to be played: {self.transcript.dropped:,} messages were dropped")
        write_expected(Path(file), self.transcript.render())
