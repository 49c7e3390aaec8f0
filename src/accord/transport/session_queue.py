"""The queue before a session file: a thread of its own redacts and writes, so that a connection does not wait for it.

Redaction takes up to a second for a megabyte of small JSON objects, if a word in it may be a secret name. The
queue is bounded in bytes: while it `is_full`, the recorded connections receive nothing and let the peer wait. Who
cannot wait, such as the stderr of a process, loses what exceeds twice that size, and the file says so. A program that
is killed loses what is in the queue; one that exits does not.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

from accord.transport.session_writer import SessionFileWriter
from accord.wire.session_file import Entry, MessageEntry, RemarkEntry, SessionHeader

QUEUE_BYTES = 8 << 20
"""Bytes in the queue from which on connections wait."""
_ENTRY_BYTES = 1_000
"""Bytes of memory of an entry without its message."""
_EXIT_SECONDS = 60.0
"""How long a program that exits waits for its recording."""
_IDLE_SECONDS = 1.0

_queues: weakref.WeakSet[SessionQueue] = weakref.WeakSet()


class SessionQueue:
    """A `SessionSink` that passes everything on to `writer`, in order, in a thread that runs while there is work."""

    def __init__(self, writer: SessionFileWriter, size: int = QUEUE_BYTES) -> None:
        self._writer = writer
        self._limit = size
        self._entries: deque[Entry | list[str]] = deque()
        self._bytes = 0
        self._count = 0
        self._written = 0
        self._skipped = 0
        self._waiting: deque[tuple[int, Callable[[], object]]] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._thread: threading.Thread | None = None
        _queues.add(self)

    @property
    def is_full(self) -> bool:
        """Return whether connections should wait (`wait`) before they receive more."""
        return self._bytes > self._limit

    def begin(self, header: SessionHeader) -> None:
        """Create the file. Raises `ConnectError` if that fails."""
        self.flush()
        self._writer.begin(header)

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """See `SessionSink`."""
        self._put(list(secrets), 0)

    def write(self, entry: Entry) -> None:
        """Add an entry to the queue."""
        self._put(entry, _size(entry))

    async def wait(self) -> None:
        """Wait until what is in the queue now is in the file."""
        loop = asyncio.get_running_loop()
        written = loop.create_future()
        self._when_written(lambda: _report(loop, written))
        await written

    def flush(self) -> None:
        """Block until what is in the queue now is in the file."""
        written = threading.Event()
        self._when_written(written.set)
        written.wait(_EXIT_SECONDS)

    def end(self) -> None:
        """End the recording, after `flush` or `wait`: nothing more is written."""
        self._writer.end()

    def _put(self, item: Entry | list[str], size: int) -> None:
        with self._changed:
            if self._bytes > 2 * self._limit and not isinstance(item, list):
                self._skipped += 1
                return
            if self._skipped and not isinstance(item, list):
                self._append(_remark(item, self._skipped), _ENTRY_BYTES)
                self._skipped = 0
            self._append(item, size)

    def _append(self, item: Entry | list[str], size: int) -> None:
        self._entries.append(item)
        self._count += 1
        self._bytes += size
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="accord-recording", daemon=True)
            self._thread.start()
        else:
            self._changed.notify()

    def _when_written(self, call: Callable[[], object]) -> None:
        with self._changed:
            if self._thread is not None and self._written < self._count:
                self._waiting.append((self._count, call))
                return
        call()

    # --- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (item := self._next()) is not None:
                if isinstance(item, list):
                    self._writer.add_secrets(item)
                else:
                    self._writer.write(item)
                self._finish(0 if isinstance(item, list) else _size(item))
        finally:  # also after an error, which the interpreter reports
            with self._changed:
                if self._thread is threading.current_thread():
                    self._thread = None
                self._release(len(self._waiting))

    def _next(self) -> Entry | list[str] | None:
        """Return the next item, or None if there is none for a while; the thread then ends."""
        with self._changed:
            if not self._entries and self._writer.is_open:
                self._changed.wait(_IDLE_SECONDS)
            if not self._entries:
                self._thread = None
                return None
            return self._entries.popleft()

    def _finish(self, size: int) -> None:
        with self._changed:
            self._bytes -= size
            self._written += 1
            self._release(sum(count <= self._written for count, _ in self._waiting))

    def _release(self, number: int) -> None:
        for _ in range(number):
            self._waiting.popleft()[1]()

    def _abandon(self) -> None:
        """Forget the recording in a forked process: it goes on in the other one."""
        self._entries.clear()
        self._waiting.clear()
        self._changed = threading.Condition(threading.Lock())
        self._bytes = self._written = self._count = 0
        self._thread = None
        self._writer.end()


def _size(entry: Entry) -> int:
    if not isinstance(entry, MessageEntry):
        return _ENTRY_BYTES
    return _ENTRY_BYTES + len(entry.message or entry.text or entry.base64 or b"")


def _remark(entry: Entry, skipped: int) -> RemarkEntry:
    text = f"{skipped} entries were not recorded: they came faster than they can be written"
    return RemarkEntry(at=entry.at, connection=entry.connection, text=text)


def _report(loop: asyncio.AbstractEventLoop, written: asyncio.Future[None]) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(_resolve, written)


def _resolve(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)


def _flush_all() -> None:
    for queue in list(_queues):
        queue.flush()


def _abandon_all() -> None:
    for queue in list(_queues):
        queue._abandon()


atexit.register(_flush_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
