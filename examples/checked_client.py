"""A client that does everything, for `accord check` to look at: what it is asked, it answers; what fails, it reports.

    accord check --client "python examples/checked_client.py {url}"
    accord check --client-stdio "python examples/checked_client.py {server}"

`ACCORD_CHECK_SCENARIO` in its environment names the scenario of the server; this client does the same in all of them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from typing import Any, TypeVar

from accord import AccordError, Client, TextContent
from accord.types import CreateMessageResult

T = TypeVar("T")

TIMEOUT = 2.0
"""Seconds without a word of the server after which a request is given up."""

VALUES: dict[str, Any] = {"string": "text", "integer": 1, "boolean": True, "number": 1.5, "array": []}
"""By type: what tools are called with."""


def client_for(target: str, **options: Any) -> Client:
    """A client that declares all there is."""
    everything: dict[str, Any] = {
        "timeout": TIMEOUT,
        "elicitation": filled_in,
        "elicitation_modes": ("form", "url"),
        "sampling": thought,
        "sampling_tools": True,
        "roots": ["/srv/a"],
        "on_log": ignored,
    }
    return Client(target, **everything | options)


async def use(client: Client) -> None:
    """Everything that a server may have."""
    await tried("ping", client.ping())
    for tool in await tried("tools", client.list_tools()) or []:
        await tried(tool.name, client.call_tool(tool.name, value(tool.input_schema), on_progress=progress))
    for resource in await tried("resources", client.list_resources()) or []:
        await tried(resource.uri, client.read_resource(resource.uri))
    await tried("templates", client.list_resource_templates())
    for prompt in await tried("prompts", client.list_prompts()) or []:
        await tried(prompt.name, client.get_prompt(prompt.name, {each.name: "x" for each in prompt.arguments or []}))
    await tried("subscribe", changes(client))


async def main(target: str) -> None:
    async with client_for(target) as client:
        await use(client)


async def changes(client: Client) -> None:
    """Listen for changes for a moment."""
    async with client.subscribe("notes://today", tools=True):
        return


async def tried(what: str, doing: Awaitable[T]) -> T | None:
    """What it gives; None, and a line on stderr, where it fails."""
    try:
        return await doing
    except AccordError as error:
        print(f"{what}: {error}", file=sys.stderr)
        return None


def value(schema: dict[str, Any]) -> Any:
    """What fits a simple schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "object":
        properties: dict[str, dict[str, Any]] = schema.get("properties") or {}
        return {name: value(field) for name, field in properties.items()}
    return VALUES.get(schema.get("type", ""), "text")


def filled_in(params: Any) -> Any:
    """The person, who agrees to everything, and fills in every field."""
    return value(params.requested_schema) if params.requested_schema else True


def ignored(message: Any) -> None:
    """Nobody reads it."""


def progress(done: float, total: float | None, message: str | None) -> None:
    """Nobody looks at it."""


def thought(params: Any) -> CreateMessageResult:
    """The model, which has one answer."""
    return CreateMessageResult(role="assistant", content=TextContent(text="42"), model="none", stop_reason="endTurn")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
