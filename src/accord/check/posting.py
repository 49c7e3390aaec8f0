"""What rules about HTTP have in common: reading a response, and who it was for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from accord.check.record import Record, Reply, Said
from accord.check.rule import Broken
from accord.check.talk import Talk
from accord.check.values import shown
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

_MOST = 12
"""Messages of a response that are shown."""
REFUSED = 400
"""Statuses from here on refuse."""


class Posted(NamedTuple):
    """One POST of ours, and what came for it."""

    record: Record
    said: Said
    reply: Reply

    @property
    def request(self) -> JSONObject:
        """The message; empty if it was none."""
        return self.said.message if isinstance(self.said.message, dict) else {}

    @property
    def streams(self) -> bool:
        """Whether the response is a stream of events."""
        return is_stream(self.reply)

    def broken(self, text: str, symptom: str = "") -> Broken:
        """A `Broken` with what was posted, and what came."""
        return Broken(text, symptom=symptom, evidence=evidence(self.reply, self.said), during=(self.said.case,))


def posts(records: Iterable[Record]) -> Iterator[Posted]:
    """Every POST with a message that was in order, and its response."""
    for record in records:
        for said in record.entries:
            if said.direction == SENT and not said.misbehaved and 0 < said.stream <= len(record.replies):
                yield Posted(record, said, record.replies[said.stream - 1])


def is_stream(reply: Reply) -> bool:
    """Whether a response is a stream of events."""
    return reply.headers.get("content-type", "").lower().startswith("text/event-stream")


def error_of(reply: Reply) -> JSONObject:
    """The JSON-RPC error in a response; empty if there is none."""
    for message in reply.messages:
        if isinstance(message, dict) and isinstance(message.get("error"), dict):
            found: JSONObject = message["error"]
            return found
    return {}


def served(reply: Reply) -> bool:
    """Whether a request got a result."""
    return any(isinstance(message, dict) and "result" in message for message in reply.messages)


def described(reply: Reply) -> str:
    """A response in a few words."""
    error = error_of(reply)
    if not reply.status:
        return reply.error or "no response"
    return f"HTTP {reply.status}" + (f" with {shown(error)}" if error else "")


def evidence(reply: Reply, *sent: Said) -> tuple[str, ...]:
    """What was sent and what came, as lines."""
    lines = [f"# {reply.method}, {name}: {value}" for name, value in reply.sent.items() if _tells(name)]
    lines += [said.line() for said in sent]
    lines.append(f"# -> {described(reply)}, {reply.headers.get('content-type', 'no content type')}")
    lines += [f"← {shown(message, 2_000)}" for message in reply.messages[:_MOST]]
    if len(reply.messages) > _MOST:
        lines.append(f"# and {len(reply.messages) - _MOST:,} more")
    return tuple(lines)


def refused(
    talk: Talk, reply: Reply, what: str, *, status: int | None = None, code: int | None = None, symptom: str = ""
) -> None:
    """Raises `Broken` unless the response refuses: with this status, and this error, where they are given."""
    if reply.status and reply.status < REFUSED:
        fault = f"{what} is answered with {described(reply)}"
    elif status is not None and reply.status != status:
        fault = f"{what} is refused with {described(reply)}, not {status}"
    elif code is not None and error_of(reply).get("code") != code:
        fault = f"{what} is refused with {described(reply)}, not error {code}"
    else:
        return
    said = [each for each in talk.record.entries if each.direction == SENT and each.stream == reply.stream]
    raise Broken(fault, symptom=symptom, evidence=evidence(reply, *said))


def _tells(name: str) -> bool:
    """Whether a header of ours is worth showing: none that may hold a secret."""
    return name.startswith(("mcp-", "accept", "origin", "host", "last-event-id")) and name != "mcp-session-id"


def harmless(talk: Talk) -> JSONObject:
    """A request that every server takes, and that has no effect."""
    return talk.message(talk.harmless)
