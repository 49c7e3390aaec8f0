"""`TrafficRecording`: what the inspector records, as a session file, its index, and the recorder for `Client`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from accord.inspector.traffic.index import LIMIT, TrafficIndex
from accord.transport.recording import SessionRecorder
from accord.transport.session_queue import SessionQueue
from accord.transport.session_writer import SessionFileWriter
from accord.wire.session_file import SessionFileError

RECORDING_BYTES = 1 << 30
"""The maximum size of the session file of the inspector, in bytes."""


class TrafficRecording:
    """The recording of all connections: `Client(target, record=recording.recorder)`.

    `on_change(rows)` is called on the event loop of the clients, after rows were added, however many. `redacted` is
    decided before anything is recorded. Raises `ConnectError` if the file cannot be written.
    """

    def __init__(
        self, file: Path, *, limit: int = RECORDING_BYTES, redacted: bool = True, on_change: Callable[[int], None]
    ) -> None:
        self.file: Path = file
        self.redacted: bool = redacted
        self.index: TrafficIndex = TrafficIndex()
        self.error: str = ""
        """Why the recording ended, if it did."""
        self._limit = limit
        self._on_change = on_change
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_announced = False
        writer = SessionFileWriter(file, limit=limit, redacted=redacted, on_line=self._on_line, on_error=self._on_error)
        self._queue = SessionQueue(writer)
        self._recorder = SessionRecorder(self._queue)
        self._recorder.begin("accord inspect")

    @property
    def recorder(self) -> SessionRecorder:
        """Return the recorder for clients of the running event loop."""
        self._loop = asyncio.get_running_loop()
        return self._recorder

    @property
    def remark(self) -> str:
        """Return what is missing in the recording; empty if it has everything."""
        index = self.index
        if len(index) and index.kinds[len(index) - 1] == LIMIT:
            return f"the recording reached its maximum size of {self._limit:,} bytes; what follows is not recorded"
        return self.error or ("" if index.is_complete else "not all entries of the file are shown")

    async def written(self) -> None:
        """Wait until everything until now is in the file and in the index."""
        await self._queue.wait()

    async def close(self) -> None:
        """End the recording; what was recorded is in the file."""
        await self._queue.wait()
        self._queue.end()

    # --- in the thread that writes -----------------------------------------------------------------------------

    def _on_line(self, line: bytes, place: int) -> None:
        try:
            self.index.add_line(line, place)
        except SessionFileError:  # nested too deep: it is in the file, but has no row
            self.index.is_complete = False
        self._announce()

    def _on_error(self, error: str) -> None:
        self.error = error
        self._announce()

    def _announce(self) -> None:
        if self._loop is not None and not self._is_announced:
            self._is_announced = True
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._report)

    def _report(self) -> None:
        self._is_announced = False
        self._on_change(len(self.index))
