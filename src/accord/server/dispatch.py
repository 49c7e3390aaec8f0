"""From a request to its result: the one place where a handler is called, and where what it raises is caught."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from accord.errors import (
    AccordError,
    InternalError,
    InvalidArguments,
    MethodNotFound,
    ProtocolError,
    ToolError,
)
from accord.limits import Limits
from accord.messages import codec
from accord.messages.content import ResourceContents
from accord.messages.meta import PaginatedParams
from accord.messages.prompts import GetPromptParams
from accord.messages.resources import ReadResourceParams, ReadResourceResult
from accord.server.context import Context, Line
from accord.server.registry import Offer
from accord.server.results import Packer, contents_of
from accord.server.workers import Workers
from accord.session.exchange import Exchange

if TYPE_CHECKING:
    from accord.server.server import Server

log: logging.Logger = logging.getLogger("accord.server")

Verb = Callable[[Exchange, Line], Coroutine[Any, Any, Any]]


class Call(msgspec.Struct):
    """`CallToolParams` as the server reads them: the arguments stay raw until the tool's own decoder takes them."""

    name: str
    arguments: Raw = Raw(b"{}")


_call = msgspec.json.Decoder(Call)


class Dispatch:
    """The verbs of one running server."""

    def __init__(self, server: Server, packer: Packer, limits: Limits) -> None:
        self._server = server
        self._registry = server.registry
        self._packer = packer
        self._limits = limits
        self._workers = Workers(limits)
        self._verbs: dict[str, Verb] = {
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            **dict.fromkeys(self._registry.lists, self._list),
        }

    def close(self) -> None:
        """Let the worker threads go."""
        self._workers.close()

    async def handle(self, exchange: Exchange, line: Line) -> Any:
        """Serve one request. Raises `ProtocolError`, or CancelledError when it was cancelled, and nothing else."""
        verb = self._verbs.get(exchange.method.name)
        if verb is None:
            raise MethodNotFound(f"{exchange.method.name} is not offered by this server")
        try:
            return await verb(exchange, line)
        except ProtocolError:
            raise
        except BaseException as exc:
            if cancelled(exc):
                raise
            log.exception("accord: %s failed", exchange.method.name)
            raise InternalError(f"{exchange.method.name} failed: {describe(exc)}") from exc

    async def _list(self, exchange: Exchange, line: Line) -> Raw:
        params = codec.decode_params(PaginatedParams, exchange.params)
        return self._registry.lists[exchange.method.name].page(params.cursor, exchange.rules)

    async def _call_tool(self, exchange: Exchange, line: Line) -> Any:
        call = read_call(exchange.params)
        offer = self._registry.tool(call.name)
        try:
            value = await self._run(offer, call.arguments, exchange, line)
            return self._packer.tool(value, offer.returns, exchange.rules)
        except (InvalidArguments, ToolError) as error:
            text = error.message if isinstance(error, InvalidArguments) else str(error)
        except ProtocolError:
            raise
        except BaseException as exc:
            if cancelled(exc):
                raise
            log.warning("accord: tool %r failed", call.name, exc_info=exc)
            text = describe(exc)
        return self._packer.text(text, exchange.rules, is_error=True)

    async def _read_resource(self, exchange: Exchange, line: Line) -> Raw:
        uri = codec.decode_params(ReadResourceParams, exchange.params).uri
        return self._packer.raw(ReadResourceResult(contents=await self.read(uri, exchange, line)), exchange.rules)

    async def read(self, uri: str, exchange: Exchange, line: Line) -> list[ResourceContents]:
        """Read a resource on behalf of a request. Raises `ResourceNotFound`, and what its function raises."""
        offer, variables = self._registry.resource(uri)
        value = await self._run(offer, variables, exchange, line)
        return contents_of(value, uri, offer.define(exchange.rules).mime_type)

    async def _get_prompt(self, exchange: Exchange, line: Line) -> Raw:
        params = codec.decode_params(GetPromptParams, exchange.params)
        offer = self._registry.prompt(params.name)
        value = await self._run(offer, params.arguments, exchange, line)
        return self._packer.prompt(value, offer.define(exchange.rules).description, exchange.rules)

    async def _run(self, offer: Offer, arguments: Any, exchange: Exchange, line: Line) -> Any:
        """Call the function, on the loop or in a thread. Raises what it raises."""
        context = Context(self._server, self, exchange, line) if offer.context else None
        args, kwargs = offer.bind(arguments, context)
        timeout = offer.timeout or self._limits.tool_seconds
        if timeout is not None:
            return await self._run_timed(offer, args, kwargs, timeout)
        return await self._begin(offer, args, kwargs)

    def _begin(self, offer: Offer, args: Any, kwargs: Any) -> Awaitable[Any]:
        return offer.function(*args, **kwargs) if offer.is_async else self._workers.run(offer.function, *args, **kwargs)

    async def _run_timed(self, offer: Offer, args: Any, kwargs: Any, timeout: float) -> Any:
        try:
            async with asyncio.timeout(timeout) as limit:
                return await self._begin(offer, args, kwargs)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ToolError(f"took longer than {timeout:g} s and was stopped") from None


def read_call(params: Any) -> Call:
    """The name and the raw arguments of a call. Raises `InvalidParams`."""
    try:
        call = _call.decode(params)
    except (msgspec.MsgspecError, TypeError, RecursionError):
        return codec.decode_params(Call, params)
    return call


def cancelled(exc: BaseException) -> bool:
    """Whether this is the end of our own task, rather than an error that a handler made up."""
    task = asyncio.current_task()
    return isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def describe(exc: BaseException) -> str:
    """An exception in one line, for a peer: its type and text; a group of one is that one."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    try:
        text = str(exc)
    except BaseException:  # a handler may raise anything, in `__str__` too
        text = ""
    if isinstance(exc, AccordError):
        return text
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__
