"""Reading a log: the messages from the server, and the request of each response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.engine.rule import Violation
from accord.check.probes.message_log import LogEntry, MessageLog
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED

_FAILED = 300
"""From this HTTP status on, the body belongs to the web server unless it is JSON-RPC."""


class ObservedMessage(NamedTuple):
    """A message from the server."""

    log: MessageLog
    entry: LogEntry
    message: JSONObject

    def violation(self, text: str, *, symptom: str = "", about: Iterable[LogEntry] = ()) -> Violation:
        """Return a `Violation` with this message as evidence, after those in `about`."""
        entry = (*about, self.entry)
        evidence = self.log.evidence(about=entry)
        return Violation(text, symptom=symptom, evidence=evidence, during=[each.case for each in entry])


class AnsweredRequest(NamedTuple):
    """A response, with its request."""

    received: ObservedMessage
    request_entry: LogEntry
    request: JSONObject

    @property
    def result(self) -> Any:
        """The result; None for an error."""
        return self.received.message.get("result")

    def violation(self, text: str, *, symptom: str = "") -> Violation:
        """Return a `Violation` with both as evidence."""
        return self.received.violation(text, symptom=symptom, about=(self.request_entry,))


def received_messages(logs: Iterable[MessageLog]) -> Iterator[ObservedMessage]:
    """Yield each message from the server that looks like JSON-RPC; over HTTP also those with an error status."""
    for log in logs:
        for entry, message in log.messages:
            if entry.direction == RECEIVED and not is_web_server_error(log, entry, message):
                yield ObservedMessage(log, entry, message)


def is_web_server_error(log: MessageLog, entry: LogEntry, message: Any) -> bool:
    """Return whether it is the JSON body of an HTTP refusal: "The body MAY comprise a JSON-RPC error response"."""
    if not 0 < entry.stream <= len(log.responses) or log.responses[entry.stream - 1].status < _FAILED:
        return False
    return not isinstance(message, dict) or "jsonrpc" not in message


def was_refused_by_http(answer: ObservedMessage) -> bool:
    """Return whether HTTP refused the message before its id was read: then, the body needs no id."""
    replies = answer.log.responses
    return 0 < answer.entry.stream <= len(replies) and replies[answer.entry.stream - 1].status >= _FAILED


def answered_requests(logs: Iterable[MessageLog], *methods: str) -> Iterator[AnsweredRequest]:
    """Yield each response to a valid request; with `methods`, only to those."""
    for log in logs:
        for entry, message, request_entry, request in log.answers:
            if not request_entry.misbehaved and (not methods or request["method"] in methods):
                yield AnsweredRequest(ObservedMessage(log, entry, message), request_entry, request)
