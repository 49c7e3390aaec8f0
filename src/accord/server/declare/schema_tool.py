"""The low-level API: a tool with a hand-written schema, and a handler that takes its arguments as a dict."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from inspect import Parameter
from typing import Any, get_args

import msgspec
from msgspec import Raw

from accord.errors import DeclarationError, InvalidArguments, Mismatch, SchemaError, ToolError
from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.messages.content import wrap_schema
from accord.messages.revision import Rules
from accord.messages.tools import Tool
from accord.schema.arguments import arguments_object
from accord.schema.json_values import to_json
from accord.schema.validate import Validator, compile
from accord.server.core.context import Context
from accord.server.core.registration import Registration, listing_extension
from accord.server.core.results import encode
from accord.server.declare.declaration import check_declared, check_timeout
from accord.server.declare.parameters import named_type, unwrap_callable
from accord.server.declare.registrations import is_safe


class SchemaTool:
    """A tool with hand-written schemas, which are compiled on the first call."""

    def __init__(self, tool: Tool, context: Parameter | None, limits: Limits) -> None:
        self._tool = tool
        self._context = context
        self._limits = limits

    @cached_property
    def arguments(self) -> Validator:
        """The validator of the arguments. Raises `SchemaError`."""
        return compile(self._tool.input_schema, self._limits)

    @cached_property
    def output(self) -> Validator | None:
        """The validator of the output; None without an output schema. Raises `SchemaError`."""
        return None if self._tool.output_schema is None else compile(self._tool.output_schema, self._limits)

    @property
    def result_schema(self) -> JSONObject | None:
        """The output schema, unchanged."""
        return self._tool.output_schema

    @property
    def wraps(self) -> bool:
        """Whether the output schema allows values that are not objects."""
        return self._tool.output_schema is not None and self._tool.output_schema.get("type") != "object"

    def define(self, rules: Rules) -> Tool:
        """Return the tool as a revision lists it."""
        if self._tool.output_schema is None or not (self.wraps and rules.structured_objects_only):
            return self._tool
        return msgspec.structs.replace(self._tool, output_schema=wrap_schema(self._tool.output_schema))

    def bind(self, arguments: Raw | None, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the handler's arguments. Raises `InvalidArguments`, and `InvalidParams` for a value that is not an
        object or has duplicate members.
        """
        try:
            values = arguments_object(arguments or b"{}")
            self.arguments.validate(values)
        except (RecursionError, Mismatch) as exc:
            raise InvalidArguments(f"the arguments do not match the schema of {self._tool.name!r}: {exc}") from exc
        if self._context is None:
            return (values,), {}
        if self._context.kind is Parameter.KEYWORD_ONLY:
            return (values,), {self._context.name: context}
        return (values, context), {}

    def encode(self, value: Any) -> Raw:
        """Return structured output, validated against the output schema. Raises `ToolError`."""
        packed = encode(value)
        if self.output is not None:
            try:
                self.output.validate(msgspec.json.decode(packed))
            except Mismatch as exc:
                raise ToolError(f"{self._tool.name} returned what its output schema does not allow: {exc}") from exc
        return Raw(packed)

    def wrap(self, packed: Raw) -> Raw:
        """Return encoded output as it is sent in revisions that allow only objects."""
        return Raw(b'{"result":%b}' % bytes(packed)) if self.wraps else packed


def check_schemas(tool: Tool, limits: Limits) -> None:
    """Raise `DeclarationError` unless both schemas of a tool are valid, and the input schema is that of an object."""
    for field, schema in (("input_schema", tool.input_schema), ("output_schema", tool.output_schema)):
        where = f"tool {tool.name!r}: {field}"
        if field == "output_schema" and schema is None:
            continue
        if not isinstance(schema, dict):
            raise DeclarationError(f"{where} must be a dict with a JSON Schema, not {schema!r:.200}")
        try:
            compile(schema, limits)
            to_json(schema)
        except (SchemaError, ValueError) as exc:
            raise DeclarationError(f"{where} is {_without_prefix(str(exc))}") from exc
    if tool.input_schema.get("type") != "object":  # "type: "object"" (schema, Tool): required in every revision
        raise DeclarationError(
            f'tool {tool.name!r}: input_schema must say "type": "object", because arguments are an object'
        )


def _without_prefix(why: str) -> str:
    return why if why.startswith("not a valid JSON Schema") else f"not a valid JSON Schema: {why}"


def schema_tool_registration(
    tool: Tool, handler: Callable[..., Any] | None, timeout: float | None, limits: Limits
) -> Registration:
    """Return the registration of a tool with a hand-written schema. Raises `DeclarationError`."""
    if not isinstance(tool, Tool):
        raise DeclarationError(
            f"add_tool takes Tool(...) and a handler, not {tool!r:.200}: for a function, write server.tool(f)"
        )
    if handler is None:
        raise DeclarationError(f"the tool {tool.name!r} has no handler: write add_tool(Tool(...), handler)")
    check_timeout(timeout)
    check_declared(tool.meta or {})
    context = context_of(handler)
    made = SchemaTool(tool, context, limits)
    registration = Registration(
        handler,
        made.define,
        bind=made.bind,
        context=context is not None,
        is_async=inspect.iscoroutinefunction(unwrap_callable(handler)),
        timeout=timeout,
        returns=made,
        may_run_again=is_safe(tool),
    )
    registration.listed_with = listing_extension(tool)
    registration.check_mirrored()
    return registration


def with_output(name: str, registration: Registration, schema: JSONObject, limits: Limits) -> None:
    """Set a hand-written output schema for the tool of a function: its return value is structured, and validated
    against the schema.
    """
    define = registration.define
    made = SchemaTool(Tool(name=name, input_schema={}, output_schema=schema), None, limits)

    def with_schema(rules: Rules) -> Tool:
        tool: Tool = define(rules)
        return msgspec.structs.replace(tool, output_schema=made.define(rules).output_schema)

    registration.define, registration.output = with_schema, made


def context_of(handler: Callable[..., Any]) -> Parameter | None:
    """Return the parameter that takes the context: a further one that is annotated `Context`, or that is required.
    Raises `DeclarationError`.
    """
    parameters = list(inspect.signature(handler).parameters.values())
    if not parameters:
        raise DeclarationError("a handler takes the arguments as a dict and, optionally, a Context")
    further = parameters[1:]
    for parameter in further:
        if is_context(parameter.annotation):
            return parameter
    wanted = [
        one for one in further if one.default is one.empty and one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)
    ]
    if len(wanted) > 1:
        raise DeclarationError(f"a handler takes the arguments and, optionally, a Context, not {wanted[1].name!r} too")
    return wanted[0] if wanted else None


def is_context(hint: Any) -> bool:
    if isinstance(hint, str):  # in a module with `from __future__ import annotations`
        return named_type(hint, (Context,)) is not None
    return hint is Context or Context in get_args(hint)
