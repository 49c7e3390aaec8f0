"""One HTTP request, and its body, read within bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from accord.transport.patience import within

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


NOTES = "accord.access"
"""Where in the `state` of a scope an access log looks for what only the application knows."""


class Rejected(Exception):
    """A request that is answered with an HTTP error: `status`, a sentence, and headers."""

    def __init__(self, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(message)
        self.status: int = status
        self.message: str = message
        self.headers: Sequence[tuple[bytes, bytes]] = headers


class Disconnected(Exception):
    """The client went away before its request was complete."""


class Request:
    """Method, path below the place where the app is mounted, and headers; names of headers are lower-case."""

    __slots__ = ("headers", "method", "notes", "path", "scope", "size")

    def __init__(self, scope: Scope) -> None:
        self.scope: Scope = scope
        self.method: str = scope["method"]
        self.path: str = _below(scope)
        given = scope["headers"]
        self.headers: dict[bytes, bytes] = dict(given)
        if len(self.headers) != len(given):
            self.headers = _joined(given)
        self.size: int = 0
        """Bytes of the body, once it is there."""
        state = scope.get("state")
        self.notes: dict[str, Any] | None = state.get(NOTES) if state else None
        """What the access log is to know, where there is one."""

    @property
    def root(self) -> str:
        """The path under which the application is mounted, without a slash at its end."""
        return _root(self.scope)

    def repeated(self) -> bytes | None:
        """A header of one value that is there twice with different ones, or None: whoever reads the first is told
        something else than who reads the last.
        """
        given = self.scope["headers"]
        if len(self.headers) == len(given):
            return None
        return next((name for name, value in given if _is_single(name) and self.headers[name] != value), None)

    async def body(self, receive: Receive, most: int, seconds: float, charge: Callable[[int], None]) -> bytes:
        """Return the body. `charge` is called with the size of each part of a body that comes in several.

        Raises `Rejected` for more than `most` bytes (413), or when it is not there in `seconds` (408), what `charge`
        raises, and `Disconnected`.
        """
        length = self.headers.get(b"content-length", b"")
        if length.isdigit() and int(length) > most:
            raise _too_large(most)
        try:
            message = await within(seconds, receive())
            if message["type"] == "http.request" and not message.get("more_body"):
                body = _bounded(message.get("body", b""), most)
            else:
                body = await within(seconds, _read_on(receive, most, message, charge))
        except TimeoutError:
            raise Rejected(408, f"the body was not there after {seconds:g} s", _CLOSE) from None
        self.size = len(body)
        return body


_CLOSE = ((b"connection", b"close"),)
_SINGLE = frozenset((b"host", b"origin", b"authorization", b"last-event-id"))


def _is_single(name: bytes) -> bool:
    return name in _SINGLE or name.startswith((b"content-", b"mcp-"))


def _joined(given: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """ "A recipient MAY combine multiple field lines [...] separated by a comma" (RFC 9110, 5.3)."""
    lines: dict[bytes, list[bytes]] = {}
    for name, value in given:
        lines.setdefault(name, []).append(value)
    return {name: values[-1] if _is_single(name) else b", ".join(values) for name, values in lines.items()}


def _below(scope: Scope) -> str:
    """The path without that of the mount: "the root path this application is mounted at" (ASGI, HTTP scope)."""
    path: str = scope["path"]
    if not scope.get("root_path"):
        return path
    root = _root(scope)
    if root and path.startswith(root) and path[len(root) :][:1] in ("", "/"):
        return path[len(root) :]
    return path


def _root(scope: Scope) -> str:
    root: str = scope.get("root_path", "")
    return root.rstrip("/")


def _bounded(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise _too_large(most)
    return body


async def _read_on(receive: Receive, most: int, message: Any, charge: Callable[[int], None]) -> bytes:
    parts, size = [], 0
    while True:
        if message["type"] == "http.disconnect":
            raise Disconnected
        part = message.get("body", b"")
        parts.append(part)
        size += len(part)
        charge(len(part))
        if size > most:
            raise _too_large(most)
        if not message.get("more_body"):
            return b"".join(parts)
        message = await receive()


def _too_large(most: int) -> Rejected:
    return Rejected(413, f"the body has more than {most:,} bytes", _CLOSE)
