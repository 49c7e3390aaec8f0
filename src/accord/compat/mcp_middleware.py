"""Middleware of mcp 2: `async def (ctx: ServerRequestContext, call_next)`, appended to `mcp.middleware`.

Theirs stands around every message, and reads and changes it as JSON. Here it stands around what handlers do: calls,
reads, prompts, lists, completions and subscriptions. `initialize`, pings and notifications do not pass it, nor do
requests that are refused before a handler is found, as for a tool that there is not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, SupportsIndex, TypeAlias

import msgspec

from accord.compat.differ import Different
from accord.errors import ProtocolError, describe
from accord.messages.completion import CompleteResult, Completion
from accord.messages.content import TextContent
from accord.messages.tools import CallToolResult
from accord.server.core.registry import RESULTS
from accord.server.core.results import EncodedToolResult
from accord.server.middleware.request import CallNext as Next, Middleware, Request

HandlerResult: TypeAlias = Any
"""A result of the protocol, a dict of one, or None."""

_PACKED = ("tools/call", "resources/read", "prompts/get")


@dataclasses.dataclass(kw_only=True)
class ServerRequestContext:
    """One request, as middleware of mcp 2 gets it; `dataclasses.replace(ctx, params={...})` changes its arguments."""

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
"""The rest of the way to the handler."""


class ServerMiddleware:
    """The type of middleware, for annotations: `ServerMiddleware[Any]`."""

    def __class_getitem__(cls, types: Any) -> type[ServerMiddleware]:
        return cls


class MiddlewareList(list[Any]):
    """The middleware of a server, the outermost first: `append` puts another inside of what is there.

    Called with a function it is accord's own decorator, as `Server.middleware` is.
    """

    def __init__(self, add: Callable[[Any], None]) -> None:
        super().__init__()
        self._add = add

    def __call__(self, function: Any) -> Any:
        self._add(function)
        return function

    def append(self, middleware: Any, /) -> None:
        """Put a middleware of mcp 2 inside of those that are there."""
        self._add(as_native(middleware))
        super().append(middleware)

    def extend(self, several: Iterable[Any], /) -> None:
        """Append several."""
        for middleware in several:
            self.append(middleware)

    def insert(self, index: SupportsIndex, middleware: Any, /) -> None:
        """Append, where that is the place. Raises `Different` for another one."""
        if int(index) != len(self):
            raise Different("mcp.middleware is only appended to: add what stands outside first")
        self.append(middleware)


def as_native(middleware: Callable[[Any, Any], Awaitable[HandlerResult]]) -> Middleware:
    """A middleware of mcp 2 as one of accord."""

    async def around(request: Request, call_next: Next) -> Any:
        step = _MiddlewareCall(request, call_next)
        return step.native_result(await middleware(step.context, step.proceed))

    return around


class _MiddlewareCall:
    """One request on its way through one middleware."""

    def __init__(self, request: Request, call_next: Next) -> None:
        self._request = request
        self._call_next = call_next
        self._shown: Any = None
        self._value: Any = None
        self._error: Exception | None = None
        exchange = request.inside[3]
        raw = exchange.params
        self.context = ServerRequestContext(
            method=request.method,
            params=None if raw is msgspec.UNSET else msgspec.json.decode(raw),
            request_id=exchange.id,
            meta=request.meta,
            protocol_version=request.revision,
            lifespan_context=request.lifetime.value,
            session=_Unavailable("ctx.session", "send and ask in the handler, by its own ctx"),
            request=_Unavailable("ctx.request", "a handler has ctx.headers and ctx.principal"),
        )

    async def proceed(self, context: ServerRequestContext) -> HandlerResult:
        """The result of the protocol that the rest of the way leads to; a tool that fails has one as well."""
        request = self._native_request(context)
        try:
            self._value = await self._call_next(request)
        except Exception as exc:
            if isinstance(exc, ProtocolError) or request.method != "tools/call" or request.over:
                raise
            self._error = exc
            self._shown = CallToolResult(content=[TextContent(text=describe(exc))], is_error=True)
        else:
            self._shown = _result(request, self._value)
        return self._shown

    def native_result(self, result: HandlerResult) -> Any:
        """What the handler returned or raised, where the middleware left its result as it was; or what it made."""
        if result is self._shown:
            if self._error is not None:
                raise self._error
            return self._value
        return _native_result(self._request, result)

    def _native_request(self, context: ServerRequestContext) -> Request:
        """The request with what the middleware changed of it. Raises `Different` for what cannot be changed here."""
        given, known = dict(context.params or {}), dict(self.context.params or {})
        arguments = given.pop("arguments", None)
        before = known.pop("arguments", None)
        if context.method != self.context.method or given != known:
            raise Different("middleware changes the arguments of a request here, and nothing else of it")
        return self._request if arguments == before else self._request.replace(arguments=arguments or {})


class _Unavailable:
    """What middleware has there and not here: said when it is used."""

    def __init__(self, name: str, instead: str) -> None:
        self._name = name
        self._instead = instead

    def __getattr__(self, name: str) -> Any:
        raise Different(f"middleware has no {self._name} in accord: {self._instead}")


def _result(request: Request, value: Any) -> Any:
    """What a handler returned, as a result of the protocol."""
    if request.method in _PACKED:
        return request.pack(value)
    if request.lists:
        type_, field = RESULTS[request.method]
        return type_(**{field: value})
    if request.method == "completion/complete" and isinstance(value, Completion):
        return CompleteResult(completion=value)
    return value


def _native_result(request: Request, result: HandlerResult) -> Any:
    """What accord's own middleware returns for a result that one of theirs made."""
    if request.method == "tools/call":  # as it travels, and so checked and wrapped by who made it
        fields = result if isinstance(result, dict) else msgspec.to_builtins(result)
        return msgspec.convert(fields, EncodedToolResult)
    if isinstance(result, dict):
        result = msgspec.convert(result, request.inside[3].method.result)
    if request.lists and isinstance(result, RESULTS[request.method][0]):
        return getattr(result, RESULTS[request.method][1])
    return result.completion if isinstance(result, CompleteResult) else result
