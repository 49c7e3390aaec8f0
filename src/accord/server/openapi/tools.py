"""Operations as tools, resources and resource templates.

The document of an operation is read when it is first listed or called. A tool that turns out to be invalid is listed
with the reason, and its calls raise it; other tools are not affected. The URI of a resource mirrors the path of its
operation.
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
from accord.redaction import redact_beginning
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
        self._unusable: str | None = None
        self._annotations = annotations_of(call.route)

    def registration(self, metadata: AccessMetadata) -> Registration:
        """Return the registration of the tool."""
        api = self._call.api
        registration = Registration(
            self.run,
            self.define,
            bind=self.bind,
            context=api.headers.context,
            is_async=True,
            returns=self,
            depends=api.depends,
            may_run_again=bool(self._annotations.read_only_hint or self._annotations.idempotent_hint),
        )
        registration.metadata = metadata
        return registration

    # --- definition --------------------------------------------------------------------------------------------

    @cached_property
    def _tool_schemas(self) -> SchemaTool:
        """The tool with its schemas, read from the document on first use."""
        limits = self._call.api.limits
        try:
            return SchemaTool(self._tool(self._call.input_schema, self._output_schema()), None, limits)
        except SchemaError as exc:
            unusable = Tool(name=self._name, description=self._mark_unusable(exc), input_schema={"type": "object"})
            return SchemaTool(unusable, None, limits)

    def _mark_unusable(self, error: SchemaError) -> str:
        """Record, log and return the reason why the tool cannot be called."""
        self._unusable = f"{self._call.route} cannot be called, by what its OpenAPI document says: {error!s:.1000}"
        log.warning("accord: tool %r: %s", self._name, self._unusable)
        return self._unusable

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
        """Return the schema from the document, or None if it is unusable: then the result is text."""
        try:
            return self._call.output_schema
        except SchemaError as exc:
            log.warning("accord: tool %r returns text, since its responses cannot be validated: %s", self._name, exc)
            return None

    def define(self, rules: Rules) -> Tool:
        """Return the tool as listed in a revision."""
        return self._tool_schemas.define(rules)

    # --- calls -------------------------------------------------------------------------------------------------

    def bind(self, arguments: Raw | None, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of `run`. Raises `InvalidArguments`, and `ToolError` if the tool cannot be called at
        all.
        """
        schemas = self._tool_schemas
        if self._unusable is not None:
            raise ToolError(self._unusable)
        try:
            values = self._values(schemas, arguments)
        except SchemaError as exc:
            raise ToolError(self._mark_unusable(exc)) from exc
        return (self._call.request(values), context), {}

    def _values(self, schemas: SchemaTool, arguments: Raw | None) -> JSONObject:
        """Return the validated arguments. Models write JSON in a string where another type is expected; such strings
        are decoded.
        """
        try:
            (values,), _ = schemas.bind(arguments, None)
        except InvalidArguments:
            decoded = decode_nested_json(arguments, self._call.input_schema)
            if decoded is None:
                raise
            (values,), _ = schemas.bind(decoded, None)
        return values  # type: ignore[no-any-return]

    async def run(self, request: APIRequest, context: Context | None, *, send: Send) -> Any:
        """Call the API and return the result. Raises `ToolError` unless the status is 2xx."""
        answer, secrets = await self._call.api.fetch(self._call.route, request, send, context)
        check_status(self._call.route, answer, secrets)
        if self.result_schema is None:
            return as_content(answer, request.url)
        return self._decode_result(answer, request)

    def _decode_result(self, answer: APIAnswer, request: APIRequest) -> Any:
        """Return the value of a response, or its text if it does not match the schema.

        Such text is an error result, since this tool's results need structured output ("Servers MUST provide structured
        results that conform to this schema"), and clients reject a result without it.
        """
        strict = self._call.api.strict
        assert self._tool_schemas.output is not None, "there is a schema"
        try:
            return decode_value(answer, self._tool_schemas.output, strict=strict)
        except Mismatch as exc:
            where = exc.path
            what = f"{self._call.route} was answered with {status_of(answer)}, not as its OpenAPI document has it"
            full = f"{what}: {exc}"
        log.warning("accord: tool %r: %s", self._name, redact_beginning(full))
        if strict:  # the reason quotes the response, which the client must not receive
            raise ToolError(f"{what}, at {where}; see the log of the server")
        content = as_content(answer, request.url)
        content_item = TextContent(text=content) if isinstance(content, str) else content
        return CallToolResult(content=[TextContent(text=f"{full}. It did answer:"), content_item], is_error=True)

    # --- results -----------------------------------------------------------------------------------------------

    @property
    def result_schema(self) -> JSONObject | None:
        """The schema of the value, or None."""
        return self._tool_schemas.result_schema

    def encode(self, value: Any) -> Raw:
        """Return the encoded value; `run` has validated it."""
        return Raw(encode(value))

    def wrap(self, packed: Raw) -> Raw:
        """Wrap the value in an object for revisions that require one."""
        return self._tool_schemas.wrap(packed)


def annotations_of(route: Route) -> ToolAnnotations:
    """Return the annotations of an operation by its method (RFC 9110, 9.2: safe, idempotent)."""
    if route.method in _READS:
        return ToolAnnotations(read_only_hint=True, open_world_hint=True)
    return ToolAnnotations(
        read_only_hint=False,
        destructive_hint=True if route.method in _DESTRUCTIVE else None,
        idempotent_hint=True if route.method in _IDEMPOTENT else None,
        open_world_hint=True,
    )


_IN_URIS = "/{}-._~!$&'()*+,;=:@%"
"""Characters allowed in the path of a URI template, braces included."""


class ImportedResource:
    """An operation as a resource, or as a template with path variables and, if `queried`, query variables.

    Raises `SchemaError` for an operation that needs arguments outside the URI.
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
        # `APICall` checks the values that become a part of the path
        self._template = Template(self._uri_template(scheme), unsafe_variables=True)
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

    def _uri_template(self, scheme: str) -> str:
        """Return the URI template."""
        parameters = self._call.arguments.parameters
        places = [(variable, parameters[argument]) for variable, argument in self._variables.items()]
        query = [variable for variable, one in places if one.place == "query"]
        names = {one.name: variable for variable, one in places if one.place == "path"}
        path = VARIABLE.sub(lambda match: f"{{{names[match[1]]}}}", self._call.route.path)
        return f"{scheme}:/{quote(path, safe=_IN_URIS)}" + ("{?" + ",".join(query) + "}" if query else "")

    @property
    def kind(self) -> str:
        """The kind of registry entry."""
        return "resource template" if self._variables else "resource"

    @property
    def text(self) -> str:
        """The URI, or the URI template."""
        return self._template.text

    def registration(self, metadata: AccessMetadata) -> Any:
        """Return the registration of the resource; for a template, with its `Template`."""
        registration = Registration(
            self.run,
            lambda _: self.definition,
            bind=self.bind,
            context=self._call.api.headers.context,
            is_async=True,
            depends=self._call.api.depends,
        )
        registration.metadata = metadata
        return (self._template, registration) if self._variables else registration

    def bind(self, values: Mapping[str, Any] | None, context: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of `run`. Raises `InvalidArguments`."""
        return (dict(values or {}), context), {}

    async def run(self, values: Mapping[str, Any], context: Context | None, *, send: Send) -> str | bytes:
        """Call the API and return the content. Raises `ResourceNotFound` for 404 and 410, and `ToolError` for other
        errors.
        """
        request = self._call.request({self._variables[name]: value for name, value in values.items()})
        answer, secrets = await self._call.api.fetch(self._call.route, request, send, context)
        if answer.status in (404, 410):
            raise ResourceNotFound(uri=self._template.expand(values))
        check_status(self._call.route, answer, secrets)
        return answer.text if is_text(answer) else answer.body
