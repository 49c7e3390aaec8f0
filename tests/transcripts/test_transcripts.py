"""What passes between our client and our server, to the byte: one file per story and revision, for people to read.

`pytest --update` writes the files anew; read the difference before you commit it. Every file but the openings begins
where an opening of its revision ends: "asking opening" for those in which the server asks or tells (see desk).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from msgspec.structs import replace

from accord import Client, Context, Limits, Server, ToolError
from accord.errors import ProtocolError
from accord.messages.identity import Implementation
from accord.messages.revision import REVISIONS
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.recording import TranscriptTransport
from accord.wire.transcript import SENT, Transcript, parse

from tests.transcripts import desk

HERE = Path(__file__).parent

STATE = re.compile(rb'"requestState":"([^"]*)"')
SEALED = b"(sealed)"
"""What stands in a file for a `requestState`: it is another in each run."""

Telling = Callable[[Client], Awaitable[None]]


class Story(NamedTuple):
    """What happens between a client with these options and this server, after the story `opening`."""

    opening: str
    tell: Telling
    server: Callable[[str], Server]
    options: Mapping[str, Any] = {}


# The server of most stories


@dataclass
class Report:
    city: str
    celsius: float


def weather(revision: str) -> Server:
    """A server that speaks one revision. Of the reports between the first and the last none may be sent."""
    limits = Limits(progress_per_second=0.001)
    server = Server(
        "weather", "1.0.0", title="Weather", instructions="Ask by city.", revisions=[revision], limits=limits
    )

    @server.tool
    async def greet(name: str, style: Literal["plain", "warm"] = "plain") -> str:
        """Say hello."""
        return f"{'Dear' if style == 'warm' else 'Hello'} {name} — ☀"

    @server.tool
    async def measure(city: str) -> Report:
        """Measure the temperature.

        Args:
            city: Where.
        """
        return Report(city, 21.5)

    @server.tool
    async def fail(why: Annotated[str, "What to say."]) -> str:
        raise ToolError(why)

    @server.tool
    async def count(to: int, ctx: Context) -> int:
        for step in range(1, to + 1):
            ctx.report_progress(step, to, f"step {step}")
        return to

    @server.tool
    async def wait(ctx: Context) -> str:
        ctx.report_progress(1)
        await asyncio.Event().wait()
        raise AssertionError

    @server.resource("weather://stations", mime_type="application/json")
    async def stations() -> str:
        """All stations."""
        return '["Oslo"]'

    @server.resource("weather://{city}/now")
    async def now(city: str) -> str:
        return f"{city}: rain"

    @server.prompt
    def plan(city: str) -> str:
        """Plan a day."""
        return f"Plan a day in {city}."

    return server


# The stories


async def opening(client: Client) -> None:
    """Nothing more than finding each other."""


async def list_(client: Client) -> None:
    await client.list_tools()
    await client.list_resources()
    await client.list_resource_templates()
    await client.list_prompts()


async def call(client: Client) -> None:
    await client.call_tool("greet", {"name": "Åse", "style": "warm"})
    await client.read_resource("weather://stations")
    await client.read_resource("weather://Oslo/now")
    await client.get_prompt("plan", {"city": "Oslo"})
    await client.ping()


async def structured_call(client: Client) -> None:
    await client.call_tool("measure", {"city": "Oslo"})


async def failing_call(client: Client) -> None:
    """The tool says no; then arguments that do not fit, which a model is told so that it can correct itself."""
    await client.call_tool("fail", {"why": "no such city"})
    await client.call_tool("greet", {"name": 5, "style": "cold"})
    await client.call_tool("greet")


async def progress(client: Client) -> None:
    await client.call_tool("count", {"to": 5}, on_progress=lambda *_: None)


async def cancel(client: Client) -> None:
    """Cancelled when it has reported that it runs; the next request is answered."""
    running = asyncio.Event()
    task = asyncio.ensure_future(client.call_tool("wait", on_progress=lambda *_: running.set()))
    await running.wait()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    await client.ping()


async def error(client: Client) -> None:
    for ask in (
        client.call_tool("no_such_tool"),
        client.read_resource("weather://nowhere/at/all"),
        client.get_prompt("plan"),
        client.get_prompt("no_such_prompt"),
    ):
        with contextlib.suppress(ProtocolError):
            await ask


TELLING: dict[str, Telling] = {
    "opening": opening,
    "list": list_,
    "call": call,
    "structured call": structured_call,
    "failing call": failing_call,
    "progress": progress,
    "cancel": cancel,
    "error": error,
}

ASKING: dict[str, Telling] = {
    "asking opening": desk.asking_opening,
    "ask before": desk.ask_before,
    "ask meanwhile": desk.ask_meanwhile,
    "ask at once": desk.ask_at_once,
    "log": desk.log,
    "complete": desk.complete,
    "subscribe": desk.subscribe,
}

STORIES: dict[str, Story] = {
    **{name: Story("opening", tell, weather) for name, tell in TELLING.items()},
    **{name: Story("asking opening", tell, desk.desk, desk.OPTIONS) for name, tell in ASKING.items()},
}


async def told(story: str, revision: str) -> str:
    """A story as it happens now, between a client that speaks all revisions and a server that speaks one."""
    ends: list[TranscriptTransport] = []

    def record(inner: Transport) -> Transport:
        ends.append(TranscriptTransport(inner, Transcript()))
        return ends[-1]

    info = Implementation(name="reader", version="1.0")
    opening, tell, server, options = STORIES[story]
    client = Client(server(revision), info=info, record=record, **options)
    async with asyncio.timeout(100), client:
        (end,) = ends
        if story != opening:
            end.transcript = Transcript()
        await tell(client)
        return Transcript(replace(entry, message=unsealed(entry.message)) for entry in end.transcript).render()


def unsealed(message: Any) -> Any:
    """A message as it stands in a file."""
    found = STATE.search(message)
    return message if found is None else message.replace(found[1], SEALED)


def file_of(story: str, revision: str) -> Path:
    return HERE / revision / f"{story.replace(' ', '_')}.txt"


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("story", STORIES)
def test_the_conversation_is_repeated_in_the_same_bytes(story: str, revision: str, update: bool) -> None:
    text = asyncio.run(told(story, revision))
    file = file_of(story, revision)
    if update:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("story", STORIES)
def test_a_server_that_receives_one_half_of_a_conversation_sends_the_other(story: str, revision: str) -> None:
    async def replay() -> None:
        ours, theirs = memory.pair()
        serving = asyncio.ensure_future(STORIES[story].server(revision).serve(theirs))
        files = dict.fromkeys([file_of(STORIES[story].opening, revision), file_of(story, revision)])
        state = SEALED
        for entry in parse("".join(file.read_text(encoding="utf-8") for file in files)):
            assert isinstance(entry.message, bytes)
            if entry.direction == SENT:
                assert not heard
                ours.send(entry.message.replace(SEALED, state))
            else:
                if not heard:
                    heard.extend(await ours.receive())
                message = heard.pop(0)
                state = found[1] if (found := STATE.search(message)) else state
                assert unsealed(message) == entry.message
        await ours.close()
        await serving
        assert await ours.receive() == []

    heard: list[Any] = []
    asyncio.run(asyncio.wait_for(replay(), 100))


@pytest.mark.parametrize("revision", REVISIONS)
def test_there_is_no_file_without_a_story(revision: str) -> None:
    files = {file for file in (HERE / revision).iterdir() if file.suffix == ".txt"}
    assert files == {file_of(story, revision) for story in STORIES}
