"""Middleware of mcp 2: `async def (ctx: ServerRequestContext, call_next)`, appended to `mcp.middleware`.

In mcp 2, middleware wraps every message, and reads and changes it as JSON. In accord it wraps the work of handlers:
calls, reads, prompts, lists, completions and subscriptions. `initialize`, pings and notifications do not pass through
it, nor do requests that are rejected before a handler is resolved, such as a call of an unknown tool.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, SupportsIndex, TypeAlias

import msgspec

from accord.compat.differ import Different
from accord.errors import ProtocolError, describe
from accord.locked_cache import safe_convert
from accord.messages.completion import CompleteResult, Completion
from accord.messages.content import TextContent
from accord.messages.tools import CallToolResult
from accord.server.core.registry import RESULTS
from accord.server.core.results import EncodedToolResult
from accord.server.middleware.request import CallNext as Next, Middleware, Request

HandlerResult: TypeAlias = Any
"""A result of the protocol, a dict of its fields, or None."""

_PACKED = ("tools/call", "resources/read", "prompts/get")


@dataclasses.dataclass(kw_only=True)
class ServerRequestContext:
    """One request, as middleware of mcp 2 receives it; `dataclasses.replace(ctx, params={...})` changes it."""

    method: str
    params: Mapping[str, Any] | None = None
    request_id: Any = None
    meta: Any = None
    protocol_version: str = ""
    lifespan_context: Any = None
    session: Any = None
    request: Any = None

    def __class_getitem__(cls, types: Any) -> type[ServerRequestContext]:
        return cls


CallNext: TypeAlias = Callable[[ServerRequestContext], Awaitable[HandlerResult]]
"""The next middleware, or the handler."""


class ServerMiddleware:
    """The type of middleware, for annotations: `ServerMiddleware[Any]`."""

    def __class_getitem__(cls, types: Any) -> type[ServerMiddleware]:
        return cls


class MiddlewareList(list[Any]):
    """The middleware of a server, outermost first; `append` adds an innermost one.

    Called with a function, it is accord's own decorator, as `Server.middleware` is.
    """

    def __init__(self, add: Callable[[Any], None]) -> None:
        super().__init__()
        self._add = add

    def __call__(self, function: Any) -> Any:
        self._add(function)
        return function

    def append(self, middleware: Any, /) -> None:
        """Add a middleware of mcp 2 as the innermost."""
        self._add(as_native(middleware))
        super().append(middleware)

    def extend(self, middlewares: Iterable[Any], /) -> None:
        """Append several middleware functions."""
        for middleware in middlewares:
            self.append(middleware)

    def insert(self, index: SupportsIndex, middleware: Any, /) -> None:
        """Append a middleware. Raises `Different` for any index but the end."""
        if int(index) != len(self):
            raise Different("mcp.middleware is only appended to: add what stands outside first")
        self.append(middleware)


def as_native(middleware: Callable[[Any, Any], Awaitable[HandlerResult]]) -> Middleware:
    """Return a middleware of mcp 2 as one of accord."""

    async def around(request: Request, call_next: Next) -> Any:
        step = _MiddlewareCall(request, call_next)
        return step.native_result(await middleware(step.context, step.proceed))

    return around


class _MiddlewareCall:
    """One request in one middleware."""

    def __init__(self, request: Request, call_next: Next) -> None:
        self._request = request
        self._call_next = call_next
        self._shown: Any = None
        self._value: Any = None
        self._error: Exception | None = None
        call = request.inside[3]
        raw = call.params
        self.context = ServerRequestContext(
            method=request.method,
            params=None if raw is msgspec.UNSET else msgspec.json.decode(raw),
            request_id=call.id,
            meta=request.meta,
            protocol_version=request.revision,
            lifespan_context=request.lifetime.value,
            session=_Unavailable("ctx.session", "send and ask in the handler, by its own ctx"),
            request=_Unavailable("ctx.request", "a handler has ctx.headers and ctx.principal"),
        )

    async def proceed(self, context: ServerRequestContext) -> HandlerResult:
        """Call the next middleware and return a result of the protocol, also for a tool that raised."""
        request = self._native_request(context)
        try:
            self._value = await self._call_next(request)
        except Exception as exc:
            if isinstance(exc, ProtocolError) or request.method != "tools/call" or request.over:
                raise
            self._error = exc
            self._shown = CallToolResult(content=[TextContent(text=describe(exc))], is_error=True)
        else:
            self._shown = _protocol_result(request, self._value)
        return self._shown

    def native_result(self, result: HandlerResult) -> Any:
        """Return or raise what the handler did if the middleware kept its result; else convert the new result."""
        if result is self._shown:
            if self._error is not None:
                raise self._error
            return self._value
        return _native_result(self._request, result)

    def _native_request(self, context: ServerRequestContext) -> Request:
        """Return the request with the middleware's new arguments. Raises `Different` for any other change."""
        params, original = dict(context.params or {}), dict(self.context.params or {})
        arguments = params.pop("arguments", None)
        original_arguments = original.pop("arguments", None)
        if context.method != self.context.method or params != original:
            raise Different("middleware changes the arguments of a request here, and nothing else of it")
        return self._request if arguments == original_arguments else self._request.replace(arguments=arguments or {})


class _Unavailable:
    """An attribute that accord lacks in middleware; it raises `Different` when it is used."""

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        raise Different(f"middleware has no {self._name} in accord: {self._instead}")


def _protocol_result(request: Request, value: Any) -> Any:
    """Return a handler's value as a result of the protocol."""
    if request.method in _PACKED:
        return request.pack(value)
    if request.lists:
        type_, field = RESULTS[request.method]
        return type_(**{field: value})
    if request.method == "completion/complete" and isinstance(value, Completion):
        return CompleteResult(completion=value)
    return value


def _native_result(request: Request, result: HandlerResult) -> Any:
    """Return a result from a middleware of mcp 2 as accord's own middleware returns it."""
    if request.method == "tools/call":  # already encoded, and so checked and wrapped by the code that made it
        fields = result if isinstance(result, dict) else msgspec.to_builtins(result)
        return safe_convert(fields, EncodedToolResult)
    if isinstance(result, dict):
        result = safe_convert(result, request.inside[3].method.result)
    if request.lists and isinstance(result, RESULTS[request.method][0]):
        return getattr(result, RESULTS[request.method][1])
    return result.completion if isinstance(result, CompleteResult) else result
