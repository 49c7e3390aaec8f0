"""One HTTP request: its body, read within limits, and the responses that are sent at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Protocol

from accord.limits import Limits
from accord.transport.deadlines import with_deadline

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


ACCESS_LOG_STATE = "accord.access"
"""The key in the `state` of a scope for data of the application that the access log needs."""


class RequestRejected(Exception):
    """A request that is answered with an HTTP error: `status`, a sentence, and headers."""

    def __init__(self, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status: int = status
        self.message: str = message
        self.headers: Sequence[tuple[bytes, bytes]] = headers


class ClientDisconnected(Exception):
    """The client disconnected before its request was complete."""


class Charge(Protocol):
    """Accounting of the memory of a body; raises `RequestRejected` beyond its limit."""

    def add(self, size: int) -> None:
        """Count the bytes of one part of a body."""

    def measure(self, body: bytes) -> None:
        """Measure the complete body."""


class ASGIRequest:
    """Method, path below the mount point of the app, and headers; names of headers are in lower case.

    `receive` and `send` are those of its connection: for the body, a disconnect, and the response.
    """

    __slots__ = (
        "access_log",
        "account",
        "conflicting_header",
        "headers",
        "method",
        "path",
        "principal",
        "public_url",
        "receive",
        "resource",
        "response_headers",
        "scope",
        "send",
        "size",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope: Scope = scope
        self.receive: Receive = receive
        self.send: Send = send
        self.principal: Any = None
        """The authenticated principal."""
        self.account: str = ""
        """The account of the sender, while many requests wait for authentication."""
        self.public_url: str | None = None
        """The URL that clients use for this path, if the server has a public one."""
        self.resource: str | None = None
        """The resource identifier of the server, if it verifies tokens (RFC 8707)."""
        self.response_headers: tuple[tuple[bytes, bytes], ...] = ()
        """Headers of `auth` for the response."""
        self.method: str = scope["method"]
        self.path: str = _path_below_root(scope) if scope.get("root_path") else scope["path"]
        fields = scope["headers"]
        self.headers: dict[bytes, bytes] = dict(fields)
        self.conflicting_header: bytes | None = None
        """A single-valued header that occurs twice with different values, or None: a reader of the first line and a
        reader of the last one would see different requests.
        """
        if len(self.headers) != len(fields):
            self.headers = _combine_headers(fields)
            self.conflicting_header = _find_conflict(fields, self.headers)
        self.size: int = 0
        """Bytes of the body, once it has arrived."""
        state = scope.get("state")
        self.access_log: dict[str, Any] | None = state.get(ACCESS_LOG_STATE) if state else None
        """Data for the access log, if there is one."""

    @property
    def root(self) -> str:
        """Return the path under which the application is mounted, without a slash at its end."""
        return _root(self.scope)

    @property
    def url(self) -> str:
        """Return the URL that the client requested, without the query."""
        if self.public_url is not None:
            return self.public_url
        host = self.headers.get(b"host", b"localhost").decode("latin-1")
        return f"{self.scope.get('scheme', 'http')}://{host}{self.root}{self.path}"

    async def body(self, limits: Limits, charge: Charge) -> bytes:
        """Return the body.

        Raises `RequestRejected` for more than `HTTPLimits.body_bytes` (413), or if it has not arrived within
        `HTTPLimits.body_seconds` (408), the errors of `charge`, and `ClientDisconnected`.
        """
        limit, seconds = limits.http.body_bytes, limits.http.body_seconds
        length = self.headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > limit:
            raise _too_large(limit)
        try:
            message = await with_deadline(seconds, self.receive())
            if message["type"] == "http.request" and not message.get("more_body"):
                body: bytes = message.get("body", b"")
            else:
                body = await with_deadline(seconds, _read_parts(self.receive, limit, message, charge))
        except TimeoutError:
            raise body_is_late(seconds) from None
        if len(body) > limit:
            raise _too_large(limit)
        self.size = len(body)
        charge.measure(body)
        return body


_CLOSE = ((b"connection", b"close"),)
_SINGLE = frozenset((b"host", b"origin", b"authorization", b"last-event-id"))


def _is_single(name: bytes) -> bool:
    return name in _SINGLE or name.startswith((b"content-", b"mcp-"))


def _find_conflict(fields: Sequence[tuple[bytes, bytes]], headers: dict[bytes, bytes]) -> bytes | None:
    return next((name for name, value in fields if _is_single(name) and headers[name] != value), None)


def _combine_headers(fields: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """ "A recipient MAY combine multiple field lines [...] separated by a comma" (RFC 9110, 5.3); cookies by a
    semicolon (RFC 9113, 8.2.3).
    """
    lines: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        lines.setdefault(name, []).append(value)
    return {
        name: values[-1] if _is_single(name) else (b"; " if name == b"cookie" else b", ").join(values)
        for name, values in lines.items()
    }


def _path_below_root(scope: Scope) -> str:
    """Return the path without that of the mount: "the root path this application is mounted at" (ASGI, HTTP scope)."""
    path: str = scope["path"]
    root = _root(scope)
    if root and path.startswith(root) and path[len(root) :][:1] in ("", "/"):
        return path[len(root) :]
    return path


def _root(scope: Scope) -> str:
    root: str = scope.get("root_path", "")
    return root.rstrip("/")


async def _read_parts(receive: Receive, limit: int, message: Any, charge: Charge) -> bytes:
    parts, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        charge.add(len(part))
        if size > limit:
            raise _too_large(limit)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def body_is_late(seconds: float) -> RequestRejected:
    """Return the error for a body that did not arrive within `HTTPLimits.body_seconds`."""
    return RequestRejected(408, f"the body did not arrive within {seconds:g} s (HTTPLimits.body_seconds)", _CLOSE)


def _too_large(limit: int) -> RequestRejected:
    return RequestRejected(413, f"the body has more than {limit:,} bytes (HTTPLimits.body_bytes)", _CLOSE)


# --- responses -------------------------------------------------------------------------------------------------------

Headers = Sequence[tuple[bytes, bytes]]

JSON = (b"content-type", b"application/json")
TEXT = (b"content-type", b"text/plain; charset=utf-8")


async def send_json(send: Send, status: int, body: bytes, headers: Headers = ()) -> None:
    """Send a JSON response."""
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def send_text(send: Send, status: int, text: str, headers: Headers = ()) -> None:
    """Send a text response; the text may be empty."""
    body = text.encode()
    head = [TEXT] if body else []
    length = (b"content-length", b"%d" % len(body))
    await send({"type": "http.response.start", "status": status, "headers": [*head, length, *headers]})
    await send({"type": "http.response.body", "body": body})
