"""Events of a call, and what of them the audit log stores.

A call has four events, each with the same `call`: the proposal, the decision about it, its sending, and the outcome.
Texts are limited and free of secrets as far as `accord.redaction` recognizes them; of the arguments, the log has a
digest and an excerpt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from accord.messages.base import JSONObject, JSONValue
from accord.redaction import redact

_TEXT = 500
"""Limit of a text, in characters."""
_EXCERPT = 2_000
"""Limit of the excerpt of arguments, in characters."""
_SEARCHED_TEXT = 4_000
"""Limit of a text that is searched for secrets. More than is stored, so that no secret is cut before it is found."""
_SEARCHED = 8_000
"""Limit of the characters and members of arguments that are searched."""
_DEPTH = 8


class AuditEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a call. Fields that are not known yet, or do not apply, are left out."""

    kind: Literal["proposal", "decision", "sending", "outcome"]
    call: str
    """The id of the call, equal in all of its events."""
    method: str = "tools/call"
    """The method of the request."""
    principal: str = ""
    """Who caused the call; empty for the owner of the host."""
    server: str = ""
    """The name of the configured server."""
    tool: str = ""
    """The server's own name of the tool."""
    arguments: JSONObject | None = None
    """The arguments as they will be sent."""
    prompt: str = ""
    """The digest of what the prompt showed."""
    decision: Literal["", "allow", "ask", "deny"] = ""
    """The decision: of the policy in a proposal, and of the approver, or the policy, in a decision."""
    rule: str = ""
    """The name of the rule that decided."""
    policy: str = ""
    """The version of the policy."""
    approver: str = ""
    """Who answered the prompt, or the id of the grant that applied."""
    outcome: str = ""
    """How the call ended: "result", "tool error", "error", "cancelled", "timeout", "connection lost", or
    "not sent" for one that lapsed, was cancelled, or had no server."""
    detail: str = ""
    """More about it, such as the text of an error."""


def encode_event(event: AuditEvent) -> bytes:
    """Return what the log stores of an event, as JSON."""
    record: dict[str, Any] = {
        name: _short(redact(value[:_SEARCHED_TEXT]), value)
        for name in AuditEvent.__struct_fields__
        if isinstance(value := getattr(event, name), str) and value
    }
    if event.arguments is not None:
        record["arguments"] = {"sha256": digest(event.arguments), "excerpt": excerpt(event.arguments)}
    return msgspec.json.encode(record)


def digest(value: JSONValue) -> str:
    """Return the SHA-256 of a JSON value in hexadecimal; the order of members does not change it."""
    try:
        encoded = _encode(value)
    except UnicodeEncodeError:  # half of a surrogate pair has no encoding, but an escape in JSON
        encoded = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.sha256(encoded).hexdigest()


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode


def excerpt(value: JSONValue) -> str:
    """Return the beginning of a JSON value, as JSON, with secrets replaced."""
    return _cut(msgspec.json.encode(redact(_Beginning().of(value, _DEPTH))).decode(), _EXCERPT)


class _Beginning:
    """Copies the beginning of a value: the time to redact it does not depend on its size."""

    def __init__(self) -> None:
        self._left = _SEARCHED

    def of(self, value: JSONValue, depth: int) -> JSONValue:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict | list) and (not depth or self._left <= 0):
            return "…"
        if isinstance(value, dict):
            return {self._text(key): self.of(value[key], depth - 1) for key in self._first(value)}
        if isinstance(value, list):
            return [self.of(each, depth - 1) for each in self._first(value)]
        return value

    def _text(self, text: str) -> str:
        beginning = text[: max(0, min(_SEARCHED_TEXT, self._left))]
        self._left -= len(beginning)
        return _encodable(beginning)

    def _first(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            if self._left <= 0:
                return
            self._left -= 1
            yield value


def _short(text: str, whole: str) -> str:
    """Return a text up to the limit; a longer one keeps its beginning, and has a digest that identifies it."""
    text = _encodable(text)
    if len(whole) <= _TEXT:
        return _cut(text, 2 * _TEXT)
    mark = f"… {len(whole)} characters, sha256 {hashlib.sha256(whole.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return text[: _TEXT - len(mark)] + mark


def _encodable(text: str) -> str:
    """Return a text with an escape for each half of a surrogate pair, which has no encoding."""
    return text.encode("utf-8", "backslashreplace").decode()


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
