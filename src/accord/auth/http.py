"""The HTTP driver of OAuth: it sends requests to URLs that a peer chose, and so checks where they lead.

- Only https, and http on loopback; each redirect of a GET is checked again, and nothing else is redirected.
- Addresses are checked when they are resolved, and only checked addresses are connected to: a name cannot change
  between check and use. None may lie further inside a private network than the server that the user named (`Reach`).
- `http://127.0.0.1` and its other forms are only for a server whose own URL is one: whoever owns another name can let
  it resolve to this machine.
- Bodies and times are bounded.

aiohttp is imported when the first request is sent.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Container
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

from accord.auth.lookups import Lookups
from accord.auth.metadata import METADATA_BYTES
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.auth.urls import Reach, check_url, reach_of
from accord.errors import AccordError, AuthorizationError, visible
from accord.transport.http.failures import http_errors, request_error
from accord.transport.http.fetcher import proxy_for
from accord.wire.hosts import is_loopback

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientResponse, ClientSession
    from aiohttp.abc import AbstractResolver

SECONDS = 30.0
"""Time limit of one request, redirects included."""

_REDIRECTS = 5
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_CURE = "only the server that you named decides how far accord goes into a private network"


class OAuthClient:
    """Sender of OAuth requests on behalf of one server.

    `server` is the URL that the user named. `ssl` verifies servers, if the authorities of the system are not enough;
    `proxy` is the URL of a proxy, "" disables that of the environment. `reach` is how far requests may lead into a
    private network, by default as far as `server` lies. `lookups` resolve names, by default in threads of this client
    alone: peers chose most names.
    """

    def __init__(
        self,
        server: str,
        *,
        ssl: SSLContext | None = None,
        proxy: str | None = None,
        reach: Reach | None = None,
        lookups: Lookups | None = None,
    ) -> None:
        self._server = server
        self._lookups = lookups or Lookups()
        self._is_on_loopback = is_loopback(urlsplit(server).hostname or "")
        self._chosen_reach = reach
        self._ssl = ssl
        self._proxy = proxy
        self._session: ClientSession | None = None
        self._reach = Reach.PUBLIC
        self._proxy_hosts: set[str] = set()
        self.observer: Callable[[OAuthRequest, OAuthResponse | AuthorizationError], None] | None = None
        """Called after each request with its outcome, as for `accord auth explain`."""

    async def send(self, request: OAuthRequest) -> OAuthResponse:
        """Send one request, and return its response. Raises `AuthorizationError`."""
        outcome: OAuthResponse | AuthorizationError
        try:
            outcome = await asyncio.wait_for(self._send(request), SECONDS)
        except TimeoutError:
            outcome = AuthorizationError(request.step, f"{_url_text(request.url)} did not answer within {SECONDS:g} s")
        except AuthorizationError as exc:
            outcome = exc
        if self.observer is not None:
            self.observer(request, outcome)
        if isinstance(outcome, AuthorizationError):
            raise outcome
        return outcome

    async def _send(self, request: OAuthRequest) -> OAuthResponse:
        session = await self._open()
        url, redirects = request.url, 0
        while True:
            self._check_destination(url, request.step)
            response = await self._request(session, request, url)
            try:
                if response.status not in _REDIRECT_STATUSES:
                    return await _read(response, request.step)
                url = _redirect_target(request, response, url)
            finally:
                response.release()
            redirects += 1
            if redirects > _REDIRECTS:
                raise AuthorizationError(
                    request.step, f"{_url_text(request.url)} redirects more than {_REDIRECTS} times"
                )

    async def _request(self, session: ClientSession, request: OAuthRequest, url: str) -> ClientResponse:
        from yarl import URL

        body: dict[str, Any] = {"data": request.form} if request.form is not None else {}
        if not body and request.json is not None:
            body = {"json": request.json}
        try:
            target = URL(url, encoded=True)
            proxy = proxy_for(target, self._proxy)
            if proxy.url is not None:
                self._proxy_hosts.add(URL(proxy.url).host or "")
            return await session.request(
                request.method,
                target,
                headers=request.headers,
                allow_redirects=False,
                proxy=proxy.url,
                proxy_headers=proxy.headers,
                **body,
            )
        except http_errors() as exc:
            raise AuthorizationError(request.step, str(_network_error(exc, request, url))) from exc

    async def _open(self) -> ClientSession:
        if self._session is None:
            import aiohttp

            chosen = self._chosen_reach
            self._reach = await self._reach_of_server() if chosen is None else chosen
            connector = aiohttp.TCPConnector(
                ssl=self._ssl or True, resolver=_checking_resolver(self._reach, self._proxy_hosts, self._lookups)
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": "accord", "Accept-Encoding": "identity"},
                timeout=aiohttp.ClientTimeout(total=None),  # `send` has the time limit
            )
        return self._session

    async def _reach_of_server(self) -> Reach:
        """Return how far inside a private network the server lies, by the address that lies furthest inside."""
        host = urlsplit(self._server).hostname or ""
        with suppress(ValueError):
            return reach_of(host)
        try:
            found = await self._lookups.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return Reach.PUBLIC  # a proxy may know it
        return max((reach_of(str(address[4][0])) for address in found), default=Reach.PUBLIC)

    def _check_destination(self, url: str, step: str) -> None:
        """Raise `AuthorizationError` for an unsafe URL, and for an address that lies too far inside a network."""
        host = check_url(url, step).hostname or ""
        try:
            reach = Reach.LOOPBACK if is_loopback(host) else reach_of(host)
        except ValueError:
            return  # a name: its addresses are checked when they are resolved
        if reach > self._reach:
            raise _too_far(step, host, reach, self._reach)
        if reach == Reach.LOOPBACK and self._chosen_reach is None and not self._is_on_loopback:
            reason = f"{visible(host)} is this machine, and the URL of the server does not name this machine"
            raise AuthorizationError(step, reason, _CURE)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def _checking_resolver(limit: Reach, exempt: Container[str], lookups: Lookups) -> AbstractResolver:
    """Return a resolver of names that refuses addresses further inside a private network than `limit`, except for the
    hosts in `exempt`, which the user chose.
    """
    from aiohttp.resolver import ThreadedResolver

    class CheckingResolver(ThreadedResolver):
        async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[Any]:
            found = await super().resolve(host, port, family)
            for each in () if host in exempt else found:
                reach = reach_of(each["host"])
                if reach > limit:
                    raise _too_far("connection", f"{host} ({each['host']})", reach, limit)
                if is_loopback(host) and reach != Reach.LOOPBACK:  # http to it would leave this machine
                    raise AuthorizationError(
                        "connection", f"{host} leads to {each['host']}, expected this machine", _CURE
                    )
            return found

    return CheckingResolver(cast(asyncio.AbstractEventLoop, lookups))


def _too_far(step: str, host: str, reach: Reach, limit: Reach) -> AuthorizationError:
    reason = f"{visible(host)} is a {reach.name.lower()} address, and the server a {limit.name.lower()} one"
    return AuthorizationError(step, reason, _CURE)


async def _read(response: ClientResponse, step: str) -> OAuthResponse:
    """Return a response with its body, which is bounded. Raises `AuthorizationError`."""
    body = bytearray()
    try:
        async for part in response.content.iter_any():
            body += part
            if len(body) > METADATA_BYTES:
                response.close()
                raise AuthorizationError(step, f"the response has more than {METADATA_BYTES:,} bytes")
    except http_errors() as exc:
        raise AuthorizationError(step, f"the connection broke in the middle of the response: {exc}") from exc
    headers = {name.lower(): value for name, value in response.headers.items()}
    return OAuthResponse(response.status, bytes(body), headers)


def _redirect_target(request: OAuthRequest, response: ClientResponse, url: str) -> str:
    """Return the target of a redirect. Raises `AuthorizationError` for a request that may not be redirected: its body
    has secrets for this server only, or it forbids redirects.
    """
    location = response.headers.get("Location", "")
    if request.method != "GET" or not request.follow_redirects or not location:
        why = (
            "a request with secrets is for one server only"
            if request.method != "GET"
            else "this document is at its URL"
        )
        raise AuthorizationError(
            request.step,
            f"{_url_text(request.url)} answered with a redirect (HTTP {response.status})",
            f"accord does not follow it: {why}",
        )
    try:
        return urljoin(url, location)
    except ValueError as exc:
        raise AuthorizationError(
            request.step, f"{_url_text(request.url)} redirects to {_url_text(location)!r}, which is not a URL"
        ) from exc


def _network_error(exc: Exception, request: OAuthRequest, url: str) -> AccordError:
    return request_error(exc, f"{request.method} {_url_text(url)}", urlsplit(url).netloc)


def _url_text(url: str) -> str:
    """Return a URL for an error, without its query."""
    return visible(url.partition("?")[0])[:200]
