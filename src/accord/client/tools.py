"""What is known of a server's tools: the schemas that their results are checked against, and how they say they behave.

It is learnt from the list, which is asked for when a result wants checking, and forgotten when the server says that
its tools have changed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import UNSET

from accord.client.results import ToolResult
from accord.errors import AccordError, InvalidResult, Mismatch, SchemaError, log_line
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.messages.tools import Tool
from accord.schema.validate import Validator, compile

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
