"""Commands of the page about raw requests: check, send, open and close connections."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from accord.check.wires.http import Headers
from accord.inspector.commands import CommandParams, InspectorError, PageCommand, ServerParams
from accord.inspector.raw_checks import message_problems
from accord.inspector.raw_requests import RawConnection, send_on_pipe, session_headers
from accord.messages.revision import REVISIONS, RULES

if TYPE_CHECKING:
    from accord.inspector.workspace import Workspace

_MAX_HEADERS = 100
_HTTP_METHODS = ("POST", "GET", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH")


class CheckRawParams(CommandParams, frozen=True):
    """A text, and the revision whose types it is compared with."""

    text: str
    revision: str = REVISIONS[-1]


class RawProblems(msgspec.Struct, frozen=True):
    """The reasons why a text is not a valid message of a client."""

    problems: list[str]


class OpenRawParams(ServerParams, frozen=True):
    """`handshake`: the revision of the handshake; empty for none."""

    handshake: str = ""


class SendRawParams(ServerParams, frozen=True):
    """A message to send, as `text` or as `base64`, on a raw connection or (0) in the open session. For HTTP, a method
    and headers; a header that is empty is removed.
    """

    connection: int = 0
    text: str = ""
    base64: str = ""
    method: str = "POST"
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


class RawConnectionView(msgspec.Struct, frozen=True, rename="camel"):
    """A raw connection as the page shows it. Its rows in the traffic have the `number`."""

    id: int
    number: int
    handshake: str
    is_session: bool
    is_open: bool
    reason: str


class RawConnectionList(msgspec.Struct, frozen=True):
    """The raw connections of a server."""

    connections: list[RawConnectionView]


class SentRaw(msgspec.Struct, frozen=True):
    """The place of the response: the connection in the traffic (0: that of the client), and the next row."""

    connection: int
    row: int


class CloseRawParams(CommandParams, frozen=True):
    """A raw connection."""

    connection: int


# --- checking ------------------------------------------------------------------------------------------------------


async def check_raw(workspace: Workspace, params: CheckRawParams) -> RawProblems:
    """Compare a text with the exact types of a revision. Nothing is sent."""
    if params.revision not in RULES:
        raise InspectorError(f"{params.revision!r:.50} is not a revision", f"choose one of {', '.join(REVISIONS)}")
    problems = message_problems(params.text.encode(errors="surrogatepass"), params.revision)
    return RawProblems(problems)


# --- connections ---------------------------------------------------------------------------------------------------


async def list_connections(workspace: Workspace, params: ServerParams) -> RawConnectionList:
    """Return the raw connections of a server."""
    return RawConnectionList([_view(each) for each in workspace.raw.all(params.server)])


async def open_connection(workspace: Workspace, params: OpenRawParams) -> RawConnectionView:
    """Open a connection of its own: a process or an HTTP client, after an approval where one is needed."""
    server = workspace.server(params.server)
    if params.handshake and params.handshake not in RULES:
        raise InspectorError(f"{params.handshake!r:.50} is not a revision", f"choose one of {', '.join(REVISIONS)}")
    await workspace.approve(server)
    credentials: Headers = {}
    if server.state == "connected":
        session = await session_headers(server.client) or {}
        credentials = {name: value for name, value in session.items() if not name.startswith("mcp-")}
    recorder = workspace.recording.recorder
    opened = await workspace.raw.open(
        server.name, server.target, recorder, handshake=params.handshake, headers=credentials
    )
    return _view(opened)


async def close_connection(workspace: Workspace, params: CloseRawParams) -> None:
    """Close a raw connection."""
    await workspace.raw.get(params.connection).close()


async def send_raw(workspace: Workspace, params: SendRawParams) -> SentRaw:
    """Send bytes, unchanged. The response becomes rows of the traffic."""
    data = _data(params)
    headers = _headers(params.headers)
    method = params.method.upper()
    if method not in _HTTP_METHODS:
        raise InspectorError(f"{method!r:.50} is no HTTP method", f"use one of {', '.join(_HTTP_METHODS)}", status=400)
    row = len(workspace.recording.index)
    connection, session = await _connection(workspace, params)
    if connection is None:
        send_on_pipe(workspace.server(params.server).client, data)
        return SentRaw(0, row)
    if method == "POST":
        connection.send(data, {**session, **headers})
    else:
        workspace.start_task(connection.fetch(method, data or None, {**session, **headers}))
    return SentRaw(connection.number, row)


async def _connection(workspace: Workspace, params: SendRawParams) -> tuple[RawConnection | None, Headers]:
    """Return the raw connection to send on, None for the pipe of the client; and the headers of the session."""
    if params.connection:
        return workspace.raw.get(params.connection), {}
    server = workspace.server(params.server)
    session = await session_headers(server.client)
    if session is None:
        return None, {}
    recorder = workspace.recording.recorder
    return await workspace.raw.in_session(server.name, server.target, recorder), session


def _data(params: SendRawParams) -> bytes:
    if not params.base64:
        return params.text.encode(errors="surrogatepass")
    try:
        return base64.b64decode(params.base64, validate=True)
    except binascii.Error as exc:
        raise InspectorError(f"the bytes are not base64: {exc}", "correct them", status=400) from None


def _headers(given: Mapping[str, str]) -> dict[str, str | None]:
    """Return the headers to send. Raises `InspectorError` for those that no client can send."""
    if len(given) > _MAX_HEADERS:
        raise InspectorError(f"these are more than {_MAX_HEADERS} headers", "send fewer", status=400)
    for name, value in given.items():
        if not name.isascii() or not name or any(char in name + value for char in "\r\n\0") or " " in name:
            raise InspectorError(f"the header {name!r:.100} cannot be sent", "correct it", status=400)
    return {name.lower(): value or None for name, value in given.items()}


def _view(connection: RawConnection) -> RawConnectionView:
    return RawConnectionView(
        id=connection.id,
        number=connection.number,
        handshake=connection.handshake,
        is_session=connection.is_session,
        is_open=connection.is_open,
        reason=connection.reason,
    )


COMMANDS: Mapping[str, PageCommand] = {
    "raw/check": PageCommand(CheckRawParams, check_raw),
    "raw/list": PageCommand(ServerParams, list_connections),
    "raw/open": PageCommand(OpenRawParams, open_connection),
    "raw/send": PageCommand(SendRawParams, send_raw),
    "raw/close": PageCommand(CloseRawParams, close_connection),
}
