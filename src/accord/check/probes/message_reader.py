"""Reading a record: what the server said, message by message, and which request of ours each answer is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.engine.rule import Violation
from accord.check.probes.message_log import LogEntry, MessageLog, message_objects
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED, SENT

_FAILED = 300
"""From this HTTP status on, the body is the web server's own affair unless it is JSON-RPC."""


class ObservedMessage(NamedTuple):
    """One object that the server said."""

    log: MessageLog
    entry: LogEntry
    message: JSONObject

    def violation(self, text: str, *, symptom: str = "", about: Iterable[LogEntry] = ()) -> Violation:
        """A `Violation` with this message as evidence, after those which it is about."""
        said = (*about, self.entry)
        evidence = self.log.evidence(about=said)
        return Violation(text, symptom=symptom, evidence=evidence, during=[each.case for each in said])


class AnsweredRequest(NamedTuple):
    """An answer, and the request of ours it is for."""

    received: ObservedMessage
    request_entry: LogEntry
    request: JSONObject

    @property
    def result(self) -> Any:
        """The result; None for an error."""
        return self.received.message.get("result")

    def violation(self, text: str, *, symptom: str = "") -> Violation:
        """A `Violation` with both as evidence."""
        return self.received.violation(text, symptom=symptom, about=(self.request_entry,))


def received_messages(records: Iterable[MessageLog]) -> Iterator[ObservedMessage]:
    """Yield each object of the server that looks like JSON-RPC; over HTTP also those with an error status."""
    for record in records:
        for said in record.entries:
            if said.direction == RECEIVED:
                for message in message_objects(said.message):
                    if not is_web_server_error(record, said, message):
                        yield ObservedMessage(record, said, message)


def is_web_server_error(record: MessageLog, said: LogEntry, message: Any) -> bool:
    """Whether it is the JSON of a web server that refuses: "The body MAY comprise a JSON-RPC error response"."""
    if not 0 < said.stream <= len(record.responses) or record.responses[said.stream - 1].status < _FAILED:
        return False
    return not isinstance(message, dict) or "jsonrpc" not in message


def was_refused_by_http(answer: ObservedMessage) -> bool:
    """Whether HTTP refused the message before its id was read: the body needs no id then."""
    replies = answer.log.responses
    return 0 < answer.entry.stream <= len(replies) and replies[answer.entry.stream - 1].status >= _FAILED


def is_response(message: JSONObject) -> bool:
    """Whether a message is a response: a result or an error."""
    return "method" not in message and ("result" in message or "error" in message)


def answered_requests(records: Iterable[MessageLog], *methods: str) -> Iterator[AnsweredRequest]:
    """Yield each answer to a valid request of ours; with `methods`, only to those."""
    for record in records:
        asked: dict[tuple[type, Any], tuple[LogEntry, JSONObject]] = {}
        for said, message in logged_messages(record):
            if said.direction == SENT and "method" in message and "id" in message:
                asked[id_key(message["id"])] = said, message
            elif said.direction == RECEIVED and is_response(message) and id_key(message.get("id")) in asked:
                ours, request = asked[id_key(message.get("id"))]
                if not ours.misbehaved and (not methods or request["method"] in methods):
                    yield AnsweredRequest(ObservedMessage(record, said, message), ours, request)


def logged_messages(record: MessageLog) -> Iterator[tuple[LogEntry, JSONObject]]:
    """Every object of both sides, in order."""
    for said in record.entries:
        for message in message_objects(said.message):
            yield said, message


def id_key(id: Any) -> tuple[type, Any]:
    """An id by its value and JSON type: 7 is not "7"."""
    return type(id), id if isinstance(id, int | str | float) else repr(id)
