"""What a person types: a line at a time, on the loop, so that Ctrl-C and a server that changes its mind end the wait.

The terminal edits the line. What was typed before a question stood there is no answer to it, and is thrown away.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Literal

from accord.cli.screen import screen

DECLINE = "!"
"""Typed alone, it says no, wherever something is asked; so does Ctrl-D."""


class PromptRefused(Exception):
    """The person does not answer."""

    def __init__(self, action: Literal["decline", "cancel"] = "decline") -> None:
        super().__init__(action)
        self.action: Literal["decline", "cancel"] = action


def is_interactive() -> bool:
    """Whether a person can see a question and answer it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


async def prompt(prompt: str) -> str:
    """What the person types. Raises `PromptRefused`."""
    line = await read_line(prompt)
    if line is None or line.strip() == DECLINE:
        raise PromptRefused
    return line


async def read_line(prompt: str) -> str | None:
    """A line without its end; None for Ctrl-D at its beginning, or when the terminal is gone."""
    screen.print_prompt(prompt, nl=False)
    line = b""
    try:
        while not line.endswith(b"\n"):
            piece = await _read_chunk(sys.stdin.fileno())
            if not piece:  # Ctrl-D: no end of line was shown
                screen.print_prompt()
                break
            line += piece
    except asyncio.CancelledError:  # by Ctrl-C, or by a server that does not wait any longer
        screen.print_prompt("\n  (no longer asked)")
        raise
    return line.decode(sys.stdin.encoding, "replace").rstrip("\r\n") if line else None


def discard_typed() -> None:
    """Throw away what was typed ahead."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


async def _read_chunk(fd: int) -> bytes:
    """What can be read at once; a terminal gives it line by line."""
    try:
        if sys.platform == "win32":  # no readers for a console; Ctrl-C ends its read by itself
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
