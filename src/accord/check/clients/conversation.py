"""One conversation with a client: a process over stdio, a session over HTTP, or all requests where there is none."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, Any

from accord.check.clients.ask import Ask, Way, encoded
from accord.check.record import Record, objects
from accord.messages.base import JSONObject
from accord.messages.revision import RULES, Rules
from accord.wire.transcript import RECEIVED, SENT

if TYPE_CHECKING:
    from accord.check.clients.stand import Stand

CANCELLED = "notifications/cancelled"

_COUNTED = 64 << 10
"""Of one message of ours counts no more: a longer one is what the scene is about, and is said once."""


class Conversation:
    """What was said, what is being answered, and what we asked."""

    def __init__(self, stand: Stand, number: int) -> None:
        self.stand: Stand = stand
        self.number: int = number
        """From 1, in the order in which they began."""
        self.record: Record = Record(stand.revision, stand.transport, "own", stand.scene.name)
        self.declared: JSONObject = {}
        """The capabilities of the client, from the handshake."""
        self.standing: Way | None = None
        """Where to say what belongs to no request."""
        self.endings: list[str] = []
        """Over stdio: how the client ended the server, in order: `closed` (its stdin), `terminated` (SIGTERM),
        `killed`, and `orphaned` where SIGTERM came when the client was no more."""
        self._given_up: dict[Any, asyncio.Event] = {}
        self._waiting: dict[Any, asyncio.Future[JSONObject]] = {}
        self._ids = itertools.count(1)

    @property
    def rules(self) -> Rules:
        """How its revision behaves."""
        return RULES[self.stand.revision]

    # --- what the client says --------------------------------------------------------------------------------------

    def hear(self, raw: bytes, stream: int = 0) -> list[JSONObject]:
        """Take note of what came; the requests in it, which are to be answered."""
        said = self.record.add(RECEIVED, raw, stream=stream)
        requests: list[JSONObject] = []
        for message in objects(said.message):
            if "method" not in message:
                self._take_answer(message)
            elif "id" in message:
                requests.append(message)
            elif message["method"] == CANCELLED:
                self._take_cancel(message.get("params"))
            self.stand.heard(message)
        if not requests and said.message is None:
            self.stand.heard({})
        return requests

    def _take_answer(self, message: JSONObject) -> None:
        waiting = self._waiting.get(key(message.get("id")))
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def _take_cancel(self, params: Any) -> None:
        id = params.get("requestId") if isinstance(params, dict) else None
        self._event(id).set()

    def _event(self, id: Any) -> asyncio.Event:
        return self._given_up.setdefault(key(id), asyncio.Event())

    async def given_up(self, ask: Ask, seconds: float) -> bool:
        """Wait until the client gives a request up."""
        return await _within(self._event(ask.id).wait(), seconds)

    def is_given_up(self, id: Any) -> bool:
        """Whether the client has given a request up."""
        return self._event(id).is_set()

    def hung_up(self, *ids: Any) -> None:
        """The stream of these requests was closed by the client."""
        for id in ids:
            self._event(id).set()

    # --- what we say -----------------------------------------------------------------------------------------------

    async def say(self, message: Any, way: Way, *, misbehaved: bool = False, last: bool = False) -> None:
        """Send a message, or bytes as they are, and take note of it."""
        raw = encoded(message)
        self.stand.room.take(raw[:_COUNTED])
        self.record.add(SENT, raw, misbehaved=misbehaved, stream=getattr(way, "stream", 0))
        await way.send(raw, last=last)

    async def ask(
        self, method: str, params: JSONObject | None, way: Way, *, id: Any = None, seconds: float
    ) -> JSONObject | None:
        """Send a request, and wait for its answer; None where none comes in time."""
        number = f"check-{next(self._ids)}" if id is None else id
        waiting = self._waiting[key(number)] = asyncio.get_running_loop().create_future()
        request: JSONObject = {"jsonrpc": "2.0", "id": number, "method": method}
        await self.say(request if params is None else request | {"params": params}, way)
        await _within(waiting, seconds)
        return waiting.result() if waiting.done() and not waiting.cancelled() else None


def key(id: Any) -> tuple[str, Any]:
    """An id with its type: 7 is not "7". What is no id is known by its text."""
    return type(id).__name__, id if isinstance(id, str | int | float) else repr(id)


async def _within(what: Any, seconds: float) -> bool:
    try:
        await asyncio.wait_for(what, seconds)
    except TimeoutError:
        return False
    return True
