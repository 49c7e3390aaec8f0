"""What a client can be pointed at, in one grammar for `Client` and every command.

"python weather.py --fast"        a command line, split as a shell splits words; no shell is run
["python", "weather.py"]          the same, split already
"weather.py", "weather.py:app"    a file that holds a `Server` (named `server`, `mcp` or `app`, or the one named)
{"command": "npx", "args": [...]} an entry of an `mcpServers` configuration; also `env`, `cwd`
a `Server`                        in this process, over memory
a `Transport`                     anything that moves messages
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

import msgspec

from accord.errors import TargetError
from accord.transport.base import Transport


@runtime_checkable
class Serves(Protocol):
    """A server in this process."""

    @property
    def serve(self) -> Callable[[Transport], Awaitable[None]]:
        """Serve one connection until it ends."""


Target: TypeAlias = str | Sequence[str] | Mapping[str, Any] | Serves | Transport | os.PathLike[str]


class Command(msgspec.Struct, frozen=True):
    """A server to start as a child process, spoken to over its stdin and stdout."""

    argv: tuple[str, ...]
    env: dict[str, str] | None = None
    cwd: str | None = None

    def __str__(self) -> str:
        return shlex.join(self.argv)


def parse(target: Target) -> Command | Serves | Transport:
    """Understand a target. Raises `TargetError`."""
    if isinstance(target, str):
        return _from_text(target)
    if isinstance(target, os.PathLike):
        return _from_text(os.fspath(target))
    if isinstance(target, Mapping):
        return _from_entry(target)
    if isinstance(target, Sequence):
        if not target or not all(isinstance(word, str) for word in target):
            raise TargetError("a command must be a list of strings, the program first")
        return Command(tuple(target))
    if isinstance(target, Serves) or all(hasattr(target, name) for name in ("receive", "send", "close")):
        return target
    raise TargetError(
        f"not a target: {target!r}; give a command, a URL, FILE.py[:server], a Server or a transport"
    )


def _from_text(text: str) -> Command:
    if not text.strip():
        raise TargetError("the target is empty; give a command, a URL or FILE.py[:server]")
    if text.startswith(("http://", "https://")):
        raise TargetError(f"{text}: this version reaches servers over stdio and memory, not yet over HTTP")
    path, _, name = text.partition(".py:") if ".py:" in text else (text, "", "")
    file = Path(path + ".py" if name else path)
    if file.suffix == ".py" and " " not in name and (file.is_file() or " " not in text):
        if not file.is_file():
            raise TargetError(f"{file}: no such file")
        return Command((sys.executable, "-m", "accord", "run", text))
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise TargetError(f"{text!r} is not a command line: {exc}") from exc
    return Command(tuple(words))


def _from_entry(entry: Mapping[str, Any]) -> Command:
    if "mcpServers" in entry:
        servers = entry["mcpServers"]
        if not isinstance(servers, Mapping) or len(servers) != 1:
            raise TargetError("give one entry of mcpServers, not the whole configuration")
        return _from_entry(next(iter(servers.values())))
    if "url" in entry:
        return _from_text(str(entry["url"]))
    command, args = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not command:
        raise TargetError('a configuration entry needs "command" (a string) or "url"')
    if not isinstance(args, Sequence) or isinstance(args, str):
        raise TargetError('"args" of a configuration entry must be a list of strings')
    env = {str(key): str(value) for key, value in entry.get("env", {}).items()} or None
    return Command((command, *map(str, args)), env, entry.get("cwd"))
