"""An entry in the spelling of a host: the inverse of `accord.host.canonical_entry`.

References `${NAME}` are written in the host's own form: `${env:NAME}`, a question to the user, or a list of names. What
a host cannot express is refused with the reason, never written as text that the host would take literally.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from accord.errors import TargetError
from accord.host.known_hosts import FileFormat, KnownHost, TransportKind

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:-[^{}]*)?\}")
_WHOLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BEARER = re.compile(r"Bearer \$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_BARE = re.compile(r"\$[A-Za-z_]")

OWN_KEYS = frozenset(
    ("command", "cmd", "args", "env", "envs", "env_keys", "env_vars", "cwd", "type", "source", "settings", "envFile")
) | frozenset(
    ("url", "serverUrl", "httpUrl", "uri", "headers", "http_headers", "env_http_headers", "bearer_token_env_var")
)  # fmt: skip
"""What an entry says about the connection; the rest are the user's own settings for the host."""


class SpelledEntry(NamedTuple):
    """An entry in the spelling of a host."""

    entry: dict[str, Any]
    inputs: list[dict[str, Any]]
    """The questions to the user to which it refers."""


def spell(entry: Mapping[str, Any], name: str, host: KnownHost) -> SpelledEntry:
    """Return an entry, in the form of `accord.client.target`, in the spelling of a host. Raises `TargetError`."""
    check_transport(entry, host)
    for key in ("auth", "oauth"):
        if key in entry:
            raise TargetError(f'the entry has "{key}", a login of accord; {host.title} logs in by itself: leave it out')
    return _Spelling(host, name).spelled(entry, _kind(entry))


def has_references(entry: Mapping[str, Any]) -> bool:
    """Return whether an entry refers to environment variables."""
    return any(_REFERENCE.search(each) for each in _texts(entry))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


def _kind(entry: Mapping[str, Any]) -> TransportKind:
    return "stdio" if "command" in entry else "sse" if entry.get("type") == "sse" else "http"


def check_transport(entry: Mapping[str, Any], host: KnownHost) -> None:
    """Raise `TargetError` if a host cannot connect to the server of an entry."""
    kind = _kind(entry)
    if kind in host.format.transports:
        return
    if host.format.transports == {"stdio"}:
        raise TargetError(
            f"{host.title} can only start programs, and cannot connect to a URL by its file; "
            "add the server in its settings, if they have a place for URLs"
        )
    raise TargetError(f"{host.title} cannot connect to HTTP+SSE servers; use the server's URL for Streamable HTTP")


class _Spelling:
    """Spells one entry for a host."""

    def __init__(self, host: KnownHost, name: str) -> None:
        self._host = host
        self._form: FileFormat = host.format
        self._name = name
        self._inputs: dict[str, dict[str, Any]] = {}
        self._passed: list[str] = []

    def spelled(self, entry: Mapping[str, Any], kind: TransportKind) -> SpelledEntry:
        form = self._form
        spelled: dict[str, Any] = {}
        if kind in form.types:
            spelled["type"] = form.types[kind]
        if form.has_name:
            spelled["name"] = self._name
        spelled |= form.fixed
        spelled |= self._program(entry) if kind == "stdio" else self._remote(entry, kind)
        if self._passed and form.env_names is not None:
            spelled[form.env_names] = list(dict.fromkeys(self._passed))
        return SpelledEntry(spelled, list(self._inputs.values()))

    def _program(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        form = self._form
        program: dict[str, Any] = {form.command: self._text(entry["command"], "command")}
        program["args"] = [self._text(each, f"args[{index}]") for index, each in enumerate(entry.get("args", ()))]
        env = self._env(entry.get("env", {}))
        if env:
            program[form.env] = env
        if entry.get("cwd") is not None:
            if not form.has_cwd:
                raise TargetError(
                    f"{self._host.title} has no working directory in an entry; use absolute paths instead"
                )
            program["cwd"] = self._text(entry["cwd"], "cwd")
        return program

    def _env(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that are written as values; the others are passed by name."""
        written = {}
        for name, value in env.items():
            if self._form.env_names is None or not _REFERENCE.search(value):
                written[name] = self._text(value, f"env.{name}")
            elif value == f"${{{name}}}":
                self._passed.append(name)
            else:
                raise TargetError(
                    f"env.{name}: {self._host.title} passes a variable of its environment only under the same name"
                )
        return written

    def _remote(self, entry: Mapping[str, Any], kind: TransportKind) -> dict[str, Any]:
        form = self._form
        key = form.sse_url if kind == "sse" and form.sse_url is not None else form.url
        remote: dict[str, Any] = {key: self._text(entry["url"], "url")}
        by_name, written = {}, {}
        for name, value in entry.get("headers", {}).items():
            bearer, whole = _BEARER.fullmatch(value), _WHOLE.fullmatch(value)
            if form.bearer_name is not None and bearer is not None and name.lower() == "authorization":
                remote[form.bearer_name] = bearer[1]
            elif form.header_names is not None and whole is not None:
                by_name[name] = whole[1]
            else:
                written[name] = self._text(value, f"headers.{name}", in_header=True)
        if written:
            remote[form.headers] = written
        if by_name and form.header_names is not None:
            remote[form.header_names] = by_name
        return remote

    def _text(self, text: str, key: str, *, in_header: bool = False) -> str:
        """Return a text with its references in the host's form. Raises `TargetError`."""
        if text.startswith("keyring:"):
            raise TargetError(f"{key}: only accord reads the keyring; use an environment variable: --env NAME")
        form = self._form
        rest = _REFERENCE.sub("", text)
        if form.reference is not None and ("${" in rest or (form.bare_variables and _BARE.search(rest))):
            raise TargetError(f"{key}: {self._host.title} would take a part of this text for a reference")
        if rest == text:
            return text
        if form.reference is None or (form.env_names is not None and not in_header):
            raise TargetError(f"{key}: {self._host.title} has no reference to an environment variable there")
        return _REFERENCE.sub(lambda match: self._reference(match, key), text)

    def _reference(self, match: re.Match[str], key: str) -> str:
        form, name = self._form, match[1]
        if match[2] and not form.has_defaults:
            raise TargetError(f"{key}: {self._host.title} has no defaults in references")
        if form.inputs is not None:
            name = self._question(name)
        elif form.env_names is not None:
            self._passed.append(name)
        return str(form.reference) % f"{name}{match[2] or ''}"

    def _question(self, variable: str) -> str:
        """Return the id of a question to the user for the value of a variable."""
        question = f"{self._name}-{variable.lower().replace('_', '-')}"
        description = f"{variable} of {self._name}"
        self._inputs[question] = {
            "type": "promptString",
            "id": question,
            "description": description,
            "password": True,
        }
        return question
