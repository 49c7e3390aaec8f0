"""How a client goes about HTTP, in one frozen value: headers of its own, a proxy, TLS, how many connections."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from accord.errors import TargetError

if TYPE_CHECKING:
    from ssl import SSLContext

Headers: TypeAlias = Mapping[str, str]
HeaderSource: TypeAlias = Headers | Callable[[], Headers | Awaitable[Headers]]
"""Headers, or a function, plain or async, that gives them for each request: a token that is renewed."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_OURS = re.compile(r"accept|accept-encoding|content-(type|length)|mcp-.*|last-event-id", re.IGNORECASE).fullmatch
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch


class HTTPSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a client over HTTP: `Client(url, http=HTTPSettings(headers={"X-Api-Key": key}))`.

    Raises `TargetError` for headers that cannot be sent.
    """

    headers: HeaderSource | None = None
    """Sent with each request, or a function that gives them for each. What the protocol says itself stays as it is."""
    auth: str | None = None
    """A bearer token: `Authorization: Bearer ...`."""
    proxy: str | None = None
    """The URL of an HTTP proxy. By default the one in the environment (HTTPS_PROXY, NO_PROXY), and none for this
    machine itself; "" is none at all."""
    ssl: SSLContext | None = None
    """How servers are verified, where the authorities of the system are not enough."""
    connections: int = 100
    """Requests in flight; more wait for their turn. Subscriptions, answers and notifications do not count."""

    def __post_init__(self) -> None:
        if isinstance(self.headers, Mapping):
            checked(self.headers)
        if self.auth is not None and not (self.auth and self.auth.isascii() and self.auth.isprintable()):
            raise TargetError("auth= is no bearer token: it must be visible ASCII characters")
        if self.connections < 1:
            raise TargetError(f"connections is at least 1, not {self.connections}")

    def __repr__(self) -> str:
        return f"HTTPSettings(connections={self.connections}, ...)"  # the rest may be secret


def checked(headers: Headers) -> dict[str, str]:
    """Headers without those that the protocol sets itself. Raises `TargetError` for one that cannot be sent; its value
    is not told.
    """
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME(name):
            raise TargetError(f"{name!r:.100} is no name of a header")
        if not isinstance(value, str) or not _VALUE(value):
            raise TargetError(f"the value of header {name} is no text, or has control characters")
    return {name: value for name, value in headers.items() if not _OURS(name)}
