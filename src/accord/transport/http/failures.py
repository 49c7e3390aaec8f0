"""Errors over HTTP, with the place of the failure: DNS, TCP, TLS, a proxy, a status, or an incomplete response.

A failure before the connection is open is `NotExecuted`; a later one is `ConnectionLost`, because the server may have
executed the request; a response that is not a message is `HTTPError`.
"""

from __future__ import annotations

import http
import logging
import os
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import AccordError, ConnectionLost, HTTPError, NotExecuted, RemoteProtocolError, visible
from accord.transport.http.redaction import SecretRedactor

if TYPE_CHECKING:
    from aiohttp import ClientResponse

log: logging.Logger = logging.getLogger("accord")

_EXCERPT = 500
"""Characters of a body in an error."""


class _ErrorMessage(msgspec.Struct):
    message: str


class _ErrorBody(msgspec.Struct):
    error: _ErrorMessage


_error_body = msgspec.json.Decoder(_ErrorBody).decode


class Complaints:
    """Logger of one connection: the first complaint of each kind is a warning, later ones are at DEBUG, because a
    server may cause any number of them."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()

    def log(self, kind: str, text: str, *args: object) -> None:
        """Log one complaint; `text` and `args` as for a logger."""
        level = logging.DEBUG if kind in self._kinds else logging.WARNING
        self._kinds.add(kind)
        log.log(level, text, *args)


@cache
def http_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that aiohttp raises for a request, or while its response is read."""
    import aiohttp

    return (aiohttp.ClientError, OSError, ValueError, RuntimeError)


def request_error(exc: Exception, what: str, host: str) -> AccordError:
    """Return the error for an exception of aiohttp when `what` ("tools/call to http://...") was sent to `host`."""
    import aiohttp

    if isinstance(exc, aiohttp.ConnectionTimeoutError):
        return NotExecuted(f"{what}: TCP: no connection to {host} in time")
    if isinstance(exc, aiohttp.ClientConnectorError | aiohttp.ClientHttpProxyError):
        return NotExecuted(f"{what}: {_connect_error_text(exc, host)}")
    if isinstance(exc, ValueError):  # a URL or a header
        return NotExecuted(f"{what}: it cannot be sent: {exc}")
    if isinstance(exc, aiohttp.ServerDisconnectedError):
        return ConnectionLost(f"{what}: the connection was closed before an answer came")
    if isinstance(exc, aiohttp.ClientResponseError):
        return RemoteProtocolError(f"{what}: {host} does not answer in HTTP: {visible(exc.message)[:_EXCERPT]}")
    return ConnectionLost(f"{what}: the connection broke: {exc or type(exc).__name__}")


def read_error(exc: Exception, what: str) -> ConnectionLost:
    """Return the error for an exception while a response is read: the server may have executed the request."""
    reason = f": {exc}" if isinstance(exc, OSError) else " in the middle of the answer"
    return ConnectionLost(f"{what}: the connection broke{reason}")


def _connect_error_text(exc: Exception, host: str) -> str:
    """Return why there is no connection."""
    import aiohttp

    if isinstance(exc, aiohttp.ClientHttpProxyError):
        return f"the proxy refused to connect to {host}: {exc.status} {visible(exc.message)}"
    if isinstance(exc, aiohttp.ClientProxyConnectionError):
        return f"the proxy cannot be reached: {_system_error_text(exc)}"
    if isinstance(exc, aiohttp.ClientConnectorDNSError):
        return f"DNS: there is no address for {host}: {_system_error_text(exc)}"
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        why = getattr(exc.certificate_error, "verify_message", "") or exc.certificate_error
        return (
            f"TLS: the certificate of {host} is not trusted: {why}; "
            "HTTPSettings(ssl=...) takes a context that knows its authority"
        )
    if isinstance(exc, aiohttp.ClientConnectorSSLError):
        return f"TLS: no handshake with {host}: {_system_error_text(exc)}; is it http:// there?"
    return f"TCP: no connection to {host}: {_system_error_text(exc)}; is the server running?"


def _system_error_text(exc: Exception) -> str:
    """Return the error text of the operating system."""
    error: Any = getattr(exc, "os_error", exc)
    text = str(getattr(error, "strerror", None) or error)
    return os.strerror(error.errno) if text.startswith("Connect call failed") else text


def media_type(response: ClientResponse) -> str:
    """Return the media type of a response; empty if it has none."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def response_error(response: ClientResponse, body: bytes, what: str, secrets: SecretRedactor) -> HTTPError:
    """Return the error for a response that is not a message: its status, its body, and what to do if that is known."""
    status, shown = response.status, excerpt(body, secrets)
    challenge = visible(secrets.redact(response.headers.get("WWW-Authenticate", "")))[:_EXCERPT]
    parts = [f"{what}: HTTP {status} {_status_phrase(status)}".rstrip()]
    if status < 300:
        parts = [f"{what}: {visible(media_type(response)) or 'no media type'} (HTTP {status}) instead of a response"]
    if challenge:
        parts.append(f"it asks for {challenge}")
    if shown:
        parts.append(f"it says {excerpt(_message(body), secrets)}")
    if refuses_host(status, body):
        parts.append(f"the server does not answer to the name {response.url.host!r}: have it accept this Host")
    return HTTPError("; ".join(parts), status=status, body=shown, challenge=challenge)


def _message(body: bytes) -> bytes:
    """Return the message of a JSON-RPC error; return any other body unchanged."""
    try:
        return _error_body(body).error.message.encode() or body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body


def ends_session(status: int, body: bytes) -> bool:
    """Return whether the response to a request with a session means that the session has ended.

    "it MUST respond to requests containing that session ID with HTTP 404". The examples of the official TypeScript SDK,
    and the many servers derived from them, answer 400 instead, with this text.
    """
    return status == 404 or (status == 400 and b"No valid session ID" in body)


def refuses_host(status: int, body: bytes) -> bool:
    """Return whether a response refuses the `Host` header of the request."""
    return status == 421 or (status == 403 and b"host" in body.lower())


def _status_phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def excerpt(body: bytes, secrets: SecretRedactor) -> str:
    """Return the beginning of a body, on one line, without the secrets of this client."""
    text = visible(secrets.redact(" ".join(body[: 4 * _EXCERPT].decode(errors="replace").split())))
    return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"
