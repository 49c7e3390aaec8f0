"""Access checks and custom routes of the other libraries over HTTP.

mcp 2 and FastMCP 4 reject `..` that leads out, absolute paths and NUL in the variables of a resource template by
default, and a program may exempt variables; mcp 1 does not check. Programs keep the check of their library in place of
accord's own.

Custom routes: `@mcp.custom_route("/health", methods=["GET"])`. Their functions take and return Starlette's requests
and responses, so they run in a Starlette application. Custom routes are not authenticated, as in the other libraries;
the server's allowed hosts and origins hold for them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from accord.compat.wrapping import wrapped
from accord.errors import ResourceNotFound
from accord.server.http.app import HTTPApp
from accord.transport.asgi.request import ASGIRequest, Receive, Scope, Send, send_text

if TYPE_CHECKING:
    from accord.server.http.options import HTTPOptions
    from accord.server.server import Server

_ABSOLUTE = re.compile(r"[/\\]|[A-Za-z]:")


class ResourceSecurity(msgspec.Struct, frozen=True, kw_only=True):
    """The checks of the variables of a resource template, and the variables that are exempt."""

    reject_path_traversal: bool = True
    reject_absolute_paths: bool = True
    reject_null_bytes: bool = True
    exempt_params: Collection[str] = frozenset()

    def rejected_variable(self, values: Mapping[str, Any]) -> str | None:
        """Return the name of a variable that is rejected, or None."""
        for name, value in values.items():
            texts = value if isinstance(value, list) else [value]
            if name not in self.exempt_params and any(self._is_unsafe(text) for text in texts if isinstance(text, str)):
                return name
        return None

    def _is_unsafe(self, text: str) -> bool:
        return (
            (self.reject_null_bytes and "\0" in text)
            or (self.reject_path_traversal and escapes_base(text))
            or (self.reject_absolute_paths and _ABSOLUTE.match(text) is not None)
        )


DEFAULT_RESOURCE_SECURITY = ResourceSecurity()


def escapes_base(path: str) -> bool:
    """Return whether a relative path leads out of its base: `a/../../b`."""
    depth = 0
    for part in re.split(r"[/\\]", path):
        depth += -1 if part == ".." else 1 if part not in ("", ".") else 0
        if depth < 0:
            return True
    return False


class PathEscapeError(ValueError):
    """A path that leads out of its folder."""


def safe_join(base: str | Path, *parts: str) -> Path:
    """Return a path inside a folder, with links resolved. Raises `PathEscapeError` for a path outside."""
    root = Path(base).resolve()
    if any("\0" in part or _ABSOLUTE.match(part) for part in parts):
        raise PathEscapeError(f"{parts!r} is no relative path")
    path = root.joinpath(*parts).resolve()
    if not path.is_relative_to(root):
        raise PathEscapeError(f"{parts!r} leads out of {root}")
    return path


class TransportSecuritySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts and origins allowed over HTTP besides localhost: accord's `HTTPOptions(hosts=..., origins=...)`."""

    enable_dns_rebinding_protection: bool = True
    allowed_hosts: Sequence[str] = ()
    allowed_origins: Sequence[str] = ()

    @property
    def allowed(self) -> tuple[Sequence[str], Sequence[str]]:
        """Return the allowed hosts and origins, as `HTTPOptions` takes them."""
        if not self.enable_dns_rebinding_protection:
            return ("*",), ("*",)
        return self.allowed_hosts, self.allowed_origins


def with_security(function: Callable[..., Any], security: ResourceSecurity) -> Callable[..., Any]:
    """Return the function of a template, with a check that raises `ResourceNotFound` for rejected variables."""
    bound = inspect.signature(function).bind

    def check(*args: Any, **kwargs: Any) -> None:
        refused = security.rejected_variable(bound(*args, **kwargs).arguments)
        if refused is not None:
            raise ResourceNotFound(f"there is no such resource: {refused!r} leads out of where it may")

    return wrapped(function, before=check)


F = TypeVar("F", bound=Callable[..., Any])


class CustomRoutes:
    """The custom routes of one server, in the order of their declaration."""

    def __init__(self) -> None:
        self._routes: list[dict[str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._routes)

    def declare(
        self, path: str, methods: Sequence[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[F], F]:
        """Return a decorator for the function at a path, which may contain Starlette's `{parameters}`."""

        def declare(function: F) -> F:
            options = {"methods": list(methods), "name": name, "include_in_schema": include_in_schema}
            self._routes.append({"path": path, "endpoint": function, **options})
            return function

        return declare

    def application(self) -> Any:
        """Return a Starlette application with the routes."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(routes=[Route(**route) for route in self._routes])


class RoutedApp(HTTPApp):
    """The ASGI application of a server with custom routes."""

    def __init__(self, server: Server, options: HTTPOptions, routes: CustomRoutes) -> None:
        super().__init__(server, options)
        self._custom: Any = routes.application()
        self._route_host_check = options.gate()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection scope."""
        if scope["type"] != "http" or not self._is_custom(scope):
            return await super().__call__(scope, receive, send)
        headers = ASGIRequest(scope, receive, send).headers
        refusal = self._route_host_check.refusal(headers.get(b"host"), headers.get(b"origin"))
        if refusal is not None:
            return await send_text(send, 403, refusal)
        await self._custom(scope, receive, send)
        return None

    def _is_custom(self, scope: Scope) -> bool:
        """Return whether the path is that of a custom route, whatever the method."""
        return any(route.matches(scope)[0].value for route in self._custom.routes)
