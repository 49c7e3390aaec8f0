"""HTTP to a provider of models: one POST per answer, as JSON or as a stream of server-sent events.

- Only https, and http on loopback. Redirects are not followed: the key is for this provider only.
- Size, events and times are bounded (`ModelLimits`).
- A request is sent again after failures that may pass, as the headers say, and never once text was passed on.
- Errors name the model and the provider, and never contain the key.

aiohttp is imported when the first request is sent. Connections are kept between calls while the provider is open
(`async with`); otherwise each call has its own.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol

from accord.auth.urls import check_url
from accord.errors import AuthorizationError, ModelError, TargetError
from accord.host.models.failures import ProviderFailure, model_error, response_failure
from accord.host.models.limits import ModelLimits
from accord.host.models.model import ModelResult, OnText
from accord.host.models.response_body import ResponseBody, silent, too_large
from accord.host.models.retries import pause
from accord.transport.http.failures import http_errors, media_type, request_error
from accord.transport.http.fetcher import proxy_for
from accord.transport.http.redaction import SecretRedactor
from accord.transport.http.settings import HTTPSettings, resolve_headers, validated_headers
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent, SSEParser

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

log: logging.Logger = logging.getLogger("accord")

_PIECE = 16 << 10
"""Bytes that are parsed at once: with small events, they take time."""


class AnswerReader(Protocol):
    """Reader of one answer. Its methods raise `ProviderFailure`."""

    complete: bool
    """Whether the stream may end here."""
    finished: bool
    """Whether nothing follows."""

    def read_event(self, event: ServerSentEvent) -> str:
        """Process one event of a stream, and return the text that it adds."""

    def read_body(self, body: bytes) -> str:
        """Process an answer that is not streamed, and return its text."""

    def end(self) -> str:
        """Process the end of the stream, and return the rest of the text."""

    def result(self) -> ModelResult:
        """Return the complete answer."""


def checked_base_url(url: str) -> str:
    """Return the URL of an API without a slash at its end.

    Raises `TargetError` unless it is https, or http on loopback, without a user, a query and a fragment. Names below
    `localhost` need https: a resolver may ask others about them.
    """
    try:
        parts = check_url(url, "base_url")
    except AuthorizationError as exc:
        raise TargetError(str(exc)) from None
    if parts.query or parts.fragment:
        raise TargetError("base_url must have no query and no fragment")
    if parts.scheme == "http" and (parts.hostname or "").endswith(".localhost"):
        raise TargetError(f"base_url must be https for {parts.hostname}; write localhost or 127.0.0.1 for this machine")
    return url.rstrip("/")


class ProviderHTTP:
    """HTTP to the API at `base_url` for one model. Raises `TargetError` for an unsafe URL."""

    def __init__(self, model: str, base_url: str, settings: HTTPSettings, limits: ModelLimits) -> None:
        self.base_url: str = checked_base_url(base_url)
        self.host: str = check_url(self.base_url, "base_url").netloc
        self._what = f"{model} at {self.host}"
        self._settings = settings
        self._limits = limits
        self._session: ClientSession | None = None
        self._redactor = SecretRedactor()

    async def open(self) -> None:
        """Keep connections from now on."""
        if self._session is None:
            self._session = self._new_session()

    async def close(self) -> None:
        """Close the connections that are kept."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(
        self,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        new_reader: Callable[[], AnswerReader],
        on_text: OnText | None,
    ) -> ModelResult:
        """Send a request until it is answered, and return the answer. Raises `ModelError`, and what `on_text` raises.

        `headers` are secret.
        """
        self._redactor.add_recent(headers.values())
        call = _Call(f"{self.base_url}{path}", await self._headers(headers), body, new_reader, on_text)
        timeout = asyncio.timeout(self._limits.total_seconds)
        try:
            async with timeout:
                return await self._send(call, timeout)
        except TimeoutError:
            if not timeout.expired():
                raise
        reason = f"no complete answer within {self._limits.total_seconds:g} s (ModelLimits.total_seconds)"
        raise self._error(ProviderFailure(reason), call.attempts)

    async def _send(self, call: _Call, timeout: asyncio.Timeout) -> ModelResult:
        while True:
            call.attempts += 1
            outcome = await self._attempt(call)
            if isinstance(outcome, ModelResult):
                return outcome
            seconds = pause(call.attempts, outcome.retry_after, self._limits)
            end = timeout.when()
            too_late = end is not None and seconds is not None and _now() + seconds >= end
            if seconds is None or too_late or not outcome.retry or call.text_passed:
                raise self._error(outcome, call.attempts)
            shown = self._redactor.redact(str(outcome))
            log.info("accord: %s: %s; attempt %d follows in %.1f s", self._what, shown, call.attempts + 1, seconds)
            await asyncio.sleep(seconds)

    async def _attempt(self, call: _Call) -> ModelResult | ProviderFailure:
        """Return the answer, or the failure; the caller raises its error outside of any `except`, because exceptions
        of aiohttp have the headers of the request, with the key."""
        try:
            async with self._open_session() as session:
                response = await self._request(session, call)
                try:
                    return await self._read(response, call)
                finally:
                    response.close()
        except ProviderFailure as failure:
            return failure.with_traceback(None)

    def _error(self, failure: ProviderFailure, attempts: int) -> ModelError:
        return model_error(failure, self._what, self._redactor, attempts)

    # --- request -----------------------------------------------------------------------------------------------

    async def _headers(self, own: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request; those of the settings take precedence."""
        given = self._settings.headers
        try:
            chosen = await resolve_headers(given) if callable(given) else validated_headers(given or {})
        except TargetError as exc:
            raise ModelError(f"{self._what}: {exc}") from None
        self._redactor.add_recent(chosen.values())
        return {
            "user-agent": "accord",
            **own,
            **chosen,
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
        }

    @asynccontextmanager
    async def _open_session(self) -> AsyncIterator[ClientSession]:
        if self._session is not None:
            yield self._session
            return
        session = self._new_session()
        try:
            yield session
        finally:
            await session.close()

    def _new_session(self) -> ClientSession:
        import aiohttp

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=self._settings.connections,
                ssl=self._settings.ssl or True,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._limits.connect_seconds),
            auto_decompress=False,
        )

    async def _request(self, session: ClientSession, call: _Call) -> ClientResponse:
        """Send a request, and return the head of its response. Raises `ProviderFailure`."""
        from yarl import URL

        url = URL(call.url, encoded=True)
        try:
            proxy = proxy_for(url, self._settings.proxy)
            async with asyncio.timeout(self._limits.silence_seconds):
                return await session.post(
                    url,
                    data=io.BytesIO(call.body),  # aiohttp warns of more than a megabyte of bytes
                    headers=call.headers,
                    allow_redirects=False,
                    proxy=proxy.url,
                    proxy_headers=proxy.headers,
                )
        except TargetError as exc:  # a proxy
            failure = ProviderFailure(str(exc))
        except TimeoutError:
            failure = silent(self._limits)
        except http_errors() as exc:
            lasting = isinstance(exc, ValueError)  # a header, or a certificate that is not trusted
            failure = ProviderFailure(str(request_error(exc, "no answer", self.host)), retry=not lasting)
        raise failure

    # --- response ----------------------------------------------------------------------------------------------

    async def _read(self, response: ClientResponse, call: _Call) -> ModelResult:
        """Return the answer in a response. Raises `ProviderFailure`, and what `on_text` raises."""
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = ResponseBody(response, self._limits)
        if response.status != 200:
            raise response_failure(response.status, headers, await body.read_excerpt())
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise ProviderFailure(f"its answer is compressed ({encoding[:50]}), which was not requested")
        reader, kind = call.new_reader(), media_type(response)
        if kind == "text/event-stream":
            await self._read_stream(body, reader, call)
        elif kind == "application/json" or kind.endswith("+json"):
            call.pass_on(reader.read_body(await body.read_whole()))
        else:
            raise ProviderFailure(
                f"it answered {kind[:100] or 'without a media type'} instead of JSON",
                status=200,
                advice="check base_url: it is the URL of an API, not of a page",
            )
        call.pass_on(reader.end())
        return reader.result()

    async def _read_stream(self, body: ResponseBody, reader: AnswerReader, call: _Call) -> None:
        parser, size = SSEParser(self._limits.event_bytes), 0
        while chunk := await body.read_chunk():
            size += len(chunk)
            if size > self._limits.response_bytes:
                raise too_large("its answer", "response_bytes", self._limits)
            for start in range(0, len(chunk), _PIECE):
                for event in parser.feed(chunk[start : start + _PIECE]):
                    if isinstance(event, SkippedMessage):
                        raise too_large("an event of its answer", "event_bytes", self._limits)
                    call.pass_on(reader.read_event(event))
                    if reader.finished:
                        if self._session is not None:
                            await body.drain()
                        return
                await asyncio.sleep(0)
        if not reader.complete:
            raise ProviderFailure("the stream ended before the answer was complete", retry=True)


class _Call:
    """One call of a model, over all its attempts."""

    def __init__(
        self,
        url: str,
        headers: dict[str, str],
        body: bytes,
        new_reader: Callable[[], AnswerReader],
        on_text: OnText | None,
    ) -> None:
        self.url = url
        self.headers = headers
        self.body = body
        self.new_reader = new_reader
        self.attempts = 0
        self.text_passed = False
        self._on_text = on_text

    def __repr__(self) -> str:
        return f"_Call({self.url!r})"  # the headers are secret

    def pass_on(self, text: str) -> None:
        """Pass on a piece of text, after which no other attempt is allowed."""
        if text and self._on_text is not None:
            self.text_passed = True
            self._on_text(text)


def _now() -> float:
    return asyncio.get_running_loop().time()
