"""The target of a check: its transports, and a wire for each.

A file with a server is started over stdio, and for HTTP by a process that serves it on loopback during the check.
Secrets of the target are in no report: headers, environment, and the query of a URL. They are redacted wherever the
server repeats them.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from accord.check.engine.report import Outcome, Report, TransportName, Visit
from accord.check.fuzz.leaks import CANARY, CANARY_NAME
from accord.check.issuer.keys import TokenForge
from accord.check.probes.message_log import MessageLog
from accord.check.wires.base import Wire
from accord.check.wires.child import ChildWire
from accord.check.wires.http import Headers, HTTPWire, SSEWire, split_credentials
from accord.check.wires.memory import MemoryWire
from accord.client.target import Command, InProcessServer, Remote, parse
from accord.errors import ConnectError, TargetError
from accord.messages.revision import RULES
from accord.transport.http.redaction import SecretRedactor

if TYPE_CHECKING:
    from accord.check.engine.outcomes import Watcher

_Redactable = TypeVar("_Redactable", Report, Outcome, Visit)


def collect_secrets(target: Any, *more: Mapping[str, Any] | None) -> SecretRedactor:
    """Return the secrets of a parsed target, and the values of `more`; also as they are written in JSON."""
    given: list[Mapping[str, Any]] = [each for each in more if each]
    values = [str(value) for each in (*given, _mapping(target)) for value in each.values()]
    if isinstance(target, Remote):
        values += _url_secrets(target.url)
    secrets = SecretRedactor()
    secrets.add_permanent([*values, *(msgspec.json.encode(value).decode()[1:-1] for value in values)])
    return secrets


def _mapping(target: Any) -> Mapping[str, Any]:
    if isinstance(target, Command):
        return target.env or {}
    return (target.headers or {}) if isinstance(target, Remote) else {}


def _url_secrets(url: str) -> Iterable[str]:
    """The password and the query of a URL, as they are written and as they are meant."""
    parts = urlsplit(url)
    password = parts.password or ""
    _, named = split_credentials(url)
    queried = [value for _, value in parse_qsl(parts.query)]
    return [password, unquote(password), *named.values(), parts.query, *queried]


class RedactingWatcher:
    """Passes events to a watcher, without secrets."""

    def __init__(self, watcher: Watcher, secrets: SecretRedactor) -> None:
        self._secrets = secrets
        self._watcher = watcher

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        self._watcher.visit_began(revision, transport, total)

    def case_done(self, outcome: Outcome) -> None:
        self._watcher.case_done(redact(self._secrets, outcome))

    def visit_ended(self, visit: Visit) -> None:
        self._watcher.visit_ended(redact(self._secrets, visit))


def redact(secrets: SecretRedactor, value: _Redactable) -> _Redactable:
    """Return the report without these secrets, wherever the server wrote them."""
    return msgspec.convert(_redact_value(msgspec.to_builtins(value), secrets), type(value))


def _redact_value(value: Any, secrets: SecretRedactor) -> Any:
    if isinstance(value, str):
        return secrets.redact(value)
    if isinstance(value, dict):
        return {key: _redact_value(inner, secrets) for key, inner in value.items()}
    return [_redact_value(inner, secrets) for inner in value] if isinstance(value, list | tuple) else value


_HTTP_ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/mcp")
_SECRET = {CANARY_NAME: CANARY}
"""Set in the environment of all servers that the checker starts, to detect leaks."""
_START_SECONDS = 30.0
_POLL_SECONDS = 0.02
_NO_GRACE = 0.1


class ServerTarget:
    """The transports of `target`. Raises `TargetError`."""

    def __init__(self, target: Any, headers: Mapping[str, str] | None = None) -> None:
        self._parsed = parse(target)
        self._headers = dict(headers or {})
        if isinstance(self._parsed, Remote) and self._parsed.auth is not None:
            raise TargetError("the checker does not log in; give it a token instead: --bearer")
        self._file = self._parsed.argv[-1] if isinstance(self._parsed, Command) and _serves_file(self._parsed) else None
        self._http_process: ChildWire | None = None
        self._url = ""
        self.name: str = str(self._parsed) if isinstance(self._parsed, Command | Remote) else "a server in this process"
        """The name of the target."""
        self.ignores_stdin_end: bool = False
        """Whether the server is known not to exit at the end of stdin, so that further cases do not wait for it."""
        self.exit_delay: float = 0.0
        """Seconds for which the server ran after the end of stdin."""
        self.forge: TokenForge | None = None
        """What signs tokens that the server trusts, if the checker is their issuer."""
        self.secrets: SecretRedactor = collect_secrets(self._parsed, self._headers)
        """Secrets of the target."""

    def display_name(self, label: str) -> str:
        """Return the name for reports: `label`, or for a URL its form without secrets."""
        return self.name if isinstance(self._parsed, Remote) and label.startswith(("http:", "https:")) else label

    def transports(self, revision: str) -> tuple[TransportName, ...]:
        """Return the transports over which this revision can be spoken."""
        over_http: TransportName = "http" if RULES[revision].streamable else "sse"
        if isinstance(self._parsed, Remote):
            is_sse = self._parsed.sse or self._parsed.url.rstrip("/").endswith("/sse")
            return (over_http,) if is_sse == (over_http == "sse") else ()
        if not isinstance(self._parsed, Command):
            return ("memory",)
        return ("stdio",) if self._file is None else ("stdio", over_http)

    async def open(self) -> None:
        """Start the process that serves a file over HTTP. Raises `ConnectError`."""
        if self._file is None:
            return
        command = Command((sys.executable, "-P", "-m", "accord", "run", self._file, "--http", "127.0.0.1:0"))
        self._http_process = ChildWire(command, _SECRET)
        await self._http_process.open()
        try:
            async with asyncio.timeout(_START_SECONDS):
                while not (found := _HTTP_ADDRESS.search(self._http_process.stderr)):
                    if await self._http_process.wait_for_exit(_POLL_SECONDS):
                        raise ConnectError(f"{self._file} cannot be served over HTTP:\n{self._http_process.stderr}")
        except TimeoutError:
            raise ConnectError(f"{self._file} is not served over HTTP after {_START_SECONDS:g} s") from None
        self._url = found[1]

    async def close(self) -> None:
        """End the process that serves a file over HTTP."""
        if self._http_process is not None:
            await self._http_process.close()

    @property
    def has_credentials(self) -> bool:
        """Whether requests over HTTP have a header `Authorization`."""
        url = self._parsed.url if isinstance(self._parsed, Remote) else ""
        given = [*split_credentials(url)[1], *self._target_headers]
        return any(name.lower() == "authorization" for name in given)

    @property
    def _target_headers(self) -> dict[str, str]:
        """The headers of each request over HTTP."""
        own = self._parsed.headers if isinstance(self._parsed, Remote) else None
        return {**(own or {}), **self._headers}

    def authorize(self, tokens: Iterable[str]) -> None:
        """Send the first of these bearer tokens with each request over HTTP, and redact them all."""
        for number, token in enumerate(tokens):
            self.secrets.add_permanent([token])
            if not number:
                self._headers = {**_without_authorization(self._headers), "Authorization": f"Bearer {token}"}

    def create_wire(self, transport: TransportName, log: MessageLog, headers: Headers | None = None) -> Wire:
        """Return a new wire; what is sent over HTTP is logged in `log`, and has these headers, too. Raises
        `TargetError` for another transport.
        """
        if isinstance(self._parsed, Remote):
            return self._over_http(transport, self._parsed.url, log, headers)
        if isinstance(self._parsed, Command):
            if transport == "stdio":
                return self._process(self._parsed)
            return self._over_http(transport, f"{self._url}/{'sse' if transport == 'sse' else 'mcp'}", log, headers)
        if isinstance(self._parsed, InProcessServer):
            return MemoryWire(self._parsed)
        raise TargetError("a transport can be used once only: give a command, a URL, FILE.py[:server] or a Server")

    def _process(self, command: Command) -> ChildWire:
        wire = ChildWire(command, _SECRET)
        if self.ignores_stdin_end or self.exit_delay:
            wire.grace = _NO_GRACE
        return wire

    def _over_http(self, transport: TransportName, url: str, log: MessageLog, headers: Headers | None) -> Wire:
        wire = SSEWire if transport == "sse" else HTTPWire
        return wire(url, log, {**self._target_headers, **(headers or {})})


def _without_authorization(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() != "authorization"}


def _serves_file(command: Command) -> bool:
    """Return whether it is a parsed FILE.py[:server]."""
    return command.argv[1:-1] == ("-P", "-m", "accord", "run")
