"""A right client of the tasks extension (2026-07-28), made by hand, over HTTP; subclasses are wrong in one thing."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import aiohttp

EXTENSION = "io.modelcontextprotocol/tasks"
PREFIX = "io.modelcontextprotocol"
REVISION = "2026-07-28"
FINISHED = ("completed", "failed", "cancelled")
HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": REVISION}
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}, "extensions": {EXTENSION: {}}}


class ExtTaskClient:
    """Calls a tool, and looks after the task that the call becomes."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._http: aiohttp.ClientSession | None = None
        self.url = ""
        self.answered: set[str] = set()

    async def main(self, url: str) -> None:
        """One run."""
        self.url = url
        async with aiohttp.ClientSession() as self._http:
            await self.ask("server/discover")
            await self.look_after(await self.ask("tools/call", name="echo", arguments={"text": "hello"}))
            await self.read(await self.ask("resources/read", uri="notes://today"))

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """A request, and its result; nothing for an error."""
        meta = {f"{PREFIX}/protocolVersion": REVISION, f"{PREFIX}/clientCapabilities": CAPABILITIES}
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": {**params, "_meta": meta}}
        subject = params.get(NAMES.get(method, "taskId"))
        named = {"Mcp-Name": str(subject)} if subject else {}
        return await self.post(message, {"Mcp-Method": method, **named})

    async def post(self, message: Any, headers: dict[str, str]) -> dict[str, Any]:
        """Send a message."""
        assert self._http is not None
        async with self._http.post(self.url, json=message, headers={**HEADERS, **headers}) as response:
            said = await response.json() if response.content_type == "application/json" else {}
            found: dict[str, Any] = said.get("result", {})
            return found

    async def read(self, result: dict[str, Any]) -> None:
        """Take the result of a request that cannot become a task."""

    async def look_after(self, task: dict[str, Any]) -> None:
        """Follow a task to its end."""
        id = task.get("taskId")
        while id and task.get("status") not in FINISHED:
            task = await self.ask("tasks/get", taskId=id)
            asked = self.unanswered(task)
            if asked:
                await self.answer(str(id), asked)
            await self.pause(task.get("pollIntervalMs", 0))

    def unanswered(self, task: dict[str, Any]) -> set[str]:
        """The keys under which it asks what is not answered yet."""
        return set(task.get("inputRequests", {})) - self.answered

    async def answer(self, id: str, keys: set[str]) -> None:
        """Answer a task."""
        self.answered |= keys
        await self.ask("tasks/update", taskId=id, inputResponses={key: {"action": "decline"} for key in keys})

    async def pause(self, milliseconds: float) -> None:
        """Wait until the next look."""
        await asyncio.sleep(milliseconds / 1000)
