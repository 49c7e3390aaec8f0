"""What the server of the suite has: tools, resources and prompts, by the suite's names, with the outputs it wants."""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated, Any

import msgspec

from accord import (
    AudioContent,
    CallToolResult,
    Context,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    PromptMessage,
    ResourceContents,
    Server,
    TextContent,
    Tool,
    ToolError,
)

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
"""A picture of one pixel."""
WAV = base64.b64encode(
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\2\0\0\0\x80\x80"
).decode()
"""A sound of two samples."""

server = Server("accord-conformance", "1.0.0", instructions="For the conformance suite.")


# --- tools that answer at once ---------------------------------------------------------------------------------------


@server.tool(name="test_simple_text")
def simple_text() -> str:
    """A text"""
    return "This is a simple text response for testing."


@server.tool(name="test_image_content")
def image_content() -> ImageContent:
    """A picture"""
    return ImageContent(data=PNG, mime_type="image/png")


@server.tool(name="test_audio_content")
def audio_content() -> AudioContent:
    """A sound"""
    return AudioContent(data=WAV, mime_type="audio/wav")


@server.tool(name="test_embedded_resource")
def embedded_resource() -> EmbeddedResource:
    """A resource inside the result"""
    text = "This is an embedded resource content."
    return EmbeddedResource(
        resource=ResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text)
    )


@server.tool(name="test_multiple_content_types")
def multiple_content_types() -> CallToolResult:
    """A text, a picture and a resource"""
    resource = ResourceContents(
        uri="test://mixed-content-resource", mime_type="application/json", text='{"test":"data","value":123}'
    )
    return CallToolResult(
        content=[
            TextContent(text="Multiple content types test:"),
            ImageContent(data=PNG, mime_type="image/png"),
            EmbeddedResource(resource=resource),
        ]
    )


@server.tool(name="test_error_handling")
def error_handling() -> str:
    """It fails, and says so"""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool(name="test_tool_with_progress")
async def tool_with_progress(ctx: Context) -> str:
    """It reports progress, in three steps"""
    for step in (0, 50, 100):
        ctx.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0)
    return str(ctx.meta.get("progressToken"))


@server.tool(name="test_tool_with_logging")
async def tool_with_logging(ctx: Context) -> str:
    """It logs three messages"""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.info(step)
        await asyncio.sleep(0)
    return "Tool with logging executed successfully"


@server.tool(name="test_logging_tool")
def logging_tool(ctx: Context) -> str:
    """It logs one message"""
    ctx.info("Diagnostic trace logging activated")
    return "Logging evaluated"


SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "sendBy": {"type": "string", "enum": ["letter", "courier"]},
    },
    "allOf": [{"anyOf": [{"required": ["name"]}, {"required": ["address"]}]}],
    "if": {"properties": {"sendBy": {"const": "letter"}}, "required": ["sendBy"]},
    "then": {"required": ["address"]},
    "else": {"required": ["name"]},
    "additionalProperties": False,
}
"""Everything of JSON Schema 2020-12 that a list must not lose."""


def json_schema_2020_12(arguments: dict[str, Any]) -> str:
    return f"JSON Schema 2020-12 tool called with: {msgspec.json.encode(arguments).decode()}"


server.add_tool(
    Tool(
        name="json_schema_2020_12_tool",
        description="Its schema uses much of JSON Schema 2020-12",
        input_schema=SCHEMA,
    ),
    json_schema_2020_12,
)


# --- tools that change what there is ---------------------------------------------------------------------------------


@server.tool(name="test_trigger_tool_change")
async def trigger_tool_change() -> str:
    """Adds a tool, or takes it away again"""
    if "test_dynamic_tool" in server.registry.tools:
        server.remove_tool("test_dynamic_tool")
    else:
        server.tool(name="test_dynamic_tool", description="A tool that comes and goes")(lambda: "here")
    return "Mutation triggered"


@server.tool(name="test_trigger_prompt_change")
async def trigger_prompt_change() -> str:
    """Adds a prompt, or takes it away again"""
    if "test_dynamic_prompt" in server.registry.prompts:
        server.remove_prompt("test_dynamic_prompt")
    else:
        server.prompt(name="test_dynamic_prompt", description="A prompt that comes and goes")(lambda: "here")
    return "Mutation triggered"


# --- resources -------------------------------------------------------------------------------------------------------


@server.resource("test://static-text", name="static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that never changes"""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", name="static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that never changes"""
    return base64.b64decode(PNG)


@server.resource("test://template/{id}/data", name="template", mime_type="application/json")
def template(id: str) -> dict[str, Any]:
    """One resource for each id"""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@server.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A resource that can be subscribed to"""
    return "Watched resource content"


# --- prompts ---------------------------------------------------------------------------------------------------------


@server.prompt(name="test_simple_prompt")
def simple_prompt() -> str:
    """A prompt that takes nothing"""
    return "This is a simple prompt for testing."


@server.prompt(name="test_prompt_with_arguments")
def prompt_with_arguments(arg1: Annotated[str, "What comes first"], arg2: Annotated[str, "What comes second"]) -> str:
    """A prompt that takes two texts"""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt_with_arguments.complete("arg1")
def complete_arg1(prefix: str) -> list[str]:
    return [value for value in ("test1", "test2", "other") if value.startswith(prefix)]


@server.prompt(name="test_prompt_with_embedded_resource")
def prompt_with_embedded_resource(
    resourceUri: Annotated[str, "Which resource"],
) -> GetPromptResult:
    """A prompt with a resource to look at"""
    text = "Embedded resource content for testing."
    resource = ResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return shown(EmbeddedResource(resource=resource), "Please process the embedded resource above.")


@server.prompt(name="test_prompt_with_image")
def prompt_with_image() -> GetPromptResult:
    """A prompt with a picture to look at"""
    return shown(ImageContent(data=PNG, mime_type="image/png"), "Please analyze the image above.")


def shown(block: Any, then: str) -> GetPromptResult:
    """Something to look at, and what to do with it."""
    return GetPromptResult(
        messages=[
            PromptMessage(role="user", content=block),
            PromptMessage(role="user", content=TextContent(text=then)),
        ]
    )
