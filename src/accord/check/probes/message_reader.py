"""Reading a log: the messages from the server, and the request of each response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.engine.rule import Violation
from accord.check.probes.message_log import LogEntry, MessageLog, message_objects
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED, SENT

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
        for entry in log.entries:
            if entry.direction == RECEIVED:
                for message in message_objects(entry.message):
                    if not is_web_server_error(log, entry, message):
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


def is_response(message: JSONObject) -> bool:
    """Return whether a message is a response: a result or an error."""
    return "method" not in message and ("result" in message or "error" in message)


def answered_requests(logs: Iterable[MessageLog], *methods: str) -> Iterator[AnsweredRequest]:
    """Yield each response to a valid request; with `methods`, only to those."""
    for log in logs:
        asked: dict[tuple[type, Any], tuple[LogEntry, JSONObject]] = {}
        for entry, message in logged_messages(log):
            if entry.direction == SENT and "method" in message and "id" in message:
                asked[id_key(message["id"])] = entry, message
            elif entry.direction == RECEIVED and is_response(message) and id_key(message.get("id")) in asked:
                ours, request = asked[id_key(message.get("id"))]
                if not ours.misbehaved and (not methods or request["method"] in methods):
                    yield AnsweredRequest(ObservedMessage(log, entry, message), ours, request)


def logged_messages(log: MessageLog) -> Iterator[tuple[LogEntry, JSONObject]]:
    """Yield each message of both sides, in order."""
    for entry in log.entries:
        for message in message_objects(entry.message):
            yield entry, message


def id_key(id: Any) -> tuple[type, Any]:
    """Return an id as a key with its JSON type: 7 is not "7"."""
    return type(id), id if isinstance(id, int | str | float) else repr(id)
