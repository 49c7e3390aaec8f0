"""One HTTP request, and its body, read within bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

from accord.limits import Limits
from accord.transport.deadlines import with_deadline

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


ACCESS_LOG_STATE = "accord.access"
"""Where in the `state` of a scope an access log looks for what only the application knows."""


class RequestRejected(Exception):
    """A request that is answered with an HTTP error: `status`, a sentence, and headers."""

    def __init__(self, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status: int = status
        self.message: str = message
        self.headers: Sequence[tuple[bytes, bytes]] = headers


class ClientDisconnected(Exception):
    """The client went away before its request was complete."""


class Charge(Protocol):
    """Who counts what a body takes, and raises `RequestRejected` where it is too much."""

    def add(self, size: int) -> None:
        """A part of a body that comes in several has so many bytes."""

    def measure(self, body: bytes) -> None:
        """The body is there."""


class ASGIRequest:
    """Method, path below the place where the app is mounted, and headers; names of headers are lower-case."""

    __slots__ = ("access_log", "conflicting_header", "headers", "method", "path", "scope", "size")

    def __init__(self, scope: Scope) -> None:
        self.scope: Scope = scope
        self.method: str = scope["method"]
        self.path: str = _below(scope) if scope.get("root_path") else scope["path"]
        given = scope["headers"]
        self.headers: dict[bytes, bytes] = dict(given)
        self.conflicting_header: bytes | None = None
        """A header of one value that is there twice with different ones, or None: whoever reads the first is told
        something else than who reads the last.
        """
        if len(self.headers) != len(given):
            self.headers = _joined(given)
            self.conflicting_header = _repeated(given, self.headers)
        self.size: int = 0
        """Bytes of the body, once it is there."""
        state = scope.get("state")
        self.access_log: dict[str, Any] | None = state.get(ACCESS_LOG_STATE) if state else None
        """What the access log is to know, where there is one."""

    @property
    def root(self) -> str:
        """The path under which the application is mounted, without a slash at its end."""
        return _root(self.scope)

    async def body(self, receive: Receive, limits: Limits, charge: Charge) -> bytes:
        """Return the body.

        Raises `RequestRejected` for more than `Limits.http_body_bytes` (413), or when it is not there in
        `Limits.body_seconds` (408), what `charge` raises, and `ClientDisconnected`.
        """
        most, seconds = limits.http_body_bytes, limits.body_seconds
        length = self.headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)
        try:
            message = await with_deadline(seconds, receive())
            if message["type"] == "http.request" and not message.get("more_body"):
                body: bytes = message.get("body", b"")
            else:
                body = await with_deadline(seconds, _read_on(receive, most, message, charge))
        except TimeoutError:
            raise RequestRejected(408, f"the body did not arrive within {seconds:g} s", _CLOSE) from None
        if len(body) > most:
            raise _too_large(most)
        self.size = len(body)
        charge.measure(body)
        return body


_CLOSE = ((b"connection", b"close"),)
_SINGLE = frozenset((b"host", b"origin", b"authorization", b"last-event-id"))


def _is_single(name: bytes) -> bool:
    return name in _SINGLE or name.startswith((b"content-", b"mcp-"))


def _repeated(given: Sequence[tuple[bytes, bytes]], headers: dict[bytes, bytes]) -> bytes | None:
    return next((name for name, value in given if _is_single(name) and headers[name] != value), None)


def _joined(given: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """ "A recipient MAY combine multiple field lines [...] separated by a comma" (RFC 9110, 5.3)."""
    lines: dict[bytes, list[bytes]] = {}
    for name, value in given:
        lines.setdefault(name, []).append(value)
    return {name: values[-1] if _is_single(name) else b", ".join(values) for name, values in lines.items()}


def _below(scope: Scope) -> str:
    """The path without that of the mount: "the root path this application is mounted at" (ASGI, HTTP scope)."""
    path: str = scope["path"]
    root = _root(scope)
    if root and path.startswith(root) and path[len(root) :][:1] in ("", "/"):
        return path[len(root) :]
    return path


def _root(scope: Scope) -> str:
    root: str = scope.get("root_path", "")
    return root.rstrip("/")


async def _read_on(receive: Receive, most: int, message: Any, charge: Charge) -> bytes:
    parts, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        charge.add(len(part))
        if size > most:
            raise _too_large(most)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def _too_large(most: int) -> RequestRejected:
    return RequestRejected(413, f"the body has more than {most:,} bytes", _CLOSE)
