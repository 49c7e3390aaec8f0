"""The official SDK's clients of a server in the same process, as programs test themselves with."""

# mypy: disable-error-code="override"
# The words of another library are taken in the place of accord's own: that is what this is for.

from __future__ import annotations

from typing import Any

from accord.client.client import Client as Native
from accord.messages.prompts import ListPromptsResult
from accord.messages.resources import ListResourcesResult, ListResourceTemplatesResult
from accord.messages.tools import ListToolsResult


class Client(Native):
    """A client whose lists are results: `(await client.list_tools()).tools`."""

    async def list_tools(self, **options: Any) -> Any:
        """All tools, as `.tools`."""
        return ListToolsResult(tools=await super().list_tools(**options))

    async def list_prompts(self, **options: Any) -> Any:
        """All prompts, as `.prompts`."""
        return ListPromptsResult(prompts=await super().list_prompts(**options))

    async def list_resources(self, **options: Any) -> Any:
        """All resources, as `.resources`."""
        return ListResourcesResult(resources=await super().list_resources(**options))

    async def list_resource_templates(self, **options: Any) -> Any:
        """All templates, as `.resource_templates`."""
        return ListResourceTemplatesResult(resource_templates=await super().list_resource_templates(**options))

    async def initialize(self) -> None:
        """Nothing: entering the client has done so."""


def create_connected_server_and_client_session(server: Any, **options: Any) -> Client:
    """A client of a server in this process, to be entered."""
    return Client(server, **options)
