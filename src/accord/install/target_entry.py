"""A target as an entry that works in another program: absolute paths, and secrets as references.

A host has its own working directory and another `PATH`, so the program is found here, once. Nothing is run, and no
shell is involved; a batch file, which Windows runs in a shell, is refused.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any

from accord.client.target import Command, Remote, configuration, parse
from accord.errors import TargetError
from accord.host.canonical_entry import variable_reference
from accord.host.host_files import read_host_file
from accord.host.known_hosts import MCP_SERVERS
from accord.redaction import REDACTED, redact

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
"""Names of servers that every host accepts."""
_RESERVED = ("constructor", "prototype")
"""Names that a host in JavaScript may confuse with its own."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_RUNNERS = ("npx", "uvx", "uv", "bunx", "bun", "node", "python", "python3", "deno", "docker")
_RUNNER_WORDS = ("run", "x", "-m", "exec")
_TEMPORARY = ("archive-v", "builds-v", "environments-v", "_npx")
"""Folders in the caches of uv and npm."""
_SCRIPTS = (".py", ".js", ".mjs", ".cjs", ".ts", ".json", ".jar", ".sh", ".toml", ".yaml", ".yml")


def entry_of(target: str) -> dict[str, Any]:
    """Return the entry for a target, as `accord.client.target.parse` takes it. Raises `TargetError`.

    References in an entry of a configuration file stay references.
    """
    if (found := configuration(target)) is not None:
        return _configured(*found)
    parsed = parse(target)
    if isinstance(parsed, Remote):
        return {"url": parsed.url}
    if not isinstance(parsed, Command):
        raise TargetError(f"{target!r:.200} cannot be installed; give a command, a URL or FILE.py[:server]")
    return {"command": parsed.argv[0], "args": list(parsed.argv[1:])}


def default_name(target: str) -> str:
    """Return a name for a server at a target. Raises `TargetError` if there is none."""
    found = configuration(target)
    if found is not None:
        name = found[1] or _only_name(found[0])
    else:
        parsed = parse(target)
        name = _name_of(parsed) if isinstance(parsed, Command | Remote) else ""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-_")[:64]
    if not NAME.fullmatch(name):
        raise TargetError("the target has no name for its server; give one: --name NAME")
    return name


def check_name(name: str) -> None:
    """Raise `TargetError` unless every host accepts the name of a server."""
    if not NAME.fullmatch(name) or name in _RESERVED:
        raise TargetError(f"the name {name!r:.100} cannot be used; give 1 to 64 letters, digits, - and _")


def with_settings(entry: Mapping[str, Any], env: Sequence[str], headers: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return an entry with variables, `NAME` or `NAME=VALUE`, and headers. Raises `TargetError`."""
    variables = dict(map(_variable, env))
    if variables and "url" in entry:
        raise TargetError(
            "--env is for a program; give a secret to a server at a URL with --header 'NAME: ${VARIABLE}'"
        )
    if headers and "command" in entry:
        raise TargetError("--header is for a server at a URL; give a secret to a program with --env NAME")
    new = dict(entry)
    if variables:
        new["env"] = {**entry.get("env", {}), **variables}
    if headers:
        new["headers"] = {**entry.get("headers", {}), **dict(headers)}
    return new


def portable(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with absolute paths, for a host with another `PATH` and folder. Raises `TargetError`."""
    _check_characters(entry)
    if "command" not in entry:
        return dict(entry)
    program = _program(entry["command"])
    args = [_absolute(each) for each in entry.get("args", ())]
    return {**entry, "command": program[0], "args": [*program[1:], *args]}


def is_temporary(entry: Mapping[str, Any]) -> bool:
    """Return whether the program of an entry is in an environment that may be deleted, such as that of `uvx`."""
    parts = Path(entry.get("command", "")).parts
    return any(each.startswith(_TEMPORARY) for each in parts)


def literal_secrets(entry: Mapping[str, Any]) -> list[str]:
    """Return the keys of values that look secret and are written out."""
    found = []
    for key in ("env", "headers"):
        for name, value in entry.get(key, {}).items():
            text = _REFERENCE.sub(REDACTED, value)
            if text.removeprefix("Bearer ") not in ("", REDACTED) and _looks_secret(
                text if text != value else {name: value}
            ):
                found.append(f"{key}.{name}")
    if _looks_secret(" ".join(_REFERENCE.sub(REDACTED, each) for each in entry.get("args", ()))):
        found.append("args")
    if _looks_secret(_REFERENCE.sub(REDACTED, entry.get("url", ""))):
        found.append("url")
    return found


def _looks_secret(value: Any) -> bool:
    return bool(redact(value) != value)


def _configured(file: Path, name: str | None) -> dict[str, Any]:
    entries = read_host_file(file, MCP_SERVERS, project=file.resolve().parent).entries
    name = name or _only_name(file)
    if name not in entries:
        raise TargetError(f"{file} has no server {name!r:.100}; there are {', '.join(entries) or 'none'}")
    found = entries[name]
    if found.entry is None:
        raise TargetError(f"{found.where}: {found.error}")
    return dict(found.entry)


def _only_name(file: Path) -> str:
    names = list(read_host_file(file, MCP_SERVERS).entries)
    if len(names) != 1:
        raise TargetError(
            f"name one of {', '.join(f'{file}#{each}' for each in names)}" if names else f"{file} has no servers"
        )
    return names[0]


def _name_of(parsed: Command | Remote) -> str:
    if isinstance(parsed, Remote):
        host = re.sub(r"^https?://([^/@]*@)?", "", parsed.url, flags=re.IGNORECASE)
        return re.split(r"[/?#]", host, maxsplit=1)[0].removeprefix("www.").removeprefix("mcp.")
    if parsed.is_file:
        return Path(parsed.label.partition(".py")[0]).name
    words = [Path(parsed.argv[0]).stem, *parsed.argv[1:]]
    if words[0] in _RUNNERS:
        words = [each for each in words[1:] if each in ("-m",) or not each.startswith("-")]
        words = [each for each in words if each not in _RUNNER_WORDS]
    package = re.sub(r"(?<=.)@[^/]*$|==.*$", "", words[0]) if words else ""
    name = re.split(r"[/\\]", package)[-1]
    return name.rpartition(".")[0] or name if name.endswith(_SCRIPTS) else name


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not _VARIABLE.fullmatch(name):
        raise TargetError(f"--env: {name!r:.100} is no name of an environment variable")
    return name, value if equals else variable_reference(name)


def _check_characters(entry: Mapping[str, Any]) -> None:
    """Raise `TargetError` for control characters, which no program needs and which hide in a terminal."""
    texts = [("command", entry.get("command", "")), ("url", entry.get("url", "")), ("cwd", entry.get("cwd") or "")]
    texts += [(f"args[{index}]", each) for index, each in enumerate(entry.get("args", ()))]
    texts += [
        (f"{key}.{name}", f"{name}{value}") for key in ("env", "headers") for name, value in entry.get(key, {}).items()
    ]
    for place, text in texts:
        if any(each < " " or each == "\x7f" for each in text) or not _is_text(text):
            raise TargetError(f"{place!r:.100} has a control character; a configuration file must not have one")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate: bytes of the command line that are no UTF-8
        return False
    return True


def _program(command: str) -> list[str]:
    """Return a program as a list that starts it without a shell, its path absolute."""
    if _REFERENCE.search(command):
        return [command]
    found = shutil.which(os.path.expanduser(command))
    if found is None:
        raise TargetError(f"{command!r:.200}: no such program on the PATH; install it, or give its absolute path")
    return without_shell(os.path.abspath(found))


def without_shell(program: str) -> list[str]:
    """Return what starts a program; for the batch file `npx.cmd` of Windows, what the batch file starts."""
    path = PureWindowsPath(program)
    if path.suffix.lower() not in (".cmd", ".bat"):
        return [program]
    script = Path(program).with_name("node_modules") / "npm" / "bin" / f"{path.stem.lower()}-cli.js"
    node = Path(program).with_name("node.exe")
    if path.stem.lower() in ("npx", "npm") and script.is_file() and node.is_file():
        return [str(node), str(script)]
    raise TargetError(f"{program} is a batch file, which needs a shell; give the program that it starts")


def _absolute(word: str) -> str:
    """Return an argument that names an existing file or folder with its absolute path."""
    is_path = word in (".", "..") or "/" in word or os.sep in word or word.lower().endswith(_SCRIPTS)
    if not is_path or word.startswith("-") or "://" in word or not os.path.exists(word):
        return word
    return os.path.abspath(word)
