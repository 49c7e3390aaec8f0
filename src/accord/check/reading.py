"""Reading a record: what the server said, message by message, and which request of ours each answer is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from accord.check.record import Record, Said, objects
from accord.check.rule import Broken
from accord.messages.base import JSONObject
from accord.wire.transcript import RECEIVED, SENT

_FAILED = 300
"""From this HTTP status on, the body is the web server's own affair unless it is JSON-RPC."""


class Heard(NamedTuple):
    """One object that the server said."""

    record: Record
    said: Said
    message: JSONObject

    def broken(self, text: str, *, symptom: str = "", about: Iterable[Said] = ()) -> Broken:
        """A `Broken` with this message as evidence, after those which it is about."""
        said = (*about, self.said)
        evidence = self.record.evidence(about=said)
        return Broken(text, symptom=symptom, evidence=evidence, during=[each.case for each in said])


class Answered(NamedTuple):
    """An answer, and the request of ours it is for."""

    heard: Heard
    asked: Said
    request: JSONObject

    @property
    def result(self) -> Any:
        """The result; None for an error."""
        return self.heard.message.get("result")

    def broken(self, text: str, *, symptom: str = "") -> Broken:
        """A `Broken` with both as evidence."""
        return self.heard.broken(text, symptom=symptom, about=(self.asked,))


def heard(records: Iterable[Record]) -> Iterator[Heard]:
    """Yield each object of the server that looks like JSON-RPC; over HTTP also those with an error status."""
    for record in records:
        for said in record.entries:
            if said.direction == RECEIVED:
                for message in objects(said.message):
                    if not is_foreign(record, said, message):
                        yield Heard(record, said, message)


def is_foreign(record: Record, said: Said, message: Any) -> bool:
    """Whether it is the JSON of a web server that refuses: "The body MAY comprise a JSON-RPC error response"."""
    if not 0 < said.stream <= len(record.replies) or record.replies[said.stream - 1].status < _FAILED:
        return False
    return not isinstance(message, dict) or "jsonrpc" not in message


def was_refused(answer: Heard) -> bool:
    """Whether HTTP refused the message before its id was read: the body needs no id then."""
    replies = answer.record.replies
    return 0 < answer.said.stream <= len(replies) and replies[answer.said.stream - 1].status >= _FAILED


def is_answer(message: JSONObject) -> bool:
    """Whether a message is a response: a result or an error."""
    return "method" not in message and ("result" in message or "error" in message)


def answers(records: Iterable[Record], *methods: str) -> Iterator[Answered]:
    """Yield each answer to a valid request of ours; with `methods`, only to those."""
    for record in records:
        asked: dict[tuple[type, Any], tuple[Said, JSONObject]] = {}
        for said, message in messages(record):
            if said.direction == SENT and "method" in message and "id" in message:
                asked[key(message["id"])] = said, message
            elif said.direction == RECEIVED and is_answer(message) and key(message.get("id")) in asked:
                ours, request = asked[key(message.get("id"))]
                if not ours.misbehaved and (not methods or request["method"] in methods):
                    yield Answered(Heard(record, said, message), ours, request)


def messages(record: Record) -> Iterator[tuple[Said, JSONObject]]:
    """Every object of both sides, in order."""
    for said in record.entries:
        for message in objects(said.message):
            yield said, message


def key(id: Any) -> tuple[type, Any]:
    """An id by its value and JSON type: 7 is not "7"."""
    return type(id), id if isinstance(id, int | str | float) else repr(id)
