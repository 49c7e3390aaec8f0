"""What a server answered, read with tolerance: a result that is not quite right is warned about, not refused.

With `strict` the same is an error. `ToolResult.data` is the value that a program wants: the structured content, out
of its wrapper, or else the text.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw

from accord.errors import AccordError, InvalidResult, LocalProtocolError, Mismatch, NotSupported, SchemaError
from accord.messages import codec
from accord.messages.base import JSONObject
from accord.messages.content import TextContent, decode_around_unknown
from accord.messages.meta import Result
from accord.messages.tools import CallToolResult, Tool
from accord.schema.validate import Validator, compile
from accord.schema.values import to_json

T = TypeVar("T", bound=Result)

log: logging.Logger = logging.getLogger("accord.client")


class ToolResult(CallToolResult):
    """What a tool answered. `is_error` says that it failed; then `text` says how."""

    output_schema: JSONObject | None = None
    """The schema that the tool declared for its structured content, if that is known."""

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def data(self) -> Any:
        """The structured content, taken out of `{"result": ...}` where the schema shows a wrapper; else the text."""
        if self.structured_content is UNSET:
            return self.text
        if is_wrapper(self.output_schema) and isinstance(self.structured_content, dict):
            return self.structured_content.get("result", self.structured_content)
        return self.structured_content


def is_wrapper(schema: JSONObject | None) -> bool:
    """Whether a schema only wraps a value that is no object (through 2025-11-25 the root must be one)."""
    return (
        schema is not None
        and isinstance(properties := schema.get("properties"), dict)
        and list(properties) == ["result"]
        and schema.get("required") == ["result"]
    )


class Reader:
    """Reads results for one client."""

    def __init__(self, name: str, *, strict: bool) -> None:
        self._name = name
        self._strict = strict
        self._validators: dict[str, Validator | None] = {}

    def read(self, method: str, type_: type[T], raw: Raw) -> T:
        """A result as its type. Raises `InvalidResult`."""
        try:
            result: T = codec.decoder(type_).decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            result = self._read_around(method, type_, raw, exc)
        self._check_kind(method, result, raw)
        return result

    def _read_around(self, method: str, type_: type[T], raw: Raw, first: Exception) -> T:
        """A result with content of kinds not known here, or no result at all."""
        try:
            self._check_kind(method, codec.decoder(Result).decode(raw), raw)
            if not self._strict and "content" in str(first):
                return decode_around_unknown(raw, type_)
        except (msgspec.MsgspecError, RecursionError, TypeError, AttributeError, KeyError):
            pass
        excerpt = bytes(raw)[:200].decode(errors="replace")
        raise InvalidResult(
            f"{self._name}: the answer to {method} is not what it should be: {first}; it begins {excerpt}",
            raw=bytes(raw),
        ) from first

    def _check_kind(self, method: str, result: Result, raw: Raw) -> None:
        kind = result.result_type
        if kind is None or kind == "complete":
            return
        if kind == "input_required":
            raise NotSupported(f"{self._name}: {method} asks for input, and this client answers no questions")
        # "A resultType of any value unrecognized by the client MUST be considered invalid" (2026-07-28, basic)
        raise InvalidResult(f"{self._name}: {method} answered with unknown resultType {kind!r}", raw=bytes(raw))

    def checked(self, result: ToolResult, tool: Tool | None) -> ToolResult:
        """The answer to a call, its structured content checked against the schema of its tool, if that is known."""
        if tool is None or tool.output_schema is None:
            return result
        if not result.is_error:
            self._check(tool, result)
        return msgspec.structs.replace(result, output_schema=tool.output_schema)

    def _check(self, tool: Tool, result: ToolResult) -> None:
        validator = self._validator(tool)
        if validator is None:
            return None
        if result.structured_content is UNSET:
            return self._complain(f"tool {tool.name!r} declares structured output and gave none")
        try:
            validator.validate(result.structured_content)
        except Mismatch as exc:
            self._complain(f"tool {tool.name!r} gave structured content that breaks its own schema: {exc}")

    def _validator(self, tool: Tool) -> Validator | None:
        if tool.name not in self._validators:
            try:
                self._validators[tool.name] = compile(tool.output_schema or {})
            except SchemaError as exc:
                self._complain(f"tool {tool.name!r} has an output schema that cannot be used: {exc}")
                self._validators[tool.name] = None
        return self._validators[tool.name]

    def forget(self) -> None:
        """The tools may have changed."""
        self._validators.clear()

    def unlisted(self, name: str, why: AccordError) -> None:
        """A call was answered, but the list with the tool's schema could not be had."""
        self._complain(f"the structured content of tool {name!r} is not checked, for lack of its schema: {why}")

    def _complain(self, text: str) -> None:
        if self._strict:
            raise InvalidResult(f"{self._name}: {text}")
        log.warning("accord: %s: %s", self._name, text)


def arguments_of(given: Mapping[str, Any] | None) -> Any:
    """Arguments as they go out: as JSON; none at all stays none. Raises `LocalProtocolError` for what is no JSON."""
    if not given:
        return None
    try:
        return Raw(to_json(dict(given)))
    except ValueError as exc:
        raise LocalProtocolError(f"the arguments cannot be sent: {exc}") from exc
