"""HTTP requests to one URL: headers, proxy, redirects, and errors with the place of the failure.

aiohttp is imported when the first connection is opened.

The proxy is that of the settings, or else that of the environment.
"""

from __future__ import annotations

import io
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import HTTPError, NotExecuted, TargetError, visible
from accord.limits import Limits
from accord.transport.base import TransportObserver
from accord.transport.http.credentials import Credentials, RefusedRequest
from accord.transport.http.exchanges import ObservedExchanges, RepeatableBody
from accord.transport.http.failures import http_errors, request_error, response_error
from accord.transport.http.redaction import SecretRedactor, without_credentials
from accord.transport.http.settings import HTTPSettings, resolve_headers, validate_proxy, validated_headers
from accord.wire.headers import basic_auth
from accord.wire.hosts import is_loopback
from accord.wire.lines import SkippedMessage

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from yarl import URL


class Proxy(msgspec.Struct, frozen=True):
    """The URL of a proxy, and the headers for it; without a URL there is no proxy."""

    url: str | None = None
    headers: dict[str, str] | None = None

    def __repr__(self) -> str:
        return f"Proxy({without_credentials(self.url or '')!r})"  # without the password


NO_PROXY = Proxy()


def proxy_for(url: URL, given: str | None) -> Proxy:
    """Return the proxy for `url`; none for this machine itself unless one is given, and none at all for "".

    Raises `TargetError` for a proxy of the environment that is not an HTTP proxy.
    """
    from aiohttp.helpers import get_env_proxy_for_url
    from yarl import URL

    if given is not None:
        return _with_credentials(URL(given)) if given else NO_PROXY
    if is_loopback(url.host or ""):
        return NO_PROXY
    try:
        found, auth = get_env_proxy_for_url(url)
    except LookupError:
        return NO_PROXY
    validate_proxy(str(found))
    return _with_credentials(found if auth is None else found.with_user(auth.login).with_password(auth.password))


def _with_credentials(proxy: URL) -> Proxy:
    """Return a proxy with the name and password of its URL in a header, where the proxy expects them."""
    if proxy.user is None:
        return Proxy(str(proxy))
    return Proxy(str(proxy.with_user(None)), {"Proxy-Authorization": basic_auth(proxy.user, proxy.password or "")})


SESSION = "Mcp-Session-Id"
ACCEPT = "application/json, text/event-stream"
STREAM_ONLY = {"Accept": "text/event-stream"}

_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_REDIRECTS = 5
_KEEPALIVE_SECONDS = 4
"""Idle time of a connection: servers close theirs after 5 s, and a request must not use one that is being closed."""
_COOKIES = 50
_LARGE = 1 << 20
_TCP_KEEPIDLE_SECONDS = 60
"""Idle time before the first TCP keep-alive probe; further probes follow often."""


class Fetcher:
    """Sender of requests to one URL, and to redirects on the same origin."""

    def __init__(
        self, url: str, settings: HTTPSettings, limits: Limits, credentials: Credentials | None = None
    ) -> None:
        self._given = url
        self._credentials = credentials
        self._credential_headers: Mapping[str, str] = {}
        self._settings = settings
        self._limits = limits
        self._session: ClientSession | None = None
        self._url: URL | None = None
        self._proxy = NO_PROXY
        self._source = settings.headers if callable(settings.headers) else None
        self.observer: TransportObserver | None = None
        """The observer of all requests and responses; set before `open`."""
        self._exchanges: ObservedExchanges | None = None
        self.redactor: SecretRedactor = SecretRedactor()
        """The values of this client's headers, and of the query of the URL; `PostSender` adds the id of the session."""

    async def open(self) -> None:
        """Create the HTTP session; nothing is connected yet. Raises `TargetError` for an invalid URL."""
        import aiohttp

        url = self._validated_url()
        self._url, self._proxy = url.with_user(None), proxy_for(url, self._settings.proxy)
        self.redactor.add_permanent(
            [url.password or "", *url.query.values(), *(pair.partition("=")[2] for pair in _query_pairs(url))]
        )
        connector = aiohttp.TCPConnector(
            limit=0,
            keepalive_timeout=_KEEPALIVE_SECONDS,
            ssl=self._settings.ssl or True,
            socket_factory=_keep_alive_socket,
        )
        if self.observer is not None:
            self._exchanges = ObservedExchanges(self.observer)
        self._session = aiohttp.ClientSession(
            connector=connector,
            trace_configs=None if self._exchanges is None else [self._exchanges.trace_config()],
            headers=self._static_headers(url),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.client.connect_seconds),
        )

    def _validated_url(self) -> URL:
        try:
            url = _parse_url(self._given).with_fragment(None)
            if url.host and url.scheme in ("http", "https"):
                return url
        except ValueError:  # such as an invalid host name
            pass
        raise TargetError(f"{visible(without_credentials(self._given))[:500]!r} is not the URL of a server")

    def _static_headers(self, url: URL) -> dict[str, str]:
        """Return the headers of all requests."""
        headers: dict[str, str] = {}
        if url.user is not None:
            headers["authorization"] = basic_auth(url.user, url.password or "")
        if isinstance(self._settings.headers, Mapping):
            headers |= validated_headers(self._settings.headers)
        if self._proxy.headers is not None and url.scheme == "http":
            headers |= self._proxy.headers
        self.redactor.add_permanent(headers.values())
        protocol_headers = {
            "Accept": ACCEPT,
            "Accept-Encoding": "identity",  # a compressed stream arrives late
            "Content-Type": "application/json",
        }
        return {"user-agent": "accord", **headers, **protocol_headers}

    @property
    def url(self) -> URL:
        """Return the URL of the requests."""
        assert self._url is not None, "it was opened"
        return self._url

    def set_endpoint(self, reference: str) -> bool:
        """Set the URL of further requests, absolute or relative, on the same origin; return whether it is on that
        origin."""
        target = _resolve_same_origin(self.url, reference)
        self._url = target or self._url
        return target is not None

    async def fetch(
        self, method: str, headers: dict[str, str], body: bytes | None = None, *, what: str
    ) -> ClientResponse:
        """Send one request, follow redirects, and return the response, of which only the headers are read.

        `what` names the request in errors. Raises `NotExecuted` if no connection was open, `ConnectionLost` if it
        broke, `HTTPError` for a redirect that is not followed, `AuthorizationError` if a login is needed.
        """
        if self._source is not None:
            headers = {**await self._current_headers(what), **headers}
        if self._exchanges is not None and body is not None:
            body = RepeatableBody(body)
        if self._credentials is None:
            return await self._follow(method, self.url, headers, body, what)
        return await self._fetch_with(self._credentials, method, headers, body, what)

    async def access_headers(self) -> dict[str, str]:
        """Return the headers that the function for headers and the credentials add to a POST now.

        Raises `AuthorizationError`, `NotExecuted`.
        """
        found = {} if self._source is None else await self._current_headers("headers")
        if self._credentials is not None:
            sent = self._credentials.headers("POST", str(self.url))
            found |= sent if sent is not None else await self._credentials.renew("POST", str(self.url))
        return found

    async def _fetch_with(
        self, credentials: Credentials, method: str, headers: dict[str, str], body: bytes | None, what: str
    ) -> ClientResponse:
        """Send a request with credentials, and again if they were refused and renewed. Raises `AuthorizationError`."""
        attempt = 0
        while True:
            sent = credentials.headers(method, str(self.url))
            if sent is None:
                sent = await credentials.renew(method, str(self.url))
            if sent is not self._credential_headers:
                self.redactor.add_recent(sent.values())
                self._credential_headers = sent
            response = await self._follow(method, self.url, {**headers, **sent}, body, what)
            if response.status not in (401, 403):
                credentials.accepted = True
                if (nonce := response.headers.get("DPoP-Nonce")) is not None:
                    credentials.on_nonce(nonce)
                return response
            refusal = _refusal(method, response, sent, attempt)
            if not await credentials.retry(refusal):
                if (error := credentials.error(refusal)) is None:
                    return response
                response.close()
                raise error
            response.close()
            attempt += 1

    async def _follow(
        self, method: str, url: URL, headers: dict[str, str], body: bytes | None, what: str
    ) -> ClientResponse:
        """Send one request, and follow its redirects."""
        redirects = 0
        while (response := await self._send(method, url, headers, body, what)).status in _REDIRECT_STATUSES:
            target = self._redirect_target(response, url, method, what)
            redirects += 1
            if redirects > _REDIRECTS:
                raise HTTPError(f"{what}: redirected more than {_REDIRECTS} times", status=response.status)
            if response.status in (301, 308) and url == self.url:  # permanent, and not after a temporary redirect
                self._url = target
            url = target
            headers = self._with_proof_for(method, url, headers)
        return response

    def _with_proof_for(self, method: str, url: URL, headers: dict[str, str]) -> dict[str, str]:
        """Return the headers of a redirected request: a proof of possession is for one URL only (RFC 9449, 4.2)."""
        if self._credentials is None or "dpop" not in headers:
            return headers
        sent = self._credentials.headers(method, str(url)) or {}
        self.redactor.add_recent(sent.values())
        return {**headers, **sent}

    async def _send(
        self, method: str, url: URL, headers: dict[str, str], body: bytes | None, what: str
    ) -> ClientResponse:
        session = self._session
        assert session is not None, "it was opened"
        data: bytes | io.BytesIO | None = body
        if body is not None and len(body) > _LARGE:  # aiohttp warns of more bytes at once
            data = io.BytesIO(body)
        exchange = None if self._exchanges is None else self._exchanges.begin(body)
        try:
            response = await session.request(
                method,
                url,
                headers=headers,
                data=data,
                allow_redirects=False,
                proxy=self._proxy.url,
                proxy_headers=self._proxy.headers,
                trace_request_ctx=exchange,
            )
        except http_errors() as exc:
            raise request_error(exc, what, url.authority) from exc
        if exchange is not None and self._exchanges is not None:
            self._exchanges.responded(exchange, response)
        if "Set-Cookie" in response.headers and len(session.cookie_jar) > _COOKIES:
            session.cookie_jar.clear()
        return response

    def report(self, response: ClientResponse, message: bytes | SkippedMessage) -> None:
        """Report a message in a response to the observer."""
        if self._exchanges is not None:
            self._exchanges.received(response, message)

    async def _current_headers(self, what: str) -> dict[str, str]:
        """Return the current headers of the function."""
        assert self._source is not None
        try:
            headers = await resolve_headers(self._source)
        except Exception as exc:
            raise NotExecuted(f"{what}: the function for headers failed: {exc!r}") from exc
        self.redactor.add_recent(headers.values())
        return headers

    def _redirect_target(self, response: ClientResponse, url: URL, method: str, what: str) -> URL:
        """Return the target of a redirect of `url`: on the same origin, and only if method and body stay the same."""
        location = response.headers.get("Location", "")
        response.close()
        if not location:
            raise response_error(response, b"", f"{what}: a redirect without a Location", self.redactor)
        keeps_method = response.status in (307, 308) or method == "GET"
        target = _resolve_same_origin(url, location)
        if keeps_method and target is not None:
            return target
        reason = "another origin" if keeps_method else f"HTTP {response.status}, which a {method} does not follow"
        excerpt = visible(self.redactor.redact(without_credentials(location)))[:500]
        raise HTTPError(
            f"{what}: redirected to {excerpt} ({reason}); give that URL if you trust it", status=response.status
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


def _refusal(method: str, response: ClientResponse, sent: Mapping[str, str], attempt: int) -> RefusedRequest:
    headers = {name.lower(): value for name, value in response.headers.items()}
    challenges = response.headers.getall("WWW-Authenticate", [])
    return RefusedRequest(method, str(response.url), response.status, challenges, headers, sent, attempt)


def _parse_url(text: str) -> URL:
    """Parse a URL without a change to its encoding, if it can be sent so: a signature may depend on it."""
    from yarl import URL

    return URL(text, encoded=text.isascii() and text.isprintable() and " " not in text)


def _resolve_same_origin(base: URL, reference: str) -> URL | None:
    """Resolve a reference relative to `base`; return None if it is invalid or on another origin."""
    try:
        target = base.join(_parse_url(reference)).with_fragment(None)
        return target.with_user(None) if target.origin() == base.origin() else None
    except ValueError:
        return None


def _query_pairs(url: URL) -> list[str]:
    return url.raw_query_string.split("&")


def _keep_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket with TCP keep-alive, which detects that the peer is gone."""
    sock = socket.socket(*address[:3])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _TCP_KEEPIDLE_SECONDS)
    return sock
