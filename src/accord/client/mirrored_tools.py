"""Arguments of tools that a server wants in headers of HTTP too (2026-07-28, Custom Headers from Tool Parameters).

Which they are is learnt from the list of tools. A tool that declares it wrongly is left out of that list; where the
server finds headers missing or wrong, the list has changed since it was read, or never was.

Over transports without headers, and in other revisions, nothing of this is looked at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from accord.client.retry import TimeBudget
from accord.errors import AccordError, HeaderMismatch, log_line
from accord.messages.tools import Tool
from accord.transport.base import has_headers
from accord.transport.connection import Connection
from accord.wire.headers import Mirrored, mirrored

log: logging.Logger = logging.getLogger("accord.client")

T = TypeVar("T")


class MirroredTools:
    """What the tools of one client's server mirror. `list_tools` asks for them, and has them learnt."""

    def __init__(self, name: str, list_tools: Callable[..., Awaitable[Any]]) -> None:
        self._name = name
        self._list = list_tools
        self.is_used: bool = False
        """Whether arguments travel in headers: over HTTP, in 2026-07-28."""
        self._tools: dict[str, Mirrored] = {}
        self._invalid: dict[str, str] = {}
        self._generation = 0  # that were learnt
        self._listing = asyncio.Lock()

    def use(self, connection: Connection) -> None:
        """Begin anew with another connection."""
        self._tools, self._invalid = {}, {}
        transport = connection.transport
        self.is_used = has_headers(transport) and connection.session.rules.mirrors_arguments
        if has_headers(transport):
            transport.mirrors = self.of if self.is_used else None

    def of(self, name: str) -> Mirrored:
        """What a tool mirrors, as far as that is known."""
        return self._tools.get(name, {})

    def learn(self, tools: list[Tool]) -> list[Tool]:
        """Take a list; those of it that may be offered.

        "Clients SHOULD log a warning when rejecting a tool definition, including the tool name and the reason".
        """
        if not self.is_used:
            return tools
        before = self._invalid
        self._tools, self._invalid = {}, {}
        self._generation += 1
        kept = [tool for tool in tools if self._add_tool(tool)]
        for name, why in self._invalid.items():
            if before.get(name) != why:
                log.warning("accord: %s: tool %.100r is left out: %s", self._name, name, log_line(why))
        return kept

    def _add_tool(self, tool: Tool) -> bool:
        try:
            found = mirrored(tool.input_schema)
        except ValueError as exc:
            self._invalid[tool.name] = str(exc)
            return False
        if found:
            self._tools[tool.name] = found
        return True

    def call(self, total: float | None, send: Callable[[float | None], Awaitable[T]]) -> Awaitable[T]:
        """The result of a call that has `total` seconds; `send` sends it, in the time that it is given.

        "If the server rejects a request with a HeaderMismatch error [...] the client SHOULD call tools/list to check
        for changes to the tool's inputSchema, then retry the original request". Raises what `send` raises.
        """
        return self._call(total, send) if self.is_used else send(total)

    async def _call(self, total: float | None, send: Callable[[float | None], Awaitable[T]]) -> T:
        lists, clock = self._generation, TimeBudget(total)
        try:
            return await send(total)
        except HeaderMismatch as refused:
            await self._list_again(lists, refused, clock)
        return await send(clock.left)

    async def _list_again(self, lists: int, refused: HeaderMismatch, clock: TimeBudget) -> None:
        """Once, however many calls were refused. Raises `refused` when that fails."""
        async with self._listing:
            if self._generation != lists:
                return
            try:
                await self._list(fresh=True, total_timeout=clock.left)
            except AccordError as exc:
                raise refused from exc
