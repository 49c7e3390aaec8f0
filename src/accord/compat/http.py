"""Access checks and custom routes of the other libraries over HTTP.

mcp 2 and FastMCP 4 reject `..` that leads out, absolute paths and NUL in the variables of a resource template by
default, and a program may exempt variables; mcp 1 does not check. Programs keep the check of their library in place of
accord's own.

Custom routes: `@mcp.custom_route("/health", methods=["GET"])`. Their functions take and return Starlette's requests
and responses, so they run in a Starlette application. Custom routes are not authenticated, as in the other libraries;
the allowed hosts and origins hold for them, and the limits of bodies (`HTTPLimits.bodies_bytes`, `body_seconds`).
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from accord.compat.wrapping import wrapped
from accord.errors import ResourceNotFound
from accord.server.core.per_loop import PerLoop
from accord.server.http.app import CLIENT_CLOSED_REQUEST, HTTPApp
from accord.server.http.quotas import AccountFinder, BodyBudget, BodyCharge, account_of
from accord.transport.asgi.request import ASGIRequest, Receive, RequestRejected, Scope, Send, body_is_late, send_text
from accord.transport.deadlines import with_deadline

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
            if name not in self.exempt_params and any(map(self._is_unsafe, _texts_in(value))):
                return name
        return None

    def _is_unsafe(self, text: str) -> bool:
        return (
            (self.reject_null_bytes and "\0" in text)
            or (self.reject_path_traversal and escapes_base(text))
            or (self.reject_absolute_paths and _ABSOLUTE.match(text) is not None)
        )


DEFAULT_RESOURCE_SECURITY = ResourceSecurity()


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts and paths in a variable, which has the type of its parameter: `Path`, `set[str]`."""
    if isinstance(value, str | os.PathLike):
        yield str(value)
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, Iterable):
        for each in value:
            yield from _texts_in(each)


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
        from starlette.requests import ClientDisconnect
        from starlette.routing import Route

        return Starlette(
            routes=[Route(**route) for route in self._routes],
            exception_handlers={RequestRejected: _rejection, ClientDisconnect: _disconnection},
        )


async def _rejection(request: Any, exc: Any) -> Any:
    """Return the response to a request that is over a limit."""
    from starlette.responses import PlainTextResponse

    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in exc.headers}
    return PlainTextResponse(exc.message, exc.status, headers)


async def _disconnection(request: Any, exc: Any) -> Any:
    """Return a response that no client receives: a body that does not arrive is no error of the program."""
    from starlette.responses import Response

    return Response(status_code=CLIENT_CLOSED_REQUEST)


class RoutedApp(HTTPApp):
    """The ASGI application of a server with custom routes."""

    def __init__(self, server: Server, options: HTTPOptions, routes: CustomRoutes) -> None:
        super().__init__(server, options)
        self._custom: Any = routes.application()
        self._route_host_check = options.gate()
        self._limits = server.limits
        self._bodies: PerLoop[BodyBudget] = PerLoop()
        self._account: AccountFinder = partial(account_of, proxied=options.public_url is not None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection scope."""
        if scope["type"] != "http" or not self._is_custom(scope):
            return await super().__call__(scope, receive, send)
        request = ASGIRequest(scope, receive, send)
        headers = request.headers
        refusal = self._route_host_check.refusal(headers.get(b"host"), headers.get(b"origin"))
        if refusal is not None:
            return await send_text(send, 403, refusal)
        budget = self._bodies.get(asyncio.get_running_loop()) or self._bodies.add(BodyBudget(self._limits))
        charge = BodyCharge(budget, self._account, request)
        try:
            await self._custom(scope, _charged(receive, charge, self._limits.http.body_seconds), send)
        finally:
            charge.release()
        return None

    def _is_custom(self, scope: Scope) -> bool:
        """Return whether the path is that of a custom route, whatever the method."""
        return any(route.matches(scope)[0].value for route in self._custom.routes)


def _charged(receive: Receive, charge: BodyCharge, seconds: float) -> Receive:
    """Return the function that receives a body, and charges its parts: a program may keep all of them. The program may
    wait for the body for `seconds` in total: a client that sends no more would keep its charge. The time in which the
    program does something else does not count.
    """
    loop, rest, is_complete = asyncio.get_running_loop(), seconds, False

    async def charged() -> Any:
        nonlocal rest, is_complete
        if is_complete:
            return await receive()
        began = loop.time()
        try:
            message = await with_deadline(max(0, rest), receive())
        except TimeoutError:
            raise body_is_late(seconds) from None
        rest -= loop.time() - began
        is_complete = not message.get("more_body")
        if body := message.get("body"):
            charge.add(len(body))
        return message

    return charged
