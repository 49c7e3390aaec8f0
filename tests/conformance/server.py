"""The server that the official conformance suite is run against: its names, its outputs, its questions.

The suite says which tools, resources and prompts a server has, and what they answer; so do the transcripts here (see
scenarios). Run as a program, it serves stdio.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from accord import (
    Accepted,
    AudioContent,
    CallToolResult,
    Cancelled,
    Context,
    Declined,
    Elicit,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    PromptMessage,
    ResourceContents,
    Roots,
    Sample,
    Server,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolError,
)
from accord.messages.elicitation import ElicitParams, ElicitResult
from accord.messages.revision import Rules

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
"""A picture of one pixel."""
WAV = base64.b64encode(
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\2\0\0\0\x80\x80"
).decode()
"""A sound of two samples."""

AGAIN = ToolAnnotations(read_only_hint=True)
"""A tool that may run again from the top for each answer; without it the run waits."""


@dataclass
class Name:
    name: str


@dataclass
class Color:
    color: str


@dataclass
class Confirmed:
    ok: bool


@dataclass
class Value:
    value: str


@dataclass
class Topic:
    context: str


@dataclass
class Person:
    username: Annotated[str, "User's response"]
    email: Annotated[str, "User's email address"]


@dataclass
class Defaults:
    name: Annotated[str, "User name"] = "John Doe"
    age: Annotated[int, "User age"] = 30
    score: Annotated[float, "User score"] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], "User status"] = "active"
    verified: Annotated[bool, "Verification status"] = True


class Choices(Elicit[Any]):
    """Every way in which a revision may write a choice, the old one too: a form by hand."""

    def __init__(self) -> None:
        super().__init__("Please select options from the enum fields")

    def params(self, rules: Rules) -> ElicitParams:
        titled = [{"const": f"value{n}", "title": title} for n, title in enumerate(("First", "Second", "Third"), 1)]
        options = {"type": "string", "enum": ["option1", "option2", "option3"]}
        properties = {
            "untitledSingle": options,
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
            "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": options},
            "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": titled}},
        }
        schema = {"type": "object", "properties": properties}
        return ElicitParams(message=self.message, mode="form", requested_schema=schema)

    def read(self, answer: bytes) -> Accepted[Any] | Declined | Cancelled:
        result = msgspec.json.decode(answer, type=ElicitResult)
        if result.action == "accept":
            return Accepted(result.content)
        return Declined() if result.action == "decline" else Cancelled()


server = Server("accord-conformance", "1.0.0", instructions="For the conformance suite.")


# --- tools that answer at once ---------------------------------------------------------------------------------------


@server.tool(name="test_simple_text")
def simple_text() -> str:
    """Tests simple text content response"""
    return "This is a simple text response for testing."


@server.tool(name="test_image_content")
def image_content() -> ImageContent:
    """Tests image content response"""
    return ImageContent(data=PNG, mime_type="image/png")


@server.tool(name="test_audio_content")
def audio_content() -> AudioContent:
    """Tests audio content response"""
    return AudioContent(data=WAV, mime_type="audio/wav")


@server.tool(name="test_embedded_resource")
def embedded_resource() -> EmbeddedResource:
    """Tests embedded resource content response"""
    text = "This is an embedded resource content."
    return EmbeddedResource(
        resource=ResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text)
    )


@server.tool(name="test_multiple_content_types")
def multiple_content_types() -> CallToolResult:
    """Tests response with multiple content types (text, image, resource)"""
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
    """Tests error response handling"""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool(name="test_tool_with_progress")
async def tool_with_progress(ctx: Context) -> str:
    """Tests tool that reports progress notifications"""
    for step in (0, 50, 100):
        ctx.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0)
    return str(ctx.meta.get("progressToken"))


@server.tool(name="test_tool_with_logging")
async def tool_with_logging(ctx: Context) -> str:
    """Tests tool that emits log messages during execution"""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.info(step)
        await asyncio.sleep(0)
    return "Tool with logging executed successfully"


@server.tool(name="test_logging_tool")
def logging_tool(ctx: Context) -> str:
    """Tests that nothing is logged unless it is asked for"""
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
        description="Tool with JSON Schema 2020-12 features for conformance testing (SEP-1613)",
        input_schema=SCHEMA,
    ),
    json_schema_2020_12,
)


# --- tools that ask --------------------------------------------------------------------------------------------------


@server.tool(name="test_sampling")
async def sampling(prompt: Annotated[str, "The prompt to send to the LLM"], ctx: Context) -> str:
    """Tests server-initiated sampling (LLM completion request)"""
    return f"LLM response: {(await ctx.sample(prompt, max_tokens=100)).text}"


@server.tool(name="test_elicitation")
async def elicitation(message: Annotated[str, "The message to show the user"], ctx: Context) -> str:
    """Tests server-initiated elicitation (user input request)"""
    return told("User response", await ctx.elicit(message, Person))


@server.tool(name="test_elicitation_sep1034_defaults")
async def elicitation_defaults(ctx: Context) -> str:
    """Tests elicitation with default values per SEP-1034"""
    outcome = await ctx.elicit("Please review and update the form fields with defaults", Defaults)
    return told("Elicitation completed", outcome)


@server.tool(name="test_elicitation_sep1330_enums")
async def elicitation_enums(ctx: Context) -> str:
    """Tests elicitation with enum schema improvements per SEP-1330"""
    (outcome,) = await ctx.ask(Choices())
    return told("Elicitation completed", outcome)


@server.tool(name="test_missing_capability")
async def missing_capability(ctx: Context) -> str:
    """Test tool requiring sampling"""
    await ctx.sample("Sample request", max_tokens=50)
    return "Success"


@server.tool(name="test_input_required_result_elicitation", annotations=AGAIN)
def asks_person(user_name: Annotated[Name, Elicit("What is your name?")]) -> str:
    """MRTR: returns InputRequiredResult with elicitation request"""
    return f"Hello, {user_name.name}!"


@server.tool(name="test_input_required_result_sampling", annotations=AGAIN)
def asks_model(sample_request: Annotated[str, Sample("What is the capital of France?", max_tokens=100)]) -> str:
    """MRTR: returns InputRequiredResult with sampling request"""
    return f"Sampling result: {sample_request}"


@server.tool(name="test_input_required_result_list_roots")
async def asks_for_roots(ctx: Context) -> str:
    """MRTR: returns InputRequiredResult with roots/list request"""
    return f"Found {len(await ctx.list_roots())} root(s)"


@server.tool(name="test_input_required_result_request_state")
def asks_with_state(confirm: Annotated[Confirmed, Elicit("Please confirm")]) -> str:
    """MRTR: returns InputRequiredResult with requestState"""
    return "state-ok: requestState validated"


@server.tool(name="test_input_required_result_multiple_inputs")
async def asks_for_all(ctx: Context) -> str:
    """MRTR: returns InputRequiredResult with multiple input requests"""
    name, greeting, roots = await ctx.ask(
        Elicit("What is your name?", Name), Sample("Generate a greeting", max_tokens=50), Roots()
    )
    return f"Name: {called(name)}; Greeting: {greeting.text}; Roots: {len(roots)}"


@server.tool(name="test_input_required_result_multi_round", annotations=AGAIN)
async def asks_twice(ctx: Context) -> str:
    """MRTR: multi-round InputRequiredResult workflow"""
    name = await ctx.elicit("Step 1: What is your name?", Name)
    color = await ctx.elicit("Step 2: What is your favorite color?", Color)
    liked = color.data.color if isinstance(color, Accepted) else "none"
    return f"Multi-round complete for {called(name)} who likes {liked}"


@server.tool(name="test_input_required_result_tampered_state")
def asks_with_sealed_state(confirm: Annotated[Confirmed, Elicit("Please confirm")]) -> str:
    """MRTR: HMAC-signed requestState integrity test"""
    return "integrity-ok: state verified"


@server.tool(name="test_input_required_result_capabilities")
async def asks_what_can_be_answered(ctx: Context) -> str:
    """MRTR: respects client capabilities in inputRequests"""
    client = ctx.client_capabilities
    can = {
        Elicit("Elicitation input", Value): client.elicitation is not None,
        Sample("Sample request", max_tokens=50): client.sampling is not None,
    }
    questions = [question for question, answered in can.items() if answered]
    if not questions:
        return "No supported capabilities declared"
    return f"capabilities-ok: received {len(await ctx.ask(*questions))}"


@server.tool(name="test_streaming_elicitation")
async def streaming_elicitation(ctx: Context) -> str:
    """Tests that what a call asks stands in its result, and is no request of its own"""
    ctx.report_progress(50, 100)
    await ctx.elicit("Streaming", Value)
    return "Streaming complete"


def told(what: str, outcome: Accepted[Any] | Declined | Cancelled) -> str:
    content = outcome.data if isinstance(outcome, Accepted) else {}
    return f"{what}: action={outcome.action}, content={msgspec.json.encode(content).decode()}"


def called(outcome: Accepted[Name] | Declined | Cancelled) -> str:
    return outcome.data.name if isinstance(outcome, Accepted) else "friend"


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


@server.resource("test://static-text", name="static-text", title="Static Text Resource", mime_type="text/plain")
def static_text() -> str:
    """A static text resource for testing"""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", name="static-binary", title="Static Binary Resource", mime_type="image/png")
def static_binary() -> bytes:
    """A static binary resource (image) for testing"""
    return base64.b64decode(PNG)


@server.resource(
    "test://template/{id}/data", name="template", title="Resource Template", mime_type="application/json"
)
def template(id: str) -> dict[str, Any]:
    """A resource template with parameter substitution"""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@server.resource("test://watched-resource", name="watched-resource", title="Watched Resource", mime_type="text/plain")
def watched_resource() -> str:
    """A resource that can be subscribed to"""
    return "Watched resource content"


# --- prompts ---------------------------------------------------------------------------------------------------------


@server.prompt(name="test_simple_prompt", title="Simple Test Prompt")
def simple_prompt() -> str:
    """A simple prompt without arguments"""
    return "This is a simple prompt for testing."


@server.prompt(name="test_prompt_with_arguments", title="Prompt With Arguments")
def prompt_with_arguments(arg1: Annotated[str, "First test argument"], arg2: Annotated[str, "Second"]) -> str:
    """A prompt with required arguments"""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt_with_arguments.complete("arg1")
def complete_arg1(prefix: str) -> list[str]:
    return [value for value in ("test1", "test2", "other") if value.startswith(prefix)]


@server.prompt(name="test_prompt_with_embedded_resource", title="Prompt With Embedded Resource")
def prompt_with_embedded_resource(
    resourceUri: Annotated[str, "URI of the resource to embed"],
) -> GetPromptResult:
    """A prompt that includes an embedded resource"""
    text = "Embedded resource content for testing."
    resource = ResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return shown(EmbeddedResource(resource=resource), "Please process the embedded resource above.")


@server.prompt(name="test_prompt_with_image", title="Prompt With Image")
def prompt_with_image() -> GetPromptResult:
    """A prompt that includes image content"""
    return shown(ImageContent(data=PNG, mime_type="image/png"), "Please analyze the image above.")


@server.prompt(name="test_input_required_result_prompt")
def prompt_that_asks(user_context: Annotated[Topic, Elicit("What context should the prompt use?")]) -> str:
    """MRTR: prompt that requires elicitation input"""
    return f"Prompt with context: {user_context.context}"


def shown(block: Any, then: str) -> GetPromptResult:
    """Something to look at, and what to do with it."""
    return GetPromptResult(
        messages=[
            PromptMessage(role="user", content=block),
            PromptMessage(role="user", content=TextContent(text=then)),
        ]
    )


if __name__ == "__main__":
    server.run()
