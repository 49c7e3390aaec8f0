"""SIGTERM and Ctrl-C while a server serves: the first asks for the end, a second means now.

The end comes even where the event loop is blocked: a thread sees to it. Handlers that were there before are put back.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any

from accord.transport.hangup import current_line_of, write_stderr_nowait

_SIGNALS = [signal.SIGTERM, signal.SIGINT]
if sys.platform == "win32":
    _SIGNALS.append(signal.SIGBREAK)

_STUCK = 1
"""Exit code of a process whose event loop did not react."""


class ShutdownSignals:
    """Enter it on the loop that runs. `requested` is set when the end is asked for; `seconds` is how long that may
    take.

    Only the main thread hears signals: on another one, `requested` stays unset.
    """

    def __init__(self, seconds: float) -> None:
        self.requested: asyncio.Event = asyncio.Event()
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._serving = threading.get_ident()
        self._previous_handlers: dict[int, Any] = {}
        self._over = threading.Event()
        self._write = -1
        self._number = 0

    def __enter__(self) -> ShutdownSignals:
        if threading.current_thread() is threading.main_thread():
            read, self._write = os.pipe()
            threading.Thread(target=self._watch, args=(read,), name="accord stop watch", daemon=True).start()
            # Not `loop.add_signal_handler`: a loop that is blocked would never call it.
            self._previous_handlers = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._over.set()
        if self._write >= 0:
            os.close(self._write)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._number:
            os._exit(128 + number)
        self._number = number
        os.write(self._write, b"!")  # a signal may come amid anything: the rest is for the thread

    def _watch(self, read: int) -> None:
        asked = os.read(read, 1)
        os.close(read)
        if not asked:
            return
        with suppress(RuntimeError):  # the loop is closed, it is over
            self._loop.call_soon_threadsafe(self.requested.set)
        if not self._over.wait(self._seconds):
            write_stderr_nowait(
                f"accord: the server did not end within {self._seconds:g} s, its event loop is at "
                f"{current_line_of(self._serving)}; the process ends\n"
            )
            os._exit(_STUCK)
