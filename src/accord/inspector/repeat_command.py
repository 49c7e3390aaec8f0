"""The command that repeats a finding of the inspector: the target of a server, and the options that it needs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from accord.client.target import Command, Remote, entries
from accord.errors import TargetError
from accord.inspector.servers import InspectedServer
from accord.redaction import redact


def repeatable_target(server: InspectedServer) -> str:
    """Return the target of a server as a command line takes it; empty for a server in this process."""
    target = server.target
    if isinstance(target, Remote):
        return str(target)
    if not isinstance(target, Command):
        return ""
    if server.file and _is_entry(server.file, server.name):
        return f"{server.file}#{server.name}"
    text: str = redact(target.label if target.is_file or server.file else shlex.join(target.argv))
    return text


def _is_entry(file: str, name: str) -> bool:
    """Return whether a name is that of an entry in a file that a command line can name."""
    try:
        return file.endswith(".json") and name in entries(Path(file))
    except TargetError:
        return False


def repeat_options(server: InspectedServer) -> Iterator[str]:
    """Yield the options that a command needs for the same server, with secrets replaced by `...`."""
    target = server.target
    if isinstance(target, Remote):
        yield from _assignments("--header", target.headers or {})
    elif isinstance(target, Command) and "#" not in repeatable_target(server):
        yield from _assignments("--env", target.env or {})
        yield from ("--cwd", target.cwd) if target.cwd else ()


def _assignments(option: str, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from (option, f"{name}=...")
