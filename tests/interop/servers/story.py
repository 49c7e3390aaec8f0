"""The one story that every peer client plays through, whatever SDK it is written with.

A peer client is a program: `CLIENT.py [--revision REVISION] TARGET...`. TARGET is the command of a server, which it
starts and speaks to over stdio, or a URL: Streamable HTTP, or HTTP+SSE where it ends in /sse. The client plays the
story and prints one JSON object with what it saw. The server must offer (as every peer server here does):

    tools        echo(text) -> the text; add(a, b) -> {"sum": a + b}, structured; picture() -> a PNG;
                 fail() raises "it went wrong"; slow(steps) reports progress 1 to steps of steps, "step N",
                 then returns "done"
    resources    notes://today (text/plain, "buy milk"), notes://{day} ("notes of {day}")
    prompts      plan(city) -> one user message "Plan a day in {city}."

Without --revision the client opens as it does by itself; with one it speaks exactly that.
Only the standard library is used: the SDKs stay in the programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
"""The picture that servers show: one pixel."""

CALLS: dict[str, dict[str, Any]] = {
    "echo": {"text": "héllo\u2028wörld"},
    "add": {"a": 2, "b": 3},
    "fail": {},
    "slow": {"steps": 3},
    "picture": {},
}
KINDS = ("tools", "resources", "resourceTemplates", "prompts")
URIS = ("notes://today", "notes://monday")

Progress = Callable[[float, float | None, str | None], Awaitable[None]]


class Opened(NamedTuple):
    """What a client knows after opening."""

    revision: str | None
    server: Any
    capabilities: Any
    instructions: str | None


class Client(Protocol):
    """An SDK's client, open; what it returns is a pydantic model of the whole result."""

    def opened(self) -> Opened: ...
    async def ping(self) -> None: ...
    async def page(self, kind: str, cursor: str | None) -> Any: ...
    async def call(self, name: str, arguments: dict[str, Any], progress: Progress) -> Any: ...
    async def read(self, uri: str) -> Any: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> Any: ...


class Target(NamedTuple):
    """The server that a client opens: one of the two."""

    command: list[str]
    url: str

    @property
    def sse(self) -> bool:
        """Whether the URL is one of HTTP+SSE."""
        return self.url.endswith("/sse")


Connect = Callable[[Target, str | None], AbstractAsyncContextManager[Client]]


def main(sdk: str, connect: Connect) -> None:
    """Run a peer client as a program."""
    target, revision = arguments()
    seen = asyncio.run(play(connect(target, revision)))
    print(json.dumps({"client": f"{sdk} {version(sdk)}", **seen}))


def arguments() -> tuple[Target, str | None]:
    """What a peer client is told on its command line: the target and the revision."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--revision")
    parser.add_argument("target", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    words: list[str] = options.target[1:] if options.target[:1] == ["--"] else options.target
    target = Target([], words[0]) if words[0].startswith("http://") else Target(words, "")
    return target, options.revision


async def play(connection: AbstractAsyncContextManager[Client]) -> dict[str, Any]:
    """Everything a client does with the server, and what it saw of it."""
    async with connection as client:
        opened = client.opened()
        seen: dict[str, Any] = {
            "revision": opened.revision,
            "server": plain(opened.server),
            "capabilities": sorted(plain(opened.capabilities)),
            "instructions": opened.instructions,
            "ping": await outcome(client.ping()),
        }
        for kind in KINDS:
            seen[kind] = await pages(client, kind)
        seen["progress"] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            seen["progress"].append([done, total, message])

        seen["calls"] = {
            name: await outcome(client.call(name, arguments, progress)) for name, arguments in CALLS.items()
        }
        seen["together"] = await asyncio.gather(
            *(outcome(client.call("echo", {"text": str(number)}, progress)) for number in range(20))
        )
        seen["reads"] = {uri: await outcome(client.read(uri)) for uri in URIS}
        seen["prompt"] = await outcome(client.prompt("plan", {"city": "Oslo"}))
        seen["missing"] = {
            "argument": await outcome(client.call("echo", {}, progress)),
            "tool": await outcome(client.call("nothing", {}, progress)),
            "resource": await outcome(client.read("nothing://here")),
            "prompt": await outcome(client.prompt("nothing", {})),
        }
        return seen


async def pages(client: Client, kind: str) -> list[Any] | dict[str, Any]:
    """One whole list, through its pages; the error where the server has no such list."""
    items: list[Any] = []
    cursor: str | None = None
    while True:
        page = await outcome(client.page(kind, cursor))
        if "error" in page:
            return page
        items += page[kind]
        cursor = page.get("nextCursor")
        if cursor is None:
            return items


async def outcome(awaitable: Awaitable[Any]) -> dict[str, Any]:
    """A result as plain JSON, or the error that came instead of it."""
    try:
        return plain(await awaitable)
    except Exception as error:  # any SDK's protocol error; what it is belongs to what was seen
        detail = getattr(error, "error", None)
        code, message = getattr(detail, "code", None), getattr(detail, "message", str(error))
        return {"error": {"type": type(error).__name__, "code": code, "message": message}}


def plain(value: Any) -> Any:
    """A pydantic model as it stood on the wire."""
    if value is None:
        return {}
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)
