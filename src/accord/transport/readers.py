"""Reading a descriptor: by the event loop where possible, else by a thread."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Protocol

from accord.transport.descriptors import READ_SIZE, ReadableDescriptor, blocks, open_readable


class DescriptorReader(Protocol):
    """A descriptor that is read until it is closed; reading can be paused."""

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


def read_from(fd: int, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> DescriptorReader:
    """Take ownership of `fd`, and pass its bytes to `on_data` in the running loop; `on_end` is called once."""
    loop = asyncio.get_running_loop()
    if blocks(fd):
        return ThreadReader(loop, fd, on_data, on_end)
    return LoopReader(loop, open_readable(fd), on_data, on_end)


class LoopReader:
    """Reader of pipes and sockets."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        origin: ReadableDescriptor,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd, self._read, self._close = origin
        self._on_data = on_data
        self._on_end = on_end
        self._ended = False
        self.resume()

    def pause(self) -> None:
        self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self._ended:
            self._loop.add_reader(self._fd, self._on_readable)

    def close(self) -> None:
        if not self._ended:
            self._ended = True
            self._loop.remove_reader(self._fd)
            self._close()

    def _on_readable(self) -> None:
        try:
            data = self._read()
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""  # a reset connection has ended, too
        if data:
            self._on_data(data)
        else:
            self.close()
            self._on_end()


class ThreadReader:
    """Reader of files, terminals and Windows: one daemon thread, which never keeps the process alive."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        fd: int,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_data = on_data
        self._on_end = on_end
        self._closed = False
        self._may_read = threading.Event()
        self._may_read.set()
        threading.Thread(target=self._run, name=f"accord reader of fd {fd}", daemon=True).start()

    def pause(self) -> None:
        self._may_read.clear()

    def resume(self) -> None:
        self._may_read.set()

    def close(self) -> None:
        # The thread closes the descriptor: if closed here, its number could be reused during the read.
        self._closed = True
        self._may_read.set()

    def _run(self) -> None:
        data = b"."
        while data and not self._closed:
            try:
                data = os.read(self._fd, READ_SIZE)
            except OSError:
                data = b""
            self._deliver(data)
            self._may_read.wait()
        os.close(self._fd)

    def _deliver(self, data: bytes) -> None:
        processed = threading.Event()
        try:
            self._loop.call_soon_threadsafe(self._receive, data, processed)
        except RuntimeError:  # the loop is closed
            self._closed = True
            return
        # One piece at a time: unprocessed pieces would not be counted.
        while not processed.wait(1) and not self._loop.is_closed():
            continue

    def _receive(self, data: bytes, processed: threading.Event) -> None:
        if not self._closed:
            if data:
                self._on_data(data)
            else:
                self._on_end()
        processed.set()
