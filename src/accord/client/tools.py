"""The known tools of a server: output schemas to validate results, annotations, and arguments that are sent in
headers.

The client learns them from the tool list, which it requests when it needs to validate a result, and discards them when
the server reports a change.

Over HTTP, a tool may declare arguments that are sent in headers too (2026-07-28, Custom Headers from Tool Parameters).
A tool with an invalid declaration is left out of the list. If the server rejects the headers of a call, the list has
changed or was never read. Other transports and revisions ignore these declarations.
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
    """The tools of one client's server. `list_tools` requests them and calls `learn`; `strict` turns warnings into
    errors; `trusted` trusts their annotations.
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
        """The number of changes that the server has reported."""

    def learn(self, tools: list[Tool], changes: int) -> None:
        """Store a list, unless it is stale: `changes` is the `generation` from before its request."""
        self._validators.clear()
        self._tools = {tool.name: tool for tool in tools} if changes == self.generation else None

    def invalidate(self) -> None:
        """Discard the tools, because they may have changed."""
        self.generation += 1
        self._tools = None
        self._validators.clear()

    async def _find(self, name: str, **timeouts: float | None) -> Tool | None:
        """Return a tool by name, or None; concurrent calls share one request of the list."""
        if self._tools is not None:
            return self._tools.get(name)
        async with self._listing:
            if self._tools is not None:
                return self._tools.get(name)
            return {tool.name: tool for tool in await self._list(**timeouts)}.get(name)

    async def may_repeat(self, name: str) -> bool:
        """Return whether a call may be repeated: by the tool's annotations, and only if the server is trusted.

        "Clients MUST consider tool annotations to be untrusted unless they come from trusted servers" (Tools).
        """
        if not self._trusted:
            return False
        try:
            tool = await self._find(name)
        except AccordError:  # without the list, nothing is known of the tool
            return False
        hints = tool.annotations if tool is not None else None
        return hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)

    async def runs_as_task(self, name: str, wanted: bool) -> bool:
        """Return whether a call of a tool asks to run as a task (2025-11-25): if it must, and if it may and that is
        `wanted`.
        """
        try:
            tool = await self._find(name)
        except AccordError:  # the call itself reports what is wrong
            return False
        support = None if tool is None or tool.execution is None else tool.execution.task_support
        return support == "required" or (wanted and support == "optional")

    # --- results -----------------------------------------------------------------------------------------------

    async def check_result(self, name: str, result: ToolResult, **timeouts: float | None) -> ToolResult:
        """Validate the structured content of a result against the tool's output schema, and return the result.

        Raises `InvalidResult` for invalid content, if `strict`.
        """
        if self._tools is None and result.structured_content is UNSET:
            return _with_schema(result, None)
        try:
            tool = await self._find(name, **timeouts)
        except AccordError as exc:  # the call has succeeded, so its result must not be lost
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
    """Return the result with the schema from the tool list, never one from the result itself."""
    return result if result.output_schema is schema else msgspec.structs.replace(result, output_schema=schema)


T = TypeVar("T")


class MirroredTools:
    """The arguments that tools send in headers. `list_tools` requests the tools and calls `learn`."""

    def __init__(self, name: str, list_tools: Callable[..., Awaitable[Any]]) -> None:
        self._name = name
        self._list = list_tools
        self.is_used: bool = False
        """Whether arguments are sent in headers: over HTTP, in 2026-07-28."""
        self._tools: dict[str, Mirrored] = {}
        self._invalid: dict[str, str] = {}
        self._generation = 0  # the number of lists that were learned
        self._listing = asyncio.Lock()

    def use(self, connection: Connection) -> None:
        """Reset the state for another connection."""
        self._tools, self._invalid = {}, {}
        transport = connection.transport
        self.is_used = has_headers(transport) and connection.session.rules.mirrors_arguments
        if has_headers(transport):
            transport.mirrors = self.of if self.is_used else None

    def of(self, name: str) -> Mirrored:
        """Return the mirrored arguments of a tool, as far as they are known."""
        return self._tools.get(name, {})

    def learn(self, tools: list[Tool]) -> list[Tool]:
        """Store a list, and return its valid tools.

        "Clients SHOULD log a warning when rejecting a tool definition, including the tool name and the reason".
        """
        if not self.is_used:
            return tools
        previous = self._invalid
        self._tools, self._invalid = {}, {}
        self._generation += 1
        valid = [tool for tool in tools if self._add_tool(tool)]
        for name, reason in self._invalid.items():
            if previous.get(name) != reason:
                log.warning("accord: %s: tool %.100r is left out: %s", self._name, name, log_line(reason))
        return valid

    def _add_tool(self, tool: Tool) -> bool:
        try:
            mirrored_arguments = mirrored(tool.input_schema)
        except ValueError as exc:
            self._invalid[tool.name] = str(exc)
            return False
        if mirrored_arguments:
            self._tools[tool.name] = mirrored_arguments
        return True

    def call(self, total_timeout: float | None, send: Callable[[float | None], Awaitable[T]]) -> Awaitable[T]:
        """Return the result of a call with `total` seconds; `send` sends it within the time that is passed to it.

        "If the server rejects a request with a HeaderMismatch error [...] the client SHOULD call tools/list to check
        for changes to the tool's inputSchema, then retry the original request". Raises the errors of `send`.
        """
        return self._call(total_timeout, send) if self.is_used else send(total_timeout)

    async def _call(self, total_timeout: float | None, send: Callable[[float | None], Awaitable[T]]) -> T:
        generation, budget = self._generation, TimeBudget(total_timeout)
        try:
            return await send(total_timeout)
        except HeaderMismatch as rejection:
            await self._list_again(generation, rejection, budget)
        return await send(budget.left)

    async def _list_again(self, generation: int, rejection: HeaderMismatch, budget: TimeBudget) -> None:
        """Request the list once, however many calls were rejected. Raises `rejection` if that fails."""
        async with self._listing:
            if self._generation != generation:
                return
            try:
                await self._list(fresh=True, total_timeout=budget.left)
            except AccordError as exc:
                raise rejection from exc
