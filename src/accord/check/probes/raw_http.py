"""Requests that are written byte by byte, on connections of their own, for rules about faults over HTTP.

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


def posted_messages(logs: Iterable[MessageLog]) -> Iterator[PostedMessage]:
    """Every POST with a message that was in order, and its response."""
    for log in logs:
        for entry in log.entries:
            if entry.direction == SENT and not entry.misbehaved and 0 < entry.stream <= len(log.responses):
                yield PostedMessage(log, entry, log.responses[entry.stream - 1])


def is_event_stream(response: LoggedResponse) -> bool:
    """Whether a response is a stream of events."""
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


def error_of(response: LoggedResponse) -> JSONObject:
    """The JSON-RPC error in a response; empty if there is none."""
    for message in response.messages:
        if isinstance(message, dict) and isinstance(message.get("error"), dict):
            found: JSONObject = message["error"]
            return found
    return {}


def has_result(response: LoggedResponse) -> bool:
    """Whether a request got a result."""
    return any(isinstance(message, dict) and "result" in message for message in response.messages)


def describe_response(response: LoggedResponse) -> str:
    """A response in a few words."""
    error = error_of(response)
    if not response.status:
        return response.error or "no response"
    return f"HTTP {response.status}" + (f" with {preview_json(error)}" if error else "")


def http_evidence(response: LoggedResponse, *sent: LogEntry) -> tuple[str, ...]:
    """What was sent and what came, as lines."""
    lines = [
        f"# {response.method}, {name}: {value}"
        for name, value in response.request_headers.items()
        if _is_safe_header(name)
    ]
    lines += [entry.line() for entry in sent]
    lines.append(f"# -> {describe_response(response)}, {response.headers.get('content-type', 'no content type')}")
    lines += [f"← {preview_json(message, 2_000)}" for message in response.messages[:_MOST]]
    if len(response.messages) > _MOST:
        lines.append(f"# and {len(response.messages) - _MOST:,} more")
    return tuple(lines)


def require_refusal(
    probe: Probe,
    response: LoggedResponse,
    what: str,
    *,
    status: int | None = None,
    code: int | None = None,
    symptom: str = "",
) -> None:
    """Raises `Violation` unless the response refuses: with this status, and this error, where they are given."""
    if response.status and response.status < FIRST_ERROR_STATUS:
        fault = f"{what} is answered with {describe_response(response)}"
    elif status is not None and response.status != status:
        fault = f"{what} is refused with {describe_response(response)}, not {status}"
    elif code is not None and error_of(response).get("code") != code:
        fault = f"{what} is refused with {describe_response(response)}, not error {code}"
    else:
        return
    entry = [each for each in probe.log.entries if each.direction == SENT and each.stream == response.stream]
    raise Violation(fault, symptom=symptom, evidence=http_evidence(response, *entry))


def _is_safe_header(name: str) -> bool:
    """Whether a header of ours is worth showing: none that may hold a secret."""
    return name.startswith(("mcp-", "accept", "origin", "host", "last-event-id")) and name != "mcp-session-id"


def harmless_request(probe: Probe) -> JSONObject:
    """A request that every server takes, and that has no effect."""
    return probe.build_request(probe.harmless_method)


PAUSE = 0.02
"""Seconds between the pieces of what is sent slowly."""


@asynccontextmanager
async def raw_connection(probe: Probe) -> AsyncIterator[Socket]:
    """A connection to the server. What is found broken meanwhile has as evidence what passed on it, too.

    Raises `ConnectError`.
    """
    if probe.settings.passive:
        raise NotObserved("no connection was opened beside those of messages (--passive)")
    socket = await open_socket(probe)
    try:
        yield socket
    except Violation as exc:
        exc.evidence = (*socket.evidence(), *exc.evidence)
        raise
    finally:
        socket.abort()


async def open_socket(probe: Probe) -> Socket:
    """One that whoever opens it has to leave. Raises `ConnectError`."""
    return await Socket.open(_url(probe))


async def send_pieces(probe: Probe, socket: Socket, *pieces: bytes) -> None:
    """Send these, with pauses between them."""
    for number, piece in enumerate(pieces):
        await asyncio.sleep(PAUSE if number else 0)
        await socket.write(piece, probe.settings.timeout)


async def read_responses(probe: Probe, socket: Socket, requests: Sequence[JSONObject]) -> bytes:
    """What comes, until it has the answers to these requests, or an error status."""
    seconds = probe.settings.timeout
    response = await socket.read(seconds, until=b'"jsonrpc"', times=len(requests))
    for request in requests:
        begun = response.count(b'"jsonrpc"') == len(requests) and parse_status(response) < FIRST_ERROR_STATUS
        if begun and not socket.closed and _id_bytes(request) not in _without_blanks(response):
            response += await socket.read(seconds, until=msgspec.json.encode(request["id"]))
    return response


def require_ordered_results(requests: Sequence[JSONObject], response: bytes) -> None:
    """Raises `Violation` unless each request has a result there, the first one first."""
    found = [_without_blanks(response).find(_id_bytes(request)) for request in requests]
    if min(found) < 0 or response.count(b'"result"') < len(requests):
        missing = "" if max(found) < 0 else f"one of {len(requests)} requests is not answered, "
        raise Violation(f"{missing}what comes is {preview_json(response[:300].decode(errors='replace'))}")
    if found != sorted(found):
        raise Violation("the second request is answered first")


def parse_status(response: bytes) -> int:
    """The status of a response; 0 for what is none."""
    words = response.split(b"\r\n", 1)[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0


def traceable_request(probe: Probe) -> JSONObject:
    """A harmless request, whose answer is known by its id wherever it stands."""
    return harmless_request(probe) | {"id": f"weather-{probe.next_id()}"}


def encode_post(probe: Probe, message: JSONObject, more: dict[str, str] | None = None) -> tuple[bytes, bytes]:
    """Head and body of a POST with this message, and with these headers beside the usual ones."""
    body = msgspec.json.encode(message)
    sent = _message_headers(probe, message) | {"content-length": str(len(body))} | (more or {})
    return head("POST", _url(probe), sent), body


def encode_chunked_post(probe: Probe, message: JSONObject) -> bytes:
    """A POST whose body has no length, and comes in two chunks."""
    body = msgspec.json.encode(message)
    parts = (body[: len(body) // 2], body[len(body) // 2 :], b"")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return head("POST", _url(probe), _message_headers(probe, message) | {"transfer-encoding": "chunked"}) + chunks


def encode_get(probe: Probe) -> bytes:
    """A GET that opens a stream."""
    sent = {"accept": "text/event-stream", "mcp-protocol-version": probe.revision}
    return head("GET", _url(probe), _session_headers(probe) | sent)


def _message_headers(probe: Probe, message: JSONObject) -> dict[str, str]:
    return _session_headers(probe) | {
        name: value for name, value in http_headers(probe, message).items() if value is not None
    }


def _session_headers(probe: Probe) -> dict[str, str]:
    """What every request of this conversation has."""
    assert probe.http is not None, "it is over HTTP"
    return probe.http.build_headers({})


def _url(probe: Probe) -> str:
    assert probe.http is not None, "it is over HTTP"
    return probe.http.url


def _id_bytes(message: JSONObject) -> bytes:
    """How the answer bears its id, blanks apart."""
    return b'"id":%b' % msgspec.json.encode(message["id"])


def _without_blanks(response: bytes) -> bytes:
    return response.replace(b'": ', b'":')
