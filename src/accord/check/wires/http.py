"""Raw HTTP: each message is a POST with any headers, and each response is logged with its status and events."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from accord.check.engine.report import TransportName
from accord.check.probes.message_log import LoggedResponse, MessageLog, decode_json, message_objects
from accord.check.wires.base import OnMessage
from accord.errors import ConnectError, describe
from accord.transport.http.redaction import without_credentials
from accord.wire.lines import SkippedMessage
from accord.wire.sse import ServerSentEvent, SSEParser

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

SESSION = "mcp-session-id"
BODY_BYTES = 32 << 20
_LARGE = 1 << 20
"""aiohttp requires files for larger bodies."""
_CONNECT_SECONDS = 10
_CLOSE_SECONDS = 2
_DEFAULTS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

Headers = Mapping[str, str | None]
"""Header names in any case; None removes a default header."""


class HTTPWire:
    """Streamable HTTP. The session id of the server is sent in later requests, unless a header replaces it."""

    transport: TransportName = "http"
    stderr = ""
    exit_code = None

    def __init__(self, url: str, log: MessageLog, headers: Headers | None = None) -> None:
        self.on_message: OnMessage = lambda raw, stream: None
        self.on_close: Callable[[], None] = lambda: None
        self.on_response: Callable[[LoggedResponse], None] = lambda response: None
        """Is called when a response has ended, or failed."""
        bare, named = split_credentials(url)
        self.url: str = bare
        """Return the URL for POST requests."""
        self.stream_url: str = self.url
        """The URL for GET requests."""
        self.session_id: str | None = None
        self.close_reason: str = "the server does not respond"
        self._log = log
        self._fixed_headers = {**named, **{name.lower(): value for name, value in (headers or {}).items()}}
        self._http: ClientSession | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        import aiohttp

        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            skip_auto_headers=("user-agent", "accept", "content-type", "accept-encoding"),
            auto_decompress=True,
        )

    def send(self, message: bytes, headers: Headers) -> int:
        """Send a message by POST."""
        response = self._begin("POST", headers)
        self._start_task(self._fetch(response, message))
        return response.stream

    async def fetch(self, method: str, body: bytes | None = None, headers: Headers | None = None) -> LoggedResponse:
        """Send any request, and return its response. Never raises: `LoggedResponse.error` has the reason."""
        response = self._begin(method, headers or {})
        await self._fetch(response, body)
        return response

    async def fetch_start(self, method: str, body: bytes | None, headers: Headers) -> LoggedResponse:
        """Send any request, and return its response when it has ended; of an event stream only the headers."""
        response = self._begin(method, headers)
        self._start_task(self._fetch(response, body))
        await response.answered.wait()
        if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
            self.close_stream(response.stream)
        await response.closed.wait()
        return response

    async def fetch_url(self, method: str, url: str, body: bytes | None = None) -> LoggedResponse:
        """Send a request to any URL, without the headers of the target, and return its response."""
        response = LoggedResponse(
            stream=len(self._log.responses) + 1, method=method, url=url, request_headers={"accept": "application/json"}
        )
        self._log.add_request(response, url)
        await self._fetch(response, body)
        return response

    def open_stream(self, headers: Headers | None = None) -> LoggedResponse:
        """Open a stream by GET; its messages are received and logged as they arrive."""
        response = self._begin("GET", {"accept": "text/event-stream", "content-type": None, **(headers or {})})
        self._start_task(self._fetch(response, None))
        return response

    def close_stream(self, stream: int) -> None:
        """Close the connection of a request whose response has not ended."""
        for task in self._tasks:
            if task.get_name() == f"stream {stream}":
                task.cancel()

    async def close(self) -> None:
        if self._http is None:
            return
        if self.session_id is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self.fetch("DELETE", None, {"content-type": None})
        self.on_close()  # from now on nothing more is sent
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.close()

    def build_headers(self, more: Headers) -> dict[str, str]:
        """Return the default headers with `more`, in which None removes one."""
        session = {} if self.session_id is None else {SESSION: self.session_id}
        merged = {
            **_DEFAULTS,
            **session,
            **self._fixed_headers,
            **{name.lower(): value for name, value in more.items()},
        }
        return {name: value for name, value in merged.items() if value is not None}

    def _begin(self, method: str, headers: Headers) -> LoggedResponse:
        response = LoggedResponse(
            stream=len(self._log.responses) + 1, method=method, request_headers=self.build_headers(headers)
        )
        if method == "DELETE":
            for each in self._log.responses:
                each.session_ended = each.session_ended or not each.is_closed
        self._log.add_request(response, self.stream_url if method == "GET" else self.url)
        return response

    def _start_task(self, work: Any) -> None:
        task = asyncio.create_task(work, name=f"stream {len(self._log.responses)}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch(self, reply: LoggedResponse, body: bytes | None) -> None:
        import aiohttp

        assert self._http is not None, "it was opened"
        try:
            request = self._http.request(
                reply.method,
                reply.url or (self.stream_url if reply.method == "GET" else self.url),
                data=io.BytesIO(body) if body and len(body) > _LARGE else body,
                headers=dict(reply.request_headers),
                allow_redirects=False,
            )
            async with request as response:
                await self._read(reply, response)
            if self._log.memory.exhausted:  # what came is cut off: nobody may judge it
                self.on_message(SkippedMessage(self._log.memory.exhausted, 0), reply.stream)
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as exc:
            reply.error = describe(exc)
            self._log.add_remark(f"{reply.method} {reply.stream}: {reply.error}")
        except asyncio.CancelledError:
            reply.error = reply.error or "we closed the connection"
            raise
        finally:
            reply.answered.set()
            reply.started.set()
            reply.closed.set()
            self.on_response(reply)

    async def _read(self, reply: LoggedResponse, response: ClientResponse) -> None:
        reply.status = response.status
        reply.headers = {name.lower(): value for name, value in response.headers.items()}
        if several := response.headers.getall("www-authenticate", ()):
            reply.headers = {**reply.headers, "www-authenticate": ", ".join(several)}
        self._log.add_response(reply)
        reply.answered.set()
        kind = reply.headers.get("content-type", "no content type")
        if reply.status != 200 or reply.method != "POST":
            self._log.add_remark(f"{reply.method} {reply.stream} -> {reply.status}, {kind}")
        if kind.lower().startswith("text/event-stream"):
            await self._read_events(reply, response)
            return
        room = self._log.memory
        while len(reply.body) < BODY_BYTES and not room.exhausted and (more := await response.content.read(1 << 20)):
            reply.body += more
            room.charge_message(more)
        if reply.body and decode_json(reply.body) is not None:
            self._receive(reply, reply.body)
        else:
            self._log.add_body(reply)

    async def _read_events(self, reply: LoggedResponse, response: ClientResponse) -> None:
        parser = SSEParser(BODY_BYTES)
        async for chunk in response.content.iter_any():
            for event in parser.feed(chunk):
                reply.events.append(event)
                self._log.memory.charge_message(event.data if isinstance(event, ServerSentEvent) else event)
                reply.started.set()
                if isinstance(event, SkippedMessage):
                    self.on_message(event, reply.stream)
                elif event.data and event.event == "message":
                    self._receive(reply, event.data)
            if self._log.memory.exhausted:
                return

    def _receive(self, response: LoggedResponse, raw: bytes) -> None:
        message = decode_json(raw)
        response.messages.append(message)
        for each in message_objects(message):
            hello = each.get("result")
            if isinstance(hello, dict) and "protocolVersion" in hello and SESSION in response.headers:
                self.session_id = response.headers[SESSION]
        self.on_message(raw, response.stream)


def split_credentials(url: str) -> tuple[str, dict[str, str]]:
    """Return a URL without user name and password, and the header with these."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return bare.geturl(), {"authorization": f"Basic {base64.b64encode(credentials).decode()}"}


class SSEWire(HTTPWire):
    """HTTP+SSE (2024-11-05): responses arrive on the stream of one GET, whose first event is the endpoint."""

    transport: TransportName = "sse"

    def __init__(self, url: str, log: MessageLog, headers: Headers | None = None) -> None:
        super().__init__(url, log, headers)
        self.stream: LoggedResponse | None = None
        """The response to the GET."""
        self.endpoint: str = ""
        """The endpoint of the first event."""

    async def open(self) -> None:
        """Open the stream. Raises `ConnectError` without an `endpoint`."""
        await super().open()
        self.stream = self.open_stream()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self.stream.started.wait()
        except TimeoutError:
            self.stream.error = "no event was received"
        first = next((each for each in self.stream.events if isinstance(each, ServerSentEvent)), None)
        if first is None or first.data[:1] in b"{[":
            status = f"status {self.stream.status}" if self.stream.status else "no response"
            why = self.stream.error or status
            raise ConnectError(f"GET {without_credentials(self.stream_url)}: {why}; there was no event `endpoint`")
        self.endpoint = first.data.decode(errors="replace").strip()  # whatever the event is called: a rule judges that
        self.url: str = self._resolved(self.endpoint)

    def _resolved(self, reference: str) -> str:
        """Return the URL for POST requests. Raises `ConnectError` for an invalid one.

        It is always on the server of the stream, because of the headers: a rule judges an endpoint with another
        origin.
        """
        from yarl import URL

        here = URL(self.stream_url)
        try:
            found = here.join(URL(reference))
            return str(here.origin().join(found.relative() if found.is_absolute() else found))
        except ValueError as exc:
            raise ConnectError(
                f"GET {without_credentials(self.stream_url)}: the event `endpoint` has {reference[:200]!r}: {exc}"
            ) from exc
