"""Two ends of one wire: what goes out, what comes in, which answer is for which request. No words of the protocol.

Whatever comes is on record. A request of the peer is answered as a good client does, and a stream over HTTP that ended
early is taken up again where its events say so.

Why no answer came, in words: what HTTP said instead, and what a process wrote before it ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import UNSET

from accord.check.engine.report import TransportName
from accord.check.engine.rule import NotObserved, Violation
from accord.check.probes.client_messages import DEFAULT_RESULTS, all_capabilities, http_headers
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, LoggedResponse, MessageLog, message_objects
from accord.check.probes.pending_answer import CONNECTION_LOST, UNREADABLE_ANSWER, Answer, PendingAnswer, arrives
from accord.check.settings import CheckSettings
from accord.check.wires.base import ProcessorUse, Wire, processor_use
from accord.check.wires.child import ChildWire
from accord.check.wires.http import Headers, HTTPWire
from accord.messages import envelope
from accord.messages.base import JSONObject
from accord.messages.revision import RULES, Rules
from accord.transport.http.redaction import without_credentials
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent
from accord.wire.transcript import RECEIVED, SENT

_BODY = 300
"""At most so many bytes of a body are shown."""
_STDERR = 400
"""Characters of what a process wrote last, in whole lines; of one that is longer, its end."""
_UNDERLINE = re.compile(r"[\s^~]*").fullmatch
"""What tracebacks put below a line of code."""


def describe_refusal(response: LoggedResponse) -> str:
    """Describe a response that holds no answer: `HTTP 307 to https://example.com/mcp`, `HTTP 404: not here`."""
    if not response.status:
        return response.error
    entry = f"HTTP {response.status}"
    if "location" in response.headers:
        entry += f" to {without_credentials(response.headers['location'])}"
    if response.events:
        return f"{entry}, and the stream ended without an answer"
    if response.error:
        entry += f", and the response broke off ({response.error})"
    body = response.body[:_BODY].decode(errors="replace").strip()
    kind = response.headers.get("content-type", "").partition(";")[0]
    return f"{entry}, {kind or 'no content type'}: {body}" if body else f"{entry} without a body"


def stderr_tail(stderr: str) -> str:
    """Return the end of the stderr of a process, after a semicolon; empty if there is none."""
    kept: list[str] = []
    for line in reversed(stderr.splitlines()):
        if _UNDERLINE(line):
            continue
        if kept and sum(map(len, kept)) + len(line) > _STDERR:
            break
        kept.insert(0, line[-_STDERR:])
    return "; its last words:\n" + "\n".join(kept) if kept else ""


_LAST = 4
"""So many of the last messages are evidence, if a case does not say which."""
_LONGEST_PAUSE = 2.0
"""A stream is resumed after at most this many seconds, whatever its `retry` says."""
_CRASH_CAUSE = "An exception ends the whole server: catch it around each message, and answer with an error."
_UNREADABLE_CAUSE = "JSON is put together by hand, or a text is cut in the middle of a character."
_PAUSE = 0.05
"""Seconds that a pause grows by from one to the next: a server may end each stream at once."""
_RESUMPTIONS = 40
"""A stream is resumed at most this many times for one answer."""


class ProbeConnection:
    """One conversation. `read_responses` says what requests of the peer get: a result, or a function of the request."""

    def __init__(self, wire: Wire, log: MessageLog, settings: CheckSettings) -> None:
        self.wire: Wire = wire
        self.log: MessageLog = log
        self.settings: CheckSettings = settings
        self.revision: str = log.revision
        self.rules: Rules = RULES[log.revision]
        self.transport: TransportName = wire.transport
        self.client_capabilities: JSONObject = all_capabilities(log.revision)
        """Our capabilities."""
        self.canned_results: dict[str, Any] = dict(DEFAULT_RESULTS)
        self.schemas: dict[str, JSONObject] = {}
        """The input schemas of tools, by name, as far as they were listed: arguments may stand in headers too."""
        self.alive: bool = True
        self.peer_logs: list[MessageLog] = [log]
        """The records of all conversations with the same peer."""
        self._limit_reason = ""
        self._closing: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._pending: dict[Any, PendingAnswer] = {}
        self._listeners: list[Callable[[LogEntry], None]] = []
        wire.on_message = self._on_message
        wire.on_close = self._on_close
        if isinstance(wire, HTTPWire):
            wire.on_response = self._on_response

    @property
    def http(self) -> HTTPWire | None:
        """The wire if it is HTTP, else None: `await talk.http.fetch("POST", body, headers)`."""
        return self.wire if isinstance(self.wire, HTTPWire) else None

    @property
    def last_received_at(self) -> float:
        """When the server last said anything, by the clock of the loop; 0 before. Over HTTP all conversations count."""
        return max(_last_received(log) for log in (self.peer_logs if self.http is not None else [self.log]))

    @property
    def answer_timeout(self) -> float:
        """How long to wait for an answer, in seconds: a process that has said nothing yet may still be starting."""
        is_starting = self.transport == "stdio" and not any(each.direction == RECEIVED for each in self.log.entries)
        return self.settings.opening if is_starting else self.settings.timeout

    def processor_use(self) -> ProcessorUse | None:
        """Return what the process of the peer has used of the processor; None where it is not a process of ours."""
        return processor_use(self.wire.pid) if isinstance(self.wire, ChildWire) and self.wire.pid else None

    def next_id(self) -> int:
        """Return an id that this conversation has not used."""
        return next(self._ids)

    def send(
        self, message: Any, *, headers: Headers | None = None, misbehaved: bool = True, ending: bytes = b""
    ) -> PendingAnswer:
        """Send anything: bytes as they are, all else as JSON, with `ending` behind it. The `PendingAnswer` is that of
        its id, if it has one.
        """
        pending = self.add_request(message, misbehaved=misbehaved)
        if self.alive:
            raw = self.log.entries[-1].raw
            assert isinstance(raw, bytes), "we sent it"
            own = http_headers(self, self.log.entries[-1].message)
            pending.stream = self.wire.send(raw + ending, {**own, **(headers or {})})
        return pending

    def add_request(self, message: Any, *, misbehaved: bool = False) -> PendingAnswer:
        """Record a message that is sent in another way, and return the `PendingAnswer` of its answer."""
        if self.settings.passive and (misbehaved or not _is_passive(message)):
            raise NotObserved("the message was not sent (--passive)")
        raw = message if isinstance(message, bytes) else msgspec.json.encode(message)
        pending = PendingAnswer(self, message if isinstance(message, dict) else {}, 0, len(self.log.entries))
        if not self.alive:
            pending.future.set_exception(self._connection_lost(pending))
            pending.future.exception()
            return pending
        if isinstance(message, dict) and "method" in message and "id" in message:
            self.add_pending(pending)
        self.log.add(SENT, raw, misbehaved=misbehaved, stream=len(self.log.responses) + 1)
        return pending

    def add_pending(self, pending: PendingAnswer) -> None:
        """Take the next message with its id for its answer; of two requests with one id, the first gets it."""
        if _hashable(pending.id):
            self._pending.setdefault(_key(pending.id), pending)

    async def wait_for_message(
        self, wanted: Callable[[JSONObject], bool], seconds: float | None = None
    ) -> JSONObject | None:
        """Return the next message for which `wanted` is true; None if none comes in time."""
        found: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()

        def listen(entry: LogEntry) -> None:
            try:
                for each in message_objects(entry.message):
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

    def other_messages(self, since: int, id: Any) -> list[JSONObject]:
        """Return what the server has sent since then, without the answer to `id`."""
        heard = (entry for entry in self.log.entries[since:] if entry.direction == RECEIVED)
        return [each for entry in heard for each in message_objects(entry.message) if not _is_response_to(each, id)]

    def http_response(self, stream: int) -> LoggedResponse | None:
        """Return what came for a request so far (HTTP)."""
        return self.log.responses[stream - 1] if 0 < stream <= len(self.log.responses) else None

    def violation(self, text: str, *, since: int | None = None, symptom: str = "", cause: str = "") -> Violation:
        """Return a `Violation` whose evidence is what was said since then, or the last messages of the case."""
        start = self._case_start() if since is None else since
        return Violation(text, symptom=symptom, cause=cause, evidence=self.log.evidence(start))

    def _case_start(self) -> int:
        """Return the index of the first of the last messages that belong to the current case."""
        start = len(self.log.entries)
        while start > max(0, len(self.log.entries) - _LAST) and (self.log.entries[start - 1].case == self.log.case):
            start -= 1
        return start

    async def wait_for_response_end(self, stream: int) -> None:
        """Over HTTP: wait until the response to a POST has ended, or the time is over."""
        response = self.http_response(stream)
        if response is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.timeout):
                    await response.closed.wait()

    async def close(self) -> None:
        """End it, once. What the peer wrote to its stderr, and how it ended, is in the record then."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.wait([self._closing])  # whoever is late for it waits as well, and takes nobody's cancellation
        if not self._closing.cancelled():
            self._closing.result()

    async def _close(self) -> None:
        await self.wire.close()
        self.log.stderr = self.wire.stderr
        self.log.exit_code = self.wire.exit_code

    def _on_message(self, raw: bytes | SkippedMessage, stream: int) -> None:
        if self.log.memory.exhausted:
            self._stop_receiving(self.log.memory.exhausted)
            return
        entry = self.log.add(RECEIVED, raw, stream=stream)
        if entry.message is None and isinstance(raw, bytes):
            self._fail_unreadable(raw)
        for each in message_objects(entry.message):
            if "method" in each:
                self._respond(each)
            elif _hashable(each.get("id")):
                self._resolve_pending(each, raw if isinstance(raw, bytes) else b"", stream)
        for listen in list(self._listeners):
            listen(entry)

    def _fail_unreadable(self, raw: bytes) -> None:
        """Fail each request that an unreadable message names, with the reason."""
        try:
            envelope.read(raw)
        except envelope.MalformedMessage as exc:
            for outline in exc.outlines:
                pending = None if outline.id is None else self._pending.pop(_key(outline.id), None)
                if pending is not None and not pending.future.done():
                    pending.future.set_exception(self._unreadable_violation(pending, str(exc)))
                    pending.future.exception()  # whoever waits gets it; nobody has to

    def _unreadable_violation(self, pending: PendingAnswer, why: str) -> Violation:
        what = pending.request.get("method", "the message")
        text = f"the answer to {what} cannot be read: {why}"
        return self.violation(text, since=pending.since, symptom=f"{UNREADABLE_ANSWER}:{what}", cause=_UNREADABLE_CAUSE)

    def _stop_receiving(self, why: str) -> None:
        """End the conversation: messages that are not kept cannot be judged."""
        if not self._limit_reason:
            self._limit_reason = why
            self._on_close()
            self._closing = asyncio.create_task(self._close())

    def _resolve_pending(self, message: JSONObject, raw: bytes, stream: int) -> None:
        pending = self._pending.pop(_key(message.get("id")), None)
        if pending is None or pending.future.done():
            return
        response = self.http_response(pending.stream)
        error = message.get("error")
        pending.future.set_result(
            Answer(
                request=pending.request,
                id=message.get("id"),
                message=message,
                raw=raw,
                result=message.get("result", UNSET),
                error=error if isinstance(error, dict) else None if error is None else {"message": preview_json(error)},
                status=response.status if response else None,
                headers=response.headers if response else {},
            )
        )

    def _respond(self, message: JSONObject) -> None:
        """Answer what the server asks, as a good client does."""
        if "id" not in message:
            return
        method = message["method"]
        result = self.canned_results.get(method) if isinstance(method, str) else None
        if callable(result):
            result = result(message)
        entry: JSONObject = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            entry["error"] = {"code": -32601, "message": "Method not found"}
        else:
            entry["result"] = result
        self.send(entry, misbehaved=False)

    def _on_response(self, response: LoggedResponse) -> None:
        """A response has ended: a request that was to be answered on it, and was not, gets what HTTP said."""
        refused = response.error or response.status >= 300 or not response.status
        if self.transport == "sse" and not refused:
            return
        waiting = [pending for pending in self._pending.values() if pending.stream == response.stream]
        if waiting and not refused and self._resume_stream(response, waiting):
            return
        for pending in waiting:
            self._pending.pop(_key(pending.id), None)
            pending.fail_with_http(describe_refusal(response), response.status, response.headers)

    def _resume_stream(self, response: LoggedResponse, waiting: list[PendingAnswer]) -> bool:
        """Resume a stream that ended early, if its events have ids. Returns whether they do."""
        last = next(
            (event.id for event in reversed(response.events) if isinstance(event, ServerSentEvent) and event.id), None
        )
        times = waiting[0].resumptions
        if last is None or self.http is None or times == _RESUMPTIONS:
            return False
        retry = next(
            (event.retry for event in reversed(response.events) if isinstance(event, ServerSentEvent) and event.retry),
            0,
        )
        pause = min(max(retry / 1000, times * _PAUSE), _LONGEST_PAUSE)
        asyncio.get_running_loop().call_later(pause, self._reopen_stream, last, waiting)
        return True

    def _reopen_stream(self, last: str, waiting: list[PendingAnswer]) -> None:
        if self.alive and self.http is not None:
            stream = self.http.open_stream({"Last-Event-ID": last, "MCP-Protocol-Version": self.revision}).stream
            for pending in waiting:
                pending.stream = stream
                pending.resumptions += 1

    def _on_close(self) -> None:
        self.alive = False
        for pending in list(self._pending.values()):
            if not pending.future.done():
                pending.future.set_exception(self._connection_lost(pending))
                pending.future.exception()  # whoever waits gets it; nobody has to
        self._pending.clear()

    def _connection_lost(self, pending: PendingAnswer) -> Violation | NotObserved:
        if self._limit_reason:
            return NotObserved(self._limit_reason)
        what = pending.request.get("method", "the message")
        text = f"no answer to {what}: {self.wire.close_reason}{stderr_tail(self.wire.stderr)}"
        cause = _CRASH_CAUSE if self.wire.exit_code else ""
        return self.violation(text, since=pending.since, symptom=f"{CONNECTION_LOST}:{what}", cause=cause)


def _last_received(log: MessageLog) -> float:
    return next((each.at for each in reversed(log.entries) if each.direction != SENT), 0.0)


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


def _is_response_to(message: JSONObject, id: Any) -> bool:
    return "method" not in message and message.get("id") == id and type(message.get("id")) is type(id)
