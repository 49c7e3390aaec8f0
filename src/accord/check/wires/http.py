"""Raw HTTP both ways: each message a POST with whatever headers, every response kept with its status and its events."""

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
"""aiohttp wants larger bodies as files."""
_CONNECT_SECONDS = 10
_CLOSE_SECONDS = 2
_DEFAULTS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

Headers = Mapping[str, str | None]
"""Names in any case; None leaves out what would be sent by itself."""


class HTTPWire:
    """Streamable HTTP. A session id that the server gives is sent back from then on, unless a header says otherwise."""

    transport: TransportName = "http"
    stderr = ""
    exit_code = None

    def __init__(self, url: str, log: MessageLog, headers: Mapping[str, str] | None = None) -> None:
        self.on_message: OnMessage = lambda raw, stream: None
        self.on_close: Callable[[], None] = lambda: None
        self.on_response: Callable[[LoggedResponse], None] = lambda response: None
        """Is called when a response has ended, or did not come."""
        bare, named = split_credentials(url)
        self.url: str = bare
        """Return the URL that messages are posted to."""
        self.stream_url: str = self.url
        """Where streams are opened by GET."""
        self.session_id: str | None = None
        self.close_reason: str = "the server does not answer"
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
        """POST one message."""
        response = self._begin("POST", headers)
        self._start_task(self._fetch(response, message))
        return response.stream

    async def fetch(self, method: str, body: bytes | None = None, headers: Headers | None = None) -> LoggedResponse:
        """One request, whatever it is, and all that came for it. Never raises; `LoggedResponse.error` says what went
        wrong."""
        response = self._begin(method, headers or {})
        await self._fetch(response, body)
        return response

    def open_stream(self, headers: Headers | None = None) -> LoggedResponse:
        """Open a stream by GET; what comes is heard, and kept in the reply as it comes."""
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
        """What is sent: what every request has, and `more`; None takes out."""
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
        self._log.responses.append(response)
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
                self.stream_url if reply.method == "GET" else self.url,
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
            reply.started.set()
            reply.closed.set()
            self.on_response(reply)

    async def _read(self, reply: LoggedResponse, response: ClientResponse) -> None:
        reply.status = response.status
        reply.headers = {name.lower(): value for name, value in response.headers.items()}
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
    """A URL without name and password, and the header that they are sent in."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return bare.geturl(), {"authorization": f"Basic {base64.b64encode(credentials).decode()}"}


class SSEWire(HTTPWire):
    """HTTP+SSE (2024-11-05): answers come on the stream of one GET, which says first where to POST."""

    transport: TransportName = "sse"

    def __init__(self, url: str, log: MessageLog, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(url, log, headers)
        self.stream: LoggedResponse | None = None
        """The response to the GET."""
        self.endpoint: str = ""
        """Where it says to post."""

    async def open(self) -> None:
        """Raises `ConnectError` when no `endpoint` comes."""
        await super().open()
        self.stream = self.open_stream()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self.stream.started.wait()
        except TimeoutError:
            self.stream.error = "no event came"
        first = next((each for each in self.stream.events if isinstance(each, ServerSentEvent)), None)
        if first is None or first.data[:1] in b"{[":
            status = f"status {self.stream.status}" if self.stream.status else "no response"
            why = self.stream.error or status
            raise ConnectError(f"GET {without_credentials(self.stream_url)}: {why}; the event `endpoint` did not come")
        self.endpoint = first.data.decode(errors="replace").strip()  # whatever the event is called: a rule judges that
        self.url: str = self._resolved(self.endpoint)

    def _resolved(self, reference: str) -> str:
        """Where to post. Raises `ConnectError` for what is no URL.

        Always on the server that we were sent to, which our headers are for: that it names another is for a rule.
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
