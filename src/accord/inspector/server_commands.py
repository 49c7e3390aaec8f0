"""Commands about servers: list, connect, disconnect, add and remove them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from accord import __version__
from accord.client.target import Command, Remote, parse
from accord.errors import TargetError
from accord.inspector.commands import CommandParams, InspectorError, NoParams, PageCommand, ServerParams
from accord.inspector.servers import ServerDescription
from accord.inspector.workspace import Workspace, name_of
from accord.messages.revision import REVISIONS


class ServerList(msgspec.Struct, frozen=True):
    """All servers, in order."""

    servers: list[ServerDescription]
    revisions: tuple[str, ...] = REVISIONS
    version: str = __version__


class StderrLines(msgspec.Struct, frozen=True):
    """The last lines that a server wrote to stderr."""

    lines: list[str]


class ConnectParams(ServerParams, frozen=True):
    """`revision`: connect in this revision only; empty for any."""

    revision: str = ""


class AddParams(CommandParams, frozen=True):
    """`target`: a command line, a URL, a file: as on the command line."""

    target: str


async def list_servers(workspace: Workspace, params: NoParams) -> ServerList:
    """Return all servers."""
    return ServerList([server.describe() for server in workspace.servers.values()])


async def read_stderr(workspace: Workspace, params: ServerParams) -> StderrLines:
    """Return the last lines of stderr of a server."""
    return StderrLines(list(workspace.server(params.server).stderr))


async def connect(workspace: Workspace, params: ConnectParams) -> ServerDescription:
    """Connect a server, after an approval in the terminal where one is needed. Raises `InspectorError`."""
    server = workspace.server(params.server)
    if params.revision and params.revision not in REVISIONS:
        raise InspectorError(f"{params.revision!r:.50} is not a revision", f"choose one of {', '.join(REVISIONS)}")
    if params.revision != server.only_revision:
        await server.disconnect()  # also if another page is connecting it
    server.only_revision = params.revision
    if server.state != "connected":
        await workspace.approve(server)
    await server.connect()
    return server.describe()


async def disconnect(workspace: Workspace, params: ServerParams) -> ServerDescription:
    """Disconnect a server, and end its process."""
    server = workspace.server(params.server)
    await server.disconnect()
    return server.describe()


async def add(workspace: Workspace, params: AddParams) -> ServerDescription:
    """Add a server; each start of a command is approved in the terminal. Raises `InspectorError`."""
    try:
        target = parse(params.target)
    except TargetError as exc:
        raise InspectorError(str(exc), "write a command line, a URL or FILE.py", status=400) from exc
    assert isinstance(target, Command | Remote), "a text is a command or a URL"
    needs_approval = isinstance(target, Command)
    return workspace.add(name_of(target), target, "page", needs_approval=needs_approval).describe()


async def remove(workspace: Workspace, params: ServerParams) -> ServerList:
    """Disconnect a server, and remove it from the list."""
    await workspace.remove(params.server)
    return await list_servers(workspace, NoParams())


COMMANDS: Mapping[str, PageCommand] = {
    "servers/list": PageCommand(NoParams, list_servers),
    "servers/stderr": PageCommand(ServerParams, read_stderr),
    "servers/connect": PageCommand(ConnectParams, connect),
    "servers/disconnect": PageCommand(ServerParams, disconnect),
    "servers/add": PageCommand(AddParams, add),
    "servers/remove": PageCommand(ServerParams, remove),
}
