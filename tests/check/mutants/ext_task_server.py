"""A right server of the tasks extension (2026-07-28), made by hand: over lines, and over HTTP with JSON answers."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from accord.transport.base import Transport

from tests.check.mutants.by_hand import Say, over_lines, posted, respond

EXTENSION = "io.modelcontextprotocol/tasks"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
META = {"io.modelcontextprotocol/serverInfo": {"name": "tasks", "version": "1"}}
LAST = "2026-07-28"
STEP = 0.04
FINISHED = ("completed", "failed", "cancelled")
HINTS = {"ttlMs": 0, "cacheScope": "private"}
HELLO = {
    "supportedVersions": [LAST],
    "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}},
    **HINTS,
}
TOOLS = ("later", "only", "fails", "breaks", "asks", "now")
FORM = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
DONE = {"content": [{"type": "text", "text": "done"}]}


class Refused(Exception):
    """An error to be answered: code, message, and perhaps data."""


class Work:
    """One task. `tell` is called with each new state."""

    def __init__(self) -> None:
        self.made = _now()
        self.tell: dict[Any, Say] = {}
        self.answers: dict[str, asyncio.Future[Any]] = {}
        self.state: dict[str, Any] = {"taskId": str(uuid.uuid4())}
        self.becomes("working")

    def becomes(self, status: str, **more: Any) -> None:
        if self.state.get("status") in FINISHED:
            return
        known = {"taskId": self.state["taskId"], "createdAt": self.made, "lastUpdatedAt": _now()}
        self.state = {**known, "ttlMs": 60_000, "pollIntervalMs": 20, "status": status, **more}
        for id, say in self.tell.items():
            params = {**self.state, "_meta": {SUBSCRIPTION: id}}
            say({"jsonrpc": "2.0", "method": "notifications/tasks", "params": params})

    async def ask(self, *keys: str) -> None:
        self.answers = {key: asyncio.get_running_loop().create_future() for key in keys}
        while open_ := [key for key, future in self.answers.items() if not future.done()]:
            request = {"method": "elicitation/create", "params": FORM}
            self.becomes("input_required", inputRequests=dict.fromkeys(open_, request))
            await asyncio.wait([self.answers[key] for key in open_], return_when=asyncio.FIRST_COMPLETED)
        self.becomes("working")


class ExtTaskServer:
    """The server: all who know the id of a task get at it."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def answer(self, message: Any, say: Say | None) -> Any:
        """The answer; None for what gets none."""
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            return None
        try:
            result = await self._result(message, say)
        except Refused as exc:
            code, text, *data = exc.args
            error = {"code": code, "message": text, **({"data": data[0]} if data else {})}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        if result is None:
            return None
        return {"jsonrpc": "2.0", "id": message["id"], "result": {"resultType": "complete", "_meta": META, **result}}

    async def _result(self, message: Any, say: Say | None) -> Any:
        method, params = message["method"], message.get("params", {})
        declared = params.get("_meta", {}).get(CAPABILITIES, {}).get("extensions", {})
        match method:
            case "server/discover":
                return HELLO
            case "tools/list":
                return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS], **HINTS}
            case "tools/call":
                return await self._call(params, EXTENSION in declared)
            case "tasks/get" | "tasks/update" | "tasks/cancel" | "subscriptions/listen":
                if EXTENSION not in declared and (method[0] == "t" or params["notifications"].get("taskIds")):
                    raise _missing()
                return self._listen(message, say) if method[0] == "s" else self._of_task(method, params)
        raise Refused(-32601, "Method not found")

    async def _call(self, params: Any, able: bool) -> Any:
        name = params.get("name")
        if name not in TOOLS:
            raise Refused(-32602, "there is no such tool")
        if name == "only" and not able:
            raise _missing()
        if name == "now" or not able:
            return await self._do(name, None)
        work = Work()
        self._works[work.state["taskId"]] = work
        running = asyncio.create_task(self._run(name, work))
        self._running.add(running)
        return {"resultType": "task", **work.state}

    async def _run(self, name: str, work: Work) -> None:
        try:
            work.becomes("completed", result=await self._do(name, work))
        except Refused as exc:
            work.becomes("failed", statusMessage="it broke", error={"code": exc.args[0], "message": exc.args[1]})

    async def _do(self, name: str, work: Work | None) -> Any:
        await asyncio.sleep(STEP)
        if name == "breaks":
            raise Refused(-32603, "it broke")
        if name == "asks" and work:
            await work.ask("first", "second")
            await work.ask("third")
        return {**DONE, "isError": name == "fails"}

    def _of_task(self, method: str, params: Any) -> Any:
        id = params.get("taskId")
        work = self._works.get(id) if isinstance(id, str) else None
        if work is None:
            raise Refused(-32602, "there is no such task")
        if method == "tasks/get":
            return work.state
        if method == "tasks/cancel":
            work.becomes("cancelled")
        for key in params.get("inputResponses", {}).keys() & work.answers.keys():
            if not work.answers[key].done():
                work.answers[key].set_result(None)
        return {}

    def _listen(self, message: Any, say: Say | None) -> Any:
        """The subscription stays open as long as the connection."""
        if say is None:
            raise Refused(-32601, "there are no streams")
        wanted = message["params"]["notifications"].get("taskIds", [])
        works = [self._works[id] for id in wanted if id in self._works]
        granted = {"notifications": {"taskIds": [work.state["taskId"] for work in works]}}
        params = {**granted, "_meta": {SUBSCRIPTION: message["id"]}}
        say({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params})
        for work in works:
            work.tell[message["id"]] = say

    async def serve(self, transport: Transport) -> None:
        """Over lines, until the client closes."""
        await over_lines(transport, lambda say: lambda message: self.answer(message, say))

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """As an ASGI application."""
        body = await posted(scope, receive)
        message = json.loads(body) if body else None
        said = _refused(message, scope) or await self.answer(message, None)
        code = said.get("error", {}).get("code", 0) if said else 0
        status = 405 if not body else 202 if said is None else {-32601: 404, -32021: 400, -32020: 400}.get(code, 200)
        await respond(send, status, said)


def _refused(message: Any, scope: Any) -> Any:
    """What a request gets whose header names another task than its body."""
    id = message.get("params", {}).get("taskId") if isinstance(message, dict) else None
    named = dict(scope["headers"]).get(b"mcp-name")
    if not isinstance(id, str) or named in (None, id.encode()):
        return None
    error = {"code": -32020, "message": "Mcp-Name is another task"}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


def _missing() -> Refused:
    data: Any = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return Refused(-32021, "Missing required client capability", data)


def _now() -> str:
    return datetime.now(UTC).isoformat()
