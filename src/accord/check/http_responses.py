"""What rules about HTTP have in common: reading a response, and who it was for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accord.check.message_log import LogEntry, LoggedResponse, MessageLog
from accord.check.probe import Probe
from accord.check.rule import Violation
from accord.check.values import preview_json
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

_MOST = 12
"""Messages of a response that are shown."""
FIRST_ERROR_STATUS = 400
"""Statuses from here on refuse."""


class PostedMessage(NamedTuple):
    """One POST of ours, and what came for it."""

    log: MessageLog
    entry: LogEntry
    response: LoggedResponse

    @property
    def request(self) -> JSONObject:
        """The message; empty if it was none."""
        return self.entry.message if isinstance(self.entry.message, dict) else {}

    @property
    def is_stream(self) -> bool:
        """Whether the response is a stream of events."""
        return is_event_stream(self.response)

    def violation(self, text: str, symptom: str = "") -> Violation:
        """A `Violation` with what was posted, and what came."""
        return Violation(
            text, symptom=symptom, evidence=http_evidence(self.response, self.entry), during=(self.entry.case,)
        )


def posted_messages(records: Iterable[MessageLog]) -> Iterator[PostedMessage]:
    """Every POST with a message that was in order, and its response."""
    for record in records:
        for said in record.entries:
            if said.direction == SENT and not said.misbehaved and 0 < said.stream <= len(record.responses):
                yield PostedMessage(record, said, record.responses[said.stream - 1])


def is_event_stream(reply: LoggedResponse) -> bool:
    """Whether a response is a stream of events."""
    return reply.headers.get("content-type", "").lower().startswith("text/event-stream")


def error_of(reply: LoggedResponse) -> JSONObject:
    """The JSON-RPC error in a response; empty if there is none."""
    for message in reply.messages:
        if isinstance(message, dict) and isinstance(message.get("error"), dict):
            found: JSONObject = message["error"]
            return found
    return {}


def has_result(reply: LoggedResponse) -> bool:
    """Whether a request got a result."""
    return any(isinstance(message, dict) and "result" in message for message in reply.messages)


def describe_response(reply: LoggedResponse) -> str:
    """A response in a few words."""
    error = error_of(reply)
    if not reply.status:
        return reply.error or "no response"
    return f"HTTP {reply.status}" + (f" with {preview_json(error)}" if error else "")


def http_evidence(reply: LoggedResponse, *sent: LogEntry) -> tuple[str, ...]:
    """What was sent and what came, as lines."""
    lines = [
        f"# {reply.method}, {name}: {value}" for name, value in reply.request_headers.items() if _is_safe_header(name)
    ]
    lines += [said.line() for said in sent]
    lines.append(f"# -> {describe_response(reply)}, {reply.headers.get('content-type', 'no content type')}")
    lines += [f"← {preview_json(message, 2_000)}" for message in reply.messages[:_MOST]]
    if len(reply.messages) > _MOST:
        lines.append(f"# and {len(reply.messages) - _MOST:,} more")
    return tuple(lines)


def require_refusal(
    talk: Probe,
    reply: LoggedResponse,
    what: str,
    *,
    status: int | None = None,
    code: int | None = None,
    symptom: str = "",
) -> None:
    """Raises `Violation` unless the response refuses: with this status, and this error, where they are given."""
    if reply.status and reply.status < FIRST_ERROR_STATUS:
        fault = f"{what} is answered with {describe_response(reply)}"
    elif status is not None and reply.status != status:
        fault = f"{what} is refused with {describe_response(reply)}, not {status}"
    elif code is not None and error_of(reply).get("code") != code:
        fault = f"{what} is refused with {describe_response(reply)}, not error {code}"
    else:
        return
    said = [each for each in talk.log.entries if each.direction == SENT and each.stream == reply.stream]
    raise Violation(fault, symptom=symptom, evidence=http_evidence(reply, *said))


def _is_safe_header(name: str) -> bool:
    """Whether a header of ours is worth showing: none that may hold a secret."""
    return name.startswith(("mcp-", "accept", "origin", "host", "last-event-id")) and name != "mcp-session-id"


def harmless_request(talk: Probe) -> JSONObject:
    """A request that every server takes, and that has no effect."""
    return talk.build_request(talk.harmless_method)
