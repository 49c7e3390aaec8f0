"""What went wrong over HTTP, in words that say where: DNS, TCP, TLS, a proxy, a status, or the middle of an answer.

Whatever fails before a connection stands is `NotExecuted`; what fails later is `ConnectionLost`, for nobody knows how
far the server got; a response that is no answer is `HTTPError`.
"""

from __future__ import annotations

import http
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
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
    """Logs the first complaint of each kind as a warning, and later ones at DEBUG: a server may give cause for any
    number of them. One for each connection.
    """

    def __init__(self) -> None:
        self._kinds: set[str] = set()

    def log(self, kind: str, text: str, *args: object) -> None:
        """Log one complaint; `text` and `args` as for a logger."""
        level = logging.DEBUG if kind in self._kinds else logging.WARNING
        self._kinds.add(kind)
        log.log(level, text, *args)


@cache
def http_errors() -> tuple[type[Exception], ...]:
    """What aiohttp raises for a request, or where its response is read."""
    import aiohttp

    return (aiohttp.ClientError, OSError, ValueError, RuntimeError)


def request_error(exc: Exception, what: str, host: str) -> AccordError:
    """The error for what aiohttp raised when `what` ("tools/call to http://...") was sent to `host`."""
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


@contextmanager
def translate_read_errors(what: str) -> Iterator[None]:
    """Around the reading of a response, and nothing else: the server has begun to act, whatever breaks then."""
    try:
        yield
    except http_errors() as exc:
        why = f": {exc}" if isinstance(exc, OSError) else " in the middle of the answer"
        raise ConnectionLost(f"{what}: the connection broke{why}") from exc


def _connect_error_text(exc: Exception, host: str) -> str:
    """Why there is no connection."""
    import aiohttp

    if isinstance(exc, aiohttp.ClientHttpProxyError):
        return f"the proxy refused to connect to {host}: {exc.status} {visible(exc.message)}"
    if isinstance(exc, aiohttp.ClientProxyConnectionError):
        return f"the proxy cannot be reached: {_system(exc)}"
    if isinstance(exc, aiohttp.ClientConnectorDNSError):
        return f"DNS: there is no address for {host}: {_system(exc)}"
    if isinstance(exc, aiohttp.ClientConnectorCertificateError):
        why = getattr(exc.certificate_error, "verify_message", "") or exc.certificate_error
        return (
            f"TLS: the certificate of {host} is not trusted: {why}; "
            "HTTPSettings(ssl=...) takes a context that knows its authority"
        )
    if isinstance(exc, aiohttp.ClientConnectorSSLError):
        return f"TLS: no handshake with {host}: {_system(exc)}; is it http:// there?"
    return f"TCP: no connection to {host}: {_system(exc)}; is the server running?"


def _system(exc: Exception) -> str:
    """The words of the operating system."""
    error: Any = getattr(exc, "os_error", exc)
    words = str(getattr(error, "strerror", None) or error)
    return os.strerror(error.errno) if words.startswith("Connect call failed") else words


def media_type(response: ClientResponse) -> str:
    """What a response says that its body is; nothing where it does not."""
    return response.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def response_error(response: ClientResponse, body: bytes, what: str, secrets: SecretRedactor) -> HTTPError:
    """The error for a response that is no answer: its status, its body, and what to do where that is known."""
    status, shown = response.status, excerpt(body, secrets)
    challenge = visible(secrets.redact(response.headers.get("WWW-Authenticate", "")))[:_EXCERPT]
    parts = [f"{what}: HTTP {status} {_phrase(status)}".rstrip()]
    if status < 300:
        parts = [f"{what}: {visible(media_type(response)) or 'nothing said'} (HTTP {status}) in the place of an answer"]
    if challenge:
        parts.append(f"it asks for {challenge}")
    if shown:
        parts.append(f"it says {excerpt(_message(body), secrets)}")
    if _names_host(status, body):
        parts.append(f"the server does not answer to the name {response.url.host!r}: have it accept this Host")
    return HTTPError("; ".join(parts), status=status, body=shown, challenge=challenge)


def _message(body: bytes) -> bytes:
    """Return the message of a JSON-RPC error, and any other body as it is."""
    try:
        return _error_body(body).error.message.encode() or body
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body


def ends_session(status: int, body: bytes) -> bool:
    """Whether the answer to a request with a session says that there is no such session any more.

    "it MUST respond to requests containing that session ID with HTTP 404". The examples of the official TypeScript SDK,
    and the many servers made from them, say 400 instead, in these words.
    """
    return status == 404 or (status == 400 and b"No valid session ID" in body)


def _names_host(status: int, body: bytes) -> bool:
    return status == 421 or (status == 403 and b"host" in body.lower())


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def excerpt(body: bytes, secrets: SecretRedactor) -> str:
    """How a body begins, on one line, without what we have sent as a secret."""
    shown = visible(secrets.redact(" ".join(body[: 4 * _EXCERPT].decode(errors="replace").split())))
    return shown if len(shown) <= _EXCERPT else f"{shown[: _EXCERPT - 1]}…"
