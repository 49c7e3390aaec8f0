"""Prompts and resources offered as tools, for clients that support only tools: FastMCP's `PromptsAsTools(mcp)` and
`ResourcesAsTools(mcp)`. They have the access of the client that calls them.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from accord.client.client import Client
from accord.errors import InvalidParams, ResourceNotFound
from accord.server.core.context import Context
from accord.server.core.principal import Principal
from accord.server.server import Server

_ANONYMOUS = Principal("anonymous")
"""Stands for a client over HTTP without authentication: a client in this process without a principal has every scope.
"""


def _client_of_caller(server: Server, ctx: Context) -> Client:
    """Return a client of the server that has the identity of the client that calls the tool."""
    principal = ctx.principal
    if principal is None and ctx.viewer.scopes is not None:
        principal = _ANONYMOUS
    return Client(server, principal=principal)


class PromptsAsTools:
    """The tools `list_prompts` and `get_prompt(name, arguments)`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def apply(self, server: Server) -> None:
        """Register the tools on a server."""
        Server.tool(server, "list_prompts")(self.list_prompts)
        Server.tool(server, "get_prompt")(self.get_prompt)

    async def list_prompts(self, ctx: Context) -> str:
        """List all available prompts.

        Returns JSON with prompt metadata including name, description,
        and optional arguments.
        """
        async with _client_of_caller(self._server, ctx) as client:
            prompts = [one for one in await client.list_prompts() if ctx._can_see("prompt", one.name)]
        return _json([_prompt_fields(one) for one in prompts])

    async def get_prompt(self, name: str, ctx: Context, arguments: dict[str, Any] | None = None) -> str:
        """Get a prompt by name with optional arguments.

        Returns the rendered prompt as JSON with a messages array.
        Arguments should be provided as a dict mapping argument names
        to values.
        """
        if not ctx._can_see("prompt", name):
            raise InvalidParams(f"no prompt {name!r:.200}")
        async with _client_of_caller(self._server, ctx) as client:
            result = await client.get_prompt(name, {key: str(value) for key, value in (arguments or {}).items()})
        messages = [{"role": message.role, "content": _content_fields(message.content)} for message in result.messages]
        return _json({"messages": messages})


class ResourcesAsTools:
    """The tools `list_resources` and `read_resource(uri)`."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def apply(self, server: Server) -> None:
        """Register the tools on a server."""
        Server.tool(server, "list_resources")(self.list_resources)
        Server.tool(server, "read_resource")(self.read_resource)

    async def list_resources(self, ctx: Context) -> str:
        """List all available resources and resource templates.

        Returns JSON with resource metadata. Static resources have a
        'uri' field, while templates have a 'uri_template' field with
        placeholders like {name}.
        """
        async with _client_of_caller(self._server, ctx) as client:
            resources = [one for one in await client.list_resources() if ctx._can_see("resource", one.uri)]
            templates = await client.list_resource_templates()
        visible = [one for one in templates if ctx._can_see("resource template", one.uri_template)]
        return _json([*resources, *visible])

    async def read_resource(self, uri: str, ctx: Context) -> str:
        """Read a resource by its URI.

        For static resources, provide the exact URI. For templated
        resources, provide the URI with template parameters filled in.

        Returns the resource content as a string. Binary content is
        base64-encoded.
        """
        if not ctx._can_see("resource", uri):
            raise ResourceNotFound(uri=uri)
        async with _client_of_caller(self._server, ctx) as client:
            contents = (await client.read_resource(uri)).contents
        values = [one.text if one.text is not None else one.blob or "" for one in contents]
        return values[0] if len(values) == 1 else _json(values)


def _prompt_fields(prompt: Any) -> dict[str, Any]:
    arguments = [
        {"name": one.name, "description": one.description, "required": bool(one.required)}
        for one in prompt.arguments or ()
    ]
    return {"name": prompt.name, "description": prompt.description, "arguments": arguments}


def _content_fields(block: Any) -> Any:
    return block.text if block.type == "text" else msgspec.to_builtins(block)


def _json(value: Any) -> str:
    if isinstance(value, list):
        value = [_in_snake(one) if hasattr(one, "__struct_fields__") else one for one in value]
    return json.dumps(value, indent=2, ensure_ascii=False)


def _in_snake(definition: Any) -> dict[str, Any]:
    """Return the fields of a definition that are set, with their Python names."""
    fields = {name: getattr(definition, name) for name in definition.__struct_fields__}
    return {name: msgspec.to_builtins(value) for name, value in fields.items() if value is not None}
