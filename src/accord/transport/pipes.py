"""Lines over two file descriptors of any kind: the common part of stdio and child processes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from accord.errors import ConnectionLost
from accord.limits import DEFAULT_LIMITS, Limits
from accord.transport.base import Message
from accord.transport.inbox import Inbox
from accord.transport.readers import DescriptorReader, read_from
from accord.transport.writers import DescriptorWriter, write_to
from accord.wire.lines import LineReader

_LINGER = 0.5


class LineTransport:
    """Messages as lines over two descriptors that a subclass provides in `open`.

    Reading pauses only while `Limits.pending_bytes` of messages wait to be received. If the peer stops reading, its
    remaining messages are received before the end.
    """

    def __init__(self, name: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self._name = name
        self._limits = limits
        self._lines = LineReader(limits.line_bytes)
        self._inbox = Inbox(limits.pending_bytes, self._on_capacity)
        self._unfinished = 0  # bytes read since the last complete message
        self._read_count = 0
        self._paused = False
        self._peer_stopped_reading = False  # whether the peer no longer reads
        self._receiver_flushes = False
        self._reader: DescriptorReader | None = None
        self._writer: DescriptorWriter | None = None

    @property
    def name(self) -> str:
        return self._name

    async def open(self) -> None:
        raise NotImplementedError  # subclasses implement it

    def _start(self, read_fd: int, write_fd: int) -> None:
        """Take ownership of both descriptors, which must be different."""
        self._writer = write_to(write_fd, self._on_write_failed)
        self._reader = read_from(read_fd, self._on_data, self._on_end)

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        if self._inbox.is_processing and self._writer is not None:  # this receiver does not flush after a batch
            self._writer.flush()
        return self._inbox.get()

    def send(self, message: bytes) -> None:
        if self._writer is not None:
            self._writer.send(message)
            if not (self._receiver_flushes and self._inbox.is_processing):
                self._writer.flush_soon()

    def send_now(self, message: bytes) -> None:
        """Write a message with all queued ones. Unlike `send`, it schedules no callback for the end of the step."""
        if self._writer is not None:
            self._writer.send(message)
            self._writer.flush()

    def flush(self) -> None:
        # A receiver that flushes after one batch does so after each: messages sent in the meantime can wait for it,
        # which saves a step of the event loop per batch (5 µs of 54).
        if self._inbox.is_processing:
            self._receiver_flushes = True
            self._inbox.is_processing = False
        if self._writer is not None:
            self._writer.flush()

    async def drain(self) -> None:
        writer = self._writer
        if writer is not None and writer.pending >= self._limits.pending_bytes:
            await writer.drain(self._limits.pending_bytes)

    async def close(self) -> None:
        try:
            await self._close_sending()
        finally:
            self._inbox.end()
            if self._reader is not None:
                self._reader.close()

    async def _close_sending(self) -> None:
        """Write the queued messages, as far as the peer reads them in time, then let the peer see the end."""
        if self._writer is None:
            return
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await self._writer.drain(1)
        except TimeoutError:
            return  # the rest is dropped
        finally:
            self._writer.close()

    def _on_write_failed(self) -> None:
        self._peer_stopped_reading = True
        self._linger()

    def _linger(self) -> None:
        """End the connection as soon as the peer, which no longer reads, has been silent for a moment."""
        if not self._inbox.ended:
            loop = asyncio.get_running_loop()
            loop.call_later(_LINGER, self._end_if_silent_since, self._read_count)

    def lost(self) -> ConnectionLost:
        return ConnectionLost(f"{self._name}: the other side has closed the connection")

    def _on_data(self, data: bytes) -> None:
        self._read_count += 1
        self._unfinished += len(data)
        if messages := self._lines.feed(data):
            self._inbox.put(messages, self._unfinished)
            self._unfinished = 0
            if self._inbox.full and self._reader is not None:
                self._paused = True
                self._reader.pause()

    def _on_capacity(self) -> None:
        if self._paused and self._reader is not None:
            self._paused = False
            self._read_count += 1
            self._reader.resume()

    def _on_end(self) -> None:
        self._inbox.put(self._lines.end(), self._unfinished)
        self._inbox.end()

    def _end_if_silent_since(self, read_count: int) -> None:
        if read_count == self._read_count and not self._paused:
            self._inbox.end()
        else:
            self._linger()


class PipeTransport(LineTransport):
    """Messages as lines, read from one open descriptor and written to another; the transport owns both."""

    def __init__(self, read_fd: int, write_fd: int, *, limits: Limits = DEFAULT_LIMITS, name: str = "pipes") -> None:
        super().__init__(name, limits)
        self._fds = read_fd, write_fd

    async def open(self) -> None:
        self._start(*self._fds)

    async def close(self) -> None:
        if self._reader is None:  # not opened
            self._start(*self._fds)
        await super().close()
