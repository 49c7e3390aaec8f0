"""The access log: one line of JSON for each HTTP request, written when its response is complete.

It wraps the application, so a server without an access log has no overhead. The application adds the fields that only
it knows to the dict in `scope["state"]["accord.access"]`: `revision`, `mcp` (the method), `name`, `principal`,
`session`. Queries, bodies and headers are never logged, since they may contain secrets.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import ProtocolError
from accord.messages import envelope
from accord.messages.envelope import MalformedMessage
from accord.session import peek
from accord.transport.asgi.request import ACCESS_LOG_STATE, Receive, Scope, Send
from accord.wire.headers import PROTOCOL_VERSION, SESSION_ID
from accord.wire.request_headers import NAME_FIELDS

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.http.serving.protocol import Application

_KNOWN = ("revision", "mcp", "name", "principal", "session")
_LONGEST = 200
"""The most characters of one value."""
_SESSION = 6
"""The last characters of a session's id to log; the whole id is a secret while the session lives."""

LogRecord = dict[str, Any]


class AccessLog:
    """The application, with a record of each HTTP request passed to `observe`."""

    def __init__(self, app: Application, observe: Callable[[LogRecord], None]) -> None:
        self._app: Application = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        notes: dict[str, Any] = scope.setdefault("state", {}).setdefault(ACCESS_LOG_STATE, {})
        start, status, sent = time.perf_counter(), 0, 0

        async def count_sent(event: MutableMapping[str, Any]) -> None:
            nonlocal status, sent
            if event["type"] == "http.response.start":
                status = event["status"]
            elif event["type"] == "http.response.body":
                sent += len(event.get("body", b""))
            await send(event)

        try:
            await self._app(scope, receive, count_sent)
        finally:
            elapsed = round((time.perf_counter() - start) * 1000, 3)
            self._observe(
                {**_scope_fields(scope), "status": status, "ms": elapsed, "bytes": sent, **_shortened_fields(notes)}
            )


def request_fields(body: bytes, headers: Mapping[bytes, bytes], principal: Principal | None) -> LogRecord:
    """Return the access log's fields of a POST."""
    fields: LogRecord = {
        key: value.decode("latin-1")
        for key, name in (("revision", PROTOCOL_VERSION), ("session", SESSION_ID))
        if (value := headers.get(name)) is not None
    }
    fields["principal"] = principal.id if principal is not None else None
    with suppress(MalformedMessage, ProtocolError):
        incoming = envelope.read(body)
        params = peek.mirrored_params(incoming.params)
        fields["mcp"] = incoming.method or None
        fields["name"] = params.subject(NAME_FIELDS.get(str(incoming.method), "name"))
    return fields


def _scope_fields(scope: Mapping[str, Any]) -> LogRecord:
    client = scope.get("client")
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "client": client[0] if client else None,
        "method": scope["method"][:_LONGEST],
        "path": scope["path"][:_LONGEST],
    }


def _line(record: LogRecord) -> bytes:
    """Return the record as JSON. Non-printable characters, which could control a reader's terminal, are escaped:
    clients write most of it.
    """
    with suppress(UnicodeEncodeError):  # a lone surrogate
        line = msgspec.json.encode(record)
        if line.isascii() or line.decode().isprintable():
            return line
    return json.dumps(record, separators=(",", ":")).encode()


def _shortened_fields(notes: Mapping[str, Any]) -> LogRecord:
    fields = {key: str(notes[key])[:_LONGEST] for key in _KNOWN if notes.get(key) is not None}
    if "session" in fields:
        fields["session"] = "…" + fields["session"][-_SESSION:]
    return fields


class LogWriter:
    """A thread that writes records as lines to a file descriptor, so that a full pipe delays no request.

    At most `pending` records wait; more are dropped, and the next line has their number.
    """

    def __init__(self, descriptor: int = 2, pending: int = 10_000) -> None:
        self._descriptor = descriptor
        self._pending = pending
        self._lines: deque[bytes] = deque()
        self._dropped = 0
        self._available = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._write, name="accord access log", daemon=True)
        self._thread.start()

    def __call__(self, record: LogRecord) -> None:
        if len(self._lines) >= self._pending:
            self._dropped += 1
            return
        if self._dropped:
            record, self._dropped = {**record, "dropped": self._dropped}, 0
        self._lines.append(_line(record) + b"\n")
        self._available.set()

    def close(self, seconds: float) -> None:
        """Write the pending records, within `seconds`."""
        self._ending = True
        self._available.set()
        self._thread.join(seconds)

    def _write(self) -> None:
        while not self._ending or self._lines:
            self._available.wait()
            self._available.clear()
            lines = [self._lines.popleft() for _ in range(len(self._lines))]
            rest = memoryview(b"".join(lines))
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:  # the reader has closed the pipe
                self._lines.clear()
