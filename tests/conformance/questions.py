"""What the server of the suite asks: tools and a prompt, with the questions that the suite wants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from accord import Accepted, Cancelled, Context, Declined, Elicit, Roots, Sample, ToolAnnotations
from accord.messages.elicitation import ElicitParams, ElicitResult
from accord.messages.revision import Rules

from tests.conformance.offers import server

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
    username: Annotated[str, "What to call them"]
    email: Annotated[str, "Where to write to"]


@dataclass
class Defaults:
    name: Annotated[str, "Whose"] = "John Doe"
    age: Annotated[int, "How old"] = 30
    score: Annotated[float, "How good"] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], "In which state"] = "active"
    verified: Annotated[bool, "Whether that is sure"] = True


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


@server.tool(name="test_sampling")
async def sampling(prompt: Annotated[str, "What to ask"], ctx: Context) -> str:
    """Asks the model what it is told to ask"""
    return f"LLM response: {(await ctx.sample(prompt, max_tokens=100)).text}"


@server.tool(name="test_elicitation")
async def elicitation(message: Annotated[str, "How to ask"], ctx: Context) -> str:
    """Asks the person who they are"""
    return told("User response", await ctx.elicit(message, Person))


@server.tool(name="test_elicitation_sep1034_defaults")
async def elicitation_defaults(ctx: Context) -> str:
    """Asks with a form whose every field has a default"""
    outcome = await ctx.elicit("Please review and update the form fields with defaults", Defaults)
    return told("Elicitation completed", outcome)


@server.tool(name="test_elicitation_sep1330_enums")
async def elicitation_enums(ctx: Context) -> str:
    """Asks with a form of choices, each written in another way"""
    (outcome,) = await ctx.ask(Choices())
    return told("Elicitation completed", outcome)


@server.tool(name="test_missing_capability")
async def missing_capability(ctx: Context) -> str:
    """Cannot do without a model"""
    await ctx.sample("Sample request", max_tokens=50)
    return "Success"


@server.tool(name="test_input_required_result_elicitation", annotations=AGAIN)
def asks_person(user_name: Annotated[Name, Elicit("What is your name?")]) -> str:
    """Asks the person for a name, before it runs"""
    return f"Hello, {user_name.name}!"


@server.tool(name="test_input_required_result_sampling", annotations=AGAIN)
def asks_model(sample_request: Annotated[str, Sample("What is the capital of France?", max_tokens=100)]) -> str:
    """Asks the model, before it runs"""
    return f"Sampling result: {sample_request}"


@server.tool(name="test_input_required_result_list_roots")
async def asks_for_roots(ctx: Context) -> str:
    """Asks for the folders, while it runs"""
    return f"Found {len(await ctx.list_roots())} root(s)"


@server.tool(name="test_input_required_result_request_state")
def asks_with_state(confirm: Annotated[Confirmed, Elicit("Please confirm")]) -> str:
    """Asks, and relies on its state"""
    return "state-ok: requestState validated"


@server.tool(name="test_input_required_result_multiple_inputs")
async def asks_for_all(ctx: Context) -> str:
    """Asks the person, the model and the client at once"""
    name, greeting, roots = await ctx.ask(
        Elicit("What is your name?", Name), Sample("Generate a greeting", max_tokens=50), Roots()
    )
    return f"Name: {called(name)}; Greeting: {greeting.text}; Roots: {len(roots)}"


@server.tool(name="test_input_required_result_multi_round", annotations=AGAIN)
async def asks_twice(ctx: Context) -> str:
    """Asks twice, one after the other"""
    name = await ctx.elicit("Step 1: What is your name?", Name)
    color = await ctx.elicit("Step 2: What is your favorite color?", Color)
    liked = color.data.color if isinstance(color, Accepted) else "none"
    return f"Multi-round complete for {called(name)} who likes {liked}"


@server.tool(name="test_input_required_result_tampered_state")
def asks_with_sealed_state(confirm: Annotated[Confirmed, Elicit("Please confirm")]) -> str:
    """Asks, with a state that cannot be changed"""
    return "integrity-ok: state verified"


@server.tool(name="test_input_required_result_capabilities")
async def asks_what_can_be_answered(ctx: Context) -> str:
    """Asks whatever this client can answer"""
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
    """Reports progress, then asks"""
    ctx.report_progress(50, 100)
    await ctx.elicit("Streaming", Value)
    return "Streaming complete"


def told(what: str, outcome: Accepted[Any] | Declined | Cancelled) -> str:
    content = outcome.data if isinstance(outcome, Accepted) else {}
    return f"{what}: action={outcome.action}, content={msgspec.json.encode(content).decode()}"


def called(outcome: Accepted[Name] | Declined | Cancelled) -> str:
    return outcome.data.name if isinstance(outcome, Accepted) else "friend"


@server.prompt(name="test_input_required_result_prompt")
def prompt_that_asks(user_context: Annotated[Topic, Elicit("What context should the prompt use?")]) -> str:
    """A prompt that asks the person"""
    return f"Prompt with context: {user_context.context}"
