"""One server program that uses every feature, and notes what its handlers see; run as a program, it serves stdio."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from accord import (
    AnswerError,
    CacheHint,
    Context,
    Elicit,
    InvalidParams,
    MissingClientCapability,
    NotSupported,
    Roots,
    Sample,
    SamplingMessage,
    Server,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolError,
    ToolResultContent,
)

AGAIN = ToolAnnotations(idempotent_hint=True)
"""Such a tool runs again from the top for each answer (2026-07-28); any other waits."""

TODAY = "notes://today"

ADD = Tool(
    name="add",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
)

THREE = TextContent(text="3")


@dataclass
class Report:
    city: str
    celsius: float


@dataclass
class Order:
    size: Literal["small", "large"]
    count: int = 1
    gift: bool = False


class Notes:
    """What the handlers of one server saw, in order: the step, and a JSON value."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []
        self.cancelled: asyncio.Event = asyncio.Event()

    def note(self, step: str, value: Any = None) -> None:
        self.seen.append((step, msgspec.to_builtins(value)))

    def noted(self, step: str, value: Any) -> Any:
        """Note a value, and give it back."""
        self.note(step, value)
        return value

    async def asked(self, step: str, answer: Awaitable[Any]) -> Any:
        """Note what was answered, or why it could not be asked."""
        try:
            value = await answer
        except (AnswerError, MissingClientCapability, NotSupported) as exc:
            self.note(step, type(exc).__name__)
            return None
        self.note(step, value)
        return value


def program() -> Server:
    """The server, with notes of its own."""
    notes = Notes()
    server = Server("everything", "1.0", title="Everything", instructions="Use it all.")
    for declare in (_tools, _telling, _asking, _asking_declared, _changing, _resources, _prompts):
        declare(server, notes)

    @server.tool
    async def seen() -> str:
        """What the handlers saw. The cancelled one must have seen that by now, or soon."""
        async with asyncio.timeout(100):
            await notes.cancelled.wait()
        return msgspec.json.encode(notes.seen).decode()

    return server


# --- tools -----------------------------------------------------------------------------------------------------------


def _tools(server: Server, notes: Notes) -> None:
    @server.tool(title="Measure", annotations=ToolAnnotations(read_only_hint=True))
    async def measure(city: str, days: int = 3) -> Report:
        """Measure the temperature."""
        notes.note("measure", [city, days])
        return Report(city, 21.5)

    @server.tool
    def days(count: int) -> list[str]:
        """In a thread; what it gives is no object."""
        notes.note("days", count)
        return [f"day {number}" for number in range(count)]

    def raw(arguments: dict[str, Any]) -> str:
        notes.note("raw", arguments)
        return "raw"

    server.add_tool(Tool(name="raw", input_schema={"type": "object", "required": ["x"]}), raw)

    @server.tool
    def fail(how: str) -> str:
        """Fail in one of several ways."""
        notes.note("fail", how)
        kinds = {"tool": ToolError("no such city"), "protocol": InvalidParams("no such day", data={"day": 8})}
        raise kinds.get(how, ValueError("it went wrong"))


def _telling(server: Server, notes: Notes) -> None:
    @server.tool
    async def who(ctx: Context) -> str:
        """Who asks, and what they can do."""
        notes.note("who", [ctx.client.name if ctx.client else None, ctx.trace, ctx.meta.get("com.example/x")])
        notes.note("capabilities", ctx.client_capabilities)
        return ctx.revision

    @server.tool
    async def tell(ctx: Context) -> str:
        """Report and log on the way."""
        for step in (1, 2):
            await ctx.report_progress(step, 2, f"step {step}")
        ctx.debug("not loud enough")
        ctx.warning({"password": "hunter2", "disk": 91}, logger="disk")
        notes.note("tell", "progressToken" in ctx.meta)
        return "told"

    @server.tool
    async def wait(ctx: Context) -> str:
        """Until cancelled."""
        ctx.report_progress(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            notes.note("wait", "cancelled")
            notes.cancelled.set()
            raise
        return "never"


# --- asking ----------------------------------------------------------------------------------------------------------


def _asking(server: Server, notes: Notes) -> None:
    @server.tool
    async def order(ctx: Context) -> None:
        """A form, and what else a person may say to one."""
        await notes.asked("order", ctx.elicit("What will it be?", Order))
        await notes.asked("declined", ctx.elicit("Anything else?", str))
        await notes.asked("closed", ctx.elicit("Sure?", bool))
        await notes.asked("several", ctx.elicit("Which days?", list[Literal["mon", "tue", "wed"]]))
        await notes.asked("visited", ctx.elicit_url("Sign in", "https://example.com/in", elicitation_id="in-1"))

    @server.tool
    def signed_in() -> None:
        """The person is done with the page."""
        notes.note("complete", server.complete_elicitation("in-1"))

    @server.tool
    async def think(ctx: Context) -> None:
        """The model, without and with a tool."""
        await notes.asked("thought", ctx.sample("What is 6 times 7?", max_tokens=50, system_prompt="Be brief."))
        question = SamplingMessage(role="user", content=TextContent(text="Add 1 and 2."))
        wish = await notes.asked("wished", ctx.sample(question, tools=[ADD], tool_choice="auto"))
        if wish is not None:
            said = SamplingMessage(role="assistant", content=wish.content)
            results: list[Any] = [ToolResultContent(tool_use_id=use.id, content=[THREE]) for use in wish.tool_uses]
            given = SamplingMessage(role="user", content=results)
            await notes.asked("added", ctx.sample([question, said, given], tools=[ADD]))

    @server.tool
    async def folders(ctx: Context) -> None:
        """Where it may work."""
        await notes.asked("roots", ctx.list_roots())
        notes.note("contains", [await ctx.roots.contains(path) for path in ("/srv/a/x", "/srv/a/../c", "/srv/b")])

    @server.tool
    async def together(ctx: Context) -> None:
        """Everything at once."""
        await notes.asked("together", ctx.ask(Elicit("What will it be?", Order), Sample("Greet."), Roots()))

    @server.tool(annotations=AGAIN)
    async def number(ctx: Context) -> str:
        """Made once, however often the body runs for its two questions."""
        notes.note("run")
        made = await ctx.once("number", lambda: notes.noted("made", 7), int)
        await notes.asked("first", ctx.sample("First?"))
        await notes.asked("second", ctx.sample("Second?"))
        return str(made)


def _asking_declared(server: Server, notes: Notes) -> None:
    @server.tool
    def delete(path: str, ok: Annotated[bool, Elicit("Delete {path}?")] = False) -> str:
        """Where nobody can be asked, nothing is deleted."""
        notes.note("delete", [path, ok])
        return "deleted" if ok else "kept"

    @server.tool
    def sign(name: str, ok: Annotated[bool, Elicit("Sign as {name}?")]) -> str:
        """Where nobody can be asked, the call is refused."""
        notes.note("sign", [name, ok])
        return "signed"

    @server.tool
    async def greet(words: Annotated[str, Sample("Greet.")], places: Annotated[Any, Roots()]) -> str:
        """Both in one round."""
        notes.note("greet", [words, [root.uri for root in places]])
        return words


# --- what changes ----------------------------------------------------------------------------------------------------


def _changing(server: Server, notes: Notes) -> None:
    @server.tool
    def grow() -> str:
        """A tool, a prompt and a resource more."""
        server.tool(name="grown")(lambda: "grown")
        server.prompt(name="grown")(lambda: "grown")
        server.resource("notes://grown", name="grown")(lambda: "grown")
        return "grown"

    @server.tool
    def shrink() -> str:
        """And gone again."""
        server.remove_tool("grown")
        server.remove_prompt("grown")
        server.remove_resource("notes://grown")
        return "shrunk"

    @server.tool
    def touch() -> str:
        """The notes of today are others now."""
        server.resource_updated(TODAY)
        return "touched"


# --- resources and prompts -------------------------------------------------------------------------------------------


def _resources(server: Server, notes: Notes) -> None:
    @server.resource(TODAY, mime_type="text/plain", cache=CacheHint(ttl=3600, scope="public"))
    def today() -> str:
        """What there is to do today."""
        notes.note("today")
        return "buy milk"

    @server.resource("notes://{day}", mime_type="text/plain")
    def of_day(day: str) -> str:
        """What there is to do on a day."""
        notes.note("of day", day)
        return f"notes of {day}"

    @of_day.complete("day")
    async def complete_day(prefix: str) -> list[str]:
        notes.note("complete day", prefix)
        return [day for day in ("monday", "tuesday") if day.startswith(prefix)]

    @server.resource("vault://key")
    async def key(ctx: Context) -> str:
        """A resource that asks."""
        await notes.asked("key", ctx.elicit("Open the vault?", bool))
        return "opened"


def _prompts(server: Server, notes: Notes) -> None:
    @server.prompt
    def plan(city: str, country: str = "") -> str:
        """Plan a day."""
        notes.note("plan", [city, country])
        return f"Plan a day in {city}."

    @plan.complete("city")
    def complete_city(prefix: str, country: str = "") -> list[str]:
        notes.note("complete city", [prefix, country])
        return [f"{prefix}lo"]

    @server.prompt
    async def letter(to: str, ctx: Context) -> str:
        """A prompt that asks."""
        await notes.asked("letter", ctx.sample("A greeting?"))
        return f"Write to {to}."


if __name__ == "__main__":
    program().run()
