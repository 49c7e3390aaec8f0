"""Ways to a server: in memory in every revision, and both forms of HTTP, behind one function."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from accord.messages.revision import REVISIONS
from accord.server.server import Server

from tests.server.http.http_clients import Modern, Stateful, site
from tests.server.raw import raw_peer

Ask = Callable[..., Awaitable[dict[str, Any]]]
"""The answer to `(method, params)`."""

WAYS = [*(f"memory {revision}" for revision in REVISIONS), "http 2025-11-25", "http 2026-07-28"]
SOME = ["memory 2025-11-25", "memory 2026-07-28"]


@asynccontextmanager
async def reached(server: Server, way: str, **headers: str) -> AsyncIterator[Ask]:
    """A client of the server, without capabilities; `headers` are for HTTP."""
    kind, _, revision = way.partition(" ")
    if kind == "memory":
        async with raw_peer(server, revision) as peer:
            yield peer.ask
        return
    async with site(server) as here:
        given: dict[str, Any] = {"capabilities": {}, **headers}
        client = Modern(here.raw, **given) if revision == REVISIONS[-1] else Stateful(here.raw, **given)
        if isinstance(client, Stateful):
            await client.open()

        async def ask(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
            return await (await client.ask(method, params)).result()  # type: ignore[no-any-return]

        yield ask


def called(name: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """A call of a tool."""
    return "tools/call", {"name": name, "arguments": arguments}


def text(answer: dict[str, Any]) -> str:
    """What a tool, a prompt or a resource said; or the message of an error."""
    if "error" in answer:
        return str(answer["error"]["message"])
    result = answer["result"]
    if "messages" in result:
        return "".join(message["content"]["text"] for message in result["messages"])
    return "".join(block["text"] for block in result.get("content") or result["contents"])


def names(answer: dict[str, Any]) -> list[str]:
    """What a list lists."""
    (items,) = [value for value in answer["result"].values() if isinstance(value, list)]
    return [item["name"] for item in items]
