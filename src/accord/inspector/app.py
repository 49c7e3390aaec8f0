"""`Inspector`: the ASGI application of the inspector.

    /, /NAME.js ...     the page: files without secrets
    /api/COMMAND        a command, with the token
    /api/events         what changed, as lines of JSON, with the token
    /app/ID             a frame of an app, at `localhost`

`accord inspect` serves it at 127.0.0.1; mounted in an application, it inspects that application's server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec

from accord.client.target import Target
from accord.errors import AccordError, TargetError, log_line
from accord.host.approvers import Approver
from accord.inspector.access import InspectorAccess
from accord.inspector.app_frames import PATH as FRAME_PATH, send_frame
from accord.inspector.assets import PRIVATE_HEADERS, assets, send_asset
from accord.inspector.command_table import COMMANDS
from accord.inspector.commands import Download, InspectorError, PageCommand, Upload
from accord.inspector.transfers import UncountedBody, receive_file, send_file
from accord.inspector.workspace import Workspace, named_servers
from accord.limits import DEFAULT_LIMITS
from accord.transport.asgi.request import (
    ASGIRequest,
    ClientDisconnected,
    Receive,
    RequestRejected,
    Scope,
    Send,
    send_json,
    send_text,
)

log: logging.Logger = logging.getLogger("accord.inspector")

_API = "/api/"
_BINARY = b"application/octet-stream"
_FILE_NAME = b"accord-inspector-file"
"""The header with the name of an uploaded file, percent-encoded."""


class Inspector:
    """The inspector of servers, as an ASGI application: `Inspector(server)`, or targets as `Client` takes them.

    Mount it during development, and print `inspector.link("http://127.0.0.1:8000/inspect")`: only this link, which has
    the token in its fragment, opens the page. `configuration` is a file with `mcpServers`, `session` a session file to
    show. `approver` is asked before a command that was typed into the page starts; without one, none does. The
    recording, which the page shows and saves, has no secrets, unless `redacted` is false. Raises `TargetError`.
    """

    def __init__(
        self,
        *targets: Target,
        configuration: Path | None = None,
        session: Path | None = None,
        approver: Approver | None = None,
        redacted: bool = True,
    ) -> None:
        self._access = InspectorAccess()
        self._workspace: Workspace | None = None
        self._named = named_servers(targets, configuration)
        self._session = session
        self._approver = approver
        self._redacted = redacted
        self._streams: set[asyncio.Future[None]] = set()
        """One for each page that listens, until its stream has ended."""

    def link(self, base: str) -> str:
        """Return the link that opens the page at `base`, its address: it has the token in its fragment."""
        return f"{base.rstrip('/')}/#token={self._access.token}"

    def replace_token(self) -> None:
        """Make a new token: pages with the old one are refused."""
        self._access.replace_token()
        if self._workspace is not None:
            self._workspace.topics.interrupt()

    # --- lifetime ----------------------------------------------------------------------------------------------

    @property
    def workspace(self) -> Workspace:
        """Return what the commands act on."""
        if self._workspace is None:
            self._workspace = Workspace(self._named, approver=self._approver, redacted=self._redacted)
        return self._workspace

    async def __aenter__(self) -> Inspector:
        """Prepare the servers, of which none is connected yet, and open the session file. Raises `TargetError`."""
        workspace = self.workspace
        if self._session is not None:
            try:
                await workspace.sessions.open(self._session)
            except InspectorError as exc:
                await self.close()
                raise TargetError(f"{exc.error}; {exc.cure}") from exc
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def drain(self, seconds: float) -> bool:
        """End the streams of all pages. Return whether they ended in time."""
        if self._workspace is not None:
            self._workspace.topics.close()
        if self._streams:
            await asyncio.wait(self._streams, timeout=seconds)
        return not self._streams

    async def close(self) -> None:
        """End all connections and processes."""
        workspace, self._workspace = self._workspace, None
        if workspace is not None:
            await workspace.close()

    # --- requests ----------------------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection scope."""
        if scope["type"] == "lifespan":
            return await self._lifespan(receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008, "reason": "there is no WebSocket here"})
        request = ASGIRequest(scope, receive, send)
        try:
            await self._respond(request)
        except RequestRejected as exc:
            await _send_error(request, exc.status, exc.message, headers=exc.headers)
        except ClientDisconnected:
            return None
        return None

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.close()
                return await send({"type": "lifespan.shutdown.complete"})
            await send({"type": "lifespan.startup.complete"})

    async def _respond(self, request: ASGIRequest) -> None:
        path = request.path
        if path.startswith(_API):
            return await self._respond_to_command(request, path.removeprefix(_API))
        if path.startswith(FRAME_PATH):
            self._access.check_frame(request)
            return await send_frame(request, self.workspace.apps)
        self._access.check_page(request)
        if not path:  # mounted: the files are relative to the page
            return await send_text(request.send, 307, "", ((b"location", f"{request.root}/".encode()),))
        asset = assets().get(path.lstrip("/"))
        if asset is None:
            raise RequestRejected(404, "there is no such file")
        return await send_asset(request, asset, _frame_origin(request))

    async def _respond_to_command(self, request: ASGIRequest, name: str) -> None:
        command = COMMANDS.get(name)
        is_upload = command is not None and command.upload
        self._access.check_command(request, _BINARY if is_upload else b"application/json")
        if name == "events":
            return await self._send_events(request)
        if command is None:
            raise RequestRejected(404, f"there is no command {name[:100]!r}")
        try:
            result = await command.function(self.workspace, await self._params(request, command))
        except InspectorError as exc:
            return await _send_error(request, exc.status, exc.error, exc.cure)
        except AccordError as exc:
            return await _send_error(request, 409, log_line(exc))
        if isinstance(result, Download):
            return await send_file(request, result)
        return await send_json(
            request.send, 200, msgspec.json.encode({} if result is None else result), PRIVATE_HEADERS
        )

    async def _params(self, request: ASGIRequest, command: PageCommand) -> Any:
        if command.upload:
            name = unquote_to_bytes(request.headers.get(_FILE_NAME, b"")).decode("utf-8", "replace")
            return Upload(path=await receive_file(request, self.workspace.folder), name=name)
        body = await request.body(DEFAULT_LIMITS, UncountedBody())
        try:
            return msgspec.json.decode(body, type=command.params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise RequestRejected(400, f"the parameters of the command are not valid: {exc}") from exc

    async def _send_events(self, request: ASGIRequest) -> None:
        await request.body(DEFAULT_LIMITS, UncountedBody())
        headers = [(b"content-type", b"application/x-ndjson"), *PRIVATE_HEADERS]
        await request.send({"type": "http.response.start", "status": 200, "headers": headers})
        ended = asyncio.get_running_loop().create_future()
        self._streams.add(ended)
        try:
            token = self._access.token
            async for line in self.workspace.topics.stream():
                if token != self._access.token:
                    break
                await request.send({"type": "http.response.body", "body": line, "more_body": True})
            await request.send({"type": "http.response.body", "body": b""})
        finally:
            self._streams.discard(ended)
            ended.set_result(None)


def _frame_origin(request: ASGIRequest) -> str:
    """Return the origin of the frames of apps: another name of this machine, on the same port."""
    port = request.headers.get(b"host", b"").decode("latin-1").partition(":")[2]
    return f"{request.scope.get('scheme', 'http')}://localhost" + (f":{port}" if port else "")


async def _send_error(
    request: ASGIRequest, status: int, error: str, cure: str = "", headers: Sequence[tuple[bytes, bytes]] = ()
) -> None:
    body = msgspec.json.encode({"error": error, "cure": cure})
    await send_json(request.send, status, body, (*PRIVATE_HEADERS, *headers))
