"""A client that asks again: raw messages over a memory pair, every answer kept, the server's own questions answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from accord.messages.revision import RULES
from accord.server.server import Server
from accord.transport import memory

JSON = dict[str, Any]
Reply = Callable[[JSON], JSON]
"""The answer to a question (`{"method": ..., "params": ...}`); it may raise `Refused` or `Later`."""

ALL: JSON = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Refused(Exception):
    """Answer with this JSON-RPC error instead."""


class Later(Exception):
    """Do not answer now."""


def yes(question: JSON) -> JSON:
    """Agree to everything, the text of a question being its own answer."""
    params = question.get("params") or {}
    if question["method"] == "roots/list":
        return {"roots": [{"uri": "file:///tmp", "name": "tmp"}]}
    if question["method"] == "sampling/createMessage":
        said = params["messages"][0]["content"]
        text = said["text"] if isinstance(said, dict) else said[0]["text"]
        return {"role": "assistant", "content": {"type": "text", "text": f"answer to {text}"}, "model": "m"}
    if params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": filled(params)}


def filled(params: JSON) -> JSON:
    """A form, filled in: each text with the question, each number with 7, each choice with yes."""
    values = {"string": f"answer to {params['message']}", "integer": 7, "number": 7.5, "boolean": True}
    return {name: values[field["type"]] for name, field in params["requestedSchema"]["properties"].items()}


class Caller:
    """One end of a memory pair with a server at the other; it reads all the time."""

    def __init__(self, transport: memory.MemoryTransport, revision: str, capabilities: JSON, reply: Reply) -> None:
        self.revision = revision
        self.capabilities = capabilities
        self.reply = reply
        self.heard: dict[Any, list[JSON]] = {}
        """Every answer, by the id of its request."""
        self.told: list[JSON] = []
        """Notifications, as they came."""
        self.asked: list[JSON] = []
        """Requests of the server, as they came."""
        self._transport = transport
        self._arrived = asyncio.Event()
        self._last = 0

    async def read(self) -> None:
        """Take what comes, until the end."""
        while messages := await self._transport.receive():
            for message in messages:
                assert isinstance(message, bytes)
                self._take(json.loads(message))
            self._arrived.set()

    def _take(self, message: JSON) -> None:
        if "method" not in message:
            self.heard.setdefault(message.get("id"), []).append(message)
        elif "id" not in message:
            self.told.append(message)
        else:
            self.asked.append(message)
            try:
                self.say({"id": message["id"], "result": self.reply(message)})
            except Later:
                pass
            except Refused as no:
                self.say({"id": message["id"], "error": {"code": -1, "message": str(no)}})

    def say(self, message: JSON) -> None:
        self._transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send(self, method: str, params: JSON, **meta: Any) -> int:
        """Send a request; its id."""
        self._last += 1
        self.say({"id": self._last, "method": method, "params": {**params, "_meta": self._meta(meta)}})
        return self._last

    def _meta(self, more: JSON) -> JSON:
        """What each request carries where there was no handshake."""
        if RULES[self.revision].handshake:
            return more
        revision, capabilities = "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"
        return {revision: self.revision, capabilities: self.capabilities, **more}

    def cancel(self, id: int) -> None:
        self.say({"method": "notifications/cancelled", "params": {"requestId": id}})

    async def until(self, true: Callable[[], bool], seconds: float = 30) -> None:
        """Read until this is so."""
        async with asyncio.timeout(seconds):
            while not true():
                self._arrived.clear()
                await self._arrived.wait()

    async def answer(self, id: int) -> JSON:
        """The one answer to a request."""
        await self.until(lambda: id in self.heard)
        (message,) = self.heard[id]
        return message

    async def ask(self, method: str, params: JSON, **meta: Any) -> JSON:
        """The answer to a request."""
        return await self.answer(self.send(method, params, **meta))

    async def ask_raw(self, method: str, params: str) -> JSON:
        """The answer to a request whose params are sent to the letter, but for `_meta`."""
        self._last += 1
        meta = json.dumps({"_meta": self._meta({})})
        head = json.dumps({"jsonrpc": "2.0", "id": self._last, "method": method})
        self._transport.send(f'{head[:-1]}, "params": {params.rstrip()[:-1]}, {meta[1:-1]}}}}}'.encode())
        return await self.answer(self._last)

    async def call(self, tool: str, arguments: JSON | None = None, **more: Any) -> JSON:
        """The answer to a tool call; `more` are members of its params."""
        return await self.ask("tools/call", {"name": tool, "arguments": arguments or {}, **more})

    async def through(self, method: str, params: JSON, reply: Reply = yes) -> JSON:
        """A request, asked again with answers until it has ended; the last answer."""
        said = await self.ask(method, params)
        while asks(said):
            said = await self.ask(method, {**params, **retry(said, reply)})
        return said


def asks(said: JSON) -> bool:
    """Whether an answer asks for input."""
    return bool(said.get("result", {}).get("resultType") == "input_required")


def questions(said: JSON) -> JSON:
    """What it asks for, by key."""
    found: JSON = said["result"]["inputRequests"]
    return found


def retry(said: JSON, reply: Reply = yes) -> JSON:
    """The members that a request needs to be asked again."""
    answers = {key: reply(question) for key, question in questions(said).items()}
    return {"requestState": said["result"]["requestState"], "inputResponses": answers}


def texts(said: JSON) -> str:
    """The text of a result, whatever it is a result of."""
    result = said["result"]
    if "messages" in result:
        return "".join(message["content"]["text"] for message in result["messages"])
    return "".join(block["text"] for block in result.get("content") or result["contents"])


def params_of(method: str, subject: str, arguments: JSON) -> JSON:
    """Params that name a tool, a prompt or a resource."""
    found = {NAMED[method]: subject}
    return found if method == "resources/read" else {**found, "arguments": arguments}


_open: list[Caller] = []


@asynccontextmanager
async def caller(
    server: Server, revision: str = "2026-07-28", capabilities: JSON | None = None, reply: Reply = yes
) -> AsyncIterator[Caller]:
    """A client of a running server; when the block ends both are gone, and after the last no task is left."""
    ours, theirs = memory.pair()
    serving = asyncio.create_task(server.serve(theirs))
    made = Caller(ours, revision, ALL if capabilities is None else capabilities, reply)
    reading = asyncio.create_task(made.read())
    if RULES[revision].handshake:
        hello = {"protocolVersion": revision, "capabilities": made.capabilities}
        await made.ask("initialize", {**hello, "clientInfo": {"name": "raw", "version": "1"}})
        made.say({"method": "notifications/initialized"})
    _open.append(made)
    try:
        yield made
    finally:
        _open.remove(made)
        await ours.close()
        async with asyncio.timeout(100):
            await asyncio.gather(serving, reading)
        if not _open:
            await all_gone()


async def all_gone(turns: int = 20) -> None:
    """All other tasks end within some turns of the loop, without a push."""
    for _ in range(turns):
        await asyncio.sleep(0)
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, left
