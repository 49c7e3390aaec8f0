"""Routes of a program's own beside its server: `@mcp.custom_route("/health", methods=["GET"])`.

Their functions take a request of Starlette and return a response of it, so they run in an application of Starlette.
Nobody is authenticated there, as in the other libraries; the hosts and origins that are let in are those of the server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from accord.server.http.app import HTTPApp
from accord.transport.asgi.request import ASGIRequest, Receive, Scope, Send
from accord.transport.asgi.responses import send_text

if TYPE_CHECKING:
    from accord.server.http.options import HTTPOptions
    from accord.server.server import Server

F = TypeVar("F", bound=Callable[..., Any])


class CustomRoutes:
    """The routes of one server, in the order in which they were declared."""

    def __init__(self) -> None:
        self._routes: list[dict[str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._routes)

    def declare(
        self, path: str, methods: Sequence[str], name: str | None = None, include_in_schema: bool = True
    ) -> Callable[[F], F]:
        """A decorator for the function at a path, in which Starlette's `{parameters}` may stand."""

        def declared(function: F) -> F:
            about = {"methods": list(methods), "name": name, "include_in_schema": include_in_schema}
            self._routes.append({"path": path, "endpoint": function, **about})
            return function

        return declared

    def application(self) -> Any:
        """An application of Starlette with them."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        return Starlette(routes=[Route(**about) for about in self._routes])


class RoutedApp(HTTPApp):
    """A server as an ASGI application, with the routes of its program."""

    def __init__(self, server: Server, options: HTTPOptions, routes: CustomRoutes) -> None:
        super().__init__(server, options)
        self._custom: Any = routes.application()
        self._route_host_check = options.gate()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection scope of ASGI."""
        if scope["type"] != "http" or not self._is_custom(scope):
            return await super().__call__(scope, receive, send)
        headers = ASGIRequest(scope).headers
        refusal = self._route_host_check.refusal(headers.get(b"host"), headers.get(b"origin"))
        if refusal is not None:
            return await send_text(send, 403, refusal)
        await self._custom(scope, receive, send)
        return None

    def _is_custom(self, scope: Scope) -> bool:
        """Whether one of the routes has the path, if not the method."""
        return any(route.matches(scope)[0].value for route in self._custom.routes)
