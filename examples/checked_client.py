"""A client that uses every feature, for `accord check` to test.

    accord check --client "python examples/checked_client.py {url}"
    accord check --client-stdio "python examples/checked_client.py {server}"

The environment variable `ACCORD_CHECK_SCENARIO` names the scenario of the server; this client ignores it. A server that
demands a login redirects at once: there is no user, and the client opens the authorization URL itself.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable
from typing import Any, TypeVar

import aiohttp

from accord import AccordError, Client, ClientCredentials, OAuth, TextContent
from accord.auth.credential_store import CredentialStore
from accord.types import CreateMessageResult

T = TypeVar("T")

TIMEOUT = 2.0
"""The timeout of a request in seconds without a message from the server."""

VALUES: dict[str, Any] = {"string": "text", "integer": 1, "boolean": True, "number": 1.5, "array": []}
"""Arguments for tools, by JSON type."""


def client_for(target: str, **options: Any) -> Client:
    """Return a client that declares every capability."""
    everything: dict[str, Any] = {
        "timeout": TIMEOUT,
        "elicitation": filled_in,
        "elicitation_modes": ("form", "url"),
        "sampling": thought,
        "sampling_tools": True,
        "roots": ["/srv/a"],
        "on_log": ignored,
    }
    if target.startswith("http"):
        everything["auth"] = login()
    return Client(target, **everything | options)


def login() -> OAuth | ClientCredentials:
    """Return a login without a user, which is forgotten at the end."""
    client_id, secret = (os.environ.get(f"ACCORD_CHECK_CLIENT_{name}") for name in ("ID", "SECRET"))
    if client_id is not None and secret is not None:
        return ClientCredentials(client_id, secret=secret)
    return OAuth(authorize=visit, client_id=client_id, store=CredentialStore(":memory:"))


async def visit(url: str) -> str:
    """Return the callback to which an authorization endpoint redirects."""
    async with aiohttp.ClientSession() as browser, browser.get(url, allow_redirects=False) as response:
        return response.headers.get("Location", "")


async def use(client: Client) -> None:
    """Use every feature of the server."""
    await tried("ping", client.ping())
    for tool in await tried("tools", client.list_tools()) or []:
        await tried(tool.name, client.call_tool(tool.name, value(tool.input_schema), on_progress=progress))
    for resource in await tried("resources", client.list_resources()) or []:
        await tried(resource.uri, client.read_resource(resource.uri))
    await tried("templates", client.list_resource_templates())
    for prompt in await tried("prompts", client.list_prompts()) or []:
        await tried(
            prompt.name, client.get_prompt(prompt.name, {argument.name: "x" for argument in prompt.arguments or []})
        )
    await tried("subscribe", changes(client))


async def main(target: str) -> None:
    async with client_for(target) as client:
        await use(client)


async def changes(client: Client) -> None:
    """Open and close a subscription."""
    async with client.subscribe("notes://today", tools=True):
        return


async def tried(label: str, operation: Awaitable[T]) -> T | None:
    """Return a result, or None after printing the error to stderr."""
    try:
        return await operation
    except AccordError as error:
        print(f"{label}: {error}", file=sys.stderr)
        return None


def value(schema: dict[str, Any]) -> Any:
    """Return a value that fits a simple schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "object":
        properties: dict[str, dict[str, Any]] = schema.get("properties") or {}
        return {name: value(field) for name, field in properties.items()}
    return VALUES.get(schema.get("type", ""), "text")


def filled_in(params: Any) -> Any:
    """Accept an elicitation and fill in every field."""
    return value(params.requested_schema) if params.requested_schema else True


def ignored(message: Any) -> None:
    """Ignore a log message."""


def progress(current: float, total: float | None, message: str | None) -> None:
    """Ignore progress."""


def thought(params: Any) -> CreateMessageResult:
    """Return the answer of the model, which is always the same."""
    return CreateMessageResult(role="assistant", content=TextContent(text="42"), model="none", stop_reason="endTurn")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
