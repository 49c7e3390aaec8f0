"""Two ends of one wire: what goes out, what comes in, which answer is for which request. No words of the protocol.

Whatever comes is on record. A request of the peer is answered as a good client does, and a stream over HTTP that ended
early is taken up again where its events say so.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from accord.check.endings import last_words, refusal
from accord.check.record import Record, Reply, Said, objects
from accord.check.report import TransportName
from accord.check.rule import Broken, NotObserved
from accord.check.settings import CheckSettings
from accord.check.speech import CANNED, all_capabilities, http_headers
from accord.check.values import shown
from accord.check.waiting import GARBLED, GONE, Answer, Pending, arrives
from accord.check.wires.base import Wire
from accord.check.wires.child import ChildWire
from accord.check.wires.http import Headers, HTTPWire
from accord.check.wires.processor import ProcessorUse, processor_use
from accord.messages import envelope
from accord.messages.base import JSONObject
from accord.messages.revision import RULES, Rules
from accord.wire.lines import Unreadable
from accord.wire.sse import Event
from accord.wire.transcript import RECEIVED, SENT

_LAST = 4
"""So many of the last messages are evidence, if a case does not say which."""
_LONGEST_PAUSE = 2.0
"""A stream is resumed after at most this many seconds, whatever its `retry` says."""
_CRASHED = "An exception ends the whole server: catch it around each message, and answer with an error."
_GARBLED = "JSON is put together by hand, or a text is cut in the middle of a character."
_PAUSE = 0.05
"""Seconds that a pause grows by from one to the next: a server may end each stream at once."""
_RESUMPTIONS = 40
"""A stream is resumed at most this many times for one answer."""


class Conversation:
    """One conversation. `answers` says what requests of the peer get: a result, or a function of the request."""

    def __init__(self, wire: Wire, record: Record, settings: CheckSettings) -> None:
        self.wire: Wire = wire
        self.record: Record = record
        self.settings: CheckSettings = settings
        self.revision: str = record.revision
        self.rules: Rules = RULES[record.revision]
        self.transport: TransportName = wire.transport
        self.declared: JSONObject = all_capabilities(record.revision)
        """Our capabilities."""
        self.answers: dict[str, Any] = dict(CANNED)
        self.schemas: dict[str, JSONObject] = {}
        """The input schemas of tools, by name, as far as they were listed: arguments may stand in headers too."""
        self.alive: bool = True
        self.beside: list[Record] = [record]
        """The records of all conversations with the same peer."""
        self._cut = ""
        self._closing: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._pending: dict[Any, Pending] = {}
        self._listeners: list[Callable[[Said], None]] = []
        wire.on_heard = self._on_heard
        wire.on_end = self._on_end
        if isinstance(wire, HTTPWire):
            wire.on_reply = self._on_reply

    @property
    def http(self) -> HTTPWire | None:
        """The wire if it is HTTP, else None: `await talk.http.fetch("POST", body, headers)`."""
        return self.wire if isinstance(self.wire, HTTPWire) else None

    @property
    def heard_at(self) -> float:
        """When the server last said anything, by the clock of the loop; 0 before. Over HTTP all conversations count."""
        return max(_last(record) for record in (self.beside if self.http is not None else [self.record]))

    @property
    def patience(self) -> float:
        """How long to wait for an answer, in seconds: a process that has said nothing yet may still be starting."""
        is_starting = self.transport == "stdio" and not any(each.direction == RECEIVED for each in self.record.entries)
        return self.settings.opening if is_starting else self.settings.timeout

    def processor_use(self) -> ProcessorUse | None:
        """Return what the process of the peer has used of the processor; None where it is not a process of ours."""
        return processor_use(self.wire.pid) if isinstance(self.wire, ChildWire) and self.wire.pid else None

    def next_id(self) -> int:
        """Return an id that this conversation has not used."""
        return next(self._ids)

    def send(
        self, message: Any, *, headers: Headers | None = None, misbehaved: bool = True, ending: bytes = b""
    ) -> Pending:
        """Send anything: bytes as they are, all else as JSON, with `ending` behind it. The `Pending` is that of its id,
        if it has one.
        """
        pending = self.expect(message, misbehaved=misbehaved)
        if self.alive:
            raw = self.record.entries[-1].raw
            assert isinstance(raw, bytes), "we sent it"
            own = http_headers(self, self.record.entries[-1].message)
            pending.stream = self.wire.send(raw + ending, {**own, **(headers or {})})
        return pending

    def expect(self, message: Any, *, misbehaved: bool = False) -> Pending:
        """Record a message that is sent in another way, and return the `Pending` of its answer."""
        if self.settings.passive and (misbehaved or not _is_passive(message)):
            raise NotObserved("the message was not sent (--passive)")
        raw = message if isinstance(message, bytes) else msgspec.json.encode(message)
        pending = Pending(self, message if isinstance(message, dict) else {}, 0, len(self.record.entries))
        if not self.alive:
            pending.future.set_exception(self._gone(pending))
            pending.future.exception()
            return pending
        if isinstance(message, dict) and "method" in message and "id" in message:
            self.await_answer(pending)
        self.record.add(SENT, raw, misbehaved=misbehaved, stream=len(self.record.replies) + 1)
        return pending

    def await_answer(self, pending: Pending) -> None:
        """Take the next message with its id for its answer; of two requests with one id, the first gets it."""
        if _hashable(pending.id):
            self._pending.setdefault(_key(pending.id), pending)

    async def hear(self, wanted: Callable[[JSONObject], bool], seconds: float | None = None) -> JSONObject | None:
        """Return the next message for which `wanted` is true; None if none comes in time."""
        found: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()

        def listen(said: Said) -> None:
            try:
                for each in objects(said.message):
                    if not found.done() and wanted(each):
                        found.set_result(each)
            except Exception as exc:  # a defect of the rule: it belongs to who waits, not to whoever reads on
                found.set_exception(exc)

        self._listeners.append(listen)
        limit = self.settings.timeout if seconds is None else seconds
        try:
            return found.result() if await arrives(found, self, limit, limit) else None
        finally:
            self._listeners.remove(listen)

    def others(self, since: int, id: Any) -> list[JSONObject]:
        """Return what the server has sent since then, without the answer to `id`."""
        heard = (said for said in self.record.entries[since:] if said.direction == RECEIVED)
        return [each for said in heard for each in objects(said.message) if not _answers(each, id)]

    def reply(self, stream: int) -> Reply | None:
        """Return what came for a request so far (HTTP)."""
        return self.record.replies[stream - 1] if 0 < stream <= len(self.record.replies) else None

    def broken(self, text: str, *, since: int | None = None, symptom: str = "", cause: str = "") -> Broken:
        """Return a `Broken` whose evidence is what was said since then, or the last messages of the case."""
        start = self._of_this_case() if since is None else since
        return Broken(text, symptom=symptom, cause=cause, evidence=self.record.evidence(start))

    def _of_this_case(self) -> int:
        """Return the index of the first of the last messages that belong to the current case."""
        start = len(self.record.entries)
        while start > max(0, len(self.record.entries) - _LAST) and (
            self.record.entries[start - 1].case == self.record.case
        ):
            start -= 1
        return start

    async def settled(self, stream: int) -> None:
        """Over HTTP: wait until the response to a POST has ended, or the time is over."""
        reply = self.reply(stream)
        if reply is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.timeout):
                    await reply.over.wait()

    async def close(self) -> None:
        """End it, once. What the peer wrote to its stderr, and how it ended, is in the record then."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.wait([self._closing])  # whoever is late for it waits as well, and takes nobody's cancellation
        if not self._closing.cancelled():
            self._closing.result()

    async def _close(self) -> None:
        await self.wire.close()
        self.record.stderr = self.wire.stderr
        self.record.exit_code = self.wire.exit_code

    def _on_heard(self, raw: bytes | Unreadable, stream: int) -> None:
        if self.record.room.full:
            self._cut_off(self.record.room.full)
            return
        said = self.record.add(RECEIVED, raw, stream=stream)
        if said.message is None and isinstance(raw, bytes):
            self._fail(raw)
        for each in objects(said.message):
            if "method" in each:
                self._serve(each)
            elif _hashable(each.get("id")):
                self._settle(each, raw if isinstance(raw, bytes) else b"", stream)
        for listen in list(self._listeners):
            listen(said)

    def _fail(self, raw: bytes) -> None:
        """Fail each request that an unreadable message names, with the reason."""
        try:
            envelope.read(raw)
        except envelope.Malformed as exc:
            for outline in exc.outlines:
                pending = None if outline.id is None else self._pending.pop(_key(outline.id), None)
                if pending is not None and not pending.future.done():
                    pending.future.set_exception(self._garbled(pending, str(exc)))
                    pending.future.exception()  # whoever waits gets it; nobody has to

    def _garbled(self, pending: Pending, why: str) -> Broken:
        what = pending.request.get("method", "the message")
        text = f"the answer to {what} cannot be read: {why}"
        return self.broken(text, since=pending.since, symptom=f"{GARBLED}:{what}", cause=_GARBLED)

    def _cut_off(self, why: str) -> None:
        """End the conversation: messages that are not kept cannot be judged."""
        if not self._cut:
            self._cut = why
            self._on_end()
            self._closing = asyncio.create_task(self._close())

    def _settle(self, message: JSONObject, raw: bytes, stream: int) -> None:
        pending = self._pending.pop(_key(message.get("id")), None)
        if pending is None or pending.future.done():
            return
        reply = self.reply(pending.stream)
        error = message.get("error")
        pending.future.set_result(
            Answer(
                request=pending.request,
                id=message.get("id"),
                message=message,
                raw=raw,
                result=message.get("result", UNSET),
                error=error if isinstance(error, dict) else None if error is None else {"message": shown(error)},
                status=reply.status if reply else None,
                headers=reply.headers if reply else {},
            )
        )

    def _serve(self, message: JSONObject) -> None:
        """Answer what the server asks, as a good client does."""
        if "id" not in message:
            return
        method = message["method"]
        result = self.answers.get(method) if isinstance(method, str) else None
        if callable(result):
            result = result(message)
        said: JSONObject = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            said["error"] = {"code": -32601, "message": "Method not found"}
        else:
            said["result"] = result
        self.send(said, misbehaved=False)

    def _on_reply(self, reply: Reply) -> None:
        """A response has ended: a request that was to be answered on it, and was not, gets what HTTP said."""
        refused = reply.error or reply.status >= 300 or not reply.status
        if self.transport == "sse" and not refused:
            return
        waiting = [pending for pending in self._pending.values() if pending.stream == reply.stream]
        if waiting and not refused and self._resume(reply, waiting):
            return
        for pending in waiting:
            self._pending.pop(_key(pending.id), None)
            pending.refuse(refusal(reply), reply.status, reply.headers)

    def _resume(self, reply: Reply, waiting: list[Pending]) -> bool:
        """Resume a stream that ended early, if its events have ids. Returns whether they do."""
        last = next((event.id for event in reversed(reply.events) if isinstance(event, Event) and event.id), None)
        times = waiting[0].resumed
        if last is None or self.http is None or times == _RESUMPTIONS:
            return False
        retry = next((event.retry for event in reversed(reply.events) if isinstance(event, Event) and event.retry), 0)
        pause = min(max(retry / 1000, times * _PAUSE), _LONGEST_PAUSE)
        asyncio.get_running_loop().call_later(pause, self._come_back, last, waiting)
        return True

    def _come_back(self, last: str, waiting: list[Pending]) -> None:
        if self.alive and self.http is not None:
            stream = self.http.listen({"Last-Event-ID": last, "MCP-Protocol-Version": self.revision}).stream
            for pending in waiting:
                pending.stream = stream
                pending.resumed += 1

    def _on_end(self) -> None:
        self.alive = False
        for pending in list(self._pending.values()):
            if not pending.future.done():
                pending.future.set_exception(self._gone(pending))
                pending.future.exception()  # whoever waits gets it; nobody has to
        self._pending.clear()

    def _gone(self, pending: Pending) -> Broken | NotObserved:
        if self._cut:
            return NotObserved(self._cut)
        what = pending.request.get("method", "the message")
        text = f"no answer to {what}: {self.wire.lost}{last_words(self.wire.stderr)}"
        cause = _CRASHED if self.wire.exit_code else ""
        return self.broken(text, since=pending.since, symptom=f"{GONE}:{what}", cause=cause)


def _last(record: Record) -> float:
    return next((each.at for each in reversed(record.entries) if each.direction != SENT), 0.0)


_PASSIVE = frozenset(
    (
        "initialize",
        "notifications/initialized",
        "server/discover",
        "ping",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
    )
)
"""All that is said to a server with `--passive`, beside answers to its own requests."""


def _is_passive(message: Any) -> bool:
    return isinstance(message, dict) and ("method" not in message or message["method"] in _PASSIVE)


def _hashable(id: Any) -> bool:
    return isinstance(id, int | str | float) or id is None


def _key(id: Any) -> tuple[type, Any]:
    return type(id), id


def _answers(message: JSONObject, id: Any) -> bool:
    return "method" not in message and message.get("id") == id and type(message.get("id")) is type(id)
