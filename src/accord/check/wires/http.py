"""Raw HTTP both ways: each message a POST with whatever headers, every response kept with its status and its events."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from accord.check.record import Record, Reply, decoded, objects
from accord.check.report import TransportName
from accord.check.wires.base import OnHeard
from accord.errors import ConnectError, describe
from accord.transport.http.secrecy import plain
from accord.wire.lines import Unreadable
from accord.wire.sse import Event, Parser

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

    def __init__(self, url: str, record: Record, headers: Mapping[str, str] | None = None) -> None:
        self.on_heard: OnHeard = lambda raw, stream: None
        self.on_end: Callable[[], None] = lambda: None
        self.on_reply: Callable[[Reply], None] = lambda reply: None
        """Is called when a response has ended, or did not come."""
        bare, named = without_name(url)
        self.url: str = bare
        """Where messages are posted."""
        self.stream_url: str = self.url
        """Where streams are opened by GET."""
        self.session_id: str | None = None
        self.lost: str = "the server does not answer"
        self._record = record
        self._own = {**named, **{name.lower(): value for name, value in (headers or {}).items()}}
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
        reply = self._begin("POST", headers)
        self._keep(self._fetch(reply, message))
        return reply.stream

    async def fetch(self, method: str, body: bytes | None = None, headers: Headers | None = None) -> Reply:
        """One request, whatever it is, and all that came for it. Never raises; `Reply.error` says what went wrong."""
        reply = self._begin(method, headers or {})
        await self._fetch(reply, body)
        return reply

    def listen(self, headers: Headers | None = None) -> Reply:
        """Open a stream by GET; what comes is heard, and kept in the reply as it comes."""
        reply = self._begin("GET", {"accept": "text/event-stream", "content-type": None, **(headers or {})})
        self._keep(self._fetch(reply, None))
        return reply

    def leave(self, stream: int) -> None:
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
        self.on_end()  # from now on nothing more is sent
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._http.close()

    def headers(self, more: Headers) -> dict[str, str]:
        """What is sent: what every request has, and `more`; None takes out."""
        session = {} if self.session_id is None else {SESSION: self.session_id}
        merged = {**_DEFAULTS, **session, **self._own, **{name.lower(): value for name, value in more.items()}}
        return {name: value for name, value in merged.items() if value is not None}

    def _begin(self, method: str, headers: Headers) -> Reply:
        reply = Reply(stream=len(self._record.replies) + 1, method=method, sent=self.headers(headers))
        self._record.replies.append(reply)
        return reply

    def _keep(self, work: Any) -> None:
        task = asyncio.create_task(work, name=f"stream {len(self._record.replies)}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch(self, reply: Reply, body: bytes | None) -> None:
        import aiohttp

        assert self._http is not None, "it was opened"
        try:
            request = self._http.request(
                reply.method,
                self.stream_url if reply.method == "GET" else self.url,
                data=io.BytesIO(body) if body and len(body) > _LARGE else body,
                headers=dict(reply.sent),
                allow_redirects=False,
            )
            async with request as response:
                await self._read(reply, response)
            if self._record.room.full:  # what came is cut off: nobody may judge it
                self.on_heard(Unreadable(self._record.room.full, 0), reply.stream)
        except (aiohttp.ClientError, OSError, ValueError, TimeoutError) as exc:
            reply.error = describe(exc)
            self._record.remark(f"{reply.method} {reply.stream}: {reply.error}")
        except asyncio.CancelledError:
            reply.error = reply.error or "we closed the connection"
            raise
        finally:
            reply.begun.set()
            reply.over.set()
            self.on_reply(reply)

    async def _read(self, reply: Reply, response: ClientResponse) -> None:
        reply.status = response.status
        reply.headers = {name.lower(): value for name, value in response.headers.items()}
        kind = reply.headers.get("content-type", "no content type")
        if reply.status != 200 or reply.method != "POST":
            self._record.remark(f"{reply.method} {reply.stream} -> {reply.status}, {kind}")
        if kind.lower().startswith("text/event-stream"):
            await self._read_events(reply, response)
            return
        room = self._record.room
        while len(reply.body) < BODY_BYTES and not room.full and (more := await response.content.read(1 << 20)):
            reply.body += more
            room.take(more)
        if reply.body and decoded(reply.body) is not None:
            self._hear(reply, reply.body)

    async def _read_events(self, reply: Reply, response: ClientResponse) -> None:
        parser = Parser(BODY_BYTES)
        async for chunk in response.content.iter_any():
            for event in parser.feed(chunk):
                reply.events.append(event)
                self._record.room.take(event.data if isinstance(event, Event) else event)
                reply.begun.set()
                if isinstance(event, Unreadable):
                    self.on_heard(event, reply.stream)
                elif event.data and event.event == "message":
                    self._hear(reply, event.data)
            if self._record.room.full:
                return

    def _hear(self, reply: Reply, raw: bytes) -> None:
        message = decoded(raw)
        reply.messages.append(message)
        for each in objects(message):
            hello = each.get("result")
            if isinstance(hello, dict) and "protocolVersion" in hello and SESSION in reply.headers:
                self.session_id = reply.headers[SESSION]
        self.on_heard(raw, reply.stream)


def without_name(url: str) -> tuple[str, dict[str, str]]:
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

    def __init__(self, url: str, record: Record, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(url, record, headers)
        self.stream: Reply | None = None
        """The response to the GET."""
        self.named: str = ""
        """Where it says to post."""

    async def open(self) -> None:
        """Raises `ConnectError` when no `endpoint` comes."""
        await super().open()
        self.stream = self.listen()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await self.stream.begun.wait()
        except TimeoutError:
            self.stream.error = "no event came"
        first = next((each for each in self.stream.events if isinstance(each, Event)), None)
        if first is None or first.data[:1] in b"{[":
            status = f"status {self.stream.status}" if self.stream.status else "no response"
            why = self.stream.error or status
            raise ConnectError(f"GET {plain(self.stream_url)}: {why}; the event `endpoint` did not come")
        self.named = first.data.decode(errors="replace").strip()  # whatever the event is called: a rule judges that
        self.url: str = self._resolved(self.named)

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
                f"GET {plain(self.stream_url)}: the event `endpoint` has {reference[:200]!r}: {exc}"
            ) from exc
