"""Entries of other hosts, in the form that `accord.client.target.parse` takes.

Each host spells the same few fields in its own way (`FileFormat`). `canonical_entry()` returns `command`, `args`, `env`
and `cwd`, or `url`, `type` and `headers`; references to environment variables become `${NAME}`. Fields that a host has
for itself are left out. A field that changes the connection, and that accord does not support, is an error.

No error contains a value of the entry, because it may be a secret.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from accord.errors import TargetError
from accord.host.known_hosts import FileFormat

_TYPES = {
    **dict.fromkeys(("stdio", "local"), "stdio"),
    **dict.fromkeys(("http", "streamable-http", "streamable_http", "streamableHttp", "remote"), "http"),
    "sse": "sse",
}
_URL_KEYS = ("httpUrl", "serverUrl", "url", "uri")
_UNSUPPORTED = {
    "envFile": 'move the variables to "env"',
    "env_file": 'move the variables to "env"',
    "headersHelper": 'write the headers to "headers"',
}
"""Fields that change the connection, and what to do."""

_MAX_KIND = 20

_BRACED = re.compile(r"\$\{([^{}]*)\}")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*(?::-[^{}]*)?)")


def canonical_entry(raw: Any, form: FileFormat, project: PurePath | None = None) -> dict[str, Any]:
    """Return an entry of a host's file in accord's form. Raises `TargetError`.

    `project` is the folder of the project that the file belongs to: `${workspaceFolder}`, and the base of `cwd`.
    """
    if not isinstance(raw, Mapping):
        raise TargetError(f"expected an object, found {_kind(raw)}")
    for key, remedy in _UNSUPPORTED.items():
        if raw.get(key):
            raise TargetError(f'accord does not read "{key}"; {remedy}')
    entry = _ForeignEntry(_flat(raw), form, project).canonical()
    try:
        msgspec.json.encode(entry)
    except UnicodeEncodeError:  # an approval could not be bound to it
        reason = r"a text has half of a surrogate pair (such as \ud83d alone), which is no character"
        raise TargetError(reason) from None
    return entry


def variable_reference(name: str) -> str:
    """Return the reference to an environment variable, as `accord.client.variables` replaces it."""
    return f"${{{name}}}"


def _flat(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an entry in which `command` is a text: earlier versions of Zed have an object there."""
    command = raw.get("command")
    if not isinstance(command, Mapping):
        return raw
    rest = {key: value for key, value in raw.items() if key != "command"}
    return {"args": command.get("args", []), "env": command.get("env", {}), **rest, "command": command.get("path")}


class _ForeignEntry:
    """One entry, with the format of its file."""

    def __init__(self, raw: Mapping[str, Any], form: FileFormat, project: PurePath | None) -> None:
        self._raw = raw
        self._form = form
        self._project = project

    def canonical(self) -> dict[str, Any]:
        kind = self._type()
        url_key = next((key for key in _URL_KEYS if self._raw.get(key) not in (None, "")), None)
        command = self._raw.get(self._form.command, self._raw.get("command"))
        if kind is None and url_key is not None and command is not None:
            raise TargetError(f'"{self._form.command}" and "{url_key}" are both in the entry; leave one out')
        if kind in (None, "stdio") and command is not None:
            return self._program(command)
        if kind != "stdio" and url_key is not None:
            return self._remote(url_key, kind)
        if "settings" in self._raw or self._raw.get("source") == "extension":
            raise TargetError("an extension of the host provides this server; accord cannot start it")
        needed = f'"{self._form.command}"' if kind == "stdio" else f'"{self._form.command}" or "{self._form.url}"'
        raise TargetError(f"the entry needs {needed}")

    def _get(self, key: str | None) -> Any:
        """Return the value of a key; None if the host has no such key."""
        return None if key is None else self._raw.get(key)

    def _type(self) -> str | None:
        found = self._raw.get("type")
        if found is None:
            return None
        if not isinstance(found, str) or found not in _TYPES:
            raise TargetError(
                f'accord cannot connect to servers of "type" {found!r:.60}; it is one of {", ".join(_TYPES)}'
            )
        return _TYPES[found]

    def _program(self, command: Any) -> dict[str, Any]:
        entry: dict[str, Any] = {"command": self._text(command, self._form.command)}
        args = self._raw.get("args")
        args = [] if args is None else args
        if not isinstance(args, list | tuple):
            raise TargetError(f'"args" must be a list of strings, not {_kind(args)}')
        entry["args"] = [self._text(each, f"args[{index}]") for index, each in enumerate(args)]
        env = self._texts(self._form.env) | {name: variable_reference(name) for name in self._passed_names()}
        if env:
            entry["env"] = env
        if self._raw.get("cwd") is not None:
            cwd = self._text(self._raw["cwd"], "cwd")
            entry["cwd"] = str(self._project / cwd) if self._project is not None and "$" not in cwd else cwd
        return entry

    def _remote(self, url_key: str, kind: str | None) -> dict[str, Any]:
        entry: dict[str, Any] = {"url": self._text(self._raw[url_key], url_key)}
        if kind == "sse" or (kind is None and url_key == self._form.sse_url):
            entry["type"] = "sse"
        headers = self._texts(self._form.headers)
        headers |= {
            name: variable_reference(variable) for name, variable in self._texts(self._form.header_names).items()
        }
        if (bearer := self._get(self._form.bearer_name)) is not None:
            headers["Authorization"] = "Bearer " + variable_reference(self._text(bearer, str(self._form.bearer_name)))
        if headers:
            entry["headers"] = headers
        if self._form.syntax == "json":  # other formats have other settings under these names
            entry |= {key: self._raw[key] for key in ("auth", "oauth") if self._raw.get(key) is not None}
        return entry

    def _passed_names(self) -> list[str]:
        """Return the environment variables that the host passes under their own names."""
        names = self._get(self._form.env_names)
        names = [] if names is None else names
        if not isinstance(names, list | tuple):
            raise TargetError(f'"{self._form.env_names}" must be a list of names, not {_kind(names)}')
        found = []
        for each in names:
            name = each.get("name") if isinstance(each, Mapping) else each
            if isinstance(each, Mapping) and each.get("source", "local") != "local":
                raise TargetError(f'"{self._form.env_names}" has a variable that is not of this machine')
            if not isinstance(name, str) or not _NAME.fullmatch(name) or ":" in name:
                raise TargetError(f'"{self._form.env_names}" has an item that is no name of a variable')
            found.append(str(name))
        return found

    def _texts(self, key: str | None) -> dict[str, str]:
        """Return an object of texts; empty where there is none."""
        value = self._get(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise TargetError(f'"{key}" must be an object, not {_kind(value)}')
        return {str(name): self._text(each, f"{key}.{name}") for name, each in value.items()}

    def _text(self, value: Any, key: str) -> str:
        """Return a text with its references in accord's form."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or (not value and key in (self._form.command, *_URL_KEYS)):
            raise TargetError(f'"{key:.100}" must be a string, not {_kind(value)}')
        if self._form.reference is None:
            return str(value)
        text = _BRACED.sub(lambda match: self._reference(match, key), str(value))
        return _BARE.sub(r"${\1}", text) if self._form.bare_variables else text

    def _reference(self, match: re.Match[str], key: str) -> str:
        inside = match[1].strip()
        if self._form.editor_variables and inside in _EDITOR_VARIABLES:
            return self._editor_variable(inside, key)
        if named := _NAME.fullmatch(inside):
            return variable_reference(named[1])
        kind, colon, name = inside.partition(":")
        if kind == "input" and colon:
            raise TargetError(f'"{key:.100}" needs the input {name!r:.100}, for which only the host asks its user')
        shown = f": ${{{kind}:...}}" if colon and kind.isalpha() and len(kind) < _MAX_KIND else ""
        raise TargetError(f'"{key:.100}" has a reference that accord does not know{shown}')

    def _editor_variable(self, name: str, key: str) -> str:
        if name in ("pathSeparator", "/"):
            return os.sep
        if name == "userHome":
            return os.path.expanduser("~")
        if self._project is None:
            raise TargetError(f'"{key:.100}" has ${{{name}}}, and this file belongs to no project')
        return self._project.name if name == "workspaceFolderBasename" else str(self._project)


_EDITOR_VARIABLES = ("workspaceFolder", "workspaceFolderBasename", "userHome", "pathSeparator", "/")


def _kind(value: Any) -> str:
    """Return what a value is, for errors."""
    names = {
        dict: "an object",
        list: "a list",
        str: "an empty string" if value == "" else "a string",
        bool: "a boolean",
    }
    if value is None:
        return "null"
    return next((name for kind, name in names.items() if isinstance(value, kind)), "a number")
