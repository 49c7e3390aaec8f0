"""Requests that are written byte by byte, on connections of their own, for rules about rough weather over HTTP.

What rules about HTTP have in common: reading a response, and who it was for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

from accord.check.engine.rule import NotObserved, Violation
from accord.check.probes.client_messages import http_headers
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, LoggedResponse, MessageLog
from accord.check.probes.probe import Probe
from accord.check.wires.socket import Socket, head
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


PAUSE = 0.02
"""Seconds between the pieces of what is sent slowly."""


@asynccontextmanager
async def raw_connection(talk: Probe) -> AsyncIterator[Socket]:
    """A connection to the server. What is found broken meanwhile has as evidence what passed on it, too.

    Raises `ConnectError`.
    """
    if talk.settings.passive:
        raise NotObserved("no connection was opened beside those of messages (--passive)")
    socket = await open_socket(talk)
    try:
        yield socket
    except Violation as exc:
        exc.evidence = (*socket.evidence(), *exc.evidence)
        raise
    finally:
        socket.abort()


async def open_socket(talk: Probe) -> Socket:
    """One that whoever opens it has to leave. Raises `ConnectError`."""
    return await Socket.open(_url(talk))


async def send_pieces(talk: Probe, socket: Socket, *pieces: bytes) -> None:
    """Send these, with pauses between them."""
    for number, piece in enumerate(pieces):
        await asyncio.sleep(PAUSE if number else 0)
        await socket.write(piece, talk.settings.timeout)


async def read_responses(talk: Probe, socket: Socket, requests: Sequence[JSONObject]) -> bytes:
    """What comes, until it has the answers to these requests, or an error status."""
    seconds = talk.settings.timeout
    reply = await socket.read(seconds, until=b'"jsonrpc"', times=len(requests))
    for request in requests:
        begun = reply.count(b'"jsonrpc"') == len(requests) and parse_status(reply) < FIRST_ERROR_STATUS
        if begun and not socket.closed and _id_bytes(request) not in _without_blanks(reply):
            reply += await socket.read(seconds, until=msgspec.json.encode(request["id"]))
    return reply


def require_ordered_results(requests: Sequence[JSONObject], reply: bytes) -> None:
    """Raises `Violation` unless each request has a result there, the first one first."""
    found = [_without_blanks(reply).find(_id_bytes(request)) for request in requests]
    if min(found) < 0 or reply.count(b'"result"') < len(requests):
        missing = "" if max(found) < 0 else f"one of {len(requests)} requests is not answered, "
        raise Violation(f"{missing}what comes is {preview_json(reply[:300].decode(errors='replace'))}")
    if found != sorted(found):
        raise Violation("the second request is answered first")


def parse_status(reply: bytes) -> int:
    """The status of a response; 0 for what is none."""
    words = reply.split(b"\r\n", 1)[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0


def traceable_request(talk: Probe) -> JSONObject:
    """A harmless request, whose answer is known by its id wherever it stands."""
    return harmless_request(talk) | {"id": f"weather-{talk.next_id()}"}


def encode_post(talk: Probe, message: JSONObject, more: dict[str, str] | None = None) -> tuple[bytes, bytes]:
    """Head and body of a POST with this message, and with these headers beside the usual ones."""
    body = msgspec.json.encode(message)
    sent = _message_headers(talk, message) | {"content-length": str(len(body))} | (more or {})
    return head("POST", _url(talk), sent), body


def encode_chunked_post(talk: Probe, message: JSONObject) -> bytes:
    """A POST whose body has no length, and comes in two chunks."""
    body = msgspec.json.encode(message)
    parts = (body[: len(body) // 2], body[len(body) // 2 :], b"")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return head("POST", _url(talk), _message_headers(talk, message) | {"transfer-encoding": "chunked"}) + chunks


def encode_get(talk: Probe) -> bytes:
    """A GET that opens a stream."""
    sent = {"accept": "text/event-stream", "mcp-protocol-version": talk.revision}
    return head("GET", _url(talk), _session_headers(talk) | sent)


def _message_headers(talk: Probe, message: JSONObject) -> dict[str, str]:
    return _session_headers(talk) | {
        name: value for name, value in http_headers(talk, message).items() if value is not None
    }


def _session_headers(talk: Probe) -> dict[str, str]:
    """What every request of this conversation has."""
    assert talk.http is not None, "it is over HTTP"
    return talk.http.build_headers({})


def _url(talk: Probe) -> str:
    assert talk.http is not None, "it is over HTTP"
    return talk.http.url


def _id_bytes(message: JSONObject) -> bytes:
    """How the answer bears its id, blanks apart."""
    return b'"id":%b' % msgspec.json.encode(message["id"])


def _without_blanks(reply: bytes) -> bytes:
    return reply.replace(b'": ', b'":')
