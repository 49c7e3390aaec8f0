"""A server that uses every feature; the official conformance suite runs against it.

    python examples/everything.py :8000      # every revision on one port: /mcp, and /sse for 2024-11-05
    python examples/everything.py            # the same over stdio
    accord call examples/everything.py measure city=Oslo

The suite defines the names and results of everything called test_... (see docs/conformance.md).
"""

from __future__ import annotations

import asyncio
import base64
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from accord import (
    Accepted,
    AudioContent,
    CacheHint,
    CallToolResult,
    Cancelled,
    Context,
    Declined,
    Elicit,
    EmbeddedResource,
    Extension,
    Header,
    ImageContent,
    PromptMessage,
    ResourceLink,
    Roots,
    Sample,
    Server,
    Table,
    Task,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolError,
)
from accord.types import ElicitParams, GetPromptResult, Icon, Method, ResourceContents

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
"""An image of one pixel."""

PIXEL = Icon(src=f"data:image/png;base64,{PNG}", mime_type="image/png")

WAV = base64.b64encode(
    b"RIFF\x26\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x40\x1f\0\0\1\0\x08\0data\2\0\0\0\x80\x80"
).decode()
"""Audio of two samples."""

AGAIN = ToolAnnotations(read_only_hint=True)
"""The function of a read-only tool runs again from the start with each answer (2026-07-28). Any other runs once."""


class Shout(msgspec.Struct):
    text: str


LOUD = Extension(name="com.example/loud", methods=(Method("com.example/shout", "client", Shout, Shout),))
"""A method of an extension."""

server = Server(
    "everything",
    "1.0.0",
    instructions="Try anything; nothing here has an effect outside.",
    cache=CacheHint(ttl=60, scope="public"),
    extensions=[LOUD],
)


@server.method("com.example/shout")
def shout(params: Shout) -> Shout:
    return Shout(params.text.upper())


# --- tools: a result of every kind -----------------------------------------------------------------------------------


@server.tool
def test_simple_text() -> str:
    """A text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> ImageContent:
    """A picture."""
    return ImageContent(data=PNG, mime_type="image/png")


@server.tool
def test_audio_content() -> AudioContent:
    """A sound."""
    return AudioContent(data=WAV, mime_type="audio/wav")


@server.tool
def test_embedded_resource() -> EmbeddedResource:
    """A resource inside the result."""
    text = "This is an embedded resource content."
    return EmbeddedResource(
        resource=ResourceContents(uri="test://embedded-resource", mime_type="text/plain", text=text)
    )


@server.tool
def test_multiple_content_types() -> CallToolResult:
    """A text, a picture, a resource, and a link to another."""
    resource = ResourceContents(uri="test://mixed-content-resource", mime_type="application/json", text='{"value":123}')
    return CallToolResult(
        content=[
            TextContent(text="Multiple content types test:"),
            ImageContent(data=PNG, mime_type="image/png"),
            EmbeddedResource(resource=resource),
            ResourceLink(uri="test://static-text", name="static-text"),
        ]
    )


@server.tool
def test_error_handling() -> str:
    """A failure, which a model can read."""
    raise ToolError("This tool intentionally returns an error for testing")


@dataclass
class Day:
    """The weather of one day."""

    sky: Literal["clear", "cloudy", "rain"]
    celsius: float


# Hosts with apps show the days in this page; all others show the text.
weather_page = server.add_ui(
    "ui://everything/weather",
    Table(["sky", "celsius"], title="Weather"),
    border=True,
    description="The weather of the coming days, as a table.",
)


# The types of the parameters and of the result become the schemas that clients receive, and that accord validates.
@server.tool(title="Measure the weather", annotations=AGAIN, icons=[PIXEL], timeout=5, ui=weather_page)
def measure(city: str, days: Annotated[int, msgspec.Meta(ge=1, le=14)] = 3) -> list[Day]:
    """The weather of the coming days.

    Args:
        city: Where.
        days: How many days ahead.
    """
    return [Day("clear", 20.0 + day) for day in range(days)]


SCHEMA: dict[str, Any] = {
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
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


# Over HTTP, the client also sends this argument in `Mcp-Param-Region` (2026-07-28), for load balancers.
@server.tool
def test_x_mcp_header(region: Annotated[str, Header("Region")]) -> str:
    """Runs in a region."""
    return f"done in {region}"


# The low-level API: a schema as JSON, and a handler that takes a dict.
def json_schema_2020_12(arguments: dict[str, Any]) -> str:
    return f"JSON Schema 2020-12 tool called with: {msgspec.json.encode(arguments).decode()}"


server.add_tool(
    Tool(name="json_schema_2020_12_tool", description="A schema that uses much of 2020-12.", input_schema=SCHEMA),
    json_schema_2020_12,
)


# --- tools: progress and log messages --------------------------------------------------------------------------------


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Progress, in three steps."""
    for step in (0, 50, 100):
        ctx.report_progress(step, 100, f"Completed step {step} of 100")
        await asyncio.sleep(0.05)
    return str(ctx.meta.get("progressToken"))


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Log messages, with pauses."""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.info(step)
        await asyncio.sleep(0.05)
    return "Tool with logging executed successfully"


@server.tool
def test_logging_tool(ctx: Context) -> str:
    """One log message, without its secret."""
    ctx.info({"step": "Diagnostic trace logging activated", "api_key": "not for the client"}, logger="diagnosis")
    return "Logging evaluated"


# The client reconnects and receives what was sent meanwhile (2025-11-25).
@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Lets go of its HTTP stream in the middle of its work, and goes on."""
    ctx.close_sse_stream(retry_seconds=0.2)
    await asyncio.sleep(0.1)
    return "Reconnection test completed"


@server.tool
async def who(ctx: Context) -> dict[str, Any]:
    """Who asks, with which program, in which revision, as part of which trace."""
    return {
        "principal": ctx.principal.id if ctx.principal else None,
        "client": ctx.client.name if ctx.client else None,
        "revision": ctx.revision,
        "trace": ctx.trace,
    }


# --- tools: elicitation, sampling and roots --------------------------------------------------------------------------


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
    username: Annotated[str, "What to call them"]
    email: Annotated[str, "Where to write to"]


@dataclass
class Profile:
    """A form whose fields all have defaults."""

    name: Annotated[str, "Whose"] = "John Doe"
    age: Annotated[int, "How old"] = 30
    score: Annotated[float, "How good"] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], "In which state"] = "active"
    verified: Annotated[bool, "Whether that is sure"] = True


Option = Literal["option1", "option2", "option3"]


class Titled(Enum):
    """Choices whose names are shown to the user."""

    First = "value1"
    Second = "value2"
    Third = "value3"


@dataclass
class Choices:
    untitledSingle: Option
    titledSingle: Titled
    legacyEnum: Literal["opt1", "opt2", "opt3"]
    untitledMulti: list[Option]
    titledMulti: list[Titled]


class OldTitles(Elicit[Choices]):
    """An elicitation with the titles of one field in `enumNames`, as in 2025-06-18."""

    def params(self, rules: Any) -> ElicitParams:
        elicitation = super().params(rules)
        schema = elicitation.requested_schema or {}
        legacy = {**schema["properties"]["legacyEnum"], "enumNames": ["Option One", "Option Two", "Option Three"]}
        edited = {**schema, "properties": {**schema["properties"], "legacyEnum": legacy}}
        return msgspec.structs.replace(elicitation, requested_schema=edited)


# Questions during the call: the same code works in every revision that has the question.
@server.tool
async def test_elicitation(message: Annotated[str, "How to ask"], ctx: Context) -> str:
    """Asks the person who they are."""
    return format_outcome("User response", await ctx.elicit(message, Person))


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a form whose every field has a default."""
    answer = await ctx.elicit("Please review and update the form fields with defaults", Profile)
    return format_outcome("Elicitation completed", answer)


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with a form of choices, each written in another way."""
    (answer,) = await ctx.ask(OldTitles("Please select options from the enum fields", Choices))
    return format_outcome("Elicitation completed", answer)


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Reports progress, then asks."""
    ctx.report_progress(50, 100)
    await ctx.elicit("Streaming", Value)
    return "Streaming complete"


@server.tool
async def test_sampling(prompt: Annotated[str, "What to ask"], ctx: Context) -> str:
    """Asks the model what it is told to ask."""
    return f"LLM response: {(await ctx.sample(prompt, max_tokens=100)).text}"


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Cannot do without a model."""
    await ctx.sample("Sample request", max_tokens=50)
    return "Success"


@server.tool
async def sign_in(ctx: Context) -> str:
    """Sends the person to a page: never ask for a password in a form."""
    went = await ctx.elicit_url("Sign in", "https://example.com/login", elicitation_id="login-1")
    return "on the way" if went.action == "accept" else "not signed in"


@server.tool
def signed_in() -> str:
    """The person is done with that page, and the client is told so."""
    return "told" if server.complete_elicitation("login-1") else "nobody to tell"


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Asks for the folders of the client."""
    return f"Found {len(await ctx.list_roots())} root(s)"


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Asks the person, the model and the client at once."""
    name, greeting, roots = await ctx.ask(
        Elicit("What is your name?", Name), Sample("Generate a greeting", max_tokens=50), Roots()
    )
    return f"Name: {name_of(name)}; Greeting: {greeting.text}; Roots: {len(roots)}"


@server.tool(annotations=AGAIN)
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Asks twice; what is dear is made once, however often this runs."""
    table = await ctx.once("table", lambda: 7, int)
    name = await ctx.elicit("Step 1: What is your name?", Name)
    color = await ctx.elicit("Step 2: What is your favorite color?", Color)
    liked = color.data.color if isinstance(color, Accepted) else "none"
    return f"Multi-round complete for {name_of(name)} who likes {liked}, at table {table}"


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Asks whatever this client can answer."""
    client = ctx.client_capabilities
    questions: list[Any] = []
    if client.elicitation is not None:
        questions.append(Elicit("Elicitation input", Value))
    if client.sampling is not None:
        questions.append(Sample("Sample request", max_tokens=50))
    return f"capabilities-ok: received {len(await ctx.ask(*questions))}"


# Declared questions: asked before the function runs, and never filled in by the model.
@server.tool(annotations=AGAIN)
def test_input_required_result_elicitation(
    user_name: Annotated[Name, Elicit("What is your name?", unasked=True)],
) -> str:
    """Greets the person; a client that knows the question may answer it at once."""
    return f"Hello, {user_name.name}!"


@server.tool(annotations=AGAIN)
def test_input_required_result_sampling(
    capital: Annotated[str, Sample("What is the capital of France?", max_tokens=100)],
) -> str:
    """Asks the model, before it runs."""
    return f"Sampling result: {capital}"


@server.tool
def test_input_required_result_request_state(confirm: Annotated[Confirmed, Elicit("Please confirm")]) -> str:
    """Asks, and relies on what the client carries."""
    return "state-ok: requestState validated"


@server.tool
def test_input_required_result_tampered_state(confirm: Annotated[Confirmed, Elicit("Please confirm")]) -> str:
    """Asks, and the client cannot change what it carries."""
    return "integrity-ok: state verified"


@server.tool
def delete(path: str, sure: Annotated[bool | Declined, Elicit("Delete {path}?")] = False) -> str:
    """Deletes nothing, really; a client that cannot be asked gets the default."""
    return f"{path} is gone" if sure is True else f"{path} stays"


def format_outcome(label: str, answer: Accepted[Any] | Declined | Cancelled) -> str:
    content: Any = answer.data if isinstance(answer, Accepted) else {}
    return f"{label}: action={answer.action}, content={msgspec.json.encode(content).decode()}"


def name_of(answer: Accepted[Name] | Declined | Cancelled) -> str:
    return answer.data.name if isinstance(answer, Accepted) else "friend"


# --- tools: tasks ----------------------------------------------------------------------------------------------------


# Where the client supports tasks, these calls go on after their request; other clients wait for the result.
@server.tool(task=True, annotations=AGAIN)
async def render(ctx: Context, frames: Annotated[int, msgspec.Meta(ge=1, le=10)] = 4) -> str:
    """Renders nothing, frame by frame."""
    for frame in range(1, frames + 1):
        await asyncio.sleep(0.1)
        ctx.report_progress(frame, frames, f"{frame} of {frames} frames")
    return f"rendered {frames} frames"


@server.tool(task=True, annotations=AGAIN)
async def publish(ctx: Context) -> str:
    """Publishes nothing, and asks first: the task requires input meanwhile."""
    answer = await ctx.elicit("Publish it?", Confirmed)
    return "published" if isinstance(answer, Accepted) and answer.data.ok else "not published"


@server.tool(task=Task(required=True), annotations=AGAIN)
async def upload() -> str:
    """Fails, as a task; only clients that support tasks can call it."""
    await asyncio.sleep(0.2)
    raise ToolError("there is nothing to upload")


# --- tools: changes --------------------------------------------------------------------------------------------------


# Subscribers are notified. The tool is removed at once, because the list is the same for every client.
@server.tool
async def test_trigger_tool_change() -> str:
    """A tool comes and goes."""
    server.tool(name="passing", description="Hardly here.")(lambda: "here")
    server.remove_tool("passing")
    return "Mutation triggered"


@server.tool
async def test_trigger_prompt_change() -> str:
    """A prompt comes and goes."""
    server.prompt(name="passing", description="Hardly here.")(lambda: "here")
    server.remove_prompt("passing")
    return "Mutation triggered"


@server.tool
async def touch() -> str:
    """The watched resource changes."""
    server.resource_updated("test://watched-resource")
    return "touched"


# --- resources -------------------------------------------------------------------------------------------------------


@server.resource("test://static-text", name="static-text", mime_type="text/plain", cache=CacheHint(ttl=3600))
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", name="static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that never changes."""
    return base64.b64decode(PNG)


@server.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A resource to subscribe to."""
    return "Watched resource content"


@server.resource("test://template/{id}/data", name="template", mime_type="application/json")
def template(id: str) -> dict[str, Any]:
    """One resource for each id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@template.complete("id")
def template_ids(typed: str) -> list[str]:
    return [id for id in ("123", "456") if id.startswith(typed)]


# Instructions that a host loads when a conversation needs them: each folder with a SKILL.md is a skill.
server.add_skills(Path(__file__).parent / "skills")


# --- prompts ---------------------------------------------------------------------------------------------------------


@server.prompt
def test_simple_prompt() -> str:
    """A prompt that takes nothing."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: Annotated[str, "What comes first"], arg2: Annotated[str, "And then"]) -> str:
    """A prompt that takes two texts."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@test_prompt_with_arguments.complete("arg1")
def first_arguments(typed: str) -> list[str]:
    return [value for value in ("test1", "test2", "other") if value.startswith(typed)]


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: Annotated[str, "Which resource"]) -> GetPromptResult:
    """A prompt with a resource to look at."""
    text = "Embedded resource content for testing."
    resource = ResourceContents(uri=resourceUri, mime_type="text/plain", text=text)
    return user_messages(EmbeddedResource(resource=resource), "Please process the embedded resource above.")


@server.prompt
def test_prompt_with_image() -> GetPromptResult:
    """A prompt with a picture to look at."""
    return user_messages(ImageContent(data=PNG, mime_type="image/png"), "Please analyze the image above.")


@server.prompt
def test_input_required_result_prompt(
    user_context: Annotated[Topic, Elicit("What context should the prompt use?")],
) -> str:
    """A prompt that asks the person."""
    return f"Prompt with context: {user_context.context}"


def user_messages(block: EmbeddedResource | ImageContent, then: str) -> GetPromptResult:
    messages = [PromptMessage(role="user", content=content) for content in (block, TextContent(text=then))]
    return GetPromptResult(messages=messages)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run(http=sys.argv[1])
    else:
        server.run()
