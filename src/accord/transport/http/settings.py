"""The HTTP settings of a client, in one frozen value: headers, a proxy, TLS, the number of connections."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlsplit

import msgspec

from accord.errors import TargetError
from accord.transport.http.redaction import without_credentials_malformed

if TYPE_CHECKING:
    from ssl import SSLContext

Headers: TypeAlias = Mapping[str, str]
HeaderSource: TypeAlias = Headers | Callable[[], Headers | Awaitable[Headers]]
"""Headers, or a function, plain or async, that returns them for each request, such as a token that is renewed."""

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_PROTOCOL_HEADERS = re.compile(
    r"accept|accept-encoding|content-(type|length)|mcp-.*|last-event-id", re.IGNORECASE
).fullmatch
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*").fullmatch


class HTTPSettings(msgspec.Struct, frozen=True, kw_only=True):
    """HTTP settings of a client: `Client(url, http=HTTPSettings(headers={"X-Api-Key": key}))`.

    Raises `TargetError` for headers that cannot be sent.
    """

    headers: HeaderSource | None = None
    """Headers of each request, or a function that returns them. They do not replace headers of the protocol."""
    proxy: str | None = None
    """The URL of an HTTP proxy. By default that of the environment (HTTPS_PROXY, NO_PROXY), and none for this machine
    itself; "" disables all proxies."""
    ssl: SSLContext | None = None
    """The TLS context that verifies servers, if the authorities of the system are not enough."""
    connections: int = 100
    """Limit of the requests in flight, and of the responses being sent; further ones wait. Subscriptions and
    notifications do not count."""

    def __post_init__(self) -> None:
        if isinstance(self.headers, Mapping):
            validated_headers(self.headers)
        if self.proxy:
            validate_proxy(self.proxy)
        if self.connections < 1:
            raise TargetError(f"connections must be at least 1, not {self.connections}")

    def __repr__(self) -> str:
        return f"HTTPSettings(connections={self.connections}, ...)"  # the rest may be secret


def validate_proxy(url: str) -> None:
    """Raise `TargetError` for an invalid URL of a proxy, or one that is not an HTTP proxy."""
    try:
        split = urlsplit(url)
        usable = split.scheme in ("http", "https") and bool(split.hostname) and split.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise TargetError(
            f"{without_credentials_malformed(url)!r:.500} is not an HTTP proxy; write it as http://proxy.example.com:3128"
        )


def validated_headers(headers: Headers) -> dict[str, str]:
    """Return the headers by their lower-case names, without those that the protocol sets.

    Raises `TargetError` for one that cannot be sent; the error does not show its value.
    """
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME(name):
            raise TargetError(f"{name!r:.100} is not a valid header name")
        if not isinstance(value, str) or not _VALUE(value):
            raise TargetError(f"the value of header {name} must be a string without control characters")
    return {name.lower(): value for name, value in headers.items() if not _PROTOCOL_HEADERS(name)}


async def resolve_headers(source: Callable[[], Headers | Awaitable[Headers]]) -> dict[str, str]:
    """Return the current headers of a function. Raise its errors, and those of `validated_headers`."""
    headers = source()
    return validated_headers(await headers if inspect.isawaitable(headers) else headers)


def with_default_headers(headers: Headers, settings: HTTPSettings) -> HTTPSettings:
    """Return the settings with these headers of a configuration; headers of the settings take precedence."""
    defaults, source = validated_headers(headers), settings.headers
    if not callable(source):
        return msgspec.structs.replace(settings, headers={**defaults, **validated_headers(source or {})})

    async def both() -> Headers:
        return {**defaults, **await resolve_headers(source)}

    return msgspec.structs.replace(settings, headers=both)
