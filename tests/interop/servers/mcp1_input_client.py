"""A peer client with callbacks on the official SDK 1.x (see input_story)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, types
from pydantic import AnyUrl

import input_story
from mcp1_client import streams_to


class Client:
    def __init__(self, session: ClientSession, revision: str, notes: list[Callable[[str], None]]) -> None:
        self.session = session
        self.notes = notes
        self.revision = revision

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return await self.session.call_tool(name, arguments)

    async def read(self, uri: str) -> Any:
        return await self.session.read_resource(AnyUrl(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self.session.get_prompt(name, arguments)

    async def complete(self, prompt: str, argument: str, value: str, context: dict[str, str]) -> Any:
        ref = types.PromptReference(type="ref/prompt", name=prompt)
        return await self.session.complete(ref, {"name": argument, "value": value}, context)

    @asynccontextmanager
    async def watching(self, uri: str, told: Callable[[str], None]) -> AsyncIterator[None]:
        self.notes.append(told)
        await self.session.subscribe_resource(AnyUrl(uri))
        yield


@asynccontextmanager
async def connect(
    target: input_story.story.Target, revision: str | None, host: input_story.Host
) -> AsyncIterator[Client]:
    if revision:
        types.LATEST_PROTOCOL_VERSION = revision  # what initialize asks for; the SDK has no setting
    notes: list[Callable[[str], None]] = []

    async def elicit(context: Any, params: Any) -> Any:
        return types.ElicitResult.model_validate(host.person(input_story.story.plain(params)))

    async def sample(context: Any, params: Any) -> Any:
        asked = input_story.story.plain(params)
        kind: Any = types.CreateMessageResultWithTools if asked.get("tools") else types.CreateMessageResult
        return kind.model_validate(host.model(asked))

    async def list_roots(context: Any) -> Any:
        return types.ListRootsResult.model_validate(host.roots())

    async def log(params: Any) -> None:
        host.log(input_story.story.plain(params))

    async def heard(message: Any) -> None:
        method = getattr(getattr(message, "root", None), "method", None)
        if method in (input_story.UPDATED, input_story.CHANGED):
            for told in notes:
                told(method)

    async with (
        streams_to(target) as streams,
        ClientSession(
            *streams[:2],
            elicitation_callback=elicit,
            sampling_callback=sample,
            sampling_capabilities=types.SamplingCapability(tools=types.SamplingToolsCapability()),
            list_roots_callback=list_roots,
            logging_callback=log,
            message_handler=heard,
        ) as session,
    ):
        result = await session.initialize()
        await session.set_logging_level("info")
        yield Client(session, str(result.protocolVersion), notes)


if __name__ == "__main__":
    input_story.main("mcp", connect)
