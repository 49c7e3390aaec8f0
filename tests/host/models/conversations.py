"""Requests that have everything: system prompt, images, audio, uses of tools and their results."""

from __future__ import annotations

from typing import Any

from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)
from accord.messages.sampling import CreateMessageParams, SamplingMessage, ToolChoice
from accord.messages.tools import Tool

from tests.host.models.fake_provider import FakeProvider, as_json
from tests.host.models.providers import API, HELLO

PIXEL = ImageContent(data="aW1hZ2U=", mime_type="image/PNG")
SVG = ImageContent(data="PHN2Zy8+", mime_type="image/svg+xml")
SOUND = AudioContent(data="c291bmQ=", mime_type="audio/mpeg")
SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
SEARCH = Tool(name="search", description="Searches.", input_schema=SCHEMA)
DOTTED = Tool(name="files.read/all", input_schema={"type": "object"})
LINK = ResourceLink(uri="https://example.com/a", name="a", description="An article")
NOTE = EmbeddedResource(resource=ResourceContents(uri="note://1", text="remember"))
PHOTO = EmbeddedResource(resource=ResourceContents(uri="p://1", mime_type="image/jpeg", blob="anBn"))
DATA = EmbeddedResource(resource=ResourceContents(uri="d://1", mime_type="application/zip", blob="emlw"))


def message(role: Any, *content: Any) -> SamplingMessage:
    return SamplingMessage(role=role, content=content[0] if len(content) == 1 else list(content))


CONVERSATION = CreateMessageParams(
    messages=[
        message("user", TextContent(text="What is this?"), PIXEL),
        message(
            "assistant",
            TextContent(text="I look."),
            ToolUseContent(id="t1", name="search", input={"q": "täa"}),
            ToolUseContent(id="t2", name="files.read/all", input={}),
        ),
        message(
            "user",
            ToolResultContent(tool_use_id="t1", content=[TextContent(text="found"), PIXEL]),
            ToolResultContent(tool_use_id="t2", content=[TextContent(text="no such file")], is_error=True),
        ),
    ],
    max_tokens=300,
    system_prompt="Be brief.",
    temperature=0.5,
    stop_sequences=["END"],
    metadata={"user_id": "u-1", "number": 5},
    tools=[SEARCH, DOTTED],
    tool_choice=ToolChoice(mode="required"),
)


async def sent(api: API, params: CreateMessageParams, **settings: Any) -> Any:
    """The body of the request that a model sends."""
    async with FakeProvider(as_json(api.answers.whole(HELLO))) as provider:
        await api.connect(provider, **settings).create_message(params)
    return provider.requests[0].body


async def sent_result(api: API, *content: Any, **more: Any) -> Any:
    """What a model sends for the result of a tool with this content."""
    use = message("assistant", ToolUseContent(id="t", name="search", input={}))
    result = message("user", ToolResultContent(tool_use_id="t", content=list(content), **more))
    body = await sent(api, CreateMessageParams(messages=[use, result], max_tokens=1))
    return (body.get("messages") or body.get("input"))[1:]
