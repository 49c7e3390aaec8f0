"""The low level: a tool whose schema was written by hand, and a handler that takes its arguments as a dict."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Raw

from accord.errors import InvalidArguments, Mismatch, ToolError
from accord.messages.base import JSONObject
from accord.messages.revision import Rules
from accord.messages.tools import Tool
from accord.schema.validate import Validator, compile
from accord.server.registry import Offer, is_safe
from accord.server.results import encode


class Handmade:
    """A tool with its schemas; they are compiled when it is first called."""

    def __init__(self, tool: Tool, takes_context: bool) -> None:
        self._tool = tool
        self._takes_context = takes_context

    @cached_property
    def _arguments(self) -> Validator:
        return compile(self._tool.input_schema)

    @cached_property
    def _output(self) -> Validator | None:
        return None if self._tool.output_schema is None else compile(self._tool.output_schema)

    @property
    def result_schema(self) -> JSONObject | None:
        """The output schema, as it was written."""
        return self._tool.output_schema

    @property
    def wraps(self) -> bool:
        """Whether the output is no object, by its schema."""
        return self._tool.output_schema is not None and self._tool.output_schema.get("type") != "object"

    def define(self, rules: Rules) -> Tool:
        """The tool as a revision lists it."""
        if not (self.wraps and rules.structured_objects_only):
            return self._tool
        wrapped = {
            "type": "object",
            "properties": {"result": self._tool.output_schema},
            "required": ["result"],
        }
        return msgspec.structs.replace(self._tool, output_schema=wrapped)

    def bind(self, arguments: Raw | None, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The handler's arguments. Raises `InvalidArguments`."""
        try:
            values = msgspec.json.decode(arguments or b"{}", type=dict[str, Any])
            self._arguments.validate(values)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Mismatch) as exc:
            raise InvalidArguments(f"the arguments do not fit the schema of {self._tool.name!r}: {exc}") from exc
        return ((values, context) if self._takes_context else (values,)), {}

    def pack(self, value: Any) -> Raw:
        """Structured output, checked against the output schema. Raises `ToolError`."""
        packed = encode(value)
        if self._output is not None:
            try:
                self._output.validate(msgspec.json.decode(packed))
            except Mismatch as exc:
                raise ToolError(f"{self._tool.name} returned what its output schema does not allow: {exc}") from exc
        return Raw(packed)

    def wrap(self, packed: Raw) -> Raw:
        """As it travels where only objects may."""
        return Raw(b'{"result":%b}' % bytes(packed)) if self.wraps else packed


def handmade_offer(tool: Tool, handler: Callable[..., Any], timeout: float | None) -> Offer:
    """A tool with a schema by hand as an offer."""
    takes_context = len(inspect.signature(handler).parameters) > 1
    made = Handmade(tool, takes_context)
    return Offer(
        handler,
        made.define,
        bind=made.bind,
        context=takes_context,
        is_async=inspect.iscoroutinefunction(handler),
        timeout=timeout,
        returns=made,
        may_run_again=is_safe(tool),
    )
