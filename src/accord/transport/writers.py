"""Writing messages as lines: those queued in one step of the event loop are written together, without blocking.

Small messages are joined into one write; large ones are written without a copy.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import deque
from collections.abc import Callable
from itertools import islice

from accord.transport.descriptors import Buffer, WritableDescriptor, blocks, open_writable

_LARGE = 64 << 10
_AT_ONCE = 64  # buffers in one system call


class DescriptorWriter:
    """Base class of the two kinds: the queue, and the wait until it is short."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_gone: Callable[[], None]) -> None:
        self._loop = loop
        self._on_gone = on_gone
        self._queue: list[bytes] = []
        self._pending = 0
        self._progress = asyncio.Event()
        self._flush_is_due = False
        self._closed = False

    def send(self, message: bytes) -> None:
        """Queue a message for the next `flush`."""
        if not self._closed:
            self._queue.append(message)
            self._pending += len(message) + 1

    @property
    def pending(self) -> int:
        """Return how many bytes are queued or passed to the descriptor, but not written."""
        return self._pending

    def flush_soon(self) -> None:
        """Flush at the end of this step of the loop, once for all messages until then."""
        if not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush_now)

    def flush(self) -> None:
        raise NotImplementedError  # subclasses implement it

    async def drain(self, bound: int) -> None:
        """Wait until less than `bound` bytes are pending, or the peer no longer reads."""
        self.flush()
        while self._pending >= bound and not self._closed:
            self._progress.clear()
            await self._progress.wait()

    def close(self) -> None:
        """Drop the pending messages, and close the descriptor."""
        if not self._closed:
            self._closed = True
            self._queue = []
            self._progress.set()
            self._release()

    def _release(self) -> None:
        raise NotImplementedError  # subclasses implement it

    def _flush_now(self) -> None:
        self._flush_is_due = False
        self.flush()

    def _on_write_failed(self) -> None:
        if not self._closed:
            self.close()
            self._on_gone()


class LoopWriter(DescriptorWriter):
    """Writer for pipes and sockets."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, target: WritableDescriptor, on_gone: Callable[[], None]
    ) -> None:
        super().__init__(loop, on_gone)
        self._sink = target
        self._write_some = target.write
        self._unsent: deque[Buffer] = deque()  # buffers that the descriptor has not accepted yet

    def flush(self) -> None:
        if self._queue and not self._unsent:
            self._unsent.extend(_buffers(self._queue))
            self._queue = []
            if not self._write():
                self._loop.add_writer(self._sink.fd, self._on_writable)

    def _on_writable(self) -> None:
        if self._write():
            self._loop.remove_writer(self._sink.fd)
            self.flush()

    def _write(self) -> bool:
        """Write what the descriptor accepts; return whether nothing is left to wait for."""
        unsent = self._unsent
        try:
            while unsent:
                written = self._write_some(unsent if len(unsent) <= _AT_ONCE else list(islice(unsent, _AT_ONCE)))
                self._pending -= written
                self._progress.set()
                if written == len(unsent[0]):  # nearly always: all of it at once
                    unsent.popleft()
                else:
                    _drop(unsent, written)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:  # EPIPE, ECONNRESET: the peer no longer reads
            self._loop.call_soon(self._on_write_failed)
            unsent.clear()
        return True

    def _release(self) -> None:
        self._loop.remove_writer(self._sink.fd)
        self._unsent.clear()
        self._sink.close()


class ThreadWriter(DescriptorWriter):
    """Writer for files, terminals and Windows: one daemon thread, which never keeps the process alive."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, on_gone: Callable[[], None]) -> None:
        super().__init__(loop, on_gone)
        self._fd = fd
        self._to_write: queue.SimpleQueue[list[Buffer]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=f"accord writer of fd {fd}", daemon=True).start()

    def flush(self) -> None:
        if self._queue:
            self._to_write.put(_buffers(self._queue))
            self._queue = []

    def _release(self) -> None:
        self._to_write.put([])

    def _run(self) -> None:
        try:
            while buffers := self._to_write.get():
                for buffer in buffers:
                    self._write_whole(memoryview(buffer))
        except OSError:
            self._call_in_loop(self._on_write_failed)
        except RuntimeError:  # the loop is closed
            pass
        finally:
            os.close(self._fd)

    def _write_whole(self, rest: memoryview) -> None:
        while rest:
            written = os.write(self._fd, rest)
            rest = rest[written:]
            self._loop.call_soon_threadsafe(self._on_written, written)

    def _on_written(self, size: int) -> None:
        self._pending -= size
        self._progress.set()

    def _call_in_loop(self, function: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)


def write_to(fd: int, on_gone: Callable[[], None]) -> DescriptorWriter:
    """Take ownership of `fd` for writing, in the running loop; `on_gone` is called when the peer no longer reads."""
    loop = asyncio.get_running_loop()
    if blocks(fd):
        return ThreadWriter(loop, fd, on_gone)
    return LoopWriter(loop, open_writable(fd), on_gone)


def _buffers(messages: list[bytes]) -> list[Buffer]:
    """Return the lines of `messages`: small ones joined, large ones unchanged."""
    if max(map(len, messages)) < _LARGE:
        return [b"\n".join(messages) + b"\n"]
    buffers: list[Buffer] = []
    small: list[bytes] = []
    for message in messages:
        if len(message) < _LARGE:
            small.append(message)
            continue
        buffers += [b"\n".join([*small, b""]), message, b"\n"]
        small = []
    if small:
        buffers.append(b"\n".join([*small, b""]))
    return [buffer for buffer in buffers if buffer]


def _drop(buffers: deque[Buffer], size: int) -> None:
    while size:
        first = buffers.popleft()
        if size < len(first):
            buffers.appendleft(memoryview(first)[size:])
            return
        size -= len(first)
