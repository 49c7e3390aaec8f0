"""One connection of a probe: outgoing and incoming messages, and the response to each request.

All messages are logged. A request from the peer gets a valid response, and an HTTP stream that ends early is resumed
if its events allow that. If there is no response, the reason includes the HTTP response and the stderr of a process.
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
from accord.redaction import cut, redact, redact_beginning
from accord.transport.http.redaction import without_credentials
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent
from accord.wire.transcript import RECEIVED, SENT

WITHHELD: object = object()
"""In place of a canned result: the request stays without a response."""

_BODY = 300
"""Maximum number of bytes of a body that are shown."""
_STDERR = 400
"""Maximum number of characters of stderr that are shown, in whole lines from its end."""
_STDERR_LINE = 1_200
_STDERR_LINES = 20
"""Limits of the lines in which secrets are searched: a secret may begin above what is shown."""
_UNDERLINE = re.compile(r"[\s^~]*").fullmatch
"""Lines of tracebacks that mark a line of code."""


def describe_refusal(response: LoggedResponse) -> str:
    """Describe a response without a JSON-RPC message: `HTTP 307 to https://example.com/mcp`, `HTTP 404: not here`."""
    if not response.status:
        return response.error
    entry = f"HTTP {response.status}"
    if "location" in response.headers:
        entry += f" to {without_credentials(response.headers['location'])}"
    if response.events:
        return f"{entry}, and the stream ended without a response"
    if response.error:
        entry += f", and the response is incomplete ({response.error})"
    body = redact_beginning(response.body.decode(errors="replace").strip(), _BODY)
    kind = response.headers.get("content-type", "").partition(";")[0]
    return f"{entry}, {kind or 'no content type'}: {body}" if body else f"{entry} without a body"


def stderr_tail(stderr: str) -> str:
    """Return the end of the stderr of a process, after a semicolon; empty if there is none."""
    kept: list[str] = []
    shown = "\n".join("".join(cut(line, _STDERR_LINE)) for line in stderr.splitlines()[-_STDERR_LINES:])
    for line in reversed(str(redact(shown)).splitlines()):
        if _UNDERLINE(line):
            continue
        if kept and sum(map(len, kept)) + len(line) > _STDERR:
            break
        kept.insert(0, line[-_STDERR:])
    return "; its last output:\n" + "\n".join(kept) if kept else ""


_LAST = 4
"""Number of the last messages that are evidence if a case does not name any."""
_LONGEST_PAUSE = 2.0
"""Maximum number of seconds before a stream is resumed, whatever its `retry` is."""
_CRASH_CAUSE = "An exception ends the whole server: catch it for each message, and return an error."
_UNREADABLE_CAUSE = "JSON is built by hand, or a string is split inside a character."
_PAUSE = 0.05
"""Seconds that each pause is longer than the one before: a server may end each stream immediately."""
_RESUMPTIONS = 40
"""Maximum number of resumptions of a stream for one response."""


class ProbeConnection:
    """One connection. `canned_results` are the responses to requests from the peer: a result, or a function of the
    request.
    """

    def __init__(self, wire: Wire, log: MessageLog, settings: CheckSettings) -> None:
        self.wire: Wire = wire
        self.log: MessageLog = log
        self.settings: CheckSettings = settings
        self.revision: str = log.revision
        self.rules: Rules = RULES[log.revision]
        self.transport: TransportName = wire.transport
        self.client_capabilities: JSONObject = all_capabilities(log.revision)
        """The client capabilities."""
        self.canned_results: dict[str, Any] = dict(DEFAULT_RESULTS)
        self.schemas: dict[str, JSONObject] = {}
        """The listed input schemas of tools, by name: arguments may have headers."""
        self.alive: bool = True
        self.peer_logs: list[MessageLog] = [log]
        """The logs of all sessions with the same peer."""
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
        """The wire if it is HTTP, else None: `await probe.http.fetch("POST", body, headers)`."""
        return self.wire if isinstance(self.wire, HTTPWire) else None

    @property
    def last_received_at(self) -> float:
        """The time of the last message from the server, by the clock of the loop; 0 before. Over HTTP, all sessions
        count.
        """
        return max(_last_received(log) for log in (self.peer_logs if self.http is not None else [self.log]))

    @property
    def answer_timeout(self) -> float:
        """The timeout of a response, in seconds: a process without output may still be starting."""
        is_starting = self.transport == "stdio" and not any(each.direction == RECEIVED for each in self.log.entries)
        return self.settings.opening if is_starting else self.settings.timeout

    def processor_use(self) -> ProcessorUse | None:
        """Return the processor time of the peer; None if it is not a process of the checker."""
        return processor_use(self.wire.pid) if isinstance(self.wire, ChildWire) and self.wire.pid else None

    def next_id(self) -> int:
        """Return an id that is unused in this session."""
        return next(self._ids)

    def send(
        self, message: Any, *, headers: Headers | None = None, misbehaved: bool = True, ending: bytes = b""
    ) -> PendingAnswer:
        """Send anything: bytes without changes, other values as JSON, followed by `ending`. Return the `PendingAnswer`
        of its id, if it has one.
        """
        pending = self.add_request(message, misbehaved=misbehaved)
        if self.alive:
            raw = self.log.entries[-1].raw
            assert isinstance(raw, bytes), "the checker sent it"
            own = http_headers(self, self.log.entries[-1].message)
            pending.stream = self.wire.send(raw + ending, {**own, **(headers or {})})
        return pending

    def add_request(self, message: Any, *, misbehaved: bool = False) -> PendingAnswer:
        """Log a message that is sent in another way, and return its `PendingAnswer`."""
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
        """Assign the next message with this id; of two requests with the same id, the first gets it."""
        if _hashable(pending.id):
            self._pending.setdefault(_key(pending.id), pending)

    async def wait_for_message(
        self, wanted: Callable[[JSONObject], bool], seconds: float | None = None
    ) -> JSONObject | None:
        """Return the next message for which `wanted` is true; None after the timeout."""
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
        """Return the messages from the server since then, without the response to `id`."""
        heard = (entry for entry in self.log.entries[since:] if entry.direction == RECEIVED)
        return [each for entry in heard for each in message_objects(entry.message) if not _is_response_to(each, id)]

    def http_response(self, stream: int) -> LoggedResponse | None:
        """Return the HTTP response of a request."""
        return self.log.responses[stream - 1] if 0 < stream <= len(self.log.responses) else None

    def violation(self, text: str, *, since: int | None = None, symptom: str = "", cause: str = "") -> Violation:
        """Return a `Violation` with the messages since then, or the last ones of the case, as evidence."""
        start = self._case_start() if since is None else since
        return Violation(text, symptom=symptom, cause=cause, evidence=self.log.evidence(start))

    def _case_start(self) -> int:
        """Return the index of the first of the last messages of the current case."""
        start = len(self.log.entries)
        while start > max(0, len(self.log.entries) - _LAST) and (self.log.entries[start - 1].case == self.log.case):
            start -= 1
        return start

    async def wait_for_response_end(self, stream: int) -> None:
        """Over HTTP: wait until the response to a POST ends, or for the timeout."""
        response = self.http_response(stream)
        if response is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.timeout):
                    await response.closed.wait()

    async def close(self) -> None:
        """Close the connection once. Then, the log has the stderr and the exit code of the peer."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.wait([self._closing])  # whoever is late for it waits as well, and takes nobody's cancellation
        if not self._closing.cancelled():
            self._closing.result()

    async def _close(self) -> None:
        await self.wire.close()
        self.log.close(self.wire.stderr, self.wire.exit_code)

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
        text = f"the response to {what} is invalid: {why}"
        return self.violation(text, since=pending.since, symptom=f"{UNREADABLE_ANSWER}:{what}", cause=_UNREADABLE_CAUSE)

    def _stop_receiving(self, why: str) -> None:
        """Close the connection: messages beyond the limit cannot be judged."""
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
        """Answer a request from the server."""
        if "id" not in message:
            return
        method = message["method"]
        result = self.canned_results.get(method) if isinstance(method, str) else None
        if result is WITHHELD:
            return
        if callable(result):
            result = result(message)
        entry: JSONObject = {"jsonrpc": "2.0", "id": message["id"]}
        if result is None:
            entry["error"] = {"code": -32601, "message": "Method not found"}
        else:
            entry["result"] = result
        self.send(entry, misbehaved=False)

    def _on_response(self, response: LoggedResponse) -> None:
        """An HTTP response has ended: a request without a JSON-RPC response gets the HTTP response."""
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
        text = f"no response to {what}: {self.wire.close_reason}{stderr_tail(self.wire.stderr)}"
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
"""The messages that are sent with `--passive`, besides responses."""


def _is_passive(message: Any) -> bool:
    return isinstance(message, dict) and ("method" not in message or message["method"] in _PASSIVE)


def _hashable(id: Any) -> bool:
    return isinstance(id, int | str | float) or id is None


def _key(id: Any) -> tuple[type, Any]:
    return type(id), id


def _is_response_to(message: JSONObject, id: Any) -> bool:
    return "method" not in message and message.get("id") == id and type(message.get("id")) is type(id)
