"""Raw HTTP requests on separate connections, and functions to read HTTP responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

from accord.check.engine.rule import EvidenceLine, NotObserved, Violation
from accord.check.probes.client_messages import http_headers
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import LogEntry, LoggedResponse, MessageLog
from accord.check.probes.probe import Probe
from accord.check.wires.socket import Socket, head
from accord.messages.base import JSONObject
from accord.wire.transcript import SENT

_MOST = 12
"""Maximum number of messages of a response that are shown."""
FIRST_ERROR_STATUS = 400
"""From this status on, a response is an error."""


class PostedMessage(NamedTuple):
    """A POST and its response."""

    log: MessageLog
    entry: LogEntry
    response: LoggedResponse

    @property
    def request(self) -> JSONObject:
        """The posted message; empty if it is not one."""
        return self.entry.message if isinstance(self.entry.message, dict) else {}

    @property
    def is_stream(self) -> bool:
        """Whether the response is an event stream."""
        return is_event_stream(self.response)

    def violation(self, text: str, symptom: str = "") -> Violation:
        """Return a `Violation` with the request and the response as evidence."""
        return Violation(
            text, symptom=symptom, evidence=http_evidence(self.response, self.entry), during=(self.entry.case,)
        )


def posted_messages(logs: Iterable[MessageLog]) -> Iterator[PostedMessage]:
    """Yield each POST of a valid message, with its response."""
    for log in logs:
        for entry in log.entries:
            if entry.direction == SENT and not entry.misbehaved and 0 < entry.stream <= len(log.responses):
                yield PostedMessage(log, entry, log.responses[entry.stream - 1])


def is_event_stream(response: LoggedResponse) -> bool:
    """Return whether a response is an event stream."""
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


def error_of(response: LoggedResponse) -> JSONObject:
    """Return the JSON-RPC error in a response; empty if there is none."""
    for message in response.messages:
        if isinstance(message, dict) and isinstance(message.get("error"), dict):
            found: JSONObject = message["error"]
            return found
    return {}


def has_result(response: LoggedResponse) -> bool:
    """Return whether a request got a result."""
    return any(isinstance(message, dict) and "result" in message for message in response.messages)


def describe_response(response: LoggedResponse) -> str:
    """Describe a response in a few words."""
    error = error_of(response)
    if not response.status:
        return response.error or "no response"
    return f"HTTP {response.status}" + (f" with {preview_json(error)}" if error else "")


def http_evidence(response: LoggedResponse, *sent: LogEntry) -> tuple[str, ...]:
    """Return the request and the response as lines."""
    lines: list[str] = [
        f"# {response.method}, {name}: {value}"
        for name, value in response.request_headers.items()
        if _is_safe_header(name)
    ]
    lines += [entry.line() for entry in sent]
    summary = f"# -> {describe_response(response)}, {response.headers.get('content-type', 'no content type')}"
    lines.append(EvidenceLine(summary, response.entries))
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
    """Raise `Violation` unless the response is an error, with this status and this code if they are given."""
    if response.status and response.status < FIRST_ERROR_STATUS:
        fault = f"{what} returned {describe_response(response)}"
    elif status is not None and response.status != status:
        fault = f"{what} returned {describe_response(response)} instead of status {status}"
    elif code is not None and error_of(response).get("code") != code:
        fault = f"{what} returned {describe_response(response)} instead of error {code}"
    else:
        return
    entry = [each for each in probe.log.entries if each.direction == SENT and each.stream == response.stream]
    raise Violation(fault, symptom=symptom, evidence=http_evidence(response, *entry))


def _is_safe_header(name: str) -> bool:
    """Return whether a header of the request is shown: not if it may have a secret."""
    return name.startswith(("mcp-", "accept", "origin", "host", "last-event-id")) and name != "mcp-session-id"


def harmless_request(probe: Probe) -> JSONObject:
    """Return a request that each server accepts, without an effect."""
    return probe.build_request(probe.harmless_method)


PAUSE = 0.02
"""Seconds between the parts of a slow request."""


@asynccontextmanager
async def raw_connection(probe: Probe) -> AsyncIterator[Socket]:
    """Open a connection to the server. A `Violation` inside has the bytes of the connection as evidence, too. Raises
    `ConnectError`.
    """
    if probe.settings.passive:
        raise NotObserved("the checker opened no further connection (--passive)")
    socket = await open_socket(probe)
    try:
        yield socket
    except Violation as exc:
        exc.evidence = (*probe.log.record_lines(socket.evidence()), *exc.evidence)
        raise
    finally:
        socket.abort()


async def open_socket(probe: Probe) -> Socket:
    """Open a connection that the caller closes. Raises `ConnectError`."""
    return await Socket.open(_url(probe))


async def send_pieces(probe: Probe, socket: Socket, *pieces: bytes) -> None:
    """Send parts, with pauses between them."""
    for number, piece in enumerate(pieces):
        await asyncio.sleep(PAUSE if number else 0)
        await socket.write(piece, probe.settings.timeout)


async def read_responses(probe: Probe, socket: Socket, requests: Sequence[JSONObject]) -> bytes:
    """Read until the responses to these requests, or an error status, have been received."""
    seconds = probe.settings.timeout
    response = await socket.read(seconds, until=b'"jsonrpc"', times=len(requests))
    for request in requests:
        begun = response.count(b'"jsonrpc"') == len(requests) and parse_status(response) < FIRST_ERROR_STATUS
        if begun and not socket.closed and _id_bytes(request) not in _without_blanks(response):
            response += await socket.read(seconds, until=msgspec.json.encode(request["id"]))
    return response


def require_ordered_results(requests: Sequence[JSONObject], response: bytes) -> None:
    """Raise `Violation` unless each request has a result, in order."""
    found = [_without_blanks(response).find(_id_bytes(request)) for request in requests]
    if min(found) < 0 or response.count(b'"result"') < len(requests):
        missing = "" if max(found) < 0 else f"one of {len(requests)} requests has no response, "
        raise Violation(f"{missing}the server sent {preview_json(response[:300].decode(errors='replace'))}")
    if found != sorted(found):
        raise Violation("the response to the second request came first")


def parse_status(response: bytes) -> int:
    """Return the status of a response; 0 if it is not one."""
    words = response.split(b"\r\n", 1)[0].split(b" ")
    return int(words[1]) if len(words) > 1 and words[0].startswith(b"HTTP/") and words[1].isdigit() else 0


def traceable_request(probe: Probe) -> JSONObject:
    """Return a harmless request with an id that can be found in raw bytes."""
    return harmless_request(probe) | {"id": f"weather-{probe.next_id()}"}


def encode_post(probe: Probe, message: JSONObject, more: dict[str, str] | None = None) -> tuple[bytes, bytes]:
    """Return the head and the body of a POST with this message, with additional headers."""
    body = msgspec.json.encode(message)
    sent = _message_headers(probe, message) | {"content-length": str(len(body))} | (more or {})
    return head("POST", _url(probe), sent), body


def encode_chunked_post(probe: Probe, message: JSONObject) -> bytes:
    """Return a POST with a chunked body of two chunks."""
    body = msgspec.json.encode(message)
    parts = (body[: len(body) // 2], body[len(body) // 2 :], b"")
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return head("POST", _url(probe), _message_headers(probe, message) | {"transfer-encoding": "chunked"}) + chunks


def encode_get(probe: Probe) -> bytes:
    """Return a GET that opens a stream."""
    sent = {"accept": "text/event-stream", "mcp-protocol-version": probe.revision}
    return head("GET", _url(probe), _session_headers(probe) | sent)


def _message_headers(probe: Probe, message: JSONObject) -> dict[str, str]:
    return _session_headers(probe) | {
        name: value for name, value in http_headers(probe, message).items() if value is not None
    }


def _session_headers(probe: Probe) -> dict[str, str]:
    """Return the headers of all requests in this session."""
    assert probe.http is not None, "the transport is HTTP"
    return probe.http.build_headers({})


def _url(probe: Probe) -> str:
    assert probe.http is not None, "the transport is HTTP"
    return probe.http.url


def _id_bytes(message: JSONObject) -> bytes:
    """Return how a response has the id, without spaces."""
    return b'"id":%b' % msgspec.json.encode(message["id"])


def _without_blanks(response: bytes) -> bytes:
    return response.replace(b'": ', b'":')
