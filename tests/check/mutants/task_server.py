"""A right server that runs tools as tasks (2025-11-25), made by hand: over lines, and over HTTP with JSON answers."""

from __future__ import annotations

import asyncio
import json
import uuid
from datetime import UTC, datetime
from typing import Any

from accord.transport.base import Transport

from tests.check.mutants.by_hand import Say, over_lines, posted, respond

RELATED = "io.modelcontextprotocol/related-task"
LAST = "2025-11-25"
STEP = 0.02
KINDS = {"later": "optional", "only": "required", "fails": "optional", "asks": "optional", "now": None}
HELLO = {
    "protocolVersion": LAST,
    "capabilities": {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}},
    "serverInfo": {"name": "tasks", "version": "1"},
}
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class Refused(Exception):
    """An error to be answered: code and message."""


class Work:
    """One task."""

    def __init__(self, ttl: Any) -> None:
        self.made = _now()
        self.state: dict[str, Any] = {"taskId": str(uuid.uuid4()), "ttl": ttl}
        self.result: Any = None
        self.over = asyncio.Event()
        self.becomes("working")

    def becomes(self, status: str, **more: Any) -> None:
        if not self.over.is_set():
            times = {"createdAt": self.made, "lastUpdatedAt": _now()}
            self.state = {"taskId": self.state["taskId"], "ttl": self.state["ttl"], "status": status, **times, **more}
        if status in ("completed", "failed", "cancelled"):
            self.over.set()


class Session:
    """One client, and its tasks. `say` sends a message to it, where that is possible in between."""

    def __init__(self, say: Say | None) -> None:
        self._say = say
        self._works: dict[str, Work] = {}
        self._asked: dict[str, asyncio.Future[Any]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def answer(self, message: Any) -> Any:
        """The answer; None for what gets none."""
        if not isinstance(message, dict) or "method" not in message:
            self._asked.pop(message.get("id"), asyncio.Future()).set_result(message)
            return None
        if "id" not in message:
            return None
        try:
            result = await self._result(message["method"], message.get("params", {}))
        except Refused as exc:
            code, text = exc.args
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _result(self, method: str, params: Any) -> Any:
        match method:
            case "initialize":
                return HELLO
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [_tool(name, kind) for name, kind in KINDS.items()]}
            case "tools/call":
                return await self._call(params)
            case "tasks/list" if "cursor" not in params:
                return {"tasks": [work.state for work in self._works.values()]}
            case "tasks/get" | "tasks/result" | "tasks/cancel" if params.get("taskId") in self._works:
                return await self._of_task(method, self._works[params["taskId"]])
            case "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/list":
                raise Refused(-32602, "there is no such task, or cursor")
        raise Refused(-32601, "Method not found")

    async def _call(self, params: Any) -> Any:
        name = params.get("name")
        if name not in KINDS:
            raise Refused(-32602, "there is no such tool")
        as_task = "task" in params
        if (KINDS[name] == "required") != as_task and KINDS[name] != "optional":
            raise Refused(-32601, "it is a task only, or no task")
        if not as_task:
            return await self._do(name, None)
        work = Work(params["task"].get("ttl"))
        self._works[work.state["taskId"]] = work
        running = asyncio.create_task(self._run(name, work))
        self._running.add(running)
        return {"task": dict(work.state)}

    async def _run(self, name: str, work: Work) -> None:
        work.result = await self._do(name, work)
        if name == "fails":
            work.becomes("failed", statusMessage="it failed")
        else:
            work.becomes("completed")

    async def _do(self, name: str, work: Work | None) -> Any:
        await asyncio.sleep(STEP)
        if name == "asks" and self._say is not None:
            await self._ask(self._say, work)
        return {"content": [{"type": "text", "text": "done"}], "isError": name == "fails"}

    async def _ask(self, say: Say, work: Work | None) -> None:
        id = uuid.uuid4().hex
        self._asked[id] = asyncio.get_running_loop().create_future()
        meta = {"_meta": {RELATED: {"taskId": work.state["taskId"]}}} if work else {}
        if work:
            work.becomes("input_required")
        say({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {**FORM, **meta}})
        await self._asked[id]
        if work:
            work.becomes("working")

    async def _of_task(self, method: str, work: Work) -> Any:
        if method == "tasks/cancel":
            if work.over.is_set():
                raise Refused(-32602, "it is over")
            work.becomes("cancelled")
        if method != "tasks/result":
            return work.state
        await work.over.wait()
        if work.result is None:
            raise Refused(-32603, "it was cancelled")
        return {**work.result, "_meta": {RELATED: {"taskId": work.state["taskId"]}}}


class TaskServer:
    """The server: each connection, or HTTP session, has its own tasks."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    async def serve(self, transport: Transport) -> None:
        """Over lines, until the client closes."""
        await over_lines(transport, lambda say: Session(say).answer)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """As an ASGI application."""
        body = await posted(scope, receive)
        id = next((value.decode() for name, value in scope["headers"] if name == b"mcp-session-id"), None)
        if id is None and b'"initialize"' in body:
            id = uuid.uuid4().hex
            self._sessions[id] = Session(None)
        session = self._sessions.get(id or "")
        said = await session.answer(json.loads(body)) if session and body else None
        status = 405 if not body else 404 if session is None else 200 if said else 202
        await respond(send, status, said, {b"mcp-session-id": (id or "none").encode()})


def _tool(name: str, kind: str | None) -> Any:
    execution = {"execution": {"taskSupport": kind}} if kind else {}
    return {"name": name, "inputSchema": {"type": "object"}, **execution}


def _now() -> str:
    return datetime.now(UTC).isoformat()
