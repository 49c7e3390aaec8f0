"""Progress: only for requests with a progress token, increasing, and never after the response."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from accord.check.engine.rule import JudgedItems, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog, id_key, is_response
from accord.check.probes.message_reader import ObservedMessage
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject, Number
from accord.wire.transcript import SENT

OLD, NEW = "basic/utilities/progress", "basic/patterns/progress"
FLOW = (f"{OLD}#progress-flow", f"{NEW}#progress-flow")
BEHAVIOUR = (f"{OLD}#behavior-requirements", f"{NEW}#behavior-requirements")
NOTES = (f"{OLD}#implementation-notes", f"{NEW}#implementation-notes")
PROGRESS = "notifications/progress"
PER_REQUEST_SINCE = "2026-07-28"
STREAM_SKEW = 1.0
"""Seconds by which messages on different HTTP streams may overtake each other."""
TERMINAL = frozenset(("completed", "failed", "cancelled"))


class ObservedProgress(NamedTuple):
    """A progress notification: its params, and the state of its token when it was received."""

    received: ObservedMessage
    params: JSONObject
    is_known: bool
    is_over: bool


class _ProgressTokens:
    """The tokens of the checker, and which of them belong to requests in flight."""

    def __init__(self) -> None:
        self.token_by_request: dict[Any, Any] = {}
        """The token of each request id."""
        self.token_by_task: dict[Any, Any] = {}
        """The token of each task id (2025-11-25), which is valid as long as the task."""
        self.known: set[Any] = set()
        self.ended_at: dict[Any, float] = {}
        """The time at which each token ended."""

    def add_sent(self, message: JSONObject) -> None:
        """Process a message from the checker."""
        token = token_of(message)
        if token is not None and "id" in message:
            self.token_by_request[id_key(message["id"])] = id_key(token)
            self.known.add(id_key(token))
            self.ended_at.pop(id_key(token), None)

    def add_received(self, message: JSONObject, at: float) -> None:
        """Process a message from the server."""
        token = self.token_by_request.pop(id_key(message.get("id")), None) if is_response(message) else None
        task = _task(message)
        if token is not None and task is not None:
            self.token_by_task[task.get("taskId")] = token
        elif token is not None and token not in self.token_by_request.values():
            self.ended_at[token] = at
        if task is not None and task.get("status") in TERMINAL and task.get("taskId") in self.token_by_task:
            self.ended_at[self.token_by_task[task["taskId"]]] = at


def _task(message: JSONObject) -> JSONObject | None:
    """Process the state of a task in a result or a notification."""
    for found in (message.get("result"), message.get("params")):
        inner = found.get("task", found) if isinstance(found, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("taskId"), str) and "status" in inner:
            return inner
    return None


def observed_progress(logs: Sequence[MessageLog]) -> Iterator[ObservedProgress]:
    """Yield all progress notifications from the server."""
    for log in logs:
        tokens = _ProgressTokens()
        resumed = {response.stream for response in log.responses if "last-event-id" in response.request_headers}
        for entry, message in log.messages:
            if entry.direction == SENT:
                tokens.add_sent(message)
                continue
            params = message.get("params")
            if message.get("method") == PROGRESS and isinstance(params, dict):
                token = id_key(params.get("progressToken"))
                grace = STREAM_SKEW if log.transport == "http" else 0.0
                late = entry.at - tokens.ended_at.get(token, entry.at) > grace
                is_over = late and entry.stream not in resumed  # which repeats what was sent before the answer
                yield ObservedProgress(ObservedMessage(log, entry, message), params, token in tokens.known, is_over)
            tokens.add_received(message, entry.at)


@rule(
    "progress/known-token",
    "must",
    case="all progress notifications",
    at=BEHAVIOUR,
    cause="The request id is used as the token, or a number becomes a string, or progress is sent to all clients.",
)
def progress_known_token(logs: Sequence[MessageLog]) -> JudgedItems:
    """A progress notification has the token of a request, with the same type."""
    for each in observed_progress(logs):
        yield
        if not each.is_known:
            raise each.received.violation(f"no request has the token {preview_json(each.params.get('progressToken'))}")


@rule(
    "progress/ends",
    "must",
    case="all progress notifications",
    at=(*NOTES, *BEHAVIOUR),
    cause="A timer or a thread continues after the handler has returned.",
)
def progress_ends(logs: Sequence[MessageLog]) -> JudgedItems:
    """Progress notifications stop after the response, or after the end of the task."""
    for each in observed_progress(logs):
        if each.is_known:
            yield
        if each.is_over:
            raise each.received.violation(f"{preview_json(each.params.get('progressToken'))} was answered before")


@rule(
    "progress/grows",
    "must",
    case="all progress notifications",
    at=FLOW,
    cause="A value is sent again, or each step starts at zero, or the total is corrected downwards.",
)
def progress_grows(logs: Sequence[MessageLog]) -> JudgedItems:
    """The progress value of a request increases with each notification."""
    last: dict[Any, tuple[Number, ObservedMessage]] = {}
    for each in observed_progress(logs):
        number = each.params.get("progress")
        at = (id(each.received.log), _stream(each), id_key(each.params.get("progressToken")))
        if isinstance(number, int | float):
            before = last.get(at)
            if before is not None:
                yield
                if number <= before[0] and not each.is_over:
                    raise each.received.violation(f"{number} comes after {before[0]}", about=[before[1].entry])
            last[at] = number, each.received


def _stream(progress: ObservedProgress) -> int:
    """Return the stream: over HTTP, a resumed stream repeats messages on another stream."""
    return progress.received.entry.stream


_MANY = 1_000
"""The limit for one second and one token."""


@rule(
    "progress/flood",
    "should",
    case="all progress notifications",
    at=NOTES,
    cause="A notification is sent for each byte or row: send at most some tens a second.",
)
def progress_flood(logs: Sequence[MessageLog]) -> JudgedItems:
    """The rate of progress notifications is limited."""
    times: dict[Any, list[float]] = {}
    for each in observed_progress(logs):
        yield
        at = times.setdefault((id(each.received.log), id_key(each.params.get("progressToken"))), [])
        at.append(each.received.entry.at)
        if len(at) > _MANY and at[-1] - at[-_MANY - 1] < 1:
            raise each.received.violation(f"more than {_MANY:,} notifications in a second")


_TOKENS: tuple[Any, ...] = ("accord-check", "", "0", 0, -1, 2**53 - 1, "ü\u2028\n")


@rule(
    "progress/any-token",
    "must",
    case="requests with all kinds of tokens",
    at=FLOW,
    cause="Tokens are decoded as strings only, or as numbers only.",
)
async def progress_any_token(probe: Probe) -> None:
    """A progress token may be any string or integer."""
    for token in _TOKENS:
        answer = await probe.request(probe.harmless_method, meta={"progressToken": token})
        if answer.error is not None:
            raise probe.violation(
                f"a request with the token {preview_json(token)} returned {preview_json(answer.error)}"
            )


@rule(
    "progress/own-tokens",
    "must",
    case="all requests from the server with a token",
    at=FLOW[0],
    until=PER_REQUEST_SINCE,
    cause="The same token is used for all requests.",
)
def progress_own_tokens(logs: Sequence[MessageLog]) -> JudgedItems:
    """The progress token of a request from the server is a string or an integer, and unique."""
    for log in logs:
        active: dict[Any, Any] = {}
        for entry, message in log.messages:
            if entry.direction == SENT and is_response(message):
                active.pop(id_key(message.get("id")), None)
            elif entry.direction != SENT and (token := token_of(message)) is not None:
                yield
                if type(token) not in (int, str) or id_key(token) in active.values():
                    raise ObservedMessage(log, entry, message).violation(
                        f"the token {preview_json(token)} is invalid, or was used before"
                    )
                active[id_key(message.get("id"))] = id_key(token)


def token_of(message: JSONObject) -> Any:
    """Return the token of a request; None if it has none."""
    params = message.get("params")
    meta = params.get("_meta") if "method" in message and isinstance(params, dict) else None
    return meta.get("progressToken") if isinstance(meta, dict) else None
