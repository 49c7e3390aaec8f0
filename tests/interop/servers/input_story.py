"""What a peer client with a person, a model and folders does with a server that asks (see test_server_input).

A peer client is a program, as in story: `CLIENT.py [--revision REVISION] TARGET...` prints one JSON object with what
came of each call, and what its callbacks saw. The server must offer what accord_input.py offers. Only the
standard library is used: the SDKs stay in the programs, and everything here is plain JSON.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from typing import Any, Protocol

import story

JSONObject = dict[str, Any]

TOOLS = ("buy", "refuse", "think", "reckon", "folders", "together", "number", "visit", "tell")
ROOTS = ["file:///srv/a", "file:///srv/b"]
TODAY = "notes://today"
UPDATED, CHANGED = "notifications/resources/updated", "notifications/tools/list_changed"


class Host:
    """The callbacks of a client, and what they saw."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.logs: list[Any] = []
        self.told: list[str] = []

    def person(self, params: JSONObject) -> JSONObject:
        """An `ElicitResult`."""
        self.asked.append(
            ["person", params["message"], params.get("url") or [*params["requestedSchema"]["properties"]]]
        )
        if params["message"] == "Really?":
            return {"action": "decline"}
        if "url" in params:
            return {"action": "accept"}
        answers = {"size": "large", "count": 3, "value": True}
        return {"action": "accept", "content": {key: answers[key] for key in params["requestedSchema"]["properties"]}}

    def model(self, params: JSONObject) -> JSONObject:
        """A `CreateMessageResult`; where there are tools, it wants the first of them, once."""
        self.asked.append(["model", params.get("systemPrompt"), params["maxTokens"], len(params["messages"])])
        wants = params.get("tools") and len(params["messages"]) == 1
        use = {"type": "tool_use", "id": "use-1", "name": "add", "input": {"a": 1, "b": 2}}
        content = use if wants else {"type": "text", "text": "42"}
        stop = "toolUse" if wants else "endTurn"
        return {"role": "assistant", "content": content, "model": "m-1", "stopReason": stop}

    def roots(self) -> JSONObject:
        """A `ListRootsResult`."""
        self.asked.append(["roots"])
        return {"roots": [{"uri": uri} for uri in ROOTS]}

    def log(self, params: JSONObject) -> None:
        self.logs.append([params["level"], params["data"]])


class Client(Protocol):
    """An SDK's client, open; what it returns is a pydantic model of the whole result."""

    revision: str | None

    async def call(self, name: str, arguments: JSONObject) -> Any: ...
    async def read(self, uri: str) -> Any: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> Any: ...
    async def complete(self, prompt: str, argument: str, value: str, context: dict[str, str]) -> Any: ...

    def watching(self, uri: str, told: Callable[[str], None]) -> AbstractAsyncContextManager[None]:
        """While this is open, `told` gets the name of each notification about `uri` and the list of tools."""
        ...


Connect = Callable[[story.Target, "str | None", Host], AbstractAsyncContextManager[Client]]


def main(sdk: str, connect: Connect) -> None:
    """Run a peer client as a program."""
    target, revision = story.arguments()
    host = Host()
    seen = asyncio.run(play(connect(target, revision, host), host))
    print(json.dumps({"client": f"{sdk} {version(sdk)}", **seen}))


async def play(connection: AbstractAsyncContextManager[Client], host: Host) -> JSONObject:
    """Everything a client does with the server, and what it saw of it."""
    async with connection as client:
        seen: JSONObject = {"revision": client.revision}
        seen["calls"] = {tool: await words(client.call(tool, {})) for tool in TOOLS}
        seen["calls"]["delete"] = await words(client.call("delete", {"path": "a.txt"}))
        seen["read"] = await words(client.read("vault://key"))
        seen["prompt"] = await words(client.prompt("letter", {"to": "Åse"}))
        seen["completed"] = await story.outcome(client.complete("plan", "city", "O", {"country": "no"}))
        seen["watched"] = await watched(client)
    return {**seen, "asked": host.asked, "logs": host.logs}


async def watched(client: Client) -> list[str]:
    """The notifications that come when a resource and the list of tools change."""
    told: list[str] = []
    both = asyncio.Event()

    def tell(name: str) -> None:
        told.append(name)
        if len(told) == 2:
            both.set()

    async with client.watching(TODAY, tell):
        await client.call("change", {})
        async with asyncio.timeout(100):
            await both.wait()
    return sorted(told)


async def words(answer: Awaitable[Any]) -> Any:
    """The text of a result, whatever it is the result of; the error that came instead of it."""
    result = await story.outcome(answer)
    if "error" in result:
        return result["error"]
    blocks = result.get("content") or result.get("contents") or [each["content"] for each in result["messages"]]
    return blocks[0]["text"]
