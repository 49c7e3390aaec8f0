"""The scripted server of one run: good by itself in every revision, and what its scene makes of it.

Whatever way requests come, each becomes an `Ask`; the scene's handler answers it, or `usual` does. The stand keeps the
conversations, notes when the scene first did something of its own, and when the client was last heard of. Its room
bounds what one run may keep: whoever reads takes from it what comes, and stops reading when it is full.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from accord.check.clients.ask import Ask, Way, notification
from accord.check.clients.conversation import Conversation
from accord.check.clients.offer import called, hello, text
from accord.check.clients.scene import FIRST, Answer, Handler, Refuse, Scene, Whole
from accord.check.clients.web import Exchange, Reply, Site
from accord.check.record import Room
from accord.check.report import TransportName
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from accord.messages.base import JSONObject
from accord.messages.meta import PROTOCOL_VERSION, SUBSCRIPTION_ID
from accord.messages.methods import table
from accord.messages.revision import RULES

_PREAMBLE = frozenset(("initialize", "server/discover", "ping", "logging/setLevel"))
"""What opens a connection and keeps it alive."""
_STEPS = 3
_TASK = 4_096
"""Bytes of memory, about, that a request takes only while it is answered."""


class Stand:
    """One server for one run of a client. `room` is what may be kept of the run."""

    def __init__(self, scene: Scene, revision: str, transport: TransportName, room: Room | None = None) -> None:
        self.scene: Scene = scene
        self.revision: str = revision
        self.transport: TransportName = transport
        self.room: Room = room or Room()
        self.conversations: list[Conversation] = []
        self.turned_at: float | None = None
        """When the scene first did something of its own."""
        self.heard_at: float | None = None
        """When the client last said something that was no ping."""
        self.first_heard_at: float | None = None
        self.began: float = time.monotonic()
        self.sideway: Site = Site(self._trapped, self.room)
        """Another origin, at which nobody has any business."""
        self.kept: dict[str, Any] = {}
        """What a scene wants to know later."""
        self._turns: Counter[str] = Counter()
        self._first = True
        self._served: set[asyncio.Task[None]] = set()

    @property
    def trap(self) -> str:
        """A URL that no client should fetch."""
        return f"{self.sideway.url}/trap"

    async def open(self) -> None:
        """Open the other origin."""
        await self.sideway.open()

    async def close(self) -> None:
        """Stop answering."""
        for task in self._served:
            task.cancel()
        if self._served:
            await asyncio.wait(self._served)
        await self.sideway.close()

    def conversation(self) -> Conversation:
        """A new one."""
        self.conversations.append(Conversation(self, len(self.conversations) + 1))
        return self.conversations[-1]

    def heard(self, message: JSONObject) -> None:
        """The client said something."""
        if message.get("method") != "ping":
            self.heard_at = time.monotonic()
            self.first_heard_at = self.first_heard_at or self.heard_at

    def turned(self) -> None:
        """The scene does something of its own now."""
        if self.turned_at is None:
            self.turned_at = time.monotonic()

    def once(self, what: str) -> bool:
        """Whether this is the first time that it is asked for."""
        self._turns[what] += 1
        return self._turns[what] == 1

    def serve(self, conversation: Conversation, request: JSONObject, way: Way) -> asyncio.Task[None]:
        """Answer a request, in a task of its own."""
        self.room.spend(_TASK)
        task = asyncio.get_running_loop().create_task(self._serve(conversation, request, way))
        self._served.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._served.discard(task)
        self.room.spend(-_TASK)

    async def _serve(self, conversation: Conversation, request: JSONObject, way: Way) -> None:
        ask = Ask(conversation, request, way, self._turn(request))
        handler = self._handler(ask)
        try:
            if handler is not None:
                self.turned()
            answer = await (ask.usual() if handler is None else handler(ask))
        except Refuse as refused:
            error = {"code": refused.code, "message": refused.message}
            error |= {} if refused.data is None else {"data": refused.data}
            answer = Whole({"jsonrpc": "2.0", "id": ask.id, "error": error})
        if answer is not None:
            await conversation.say(_message(ask, answer), way, misbehaved=handler is not None, last=True)

    def _turn(self, request: JSONObject) -> int:
        method = f"request {request.get('method')}"
        self._turns[method] += 1
        return self._turns[method] - 1

    def _handler(self, ask: Ask) -> Handler | None:
        handlers = self.scene.handlers
        if ask.method in handlers:
            return handlers[ask.method]
        if self._first and FIRST in handlers and ask.method not in _PREAMBLE:
            self._first = False
            return handlers[FIRST]
        return None

    # --- what a good server answers --------------------------------------------------------------------------------

    async def usual(self, ask: Ask) -> JSONObject:
        """The result for a request. Raises `Refuse`."""
        rules = RULES[self.revision]
        if ask.method not in table(self.revision, "client"):
            raise Refuse(METHOD_NOT_FOUND, f"Method not found: {ask.method}")
        version = ask.meta.get(PROTOCOL_VERSION)
        if not rules.handshake and version != self.revision:
            if version is None:
                raise Refuse(INVALID_PARAMS, f"_meta has no {PROTOCOL_VERSION}")
            data = {"supported": [self.revision], "requested": version}
            raise Refuse(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        answer = USUAL.get(ask.method)
        return ask.dressed(await answer(ask) if answer is not None else {})

    async def _trapped(self, exchange: Exchange, reply: Reply) -> None:
        await reply.whole(404)


def _message(ask: Ask, answer: Answer) -> Any:
    if isinstance(answer, Whole):
        return answer.message
    return answer if isinstance(answer, bytes) else ask.answer(answer)


Usual = Callable[[Ask], Awaitable[JSONObject]]


async def _hello(ask: Ask) -> JSONObject:
    declared = ask.params.get("capabilities")
    ask.conversation.declared = declared if isinstance(declared, dict) else {}
    return hello(ask.conversation.stand.revision, ask.conversation.stand.scene.offer)


async def _nothing(ask: Ask) -> JSONObject:
    return {}


async def _tools(ask: Ask) -> JSONObject:
    return {"tools": ask.conversation.stand.scene.offer.tools_in(ask.conversation.stand.revision)}


async def _resources(ask: Ask) -> JSONObject:
    return {"resources": [*ask.conversation.stand.scene.offer.resources]}


async def _templates(ask: Ask) -> JSONObject:
    return {"resourceTemplates": [*ask.conversation.stand.scene.offer.templates]}


async def _prompts(ask: Ask) -> JSONObject:
    return {"prompts": [*ask.conversation.stand.scene.offer.prompts]}


async def _call(ask: Ask) -> JSONObject:
    name = str(ask.params.get("name"))
    if name not in {each["name"] for each in ask.conversation.stand.scene.offer.tools}:
        raise Refuse(INVALID_PARAMS, f"Unknown tool: {name}")
    token = ask.meta.get("progressToken")
    if name == "slow" and token is not None:
        for step in range(1, _STEPS + 1):
            await ask.tell("notifications/progress", {"progressToken": token, "progress": step, "total": _STEPS})
    return called(name, ask.params.get("arguments"), ask.conversation.stand.revision)


async def _read(ask: Ask) -> JSONObject:
    uri = str(ask.params.get("uri"))
    if not uri.startswith("notes://"):
        raise Refuse(ask.rules.resource_not_found, "Resource not found", {"uri": uri})
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": f"notes of {uri[8:]}"}]}


async def _prompt(ask: Ask) -> JSONObject:
    if ask.params.get("name") not in {each["name"] for each in ask.conversation.stand.scene.offer.prompts}:
        raise Refuse(INVALID_PARAMS, "Unknown prompt")
    return {"messages": [{"role": "user", "content": text("Plan a day.")}]}


async def _complete(ask: Ask) -> JSONObject:
    return {"completion": {"values": ["monday", "tuesday"]}}


async def _listen(ask: Ask) -> JSONObject:
    """Acknowledge, and stay open until the client has enough of it."""
    await ask.tell(
        "notifications/subscriptions/acknowledged",
        {"_meta": {SUBSCRIPTION_ID: ask.id}, "notifications": ask.params.get("notifications", {})},
    )
    await ask.cancelled(seconds=3_600)
    return {"_meta": {SUBSCRIPTION_ID: ask.id}}


USUAL: dict[str, Usual] = {
    "initialize": _hello,
    "server/discover": _hello,
    "tools/list": _tools,
    "tools/call": _call,
    "resources/list": _resources,
    "resources/templates/list": _templates,
    "resources/read": _read,
    "prompts/list": _prompts,
    "prompts/get": _prompt,
    "completion/complete": _complete,
    "subscriptions/listen": _listen,
    "ping": _nothing,
}
"""By method. What is not here has an empty result."""


def tagged(id: Any, method: str, params: JSONObject | None = None) -> JSONObject:
    """A notification of one subscription."""
    return notification(method, {**(params or {}), "_meta": {SUBSCRIPTION_ID: id}})
