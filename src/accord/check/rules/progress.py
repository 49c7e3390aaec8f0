"""Progress: only for who asked for it, under the token they gave, growing, and never after the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from accord.check.engine.rule import JudgedItems, rule
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import ObservedMessage, id_key, is_response, logged_messages
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
"""Seconds by which messages on different streams of HTTP may overtake each other."""
TERMINAL = frozenset(("completed", "failed", "cancelled"))


class ObservedProgress(NamedTuple):
    """One notification of progress: its params, and what was known of its token when it came."""

    received: ObservedMessage
    params: JSONObject
    is_known: bool
    is_over: bool


class _ProgressTokens:
    """Which tokens of ours were given, and which of them are still at work, as the messages pass."""

    def __init__(self) -> None:
        self.token_by_request: dict[Any, Any] = {}
        """By id of the request: the token."""
        self.token_by_task: dict[Any, Any] = {}
        """By id of the task (2025-11-25): the token, which lives as long as the task."""
        self.known: set[Any] = set()
        self.ended_at: dict[Any, float] = {}
        """By token: since when."""

    def add_sent(self, message: JSONObject) -> None:
        """Process one message of ours."""
        token = token_of(message)
        if token is not None and "id" in message:
            self.token_by_request[id_key(message["id"])] = id_key(token)
            self.known.add(id_key(token))
            self.ended_at.pop(id_key(token), None)

    def add_received(self, message: JSONObject, at: float) -> None:
        """Process one message of the server."""
        token = self.token_by_request.pop(id_key(message.get("id")), None) if is_response(message) else None
        task = _task(message)
        if token is not None and task is not None:
            self.token_by_task[task.get("taskId")] = token
        elif token is not None and token not in self.token_by_request.values():
            self.ended_at[token] = at
        if task is not None and task.get("status") in TERMINAL and task.get("taskId") in self.token_by_task:
            self.ended_at[self.token_by_task[task["taskId"]]] = at


def _task(message: JSONObject) -> JSONObject | None:
    """The state of a task, in a result or in a notification."""
    for found in (message.get("result"), message.get("params")):
        inner = found.get("task", found) if isinstance(found, dict) else None
        if isinstance(inner, dict) and isinstance(inner.get("taskId"), str) and "status" in inner:
            return inner
    return None


def observed_progress(logs: Sequence[MessageLog]) -> Iterator[ObservedProgress]:
    """All progress that the server told."""
    for log in logs:
        tokens = _ProgressTokens()
        resumed = {response.stream for response in log.responses if "last-event-id" in response.request_headers}
        for entry, message in logged_messages(log):
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
    case="all progress of the server",
    at=BEHAVIOUR,
    cause="The id of the request stands for the token, or a number becomes a text, or progress goes to everybody.",
)
def progress_known_token(logs: Sequence[MessageLog]) -> JudgedItems:
    """Progress bears a token that a request gave, the same text or the same number."""
    for each in observed_progress(logs):
        yield
        if not each.is_known:
            raise each.received.violation(f"nobody gave the token {preview_json(each.params.get('progressToken'))}")


@rule(
    "progress/ends",
    "must",
    case="all progress of the server",
    at=(*NOTES, *BEHAVIOUR),
    cause="A timer or a thread goes on after the handler has returned.",
)
def progress_ends(logs: Sequence[MessageLog]) -> JudgedItems:
    """Progress stops when the answer is there; that of a task, when the task has ended."""
    for each in observed_progress(logs):
        if each.is_known:
            yield
        if each.is_over:
            raise each.received.violation(f"{preview_json(each.params.get('progressToken'))} was answered before")


@rule(
    "progress/grows",
    "must",
    case="all progress of the server",
    at=FLOW,
    cause="The same value is sent again, or each step counts from zero, or the total is corrected downwards.",
)
def progress_grows(logs: Sequence[MessageLog]) -> JudgedItems:
    """The progress of one request grows with each notification."""
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


def _stream(told: ObservedProgress) -> int:
    """Over HTTP what is sent again after a break comes on another stream."""
    return told.received.entry.stream


_MANY = 1_000
"""In one second, for one token."""


@rule(
    "progress/flood",
    "should",
    case="all progress of the server",
    at=NOTES,
    cause="Each byte or each row is told: tell it at most some tens of times a second.",
)
def progress_flood(logs: Sequence[MessageLog]) -> JudgedItems:
    """Progress is told at a bounded rate."""
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
    cause="Tokens are read as texts only, or as numbers only.",
)
async def progress_any_token(probe: Probe) -> None:
    """A token may be any text and any integer."""
    for token in _TOKENS:
        answer = await probe.request(probe.harmless_method, meta={"progressToken": token})
        if answer.error is not None:
            raise probe.violation(f"with the token {preview_json(token)} the answer is {preview_json(answer.error)}")


@rule(
    "progress/own-tokens",
    "must",
    case="all requests of the server with a token",
    at=FLOW[0],
    until=PER_REQUEST_SINCE,
    cause="One token is used for all requests.",
)
def progress_own_tokens(logs: Sequence[MessageLog]) -> JudgedItems:
    """A token that the server gives with a request of its own is a text or an integer, and no other request has it."""
    for log in logs:
        active: dict[Any, Any] = {}
        for entry, message in logged_messages(log):
            if entry.direction == SENT and is_response(message):
                active.pop(id_key(message.get("id")), None)
            elif entry.direction != SENT and (token := token_of(message)) is not None:
                yield
                if type(token) not in (int, str) or id_key(token) in active.values():
                    raise ObservedMessage(log, entry, message).violation(f"the token {preview_json(token)}")
                active[id_key(message.get("id"))] = id_key(token)


def token_of(message: JSONObject) -> Any:
    """The token that a request gives; None if it gives none."""
    params = message.get("params")
    meta = params.get("_meta") if "method" in message and isinstance(params, dict) else None
    return meta.get("progressToken") if isinstance(meta, dict) else None
