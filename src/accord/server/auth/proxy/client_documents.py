"""Client ID metadata documents (draft-ietf-oauth-client-id-metadata-document-00): a client whose `client_id` is the URL
of its metadata.

Anyone may name a URL, so documents are fetched from public addresses only, without redirects, within a small size and
time, and few at once. Only valid documents are cached, for as long as their HTTP headers allow.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Annotated
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType

from accord.auth.steps import DECODE_ERRORS, OAuthRequest, OAuthResponse, Steps, run_steps
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, visible
from accord.server.auth.proxy.clients import ProxyClient, RedirectURIs, display_name
from accord.server.auth.proxy.endpoint_error import EndpointError, Report
from accord.server.auth.proxy.redirect_uris import check_redirect_uri
from accord.server.auth.single_flight import SingleFlight
from accord.server.core.fair_semaphore import FairSemaphore

STEP = "client ID metadata document"
DOCUMENT_BYTES = 16 << 10
"""Limit of a document."""
FETCH_SECONDS = 5.0
"""Time limit of one fetch."""

_FETCHES = 64
"""The most fetches at once."""
FETCHES_PER_ADDRESS = 4
"""The most fetches at once for one address, and look-ups of names that may outlast them."""
_DOCUMENTS = 1_000
"""Limit of cached documents."""
_DEFAULT_SECONDS = 300.0
"""How long a document without caching headers is cached."""
_MAX_SECONDS = 86_400.0

_MAX_AGE = re.compile(r"(?:^|[\s,])max-age\s*=\s*\"?([0-9]{1,9})", re.IGNORECASE)

Send = Callable[[OAuthRequest, str], Awaitable[OAuthResponse]]
"""Sends a request for an address."""
_Found = tuple[ProxyClient, float]
"""A client, and for how many seconds its document may be cached."""


class _ClientDocument(msgspec.Struct):
    client_id: str
    redirect_uris: RedirectURIs
    client_name: Annotated[str, Meta(max_length=200)] | None = None
    token_endpoint_auth_method: str | None = None
    client_secret: Raw | UnsetType = UNSET
    client_secret_expires_at: Raw | UnsetType = UNSET

    def __repr__(self) -> str:
        return f"_ClientDocument({self.client_id!r})"  # without the secret


_decode = msgspec.json.Decoder(_ClientDocument).decode


def is_document_url(client_id: str) -> bool:
    """Return whether a client ID is the URL of a metadata document (draft, 3): https, with a path, without a fragment,
    a user name, or dot segments.
    """
    if not client_id.startswith("https://"):
        return False
    try:
        check_url(client_id, "client_id")
    except AuthorizationError:
        return False
    segments = unquote(urlsplit(client_id).path).split("/")
    return any(segments) and {".", ".."}.isdisjoint(segments)


def fetch_document(url: str, schemes: Collection[str]) -> Steps[_Found]:
    """Return the client that a document describes. Raises `EndpointError`, `AuthorizationError`."""
    request = OAuthRequest(STEP, "GET", url, {"Accept": "application/json"}, follow_redirects=False)
    response = yield request
    if response.status != 200:
        raise EndpointError("invalid_client", f"the metadata document answered HTTP {response.status}")
    if len(response.body) > DOCUMENT_BYTES:
        raise EndpointError("invalid_client", f"the metadata document has more than {DOCUMENT_BYTES:,} bytes")
    return read_document(url, response.body, schemes), _cache_seconds(response.headers.get("cache-control", ""))


def read_document(url: str, body: bytes, schemes: Collection[str]) -> ProxyClient:
    """Return the client of a document. Raises `EndpointError`.

    "MUST validate that the fetched document's `client_id` matches the URL exactly" (Client ID Metadata Documents).
    """
    try:
        document = _decode(body)
    except DECODE_ERRORS as exc:
        raise EndpointError("invalid_client", f"the metadata document is invalid: {visible(str(exc))[:200]}") from None
    if document.client_id != url:
        raise EndpointError("invalid_client", "the client_id in the metadata document is not its URL")
    if document.client_secret is not UNSET or document.client_secret_expires_at is not UNSET:
        raise EndpointError("invalid_client", "the metadata document has a client_secret")
    if document.token_endpoint_auth_method not in (None, "none"):
        raise EndpointError(
            "invalid_client", "token_endpoint_auth_method in the metadata document must be none: others are not known"
        )
    for uri in document.redirect_uris:
        check_redirect_uri(uri, schemes)
    return ProxyClient(url, display_name(document.client_name), document.redirect_uris, is_document=True)


def _cache_seconds(header: str) -> float:
    """Return for how long a response may be cached (RFC 9111)."""
    if "no-store" in header.lower() or "no-cache" in header.lower():
        return 0.0
    match = _MAX_AGE.search(header)
    return _DEFAULT_SECONDS if match is None else min(float(match[1]), _MAX_SECONDS)


class ClientDocuments:
    """Fetches and caches documents. `send` sends a request; `now` returns seconds since 1970; `report` logs a failure,
    whose reason may be about a private network.
    """

    def __init__(self, send: Send, schemes: Collection[str], now: Callable[[], float], report: Report) -> None:
        self._send = send
        self._schemes = schemes
        self._now = now
        self._report = report
        self._cached: dict[str, tuple[ProxyClient, float]] = {}
        self._flights = SingleFlight[_Found]()
        self._fetching: Counter[str] = Counter()
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, FairSemaphore] = WeakKeyDictionary()

    async def load(self, url: str, account: str) -> ProxyClient:
        """Return the client at `url` for a request of an address. Raises `EndpointError`."""
        cached = self._cached.get(url)
        if cached is not None and self._now() < cached[1]:
            return cached[0]
        if self._fetching[account] >= FETCHES_PER_ADDRESS:
            raise EndpointError("temporarily_unavailable", "too many metadata documents are being fetched", 503)
        self._fetching[account] += 1
        try:
            client, seconds = await self._flights.run(url, lambda: self._fetch(url, account))
        except AuthorizationError as exc:
            text = f"the metadata document {url} cannot be fetched: {exc.reason}"
            self._report(logging.WARNING, lambda: text)
            raise EndpointError(
                "invalid_client", "the metadata document cannot be fetched from a public address"
            ) from None
        finally:
            self._fetching[account] -= 1
            if not self._fetching[account]:
                del self._fetching[account]
        self._put(url, client, seconds)
        return client

    async def _fetch(self, url: str, account: str) -> _Found:
        slots = self._slots.setdefault(asyncio.get_running_loop(), FairSemaphore(_FETCHES))
        try:
            async with asyncio.timeout(FETCH_SECONDS), slots.slot(account):
                return await run_steps(fetch_document(url, self._schemes), lambda request: self._send(request, account))
        except TimeoutError:
            raise AuthorizationError(STEP, f"no answer within {FETCH_SECONDS:g} s") from None

    def _put(self, url: str, client: ProxyClient, seconds: float) -> None:
        self._cached.pop(url, None)
        if seconds > 0:
            self._cached[url] = client, self._now() + seconds
            if len(self._cached) > _DOCUMENTS:
                del self._cached[next(iter(self._cached))]
