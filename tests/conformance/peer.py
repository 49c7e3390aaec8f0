"""The suite's side of a scenario: a client that is written by hand, message by message, and notes what passed.

What the server asks is answered from `answers`, by method: a request with its answer, and a result that asks by asking
again with the answers. So one scenario reads alike in every revision.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from accord import Server
from accord.messages.revision import RULES, Rules
from accord.transport import memory
from accord.transport.recording import TranscriptTransport
from accord.wire.transcript import Transcript

JSONObject = dict[str, Any]

CAPABILITIES: JSONObject = {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}}
"""What the suite's client declares."""

ME = {"name": "conformance", "version": "1.0"}

KEY = "io.modelcontextprotocol/"

SECONDS = 30

STATE = re.compile(r'"requestState":"([^"]*)"')

MODIFIED = re.compile(r'(?<="lastModified":")[^"]*')
"""When a file of the example was written: when the repository was checked out."""


def accepted(**content: Any) -> JSONObject:
    """A form that was filled in."""
    return {"action": "accept", "content": content}


def said(text: str) -> JSONObject:
    """What a model says."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "test-model", "stopReason": "endTurn"}


ROOTS: JSONObject = {"roots": [{"uri": "file:///test/root", "name": "Test Root"}]}


class Peer:
    """A client of one server in one revision."""

    def __init__(self, transport: TranscriptTransport, revision: str) -> None:
        self.transport = transport
        self.revision = revision
        self.rules: Rules = RULES[revision]
        self.answers: dict[str, JSONObject] = {}
        """What is answered to what the server asks, by method."""
        self.asked: list[JSONObject] = []
        """What the server asked: method and params."""
        self.told: list[JSONObject] = []
        """Its notifications."""
        self.opened: JSONObject = {}
        """The result of the opening."""
        self._inbox: list[JSONObject] = []
        self._id = 0

    # --- one message -------------------------------------------------------------------------------------------

    def say(self, message: JSONObject) -> None:
        """Send anything."""
        self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    def notify(self, method: str, params: JSONObject | None = None) -> None:
        """Send a notification."""
        self.say({"method": method, **({} if params is None else {"params": params})})

    def send(self, method: str, params: JSONObject | None = None, *, capabilities: JSONObject | None = None) -> int:
        """Send a request as the revision has it; its id."""
        self._id += 1
        params = dict(params or {})
        if not self.rules.handshake:
            params["_meta"] = {
                **self.meta(CAPABILITIES if capabilities is None else capabilities),
                **params.get("_meta", {}),
            }
        self.say({"id": self._id, "method": method, **({"params": params} if params else {})})
        return self._id

    def meta(self, capabilities: JSONObject) -> JSONObject:
        """What every request carries where there is no handshake."""
        return {
            f"{KEY}protocolVersion": self.revision,
            f"{KEY}clientInfo": ME,
            f"{KEY}clientCapabilities": capabilities,
        }

    async def hear(self) -> JSONObject:
        """The next message of the server."""
        if not self._inbox:
            async with asyncio.timeout(SECONDS):
                heard = await self.transport.receive()
            self._inbox += [json.loads(message) for message in heard if isinstance(message, bytes)]
        assert self._inbox, "the server has closed the connection"
        return self._inbox.pop(0)

    # --- one request -------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """The handshake; where there is none, what the server says of itself."""
        if self.rules.handshake:
            params = {"protocolVersion": self.revision, "capabilities": CAPABILITIES, "clientInfo": ME}
            self.opened = await self.result("initialize", params)
            self.notify("notifications/initialized")
        else:
            self.opened = await self.result("server/discover")

    async def ask(self, method: str, params: JSONObject | None = None, **options: Any) -> JSONObject:
        """The answer to a request, whole; what comes before it is noted, or answered."""
        id = self.send(method, params, **options)
        return await self.until(lambda message: message.get("id") == id and "method" not in message)

    async def until(self, wanted: Callable[[JSONObject], bool]) -> JSONObject:
        """The first message that is wanted."""
        while not wanted(message := await self.hear()):
            self._take(message)
        return message

    def _take(self, message: JSONObject) -> None:
        if "id" not in message:
            self.told.append(message)
            return
        assert self.rules.server_requests, f"a request of the server's, which {self.revision} has not: {message}"
        self.asked.append(message)
        self.say({"id": message["id"], "result": self.answers[message["method"]]})

    async def result(self, method: str, params: JSONObject | None = None, **options: Any) -> JSONObject:
        """The result of a request; there must be one."""
        answer = await self.ask(method, params, **options)
        assert "error" not in answer, answer
        if self.rules.result_type:
            assert answer["result"]["resultType"] in ("complete", "input_required")
        result: JSONObject = answer["result"]
        return result

    async def refused(self, method: str, params: JSONObject | None = None, **options: Any) -> JSONObject:
        """The error of a request; there must be one, under its id."""
        answer = await self.ask(method, params, **options)
        assert "result" not in answer, answer
        error: JSONObject = answer["error"]
        return error

    # --- with what is asked meanwhile --------------------------------------------------------------------------

    async def finish(self, method: str, params: JSONObject, **options: Any) -> JSONObject:
        """The result when all that is asked for it has been answered."""
        result = await self.result(method, params, **options)
        while result.get("resultType") == "input_required":
            result = await self.again(method, params, result, **options)
        return result

    async def again(
        self, method: str, params: JSONObject, required: JSONObject, answers: JSONObject | None = None, **options: Any
    ) -> JSONObject:
        """The result of the same request with the answers."""
        requests = required["inputRequests"]
        self.asked += requests.values()
        if answers is None:
            answers = {key: self.answers[each["method"]] for key, each in requests.items()}
        return await self.result(method, {**params, "inputResponses": answers, **state_of(required)}, **options)

    async def call(self, tool: str, arguments: JSONObject | None = None, **rest: Any) -> JSONObject:
        """The result of a tool call, whatever is asked meanwhile."""
        return await self.finish("tools/call", {"name": tool, "arguments": arguments or {}, **rest})

    async def start(self, tool: str, **options: Any) -> JSONObject:
        """The first result of a call that must ask."""
        result = await self.result("tools/call", {"name": tool, "arguments": {}}, **options)
        assert result["resultType"] == "input_required"
        return result


def state_of(required: JSONObject) -> JSONObject:
    """The state that goes back with the answers, if there is one."""
    return {"requestState": required["requestState"]} if "requestState" in required else {}


@asynccontextmanager
async def peer_of(server: Server, revision: str) -> AsyncIterator[Peer]:
    """A peer of a running server, not opened yet."""
    ours, theirs = memory.pair()
    serving = asyncio.ensure_future(server.serve(theirs))
    peer = Peer(TranscriptTransport(ours, Transcript()), revision)
    try:
        yield peer
    finally:
        await ours.close()
        async with asyncio.timeout(SECONDS):
            await serving


def readable(transcript: Transcript) -> str:
    """A transcript without what is another in each run (states), and in each clone (when files were written)."""
    text = MODIFIED.sub("2026-01-01T00:00:00Z", transcript.render())
    for state in {found for found in STATE.findall(text) if "TAMPERED" not in found}:
        text = text.replace(state, "(sealed)")
    return text
