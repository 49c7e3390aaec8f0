"""User input, read line by line on the event loop, so that Ctrl-C and a cancelled request end the wait.

The terminal edits the line. Input from before a question is discarded, because it is no answer to it, and so is the
rest of a paste, which arrives when there is room for it.
"""

from __future__ import annotations

import asyncio
import os
import select
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Literal, TypeAlias

from accord.cli.screen import screen

DECLINE = "!"
"""Typed alone, it declines any question; so does Ctrl-D."""


_QUIET_SECONDS = 0.1
"""A question that finds no input waits so long for some."""
_PASTE_QUIET_SECONDS = 1.0
"""Input that follows discarded input sooner belongs to the same paste: a slow connection delivers it in pieces."""
_MAX_DISCARD_SECONDS = 10.0
_CUT_OFF_BYTES = 4_096
"""The length of the lines that Linux has cut off: it drops what follows, without a word."""

Complete: TypeAlias = Callable[[str], Awaitable[str | None]]
"""Returns what the typed line becomes at Tab; None to leave the Tab in it. It may print what fits."""


class PromptRefused(Exception):
    """The user declined or cancelled."""

    def __init__(self, action: Literal["decline", "cancel"] = "decline") -> None:
        super().__init__(action)
        self.action: Literal["decline", "cancel"] = action


def is_interactive() -> bool:
    """Return whether a user can see a question and answer it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


async def prompt(prompt: str) -> str:
    """Return the line that the user types. Raises `PromptRefused`."""
    line = await read_line(prompt)
    if line is None or line.strip() == DECLINE:
        raise PromptRefused
    return line


async def read_line(
    prompt: str, *, cancelled: str = "\n  (no longer asked)", complete: Complete | None = None
) -> str | None:
    """Return a line without its end; None for Ctrl-D at its beginning, or when the terminal is gone.

    `cancelled` is printed when the call is cancelled. `complete` is called for Tab.
    """
    line = b""
    try:
        with _tab_ends_input() if complete is not None else nullcontext():
            screen.print_prompt(prompt, nl=False)
            while not line.endswith(b"\n"):
                chunk = await _read_chunk(sys.stdin.fileno())
                if not chunk:  # Ctrl-D: the terminal printed no end of line; or it is gone
                    with suppress(OSError):
                        screen.print_prompt()
                    break
                if len(chunk) >= _CUT_OFF_BYTES:
                    screen.print_prompt("  the terminal has cut off this line, at 4,094 bytes: type a shorter one")
                    screen.print_prompt(prompt, nl=False)
                    line, chunk = b"", b""
                line += chunk
                if complete is not None and line.endswith(b"\t"):
                    line = await _completed(prompt, line, complete)
    except asyncio.CancelledError:  # by Ctrl-C, or because the server cancelled the request
        screen.print_prompt(cancelled)
        raise
    return line.decode(sys.stdin.encoding, "replace").rstrip("\r\n") if line else None


async def _completed(prompt: str, line: bytes, complete: Complete) -> bytes:
    """Return a line that ends with Tab as `complete` says, and print it again."""
    text = await complete(line[:-1].decode(sys.stdin.encoding, "replace"))
    if text is None:
        return line
    screen.print_prompt(f"\r\x1b[2K{prompt}{text}", nl=False)
    return text.encode(sys.stdin.encoding, "replace")


@contextmanager
def _tab_ends_input() -> Iterator[None]:
    """Let the terminal hand over at Tab what was typed. It still edits the line, but not what it has handed over."""
    if sys.platform == "win32":
        yield
        return
    import termios

    before = termios.tcgetattr(sys.stdin.fileno())
    changed = [*before[:6], [*before[6]]]
    changed[6][termios.VEOL] = b"\t"
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, changed)
    try:
        yield
    finally:
        with suppress(termios.error):  # the terminal is gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)


async def discard_typed() -> None:
    """Discard input that was typed before the question, until no more arrives. Raises `PromptRefused` if it does not
    end.
    """
    if sys.platform == "win32":
        return
    import termios

    deadline, quiet = time.monotonic() + _MAX_DISCARD_SECONDS, _QUIET_SECONDS
    with suppress(termios.error):  # the terminal is gone
        while await _arrives(sys.stdin.fileno(), quiet):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
            if time.monotonic() > deadline:
                raise PromptRefused
            quiet = _PASTE_QUIET_SECONDS
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)  # the start of a line


async def _arrives(fd: int, seconds: float) -> bool:
    """Return whether a line arrives within this time."""
    with suppress(TimeoutError):
        await asyncio.wait_for(_wait_readable(fd), seconds)
        return True
    return bool(select.select([fd], [], [], 0)[0])  # this process may have been slower than the paste


async def _read_chunk(fd: int) -> bytes:
    """Return the available input; a terminal provides it line by line."""
    try:
        if sys.platform == "win32":  # a Windows console has no readers; Ctrl-C ends the read
            return await asyncio.to_thread(os.read, fd, 65536)
        await _wait_readable(fd)
        return os.read(fd, 65536)
    except OSError:  # the terminal is gone
        return b""


async def _wait_readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)
