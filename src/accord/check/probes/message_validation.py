"""Validation of all messages of a peer with the exact types of its revision.

Unknown fields are valid: only missing fields and fields of another type are reported.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from accord.check.probes.message_log import LogEntry, MessageLog, message_objects
from accord.messages.base import JSONObject
from accord.messages.envelope import ErrorObject
from accord.messages.input_required import InputRequiredResult
from accord.messages.methods import Method, Sender, table
from accord.messages.revision import RULES
from accord.messages.tasks import CreateTaskResult
from accord.messages.views import view
from accord.wire.transcript import RECEIVED

_INDEX = re.compile(r"\[\d+\]")


class TypeMismatch(msgspec.Struct, frozen=True):
    """A message that does not match its type: what it is, where and why, and the message."""

    what: str
    where: str
    """The JSON path: `$.tools[0].inputSchema`."""
    why: str
    entry: LogEntry
    request: JSONObject | None = None

    @property
    def symptom(self) -> str:
        """The location without the indices of lists."""
        return f"shape:{self.what}:{_INDEX.sub('[]', self.where)}:{self.why}"


def type_mismatches(log: MessageLog, sender: Sender = "server") -> Iterator[TypeMismatch]:
    """Yield what does not match its type in all messages of a peer; `sender` is its role."""
    asked: dict[tuple[type, Any], JSONObject] = {}
    for entry in log.entries:
        for message in message_objects(entry.message):
            is_heard = entry.direction == RECEIVED
            if not is_heard and "method" in message and _is_id(message.get("id")):
                asked[_key(message["id"])] = message
            elif is_heard and not entry.misbehaved:
                yield from message_mismatches(log.revision, sender, message, asked, entry)


def message_mismatches(
    revision: str, sender: Sender, message: JSONObject, asked: dict[tuple[type, Any], JSONObject], entry: LogEntry
) -> Iterator[TypeMismatch]:
    """Yield what does not match its type in one message; `asked` has the requests that it may answer, by id."""
    method = message.get("method")
    if isinstance(method, str):
        row = table(revision, sender).get(method)
        if row is not None:
            yield from _check_type(method, message.get("params", {}), row.params, revision, entry, None)
    elif "error" in message:
        yield from _check_type("an error", message["error"], ErrorObject, revision, entry, None)
    elif "result" in message and _is_id(message.get("id")):
        request = asked.get(_key(message["id"]), {})
        yield from _check_result(revision, sender, request, message["result"], entry)


def _check_result(
    revision: str, sender: Sender, request: JSONObject, result: Any, entry: LogEntry
) -> Iterator[TypeMismatch]:
    asker: Sender = "client" if sender == "server" else "server"
    method = request.get("method")
    row = table(revision, asker).get(method) if isinstance(method, str) else None
    if row is None or row.result is None:
        return
    type_ = _type_of(revision, row, request, result)
    if type_ is not None:
        yield from _check_type(f"the result of {row.name}", result, type_, revision, entry, request)


def _type_of(revision: str, row: Method, request: JSONObject, result: Any) -> Any:
    """Return the type of a result; None if an extension defines it."""
    kind = result.get("resultType", "complete") if isinstance(result, dict) else "complete"
    params = request.get("params")
    if not RULES[revision].result_type:
        became_task = isinstance(params, dict) and "task" in params and isinstance(result, dict) and "task" in result
        return CreateTaskResult if became_task else row.result
    return row.result if kind == "complete" else InputRequiredResult if kind == "input_required" else None


def _check_type(
    what: str, value: Any, type_: Any, revision: str, entry: LogEntry, asked: JSONObject | None
) -> Iterator[TypeMismatch]:
    reason = _mismatch(value, type_, revision)
    if reason:
        why, _, where = reason.partition(" - at ")
        yield TypeMismatch(what, where.strip("`") or "$", why, entry, asked)


_converting = threading.Lock()
"""Held while a value is converted: two threads that use a new type of msgspec at once crash the process."""


def _mismatch(value: Any, type_: Any, revision: str) -> str:
    """Return why a value does not match a type; empty if it does."""
    with _converting:
        try:
            msgspec.convert(value, _strict_type(type_, revision))
        except msgspec.ValidationError as exc:
            return str(exc)
        except RecursionError:
            return "nested too deeply"
    return ""


@cache
def _strict_type(type_: Any, revision: str) -> Any:
    """Return the type of the revision, which allows further fields."""
    return type_ if type_ is ErrorObject else view(type_, revision, strict=True, closed=False)


def _is_id(id: Any) -> bool:
    return isinstance(id, int | str) and not isinstance(id, bool)


def _key(id: Any) -> tuple[type, Any]:
    return type(id), id
