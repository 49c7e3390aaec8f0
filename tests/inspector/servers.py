"""Servers with faults, as files that the inspector starts."""

from __future__ import annotations

from pathlib import Path

LATE_LINE = '''
import sys

from accord import Server

server = Server("late", version="1.0.0")


@server.tool
def greet(name: str) -> str:
    """Return a greeting."""
    open(CALLS, "a").write(name)
    return f"Hello {name}"


print("ready\\u200b", flush=True)
server.run()
'''
"""A server that writes a line to stdout that is no message, and notes its calls in a file."""


def broken_server(folder: Path) -> Path:
    """Return the file of a server that writes to stdout."""
    file = folder / "broken.py"
    file.write_text(LATE_LINE.replace("CALLS", repr(str(folder / "calls"))), encoding="utf-8")
    return file
