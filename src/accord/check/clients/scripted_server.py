"""The scripted server of one run: correct in each revision, except where its scenario differs.

Over each transport, a request becomes an `IncomingRequest`; the handler of the scenario or `default_result` answers
it. The server stores the sessions, the time of the first intervention of the scenario, and of the last message of the
client. A memory budget limits one run: readers stop when it is exhausted.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from accord.check.clients.conversation import ClientConversation, ReplyChannel
from accord.check.clients.features import ScriptedFeatures, call_result, handshake_result, text_block
from accord.check.clients.http_listener import ClientExchange, HTTPListener, ScriptedResponse
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.scenario import (
    FIRST_REQUEST,
    RawMessage,
    RequestHandler,
    Scenario,
    ScriptedAnswer,
    ScriptedError,
)
from accord.check.clients.scripted_authorization import ScriptedAuthorization
from accord.check.engine.report import TransportName
from accord.check.probes.message_log import MemoryBudget
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from accord.messages.base import JSONObject
from accord.messages.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID
from accord.messages.methods import table
from accord.messages.revision import RULES
from accord.transport.recording import SessionRecorder

_OPENING_METHODS = frozenset(("initialize", "server/discover", "ping", "logging/setLevel"))
"""Methods that open a connection or keep it alive."""
_STEPS = 3
_REQUEST_MEMORY = 4_096
"""Approximate memory of a request in progress."""


class ScriptedServer:
    """One server for one run of a client. `memory` limits the run."""

    def __init__(
        self,
        scenario: Scenario,
        revision: str,
        transport: TransportName,
        room: MemoryBudget | None = None,
        record: SessionRecorder | None = None,
    ) -> None:
        self.scenario: Scenario = scenario
        self.revision: str = revision
        self.transport: TransportName = transport
        self.memory: MemoryBudget = room or MemoryBudget()
        self.conversations: list[ClientConversation] = []
        self.intervened_at: float | None = None
        """The time of the first intervention of the scenario."""
        self.last_message_at: float | None = None
        """The time of the last message of the client except pings."""
        self.first_message_at: float | None = None
        self.started_at: float = time.monotonic()
        self.trap_listener: HTTPListener = HTTPListener(self._answer_trap, self.memory)
        """Another origin, to which a client must not send requests."""
        plan = scenario.authorization
        self.authorization: ScriptedAuthorization | None = None if plan is None else ScriptedAuthorization(plan, self)
        """The authorization, in a scenario with one."""
        self.state: dict[str, Any] = {}
        """Data of a scenario between requests."""
        self._record = record
        self._counts: Counter[str] = Counter()
        self._first = True
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def trap_url(self) -> str:
        """A URL that no client should fetch."""
        return f"{self.trap_listener.url}/trap"

    async def open(self) -> None:
        """Open the other origin."""
        await self.trap_listener.open()

    async def close(self) -> None:
        """Stop all handlers."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.trap_listener.close()
        for conversation in self.conversations:
            conversation.log.close()

    def add_conversation(self) -> ClientConversation:
        """Return a new session."""
        conversation = ClientConversation(self, len(self.conversations) + 1, self.scenario.name)
        conversation.log.record(self._record, f"{self.scenario.name}, {self.revision}", client="received")
        self.conversations.append(conversation)
        return conversation

    def mark_message(self, message: JSONObject) -> None:
        """Record that the client sent a message."""
        if message.get("method") != "ping":
            self.last_message_at = time.monotonic()
            self.first_message_at = self.first_message_at or self.last_message_at

    def mark_intervention(self) -> None:
        """Record the first intervention of the scenario."""
        if self.intervened_at is None:
            self.intervened_at = time.monotonic()

    def is_first_time(self, what: str) -> bool:
        """Return whether this is the first call with this key."""
        self._counts[what] += 1
        return self._counts[what] == 1

    def serve(self, conversation: ClientConversation, request: JSONObject, way: ReplyChannel) -> asyncio.Task[None]:
        """Answer a request in a task of its own."""
        self.memory.charge(_REQUEST_MEMORY)
        task = asyncio.get_running_loop().create_task(self._serve(conversation, request, way))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.memory.charge(-_REQUEST_MEMORY)

    async def _serve(self, conversation: ClientConversation, request: JSONObject, way: ReplyChannel) -> None:
        ask = IncomingRequest(conversation, request, way, self._next_index(request), self.default_result)
        handler = self._handler(ask)
        try:
            if handler is not None:
                self.mark_intervention()
            answer = await (ask.default_result() if handler is None else handler(ask))
        except ScriptedError as refused:
            error = {"code": refused.code, "message": refused.message}
            error |= {} if refused.data is None else {"data": refused.data}
            answer = RawMessage({"jsonrpc": "2.0", "id": ask.id, "error": error})
        if answer is not None:
            await conversation.send(_encode_answer(ask, answer), way, misbehaved=handler is not None, last=True)

    def _next_index(self, request: JSONObject) -> int:
        method = f"request {request.get('method')}"
        self._counts[method] += 1
        return self._counts[method] - 1

    def _handler(self, request: IncomingRequest) -> RequestHandler | None:
        handlers = self.scenario.handlers
        if request.method in handlers:
            return handlers[request.method]
        if self._first and FIRST_REQUEST in handlers and request.method not in _OPENING_METHODS:
            self._first = False
            return handlers[FIRST_REQUEST]
        return None

    # --- what a good server answers --------------------------------------------------------------------------------

    async def default_result(self, request: IncomingRequest) -> JSONObject:
        """Return the default result of a request. Raises `ScriptedError`."""
        rules = RULES[self.revision]
        if request.method not in table(self.revision, "client"):
            raise ScriptedError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
        version = request.meta.get(PROTOCOL_VERSION)
        if not rules.handshake and version != self.revision:
            if version is None:
                raise ScriptedError(INVALID_PARAMS, f"_meta has no {PROTOCOL_VERSION}")
            data = {"supported": [self.revision], "requested": version}
            raise ScriptedError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        answer = DEFAULT_HANDLERS.get(request.method)
        return request.with_result_fields(await answer(request, self.scenario.features) if answer is not None else {})

    async def _answer_trap(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        await response.send(404)


def _encode_answer(request: IncomingRequest, answer: ScriptedAnswer) -> Any:
    if isinstance(answer, RawMessage):
        return answer.message
    return answer if isinstance(answer, bytes) else request.build_response(answer)


DefaultHandler = Callable[[IncomingRequest, ScriptedFeatures], Awaitable[JSONObject]]


async def _answer_handshake(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    declared = request.params.get("capabilities")
    request.conversation.client_capabilities = declared if isinstance(declared, dict) else {}
    return handshake_result(request.conversation.server.revision, features)


async def _answer_empty(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    return {}


async def _list_tools(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    return {"tools": features.tools_in(request.conversation.server.revision)}


async def _list_resources(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    return {"resources": [*features.resources]}


async def _list_templates(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    return {"resourceTemplates": [*features.templates]}


async def _list_prompts(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    return {"prompts": [*features.prompts]}


async def _call_tool(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    name = str(request.params.get("name"))
    if name not in {each["name"] for each in features.tools}:
        raise ScriptedError(INVALID_PARAMS, f"Unknown tool: {name}")
    token = request.meta.get("progressToken")
    if name == "slow" and token is not None:
        for step in range(1, _STEPS + 1):
            await request.notify("notifications/progress", {"progressToken": token, "progress": step, "total": _STEPS})
    return call_result(name, request.params.get("arguments"), request.conversation.server.revision)


async def _read_resource(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    uri = str(request.params.get("uri"))
    if not uri.startswith("notes://"):
        raise ScriptedError(request.rules.resource_not_found, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"notes of {uri[8:]}"}]}


async def _get_prompt(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    if request.params.get("name") not in {each["name"] for each in features.prompts}:
        raise ScriptedError(INVALID_PARAMS, "Unknown prompt")
    return {"messages": [{"role": "user", "content": text_block("Plan a day.")}]}


async def _complete(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    return {"completion": {"values": ["monday", "tuesday"]}}


async def _listen(request: IncomingRequest, features: ScriptedFeatures) -> JSONObject:
    """Acknowledge the subscription, and keep it open until the client ends it."""
    await request.notify(
        "notifications/subscriptions/acknowledged",
        {"_meta": {SUBSCRIPTION_ID: request.id}, "notifications": request.params.get("notifications", {})},
    )
    await request.wait_for_cancellation(seconds=3_600)
    return {"_meta": {SUBSCRIPTION_ID: request.id}}


DEFAULT_HANDLERS: dict[str, DefaultHandler] = {
    "initialize": _answer_handshake,
    "server/discover": _answer_handshake,
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
    "subscriptions/listen": _listen,
    "ping": _answer_empty,
}
"""The handler of each method; other methods have an empty result."""
