"""A transport that records the messages of another one in a transcript."""

from __future__ import annotations

import time
from collections.abc import Callable

from accord.errors import ConnectionLost
from accord.transport.base import Message, SkippedMessage, Transport, UnansweredRequest, has_headers, is_lossy
from accord.wire.headers import Mirrored
from accord.wire.transcript import RECEIVED, SENT, Direction, Transcript, TranscriptEntry


class RecordingTransport:
    """A transport that passes everything on to `inner`; `transcript` has the sent and received messages."""

    def __init__(self, inner: Transport, transcript: Transcript) -> None:
        self._inner = inner
        self.transcript = transcript

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def mirrors(self) -> Callable[[str], Mirrored] | None:
        """Return that of `inner`; the attribute exists only if `inner` has headers."""
        if not has_headers(self._inner):
            raise AttributeError(f"{self.name} has no headers")
        return self._inner.mirrors

    @mirrors.setter
    def mirrors(self, mirrors: Callable[[str], Mirrored] | None) -> None:
        if has_headers(self._inner):
            self._inner.mirrors = mirrors

    @property
    def on_missed(self) -> Callable[[str], None] | None:
        """Return that of `inner`; the attribute exists only if `inner` is lossy."""
        if not is_lossy(self._inner):
            raise AttributeError(f"{self.name} has no gaps")
        return self._inner.on_missed

    @on_missed.setter
    def on_missed(self, on_missed: Callable[[str], None] | None) -> None:
        if is_lossy(self._inner):
            self._inner.on_missed = on_missed

    async def open(self) -> None:
        await self._inner.open()

    async def receive(self) -> list[Message]:
        messages = await self._inner.receive()
        for message in messages:
            if isinstance(message, UnansweredRequest):
                self._record(RECEIVED, SkippedMessage(f"no answer to {message.id!r}: {message.error}", 0))
            elif isinstance(message, bytes) or not message.tail:  # the end of a message that is already recorded
                self._record(RECEIVED, message)
        return messages

    def send(self, message: bytes) -> None:
        self._record(SENT, message)
        self._inner.send(message)

    def flush(self) -> None:
        self._inner.flush()

    async def drain(self) -> None:
        await self._inner.drain()

    async def close(self) -> None:
        await self._inner.close()

    def lost(self) -> ConnectionLost:
        return self._inner.lost()

    def _record(self, direction: Direction, message: bytes | SkippedMessage) -> None:
        self.transcript.add(TranscriptEntry(direction, message, time.monotonic()))
