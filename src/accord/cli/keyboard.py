"""User input, read line by line on the event loop, so that Ctrl-C and a cancelled request end the wait.

The terminal edits the line. Input from before a question is discarded, because it is no answer to it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Literal

from accord.cli.screen import screen

DECLINE = "!"
"""Typed alone, it declines any question; so does Ctrl-D."""


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


async def read_line(prompt: str) -> str | None:
    """Return a line without its end; None for Ctrl-D at its beginning, or when the terminal is gone."""
    screen.print_prompt(prompt, nl=False)
    line = b""
    try:
        while not line.endswith(b"\n"):
            chunk = await _read_chunk(sys.stdin.fileno())
            if not chunk:  # Ctrl-D: the terminal printed no end of line
                screen.print_prompt()
                break
            line += chunk
    except asyncio.CancelledError:  # by Ctrl-C, or because the server cancelled the request
        screen.print_prompt("\n  (no longer asked)")
        raise
    return line.decode(sys.stdin.encoding, "replace").rstrip("\r\n") if line else None


def discard_typed() -> None:
    """Discard input that was typed before the question."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


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
