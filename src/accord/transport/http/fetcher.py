"""Requests over HTTP to one URL: headers, proxy, redirects, and errors that say where it failed.

aiohttp is imported when the first connection is opened.

Which proxy a URL is reached through: the one that was given, or else that of the environment.
"""

from __future__ import annotations

import base64
import io
import ipaddress
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from accord.errors import HTTPError, NotExecuted, TargetError, visible
from accord.limits import Limits
from accord.transport.http.failures import http_errors, request_error, response_error
from accord.transport.http.redaction import SecretRedactor, without_credentials
from accord.transport.http.settings import HTTPSettings, resolve_headers, validate_proxy, validated_headers

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from yarl import URL


class Proxy(msgspec.Struct, frozen=True):
    """The URL of a proxy, and what it has to be told; no URL is no proxy."""

    url: str | None = None
    headers: dict[str, str] | None = None


NO_PROXY = Proxy()


def proxy_for(url: URL, given: str | None) -> Proxy:
    """The proxy for `url`; none for this machine itself, unless one was given, and none at all for "".

    Raises `TargetError` for one of the environment that is no HTTP proxy.
    """
    from aiohttp.helpers import get_env_proxy_for_url
    from yarl import URL

    if given is not None:
        return _with_credentials(URL(given)) if given else NO_PROXY
    if _is_loopback(url.host or ""):
        return NO_PROXY
    try:
        found, auth = get_env_proxy_for_url(url)
    except LookupError:
        return NO_PROXY
    validate_proxy(str(found))
    return _with_credentials(found if auth is None else found.with_user(auth.login).with_password(auth.password))


def _with_credentials(proxy: URL) -> Proxy:
    """A proxy with the name and password of its URL in a header, where it looks for them."""
    if proxy.user is None:
        return Proxy(str(proxy))
    return Proxy(str(proxy.with_user(None)), {"Proxy-Authorization": basic_auth(proxy.user, proxy.password or "")})


def basic_auth(user: str, password: str) -> str:
    """A name and a password as a header has them."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _is_loopback(host: str) -> bool:
    """Whether a name is that of this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


SESSION = "Mcp-Session-Id"
ACCEPT = "application/json, text/event-stream"
STREAM_ONLY = {"Accept": "text/event-stream"}

_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_REDIRECTS = 5
_KEEPALIVE_SECONDS = 4
"""Idle time of a connection: servers close theirs after 5 s, and a request must not meet that."""
_COOKIES = 50
_LARGE = 1 << 20
_TCP_KEEPIDLE_SECONDS = 60
"""A connection on which nothing comes is asked after so long whether it still stands, and often then."""


class Fetcher:
    """Sends requests to one URL and whatever it leads to on the same origin."""

    def __init__(self, url: str, settings: HTTPSettings, limits: Limits) -> None:
        self._given = url
        self._settings = settings
        self._limits = limits
        self._session: ClientSession | None = None
        self._url: URL | None = None
        self._proxy = NO_PROXY
        self._source = settings.headers if callable(settings.headers) else None
        self.redactor: SecretRedactor = SecretRedactor()
        """Values of our own headers, and of the query of the URL."""

    async def open(self) -> None:
        """Load what is needed; nothing is connected yet. Raises `TargetError` for a URL that is none."""
        import aiohttp

        url = self._parsed()
        self._url, self._proxy = url.with_user(None), proxy_for(url, self._settings.proxy)
        self.redactor.add_permanent(
            [url.password or "", *url.query.values(), *(pair.partition("=")[2] for pair in _pairs(url))]
        )
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=_KEEPALIVE_SECONDS, ssl=self._settings.ssl or True, socket_factory=_socket
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._static(url),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_seconds),
        )

    def _parsed(self) -> URL:
        try:
            url = _url(self._given).with_fragment(None)
            if url.host and url.scheme in ("http", "https"):
                return url
        except ValueError:  # a name that no name can be, say
            pass
        raise TargetError(f"{visible(without_credentials(self._given))[:500]!r} is not the URL of a server")

    def _static(self, url: URL) -> dict[str, str]:
        """The headers that every request has."""
        headers: dict[str, str] = {}
        if url.user is not None:
            headers["authorization"] = basic_auth(url.user, url.password or "")
        if isinstance(self._settings.headers, Mapping):
            headers |= validated_headers(self._settings.headers)
        if self._settings.auth is not None:
            headers["authorization"] = f"Bearer {self._settings.auth}"
        if self._proxy.headers is not None and url.scheme == "http":
            headers |= self._proxy.headers
        self.redactor.add_permanent(headers.values())
        ours = {
            "Accept": ACCEPT,
            "Accept-Encoding": "identity",  # what is packed arrives late in a stream
            "Content-Type": "application/json",
        }
        return {"user-agent": "accord", **headers, **ours}

    @property
    def url(self) -> URL:
        """Where requests go."""
        assert self._url is not None, "it was opened"
        return self._url

    def set_endpoint(self, reference: str) -> bool:
        """Send requests elsewhere from now on: to a URL, relative or not, of the same origin. Whether it is one."""
        target = _on_the_origin(self.url, reference)
        self._url = target or self._url
        return target is not None

    async def fetch(
        self, method: str, headers: dict[str, str], body: bytes | None = None, *, what: str
    ) -> ClientResponse:
        """Send one request, also to where it is redirected; the response, of which only the headers are read.

        `what` says in errors what it was for. Raises `NotExecuted` where no connection stood, `ConnectionLost` where it
        broke, `HTTPError` for a redirect that is not followed.
        """
        if self._source is not None:
            headers = {**await self._current(what), **headers}
        if SESSION in headers:
            self.redactor.add_recent([headers[SESSION]])
        url, redirects = self.url, 0
        while (response := await self._send(method, url, headers, body, what)).status in _REDIRECT_STATUSES:
            target = self._target(response, url, method, what)
            redirects += 1
            if redirects > _REDIRECTS:
                raise HTTPError(f"{what}: redirected more than {_REDIRECTS} times", status=response.status)
            if response.status in (301, 308) and url == self.url:  # for good, and not on the way to elsewhere
                self._url = target
            url = target
        return response

    async def _send(
        self, method: str, url: URL, headers: dict[str, str], body: bytes | None, what: str
    ) -> ClientResponse:
        session = self._session
        assert session is not None, "it was opened"
        data: bytes | io.BytesIO | None = body
        if body is not None and len(body) > _LARGE:  # aiohttp warns of more bytes at once
            data = io.BytesIO(body)
        try:
            response = await session.request(
                method,
                url,
                headers=headers,
                data=data,
                allow_redirects=False,
                proxy=self._proxy.url,
                proxy_headers=self._proxy.headers,
            )
        except http_errors() as exc:
            raise request_error(exc, what, url.authority) from exc
        if "Set-Cookie" in response.headers and len(session.cookie_jar) > _COOKIES:
            session.cookie_jar.clear()
        return response

    async def _current(self, what: str) -> dict[str, str]:
        """The headers that the function gives just now."""
        assert self._source is not None
        try:
            found = await resolve_headers(self._source)
        except Exception as exc:
            raise NotExecuted(f"{what}: the function for headers failed: {exc!r}") from exc
        self.redactor.add_recent(found.values())
        return found

    def _target(self, response: ClientResponse, url: URL, method: str, what: str) -> URL:
        """Where a response to `url` leads to: on the same origin, and only with the method and the body kept."""
        location = response.headers.get("Location", "")
        response.close()
        if not location:
            raise response_error(response, b"", f"{what}: a redirect without a Location", self.redactor)
        keeps = response.status in (307, 308) or method == "GET"
        target = _on_the_origin(url, location)
        if keeps and target is not None:
            return target
        why = "another origin" if keeps else f"HTTP {response.status}, which a {method} does not follow"
        shown = visible(self.redactor.redact(without_credentials(location)))[:500]
        raise HTTPError(f"{what}: redirected to {shown} ({why}); give that URL if you trust it", status=response.status)

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()


def _url(text: str) -> URL:
    """A URL as it was written, where it can be sent so: a signature may count on that."""
    from yarl import URL

    return URL(text, encoded=text.isascii() and text.isprintable() and " " not in text)


def _on_the_origin(base: URL, reference: str) -> URL | None:
    """What a reference leads to from `base`; None when it is on another origin, or nowhere."""
    try:
        target = base.join(_url(reference)).with_fragment(None)
        return target.with_user(None) if target.origin() == base.origin() else None
    except ValueError:
        return None


def _pairs(url: URL) -> list[str]:
    return url.raw_query_string.split("&")


def _socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket that learns when the other side has gone without a word."""
    made = socket.socket(*address[:3])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _TCP_KEEPIDLE_SECONDS)
    return made
