"""`Client`: one object for any server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, TypeVar

from msgspec import UNSET, Raw

from accord.client.answers import Reader, ToolResult, arguments_of
from accord.client.connect import Connector
from accord.client.target import Target, parse
from accord.errors import AccordError, InvalidParams, NotConnected, RemoteProtocolError, ResourceNotFound
from accord.limits import DEFAULT_LIMITS, Limits
from accord.messages.base import Meta
from accord.messages.capabilities import ClientCapabilities, ServerCapabilities
from accord.messages.content import Resource
from accord.messages.identity import Implementation
from accord.messages.meta import PaginatedParams, check_meta
from accord.messages.prompts import GetPromptParams, GetPromptResult, ListPromptsResult, Prompt
from accord.messages.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceParams,
    ReadResourceResult,
    ResourceTemplate,
)
from accord.messages.revision import REVISIONS
from accord.messages.tools import CallToolParams, ListToolsResult, Tool
from accord.session.negotiate import check_spoken
from accord.session.profile import Profile
from accord.session.stats import Stats
from accord.transport.base import Transport
from accord.transport.connection import Connection

T = TypeVar("T")

ProgressCallback = Callable[[float, float | None, str | None], Awaitable[None] | None]
"""Called with progress, total and message, each as the server sent it."""

_INFO = Implementation(name="accord", version="0.1.0")


class Client:
    """A connection to a Model Context Protocol server, whatever it is and whichever revision it speaks.

    `target`: a command line or list, `FILE.py[:server]`, an `mcpServers` entry, a `Server`, or a transport (see
    `accord.client.target`). Use it as `async with Client(target) as client:`, or call `connect()` and `close()`,
    from whichever tasks you like.

    `timeout` (seconds) bounds the silence before a request fails, and progress resets it; `total_timeout` bounds
    the whole request. `strict` makes an error of what is otherwise a warning: results that break their own schema.
    `on_stderr` gets the lines that a child process writes to stderr.
    """

    def __init__(
        self,
        target: Target,
        *,
        info: Implementation = _INFO,
        revisions: Sequence[str] = REVISIONS,
        timeout: float | None = None,
        total_timeout: float | None = None,
        strict: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        on_stderr: Callable[[str], None] | None = None,
        record: Callable[[Transport], Transport] | None = None,
    ) -> None:
        self._target = parse(target)
        self.limits = limits
        self._timeout = timeout if timeout is not None else limits.request_seconds
        self._total_timeout = total_timeout if total_timeout is not None else limits.total_seconds
        profile = Profile(info, ClientCapabilities())
        self._connector = Connector(self._target, profile, check_spoken(revisions), limits, on_stderr, record)
        self._connection: Connection | None = None
        self._opening = asyncio.Lock()
        self._listing = asyncio.Lock()
        self._closing: asyncio.Future[None] | None = None
        self._reader = Reader(_name_of(self._target), strict=strict)
        self._tools: dict[str, Tool] | None = None

    # --- lifetime ----------------------------------------------------------------------------------------------

    async def connect(self) -> Client:
        """Open the connection; when it is open already, do nothing. Raises `ConnectError`, `ConnectionLost`."""
        async with self._opening:  # a second task that connects gets what the first one opened
            if self._connection is None:
                self._connection = await self._connector.open()
        return self

    async def close(self) -> None:
        """End the connection and, if it is a child process, the server; bounded in time, from any task."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._closing = asyncio.ensure_future(self._end(connection))
        if self._closing is not None:  # a second task that closes waits for the same end
            await asyncio.shield(self._closing)

    async def _end(self, connection: Connection) -> None:
        await connection.close()
        await self._connector.close()

    async def __aenter__(self) -> Client:
        return await self.connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- who is there ------------------------------------------------------------------------------------------

    @property
    def connection(self) -> Connection:
        """The open connection. Raises `NotConnected`."""
        if self._connection is None:
            raise NotConnected("the client is not connected; use `async with Client(...)` or `await connect()`")
        return self._connection

    @property
    def revision(self) -> str:
        """The revision in use: "2026-07-28"."""
        return self.connection.revision

    @property
    def server_info(self) -> Implementation | None:
        """What the server says it is, if it says so. For display, never for decisions."""
        peer = self.connection.session.peer
        return peer.info if peer is not None else None

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """What the server says it offers."""
        peer = self.connection.session.peer
        return peer.capabilities if peer is not None else None

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used, for a model to read."""
        peer = self.connection.session.peer
        return peer.instructions if peer is not None else None

    @property
    def stats(self) -> Stats:
        """Counters of this connection."""
        return self.connection.stats

    async def ping(self) -> None:
        """Ask the server for a sign of life: `ping`, or `server/discover` where the revision has no ping."""
        handshake = self.connection.session.rules.handshake
        await self._ask("ping" if handshake else "server/discover")

    # --- verbs -------------------------------------------------------------------------------------------------

    async def list_tools(self) -> list[Tool]:
        """All tools, over all pages within the limits."""
        return await self._list_tools()

    async def _list_tools(self, **timeouts: Any) -> list[Tool]:
        tools = await self._list("tools/list", ListToolsResult, lambda result: result.tools, **timeouts)
        self._tools = {tool.name: tool for tool in tools}
        self._reader.forget()
        return tools

    async def list_resources(self) -> list[Resource]:
        """All resources with a fixed URI, over all pages within the limits."""
        return await self._list("resources/list", ListResourcesResult, lambda result: result.resources)

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """All templates of resources, over all pages within the limits."""
        return await self._list(
            "resources/templates/list", ListResourceTemplatesResult, lambda result: result.resource_templates
        )

    async def list_prompts(self) -> list[Prompt]:
        """All prompts, over all pages within the limits."""
        return await self._list("prompts/list", ListPromptsResult, lambda result: result.prompts)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        on_progress: ProgressCallback | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> ToolResult:
        """Call a tool; a tool's own failure comes back as `result.is_error`, it is not raised.

        Structured content is checked against the schema that the tool lists. Raises `ProtocolError` (an unknown
        tool is -32602), `RequestTimeout`, `ConnectionLost`, `InvalidResult`, `NotSupported`.
        """
        params = CallToolParams(name=name, arguments=arguments_of(arguments))
        raw = await self._ask(
            "tools/call",
            params,
            meta=meta,
            on_progress=on_progress,
            timeout=timeout,
            total_timeout=total_timeout,
        )
        result = self._reader.read("tools/call", ToolResult, raw)
        if self._tools is None and result.structured_content is not UNSET:
            await self._learn_tools(name, timeout, total_timeout)
        return self._reader.checked(result, (self._tools or {}).get(name))

    async def _learn_tools(self, name: str, timeout: float | None, total_timeout: float | None) -> None:
        """List the tools for their output schemas, once however many calls want them."""
        async with self._listing:
            if self._tools is not None:
                return
            try:
                await self._list_tools(timeout=timeout, total_timeout=total_timeout)
            except AccordError as exc:  # the call itself is answered: that result is not lost
                self._reader.unlisted(name, exc)
                self._tools = {}

    async def read_resource(
        self,
        uri: str,
        *,
        on_progress: ProgressCallback | None = None,
        meta: Meta | None = None,
        timeout: float | None = None,
    ) -> ReadResourceResult:
        """Read a resource. Raises `ResourceNotFound` and what `call_tool` raises."""
        params = ReadResourceParams(uri=uri)
        try:
            raw = await self._ask("resources/read", params, meta=meta, on_progress=on_progress, timeout=timeout)
        except InvalidParams as exc:
            # From 2026-07-28 on this is how a missing resource is told: -32602 that names the URI.
            if isinstance(exc.data, dict) and exc.data.get("uri") == uri:
                raise ResourceNotFound(exc.message, uri=uri, code=exc.code, data=exc.data) from None
            raise
        return self._reader.read("resources/read", ReadResourceResult, raw)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        meta: Meta | None = None,
        timeout: float | None = None,
    ) -> GetPromptResult:
        """Get a prompt's messages. Raises what `call_tool` raises."""
        params = GetPromptParams(name=name, arguments=arguments_of(arguments))
        raw = await self._ask("prompts/get", params, meta=meta, timeout=timeout)
        return self._reader.read("prompts/get", GetPromptResult, raw)

    # --- underneath --------------------------------------------------------------------------------------------

    async def _ask(
        self,
        method: str,
        params: Any = None,
        *,
        meta: Meta | None = None,
        on_progress: ProgressCallback | None = None,
        timeout: float | None = None,
        total_timeout: float | None = None,
    ) -> Raw:
        if meta is not None:
            check_meta(meta)
        return await self.connection.ask(
            method,
            params,
            meta=meta,
            on_progress=on_progress,
            timeout=self._timeout if timeout is None else timeout,
            total_timeout=self._total_timeout if total_timeout is None else total_timeout,
        )

    async def _list(self, method: str, type_: type[Any], items: Callable[[Any], list[T]], **timeouts: Any) -> list[T]:
        """Follow the cursors: an empty one too, and no further than the limits."""
        found: list[T] = []
        cursor: str | None = None
        for _ in range(self.limits.pages):
            params = None if cursor is None else PaginatedParams(cursor=cursor)
            result = self._reader.read(method, type_, await self._ask(method, params, **timeouts))
            found += items(result)
            cursor = result.next_cursor
            if cursor is None:
                return found
            if len(found) > self.limits.items:
                break
        raise RemoteProtocolError(
            f"{method} does not end: {len(found)} items so far (limits: {self.limits.pages} pages, "
            f"{self.limits.items} items)"
        )


def _name_of(target: Any) -> str:
    return str(getattr(target, "name", target))
