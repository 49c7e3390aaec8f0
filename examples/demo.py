"""A tour of the protocol over stdio: a client starts weather.py and uses each feature.

    python examples/demo.py

The exit code is 1 if any result differs from the expected one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Any, TypeVar

from accord import REVISIONS, AccordError, Client, ProtocolError

WEATHER = [sys.executable, str(Path(__file__).with_name("weather.py"))]
CITIES = ["Oslo", "Lisbon", "Nairobi", "Reykjavik", "Singapore"]
WIDTH = 78

T = TypeVar("T")


class Unexpected(Exception):
    """A result that differs from the expected one."""


def expect(condition: bool, expectation: str) -> None:
    if not condition:
        raise Unexpected(expectation)


class Screen:
    """Output with boxes, colour and a progress bar on a terminal, and plain lines elsewhere."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty() and sys.stdout.encoding.startswith("utf")
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self.step = 0

    def paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text

    def title(self, *lines: str) -> None:
        if not self.live:
            print(*lines, sep="\n")
            return
        print("╭" + "─" * (WIDTH - 2) + "╮")
        for line in lines:
            print(f"│ {line:<{WIDTH - 4}} │")
        print("╰" + "─" * (WIDTH - 2) + "╯")

    def begin(self, title: str) -> None:
        self.step += 1
        number = self.paint("36;1", f"{self.step:>2}")
        print(f"\n{number}  {self.paint('1', title)}")

    def took(self, label: str, seconds: float) -> None:
        self.say(f"{label:<{WIDTH - 20}}{self.paint('2', f'{seconds * 1000:8.1f} ms')}")

    def say(self, *lines: object) -> None:
        for line in lines:
            print(f"    {line}", flush=True)

    def good(self, text: str) -> None:
        self.say(f"{self.paint('32', 'ok')}  {text}")

    def bar(self, current: float, total: float | None, message: str | None) -> None:
        if not self.live:
            self.say(f"progress {current:g}/{total:g}  {message}")
            return
        filled = round(30 * current / (total or 1))
        bar = self.paint("32", "█" * filled) + self.paint("2", "░" * (30 - filled))
        print(f"\r\x1b[2K    {bar} {current:g}/{total:g}  {message}", end="", flush=True)
        if current == total:
            print()


screen = Screen()


async def timed(label: str, operation: Awaitable[T]) -> T:
    """Return the result of an operation, and print how long it took."""
    started = time.perf_counter()
    result = await operation
    screen.took(label, time.perf_counter() - started)
    return result


async def opening(client: Client) -> None:
    screen.begin("Opening: start the server, agree on a revision")
    await timed(f"{Path(WEATHER[0]).name} weather.py", client.connect())
    info = client.server_info
    expect(info is not None and info.name == "weather", f"the server says it is {info}")
    screen.say(f'"{client.instructions}"')
    await timed("a first ping", client.ping())
    screen.good(f"weather 1.0.0 in revision {client.revision}")


async def listing(client: Client) -> None:
    screen.begin("What it offers")
    tools = await timed("tools/list", client.list_tools())
    for tool in tools:
        parameters = ", ".join(tool.input_schema.get("properties", {}))
        screen.say(screen.paint("36", f"{tool.name}({parameters})".ljust(24)) + f" {tool.description}")
    resources, templates = await client.list_resources(), await client.list_resource_templates()
    for uri in [*(each.uri for each in resources), *(each.uri_template for each in templates)]:
        screen.say(screen.paint("36", uri))
    prompts = await client.list_prompts()
    names = {tool.name for tool in tools}
    expect(names == {"forecast", "convert", "warmest"}, f"the tools are {names}")
    expect([prompt.name for prompt in prompts] == ["plan"], f"the prompts are {prompts}")
    screen.good(f"{len(tools)} tools, {len(resources) + len(templates)} resources, {len(prompts)} prompt")


async def calling(client: Client) -> None:
    screen.begin("A call: a number in, a number out")
    result = await timed('convert(degrees=20, to="F")', client.call_tool("convert", {"degrees": 20, "to": "F"}))
    expect(result.data == 68.0, f"20 °C are {result.data} °F")
    screen.good(f"result.data is {result.data!r}, a {type(result.data).__name__}")


async def structured(client: Client) -> None:
    screen.begin("A structured answer, checked against the schema of its tool")
    result = await timed('forecast(city="Oslo")', client.call_tool("forecast", {"city": "Oslo"}))
    days: list[dict[str, Any]] = result.data
    for day in days:
        bar = screen.paint("33", "▒" * round(day["high"])) if screen.live else ""
        screen.say(f"day {day['day']}  {day['sky']:<7} {day['high']:5.1f} °C  {bar}".rstrip())
    expect([day["day"] for day in days] == [1, 2, 3], f"the days are {days}")
    screen.good("three days, each with day, sky and high")


async def failing(client: Client) -> None:
    screen.begin("Failures are answers: a model can read them and try again")
    result = await timed('forecast(city="Atlantis")', client.call_tool("forecast", {"city": "Atlantis"}))
    screen.say(screen.paint("31", result.text))
    expect(result.is_error is True and "Atlantis" in result.text, f"the failure is {result}")
    result = await timed('forecast(days="many")', client.call_tool("forecast", {"days": "many"}))
    screen.say(*(screen.paint("31", line) for line in result.text.splitlines()))
    expect(result.is_error is True and "days" in result.text, f"the failure is {result}")
    screen.good("result.is_error is True, nothing was raised, the server lives on")


async def reading(client: Client) -> None:
    screen.begin("Resources: a fixed one, one from a template, and one that is not there")
    fixed = await timed("weather://cities", client.read_resource("weather://cities"))
    expect((fixed.contents[0].text or "").split() == CITIES, f"the cities are {fixed.contents}")
    screen.say(", ".join((fixed.contents[0].text or "").split()))
    now = await timed("weather://Lisbon/now", client.read_resource("weather://Lisbon/now"))
    screen.say(now.contents[0].text)
    expect('"sky"' in (now.contents[0].text or ""), f"the weather is {now.contents}")
    try:
        await client.read_resource("weather://nowhere")
    except ProtocolError as error:
        screen.say(screen.paint("31", str(error)))
        expect("weather://nowhere" in str(error), f"the error is {error!r}")
    else:
        raise Unexpected("weather://nowhere was found")
    screen.good("read, read, and refused")


async def prompting(client: Client) -> None:
    screen.begin("A prompt")
    result = await timed('plan(city="Nairobi")', client.get_prompt("plan", {"city": "Nairobi"}))
    for message in result.messages:
        screen.say(f"{message.role}: {getattr(message.content, 'text', message.content)}")
    expect("Nairobi" in str(result.messages[0].content), f"the prompt is {result.messages}")
    screen.good("one message, ready for a model")


async def progressing(client: Client) -> None:
    screen.begin("A tool that takes its time, and says how far it is")
    seen: list[float] = []

    def report(current: float, total: float | None, message: str | None) -> None:
        seen.append(current)
        screen.bar(current, total, message)

    result = await timed("warmest(cities)", client.call_tool("warmest", {"cities": CITIES}, on_progress=report))
    expect(seen == [1, 2, 3, 4, 5], f"the progress was {seen}")
    expect(result.data == "Singapore", f"the warmest is {result.data}")
    screen.good(f"the warmest is {result.data}")


async def hurrying(client: Client) -> None:
    screen.begin("Speed")

    async def one_by_one() -> None:
        for _ in range(500):
            await client.call_tool("forecast", {"city": "Oslo", "days": 1})

    async def together() -> None:
        call = {"city": "Oslo", "days": 1}
        answers = await asyncio.gather(*(client.call_tool("forecast", call) for _ in range(200)))
        expect(all(not answer.is_error for answer in answers), "a call among 200 failed")

    await timed("500 calls, one after the other", one_by_one())
    await timed("200 calls at once", together())
    stats = client.stats
    expect(stats.requests_sent == stats.answers_received, f"the counters are {stats}")
    screen.good(f"{stats.requests_sent} requests, {stats.answers_received} answers, {stats.malformed} malformed")


async def every_revision() -> None:
    screen.begin("The same server in every revision of the protocol")
    for revision in REVISIONS:

        async def visit(revision: str = revision) -> None:
            async with Client(WEATHER, revisions=[revision], timeout=30) as client:
                result = await client.call_tool("convert", {"degrees": 20, "to": "F"})
                expect(client.revision == revision, f"{revision} was asked for, {client.revision} spoken")
                expect(float(result.text) == 68.0, f"in {revision} the answer is {result.text!r}")

        await timed(f"{revision}: start, open, call, close", visit())
    screen.good(f"{len(REVISIONS)} revisions, one program")


async def play() -> None:
    client = Client(WEATHER, timeout=30)
    try:
        for step in (
            opening, listing, calling, structured, failing, reading, prompting, progressing, hurrying,
        ):  # fmt: skip
            await step(client)
    finally:
        await client.close()
    await every_revision()


def main() -> int:
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    screen.title("accord: a client and a server, over stdio", "server: examples/weather.py   client: examples/demo.py")
    started = time.perf_counter()
    try:
        asyncio.run(play())
    except (Unexpected, AccordError) as error:
        print(f"\n{screen.paint('31;1', 'not as expected:')} {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    print(f"\n{screen.paint('32;1', 'Everything as expected')}, in {time.perf_counter() - started:.1f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
