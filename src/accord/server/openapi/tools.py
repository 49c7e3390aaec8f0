"""An operation as a tool.

Nothing is read from the document before somebody lists or calls. A tool that then turns out not to be usable is listed
as such, and says why when it is called; the others do not notice.

An operation as a resource, or as a template of resources: what is only read, at a URI that mirrors its path.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote

from msgspec import Raw

from accord.errors import InvalidArguments, Mismatch, ResourceNotFound, SchemaError, ToolError
from accord.messages.base import JSONObject
from accord.messages.content import Resource, TextContent
from accord.messages.resources import ResourceTemplate
from accord.messages.revision import Rules
from accord.messages.tools import CallToolResult, Tool, ToolAnnotations
from accord.redaction import redact
from accord.server.core.context import Context
from accord.server.core.registration import AccessMetadata, Registration
from accord.server.core.results import encode
from accord.server.declare.schema_tool import SchemaTool
from accord.server.declare.templates import Template
from accord.server.openapi.address import VARIABLE
from accord.server.openapi.api import APICall
from accord.server.openapi.arguments import decode_nested_json
from accord.server.openapi.messages import APIAnswer, APIRequest, Send
from accord.server.openapi.operation import Route
from accord.server.openapi.response import as_content, check_status, decode_value, is_text, status_of

log: logging.Logger = logging.getLogger("accord.server")

_READS = {"GET", "HEAD", "OPTIONS", "TRACE"}
_IDEMPOTENT = {"PUT", "DELETE"}
_DESTRUCTIVE = {"DELETE"}


class ImportedTool:
    """An operation as a tool."""

    def __init__(self, name: str, call: APICall) -> None:
        self._name = name
        self._call = call
        self._why: str | None = None
        self._annotations = annotations_of(call.route)

    def registration(self, marks: AccessMetadata) -> Registration:
        """It, to be put into a registry."""
        api = self._call.api
        offer = Registration(
            self.run,
            self.define,
            bind=self.bind,
            context=api.headers.context,
            is_async=True,
            returns=self,
            depends=api.depends,
            may_run_again=bool(self._annotations.read_only_hint or self._annotations.idempotent_hint),
        )
        offer.metadata = marks
        return offer

    # --- what it is --------------------------------------------------------------------------------------------

    @cached_property
    def _tool_schemas(self) -> SchemaTool:
        """The tool with its schemas, read from the document now."""
        limits = self._call.api.limits
        try:
            return SchemaTool(self._tool(self._call.input_schema, self._output_schema()), None, limits)
        except SchemaError as exc:
            unusable = Tool(name=self._name, description=self._refused(exc), input_schema={"type": "object"})
            return SchemaTool(unusable, None, limits)

    def _refused(self, why: SchemaError) -> str:
        """Why it cannot be called, now and ever after."""
        self._why = f"{self._call.route} cannot be called, by what its OpenAPI document says: {why!s:.1000}"
        log.warning("accord: tool %r: %s", self._name, self._why)
        return self._why

    def _tool(self, input_schema: JSONObject, output_schema: JSONObject | None) -> Tool:
        route = self._call.route
        about = [route.description or route.summary or "", "Deprecated." if route.deprecated else ""]
        return Tool(
            name=self._name,
            title=route.summary,
            description="\n\n".join(filter(None, about)) or None,
            input_schema=input_schema,
            output_schema=output_schema,
            annotations=self._annotations,
        )

    def _output_schema(self) -> JSONObject | None:
        """That of the document, where it can be used; answers are text otherwise."""
        try:
            return self._call.output_schema
        except SchemaError as exc:
            log.warning("accord: tool %r gives text, for its answers cannot be checked: %s", self._name, exc)
            return None

    def define(self, rules: Rules) -> Tool:
        """The tool as a revision lists it."""
        return self._tool_schemas.define(rules)

    # --- a call ------------------------------------------------------------------------------------------------

    def bind(self, arguments: Raw | None, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `run`. Raises `InvalidArguments`, and `ToolError` where no arguments would do."""
        made = self._tool_schemas
        if self._why is not None:
            raise ToolError(self._why)
        try:
            values = self._values(made, arguments)
        except SchemaError as exc:
            raise ToolError(self._refused(exc)) from exc
        return (self._call.request(values), context), {}

    def _values(self, made: SchemaTool, arguments: Raw | None) -> JSONObject:
        """The arguments, with JSON in a string read where something else is asked for, as models write it."""
        try:
            (values,), _ = made.bind(arguments, None)
        except InvalidArguments:
            meant = decode_nested_json(arguments, self._call.input_schema)
            if meant is None:
                raise
            (values,), _ = made.bind(meant, None)
        return values  # type: ignore[no-any-return]

    async def run(self, request: APIRequest, context: Context | None, *, send: Send) -> Any:
        """What the API answers. Raises `ToolError` for anything but success."""
        answer, secrets = await self._call.api.fetch(self._call.route, request, send, context)
        check_status(self._call.route, answer, secrets)
        if self.result_schema is None:
            return as_content(answer, request.url)
        return self._structured(answer, request)

    def _structured(self, answer: APIAnswer, request: APIRequest) -> Any:
        """The value of an answer; as text where it is not as the document has it.

        That is marked as an error, for a result of this tool without structured output is none ("Servers MUST provide
        structured results that conform to this schema"), and clients refuse it without showing it to anyone.
        """
        strict = self._call.api.strict
        assert self._tool_schemas.output is not None, "there is a schema"
        try:
            return decode_value(answer, self._tool_schemas.output, strict=strict)
        except Mismatch as exc:
            where = exc.path
            what = f"{self._call.route} was answered with {status_of(answer)}, not as its OpenAPI document has it"
            full = f"{what}: {exc}"
        log.warning("accord: tool %r: %s", self._name, redact(full))
        if strict:  # the reason quotes what is kept from the caller
            raise ToolError(f"{what}, at {where}; see the log of the server")
        content = as_content(answer, request.url)
        said = TextContent(text=content) if isinstance(content, str) else content
        return CallToolResult(content=[TextContent(text=f"{full}. It did answer:"), said], is_error=True)

    # --- what it gives back ------------------------------------------------------------------------------------

    @property
    def result_schema(self) -> JSONObject | None:
        """The schema of the value, or None."""
        return self._tool_schemas.result_schema

    def encode(self, value: Any) -> Raw:
        """The value, which `run` has checked already."""
        return Raw(encode(value))

    def wrap(self, packed: Raw) -> Raw:
        """As it travels where only objects may."""
        return self._tool_schemas.wrap(packed)


def annotations_of(route: Route) -> ToolAnnotations:
    """What a method says of an operation (RFC 9110, 9.2: safe, idempotent)."""
    if route.method in _READS:
        return ToolAnnotations(read_only_hint=True, open_world_hint=True)
    return ToolAnnotations(
        read_only_hint=False,
        destructive_hint=True if route.method in _DESTRUCTIVE else None,
        idempotent_hint=True if route.method in _IDEMPOTENT else None,
        open_world_hint=True,
    )


_IN_URIS = "/{}-._~!$&'()*+,;=:@%"
"""What a URI template may have in a path, braces included."""


class ImportedResource:
    """An operation as a resource, or with `queried` and with variables in its path as a template of resources.

    Raises `SchemaError` for one that needs more than a URI can say.
    """

    def __init__(self, name: str, call: APICall, scheme: str, *, queried: bool) -> None:
        self._call = call
        arguments = call.arguments
        self._variables = {
            variable: argument
            for variable, argument in arguments.variables().items()
            if queried or arguments.parameters[argument].place == "path" or arguments.parameters[argument].required
        }
        if arguments.needs_more_than(("path", "query")):
            raise SchemaError("it needs a body, a header or a cookie, which a resource cannot have: make it a tool")
        self._template = Template(self._text(scheme), unsafe_variables=True)  # `APICall` checks what becomes a path
        route = call.route
        about: dict[str, Any] = {
            "name": name,
            "title": route.summary,
            "description": route.description,
            "mime_type": call.operation.response_media_type,
        }
        text = self._template.text
        self.definition: Resource | ResourceTemplate = (
            ResourceTemplate(uri_template=text, **about) if self._variables else Resource(uri=text, **about)
        )

    def _text(self, scheme: str) -> str:
        """Its URI, as a template."""
        parameters = self._call.arguments.parameters
        places = [(variable, parameters[argument]) for variable, argument in self._variables.items()]
        query = [variable for variable, one in places if one.place == "query"]
        names = {one.name: variable for variable, one in places if one.place == "path"}
        path = VARIABLE.sub(lambda found: f"{{{names[found[1]]}}}", self._call.route.path)
        return f"{scheme}:/{quote(path, safe=_IN_URIS)}" + ("{?" + ",".join(query) + "}" if query else "")

    @property
    def kind(self) -> str:
        """What a registry has it as."""
        return "resource template" if self._variables else "resource"

    @property
    def text(self) -> str:
        """The URI, or the template of it."""
        return self._template.text

    def registration(self, marks: AccessMetadata) -> Any:
        """It, to be put into a registry."""
        offer = Registration(
            self.run,
            lambda _: self.definition,
            bind=self.bind,
            context=self._call.api.headers.context,
            is_async=True,
            depends=self._call.api.depends,
        )
        offer.metadata = marks
        return (self._template, offer) if self._variables else offer

    def bind(self, values: Mapping[str, Any] | None, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of `run`. Raises `InvalidArguments`."""
        return (dict(values or {}), context), {}

    async def run(self, values: Mapping[str, Any], context: Context | None, *, send: Send) -> str | bytes:
        """What the API answers. Raises `ResourceNotFound`, and `ToolError` for whatever else is no success."""
        request = self._call.request({self._variables[name]: value for name, value in values.items()})
        answer, secrets = await self._call.api.fetch(self._call.route, request, send, context)
        if answer.status in (404, 410):
            raise ResourceNotFound(uri=self._template.expand(values))
        check_status(self._call.route, answer, secrets)
        return answer.text if is_text(answer) else answer.body
