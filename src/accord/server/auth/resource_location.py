"""The location of a protected server for its clients: its URL, resource identifier, and issuer if it has one itself.

The public URL decides, where there is one; on loopback, the request does, whose Host was checked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from accord.auth.urls import RESOURCE_METADATA, origin_of
from accord.server.http.options import HTTPOptions
from accord.transport.asgi.request import ASGIRequest

RouteHandler: TypeAlias = Callable[[ASGIRequest], Awaitable[None]]


class ResourceLocation:
    """The location of a server over HTTP."""

    def __init__(self, options: HTTPOptions) -> None:
        self.public_url: str | None = options.public_url
        self.public_root: str = options.public_root()
        """The path prefix under which a reverse proxy serves the server."""
        self.path: str = options.path.rstrip("/")
        """The path of Streamable HTTP."""

    def resource(self, request: ASGIRequest) -> str:
        """Return the resource identifier: the URL of the server."""
        return self.public_url or self._own_url(request)

    def _own_url(self, request: ASGIRequest) -> str:
        """Return the URL of a server on loopback. Mounted under a path, it is served at that path too."""
        at_mount = request.root and request.path.rstrip("/") == RESOURCE_METADATA
        return f"{_own_origin(request)}{request.root}{'' if at_mount else self.path}"

    def issuer(self, request: ASGIRequest) -> str:
        """Return the issuer identifier of a server that is its own authorization server: the URL below which its
        endpoints are.
        """
        if self.public_url is None:
            return _own_origin(request) + request.root
        path = self._public_path()
        is_mount = request.root and path.endswith(request.root)
        return origin_of(self.public_url) + (path if is_mount else self.public_root)

    def metadata_url(self, request: ASGIRequest) -> str:
        """Return a URL of the resource metadata that requests reach this server at."""
        if self.public_url is None:
            below = request.path.rstrip("/") and self.path
            return f"{_own_origin(request)}{request.root}{RESOURCE_METADATA}{below}"
        path, below = self._public_path(), request.path.rstrip("/")
        root = path.removesuffix(below) if path.endswith(below) else ""
        root = root or (request.root if path.startswith(f"{request.root}/") else "") or self.public_root
        rest = path.removeprefix(root) if path.endswith(below) else ""
        return f"{origin_of(self.public_url)}{root}{RESOURCE_METADATA}{rest}"

    def _public_path(self) -> str:
        path = (self.public_url or "").rstrip("/").partition("://")[2].partition("/")[2]
        return f"/{path}" if path else ""

    def resource_metadata_paths(self) -> Iterator[str]:
        """Yield the paths of the resource metadata; a reverse proxy may or may not strip its part."""
        for root in {"", self.public_root}:
            for path in {"", self.path, self.public_root + self.path}:
                yield f"{root}{RESOURCE_METADATA}{path}"
                yield f"{root}{RESOURCE_METADATA}{path}/"

    def server_metadata_paths(self, well_known: str) -> set[str]:
        """Return the paths of the metadata of the authorization server that this server is itself (RFC 8414, 3.1)."""
        return {well_known, well_known + self.public_root}


def _own_origin(request: ASGIRequest) -> str:
    """Return the origin of a request to loopback, whose Host was checked."""
    scheme = request.scope.get("scheme", "http")
    return f"{scheme}://{request.headers.get(b'host', b'localhost').decode('latin-1')}"
