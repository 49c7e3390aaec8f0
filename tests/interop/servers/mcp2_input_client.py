"""A peer client with callbacks on the official SDK 2.x (see input_story)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.client.client import Client as McpClient
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

import input_story
from mcp2_client import mode_for, server_at

CREATED: Any = types.CreateMessageResult
WISHED: Any = types.CreateMessageResultWithTools


class Client:
    def __init__(self, client: McpClient, notes: list[Callable[[str], None]]) -> None:
        self.client = client
        self.notes = notes
        self.revision = client.protocol_version

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return await self.client.call_tool(name, arguments)

    async def read(self, uri: str) -> Any:
        return await self.client.read_resource(uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self.client.get_prompt(name, arguments)

    async def complete(self, prompt: str, argument: str, value: str, context: dict[str, str]) -> Any:
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return await self.client.complete(ref, {"name": argument, "value": value}, context)

    @asynccontextmanager
    async def watching(self, uri: str, told: Callable[[str], None]) -> AsyncIterator[None]:
        if self.revision not in MODERN_PROTOCOL_VERSIONS:
            self.notes.append(told)
            await self.client.subscribe_resource(uri)
            yield
            return
        async with self.client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as subscription:
            reading = asyncio.ensure_future(self._read(subscription, told))
            yield
            reading.cancel()

    async def _read(self, subscription: Any, told: Callable[[str], None]) -> None:
        async for event in subscription:
            told({"ResourceUpdated": input_story.UPDATED}.get(type(event).__name__, input_story.CHANGED))


@asynccontextmanager
async def connect(
    target: input_story.story.Target, revision: str | None, host: input_story.Host
) -> AsyncIterator[Client]:
    notes: list[Callable[[str], None]] = []

    async def elicit(context: Any, params: Any) -> Any:
        return types.ElicitResult.model_validate(host.person(input_story.story.plain(params)))

    async def sample(context: Any, params: Any) -> Any:
        asked = input_story.story.plain(params)
        return (WISHED if asked.get("tools") else CREATED).model_validate(host.model(asked))

    async def list_roots(context: Any) -> Any:
        return types.ListRootsResult.model_validate(host.roots())

    async def log(params: Any) -> None:
        host.log(input_story.story.plain(params))

    async def heard(message: Any) -> None:
        method = getattr(message, "method", None)
        if method in (input_story.UPDATED, input_story.CHANGED):
            for told in notes:
                told(method)

    async with McpClient(
        server_at(target),
        mode=mode_for(revision),
        elicitation_callback=elicit,
        sampling_callback=sample,
        sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
        list_roots_callback=list_roots,
        logging_callback=log,
        log_level="info",
        message_handler=heard,
    ) as client:
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            await client.set_logging_level("info")
        yield Client(client, notes)


if __name__ == "__main__":
    input_story.main("mcp", connect)
