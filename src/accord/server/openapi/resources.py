"""An operation as a resource, or as a template of resources: what is only read, at a URI that mirrors its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from accord.errors import ResourceNotFound, SchemaError
from accord.messages.content import Resource
from accord.messages.resources import ResourceTemplate
from accord.server.context import Context
from accord.server.openapi.address import VARIABLE
from accord.server.openapi.api_call import APICall
from accord.server.openapi.messages import Send
from accord.server.openapi.response import check_status, is_text
from accord.server.registration import AccessMetadata, Registration
from accord.server.templates import Template

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
            raise SchemaError("it needs a body, a header or a cookie, which a URI does not have: make it a tool")
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
