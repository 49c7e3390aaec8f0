"""What is known of a server's tools: the schemas that their results are checked against, and how they say they behave.

It is learnt from the list, which is asked for when a result wants checking, and forgotten when the server says that
its tools have changed.

Arguments of tools that a server wants in headers of HTTP too (2026-07-28, Custom Headers from Tool Parameters).

Which they are is learnt from the list of tools. A tool that declares it wrongly is left out of that list; where the
server finds headers missing or wrong, the list has changed since it was read, or never was.

Over transports without headers, and in other revisions, nothing of this is looked at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from accord.client.results import ToolResult
from accord.client.retry import TimeBudget
from accord.errors import AccordError, HeaderMismatch, InvalidResult, Mismatch, SchemaError, log_line
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.messages.tools import Tool
from accord.schema.validate import Validator, compile
from accord.transport.base import has_headers
from accord.transport.connection import Connection
from accord.wire.headers import Mirrored, mirrored

log: logging.Logger = logging.getLogger("accord.client")


class ToolCatalog:
    """The tools of one client's server. `list_tools` asks for them, and has them learnt; `strict` makes an error of
    what is otherwise a warning; `trusted`, that their hints are believed.
    """

    def __init__(
        self,
        name: str,
        list_tools: Callable[..., Awaitable[list[Tool]]],
        limits: Limits,
        *,
        strict: bool,
        trusted: bool,
    ) -> None:
        self._name = name
        self._list = list_tools
        self._limits = limits
        self._strict = strict
        self._trusted = trusted
        self._tools: dict[str, Tool] | None = None
        self._validators: dict[str, Validator | None] = {}
        self._listing = asyncio.Lock()
        self.generation: int = 0
        """How often the server has said that they have changed."""

    def learn(self, tools: list[Tool], changes: int) -> None:
        """Take a list; `generation` from before it was asked for tells whether it is stale already."""
        self._validators.clear()
        self._tools = {tool.name: tool for tool in tools} if changes == self.generation else None

    def invalidate(self) -> None:
        """They may have changed."""
        self.generation += 1
        self._tools = None
        self._validators.clear()

    async def _find(self, name: str, **timeouts: float | None) -> Tool | None:
        """A tool, if there is one of that name; the list is asked for once, however many calls want it."""
        if self._tools is not None:
            return self._tools.get(name)
        async with self._listing:
            if self._tools is not None:
                return self._tools.get(name)
            return {tool.name: tool for tool in await self._list(**timeouts)}.get(name)

    async def may_repeat(self, name: str) -> bool:
        """Whether a call may be made twice: by its hints, and only if the server is trusted.

        "Clients MUST consider tool annotations to be untrusted unless they come from trusted servers" (Tools).
        """
        if not self._trusted:
            return False
        try:
            tool = await self._find(name)
        except AccordError:  # then nothing is known of it
            return False
        hints = tool.annotations if tool is not None else None
        return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)

    # --- results -----------------------------------------------------------------------------------------------

    async def check_result(self, name: str, result: ToolResult, **timeouts: float | None) -> ToolResult:
        """The answer to a call, its structured content checked against the schema of the tool.

        Raises `InvalidResult` for what breaks it, if `strict`.
        """
        if self._tools is None and result.structured_content is UNSET:
            return _with_schema(result, None)
        try:
            tool = await self._find(name, **timeouts)
        except AccordError as exc:  # the call itself is answered: that result is not lost
            self._report(f"the structured content of tool {name!r} is not checked, for lack of its schema: {exc}")
            self._tools, tool = {}, None
        if tool is None or tool.output_schema is None:
            return _with_schema(result, None)
        if not result.is_error:
            self._check(tool, result)
        return _with_schema(result, tool.output_schema)

    def _check(self, tool: Tool, result: ToolResult) -> None:
        validator = self._validator(tool)
        if validator is None:
            return None
        if result.structured_content is UNSET:
            return self._report(f"tool {tool.name!r} declares structured output and gave none")
        try:
            validator.validate(result.structured_content)
        except Mismatch as exc:
            self._report(f"tool {tool.name!r} gave structured content that breaks its own schema: {exc}")

    def _validator(self, tool: Tool) -> Validator | None:
        if tool.name not in self._validators:
            try:
                self._validators[tool.name] = compile(tool.output_schema or {}, self._limits)
            except SchemaError as exc:
                self._report(f"tool {tool.name!r} has an output schema that cannot be used: {exc}")
                self._validators[tool.name] = None
        return self._validators[tool.name]

    def _report(self, text: str) -> None:
        if self._strict:
            raise InvalidResult(f"{self._name}: {text}")
        log.warning("accord: %s: %s", self._name, log_line(text))


def _with_schema(result: ToolResult, schema: JSONObject | None) -> ToolResult:
    """`result` with the schema that the list gave, and never one that came with the result itself."""
    return result if result.output_schema is schema else msgspec.structs.replace(result, output_schema=schema)


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
