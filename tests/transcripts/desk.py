"""The server of the stories in which the server has something to ask or to tell, and these stories."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from accord import Client, Context, CreateMessageParams, Elicit, ElicitParams, Roots, Sample, Server


def answer(params: ElicitParams) -> Any:
    """The person says yes to everything, and takes the first of what is offered."""
    return {"value": "sun"} if params.message == "Sun or rain?" else {"value": True}


async def think(params: CreateMessageParams) -> str:
    """The model has one thing to say."""
    return "It rains."


OPTIONS: dict[str, Any] = {
    "elicitation": answer,
    "sampling": think,
    "roots": ["/srv/a"],
    "on_log": lambda params: None,
    "log_level": "info",
}
"""Of the client: who answers."""


def desk(revision: str) -> Server:
    """A server that speaks one revision, and asks."""
    server = Server("desk", "1.0.0", revisions=[revision])

    @server.tool
    def book(city: str, sure: Annotated[bool, Elicit("Book {city}?")] = False) -> str:
        """Asked before it runs; where nobody can be asked, nothing is booked."""
        return f"booked {city}" if sure else f"kept {city} in mind"

    @server.tool
    async def choose(ctx: Context) -> str:
        """Asked while it runs."""
        return (await ctx.elicit("Sun or rain?", Literal["sun", "rain"])).action

    @server.tool
    async def look(ctx: Context) -> str:
        """Asked of the model and of the client, at once."""
        said, roots = await ctx.ask(Sample("What is the weather?", max_tokens=20), Roots())
        return f"{said.text} In {len(roots)} folders."

    @server.tool
    async def warn(ctx: Context) -> str:
        ctx.debug("nobody wants to know")
        ctx.warning({"wind": 30, "token": "s3cr3t"}, logger="wind")
        return "warned"

    @server.tool
    async def change(ctx: Context) -> str:
        server.resource_updated("desk://today")
        server.tool(name="extra")(lambda: "extra")
        await asyncio.sleep(0)
        return "changed"

    @server.resource("desk://today")
    def today() -> str:
        return "rain"

    @server.prompt
    def plan(city: str, country: str = "") -> str:
        return f"Plan a day in {city}."

    @plan.complete("city")
    def cities(prefix: str, country: str = "") -> list[str]:
        return [city for city in ("Oslo", "Osaka") if city.startswith(prefix)]

    return server


async def asking_opening(client: Client) -> None:
    """A client that answers finds a server that asks."""


async def ask_before(client: Client) -> None:
    await client.call_tool("book", {"city": "Oslo"})


async def ask_meanwhile(client: Client) -> None:
    await client.call_tool("choose")


async def ask_at_once(client: Client) -> None:
    await client.call_tool("look")


async def log(client: Client) -> None:
    """With the level that the client was made with, then with another."""
    await client.call_tool("warn")
    await client.set_log_level("error")
    await client.call_tool("warn")


async def complete(client: Client) -> None:
    await client.complete(prompt="plan", argument="city", value="Os", context={"country": "Norway"})


async def subscribe(client: Client) -> None:
    """Told of a resource and of the list of tools, and then no more."""
    async with client.subscribe("desk://today", tools=True) as subscription:
        await client.call_tool("change")
        async with asyncio.timeout(100):
            for _ in range(2):
                await anext(subscription)
    await client.ping()
