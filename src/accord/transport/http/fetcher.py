"""Requests over HTTP to one URL: headers, proxy, redirects, and errors that say where it failed.

aiohttp is imported when the first connection is opened.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accord.errors import HTTPError, NotExecuted
from accord.limits import Limits
from accord.transport.http.failures import failure, http_errors, refused, visible
from accord.transport.http.proxy import NO_PROXY, basic, proxy_for
from accord.transport.http.settings import Headers, HTTPSettings, checked

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession
    from yarl import URL

ACCEPT = "application/json, text/event-stream"
STREAM_ONLY = {"Accept": "text/event-stream"}

_REDIRECTS = 5
_KEPT_SECONDS = 4
"""Idle time of a connection: servers close theirs after 5 s, and a request must not meet that."""
_COOKIES = 50
_LARGE = 1 << 20
_SHORT = 8
"""A value of a header shorter than this is no secret: it would be found in any text."""


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
        self.secrets: set[str] = set()
        """Values of our own headers: what a server says of them is not repeated."""

    async def open(self) -> None:
        """Load what is needed; nothing is connected yet."""
        import aiohttp
        from yarl import URL

        url = URL(self._given).with_fragment(None)
        self._url, self._proxy = url.with_user(None), proxy_for(url, self._settings.proxy)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT_SECONDS, ssl=self._settings.ssl or True)
        self._session = aiohttp.ClientSession(
            connector=connector,
            headers=self._static(url),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_seconds),
        )

    def _static(self, url: URL) -> dict[str, str]:
        """The headers that every request has."""
        headers: dict[str, str] = {}
        if url.user is not None:
            headers["Authorization"] = basic(url.user, url.password or "")
        if self._settings.auth is not None:
            headers["Authorization"] = f"Bearer {self._settings.auth}"
        if isinstance(self._settings.headers, Mapping):
            headers |= checked(self._settings.headers)
        if self._proxy.headers is not None and url.scheme == "http":
            headers |= self._proxy.headers
        self._hide(headers)
        ours = {
            "Accept": ACCEPT,
            "Accept-Encoding": "identity",  # what is packed arrives late in a stream
            "Content-Type": "application/json",
        }
        return {"User-Agent": "accord", **headers, **ours}

    def _hide(self, headers: Headers) -> None:
        for value in headers.values():
            self.secrets |= {part for part in (value, value.rpartition(" ")[2]) if len(part) >= _SHORT}

    @property
    def url(self) -> URL:
        """Where requests go now."""
        assert self._url is not None, "it was opened"
        return self._url

    def aim(self, reference: str) -> bool:
        """Send requests elsewhere from now on: to a URL, relative or not, of the same origin. Whether it is one."""
        from yarl import URL

        try:
            target = self.url.join(URL(reference)).with_fragment(None)
            usable = target.origin() == self.url.origin()
        except ValueError:
            return False
        if usable:
            self._url = target
        return usable

    async def fetch(
        self, method: str, headers: dict[str, str], body: bytes | None = None, *, what: str
    ) -> ClientResponse:
        """Send one request; the response, of which only the headers are read. `what` says in errors what it was for.

        Raises `NotExecuted` where no connection stood, `ConnectionLost` where it broke, `HTTPError` for a redirect that
        is not followed.
        """
        if self._source is not None:
            headers = {**await self._current(what), **headers}
        session = self._session
        assert session is not None, "it was opened"
        for _ in range(1 + _REDIRECTS):
            data: bytes | io.BytesIO | None = body
            if body is not None and len(body) > _LARGE:  # aiohttp warns of more bytes at once
                data = io.BytesIO(body)
            try:
                response = await session.request(
                    method,
                    self.url,
                    headers=headers,
                    data=data,
                    allow_redirects=False,
                    proxy=self._proxy.url,
                    proxy_headers=self._proxy.headers,
                )
            except http_errors() as exc:
                raise failure(exc, what, self.url.authority) from exc
            if "Set-Cookie" in response.headers and len(session.cookie_jar) > _COOKIES:
                session.cookie_jar.clear()
            if response.status not in (301, 302, 303, 307, 308):
                return response
            self._follow(response, method, what)
        raise HTTPError(f"{what}: redirected more than {_REDIRECTS} times", status=response.status)

    async def _current(self, what: str) -> Headers:
        """The headers that the function gives just now."""
        assert self._source is not None
        try:
            made = self._source()
            given: Any = await made if inspect.isawaitable(made) else made
            found = checked(given)
        except Exception as exc:
            raise NotExecuted(f"{what}: the function for headers failed: {exc!r}") from exc
        if len(self.secrets) > _COOKIES:
            self.secrets.clear()
        self._hide(found)
        return found

    def _follow(self, response: ClientResponse, method: str, what: str) -> None:
        """Go where a response leads to: on the same origin, and only with the method and the body kept."""
        location = response.headers.get("Location", "")
        response.close()
        if not location:
            raise refused(response, b"", f"{what}: a redirect to nowhere", self.secrets)
        keeps = response.status in (307, 308) or method == "GET"
        if not keeps or not self.aim(location):
            why = "another origin" if keeps else f"HTTP {response.status}, which a {method} does not follow"
            raise HTTPError(
                f"{what}: redirected to {visible(location)[:500]} ({why}); give that URL if you trust it",
                status=response.status,
            )

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()
