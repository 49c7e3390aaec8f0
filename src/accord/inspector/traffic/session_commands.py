"""Commands about sessions: open, save, close, compare and replay them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from accord.check.surface.changes import changes_by_revision
from accord.check.surface.diff import compare as compare_servers
from accord.check.surface.schema_changes import Change
from accord.check.surface.surface import fetch_surfaces
from accord.inspector.commands import (
    CommandParams,
    Download,
    InspectorError,
    NoParams,
    PageCommand,
    ServerParams,
    Upload,
)
from accord.inspector.servers import InspectedServer
from accord.inspector.traffic.commands import SessionParams, matching, source_of
from accord.inspector.traffic.filter import FilterError
from accord.inspector.traffic.session_comparison import MAX_CHANGES, SessionComparison, compare_sessions
from accord.inspector.traffic.source import TrafficSource
from accord.inspector.traffic.text_search import SearchCancelled
from accord.inspector.transfers import new_file
from accord.inspector.workspace import Workspace
from accord.messages.revision import REVISIONS
from accord.testing.generated_tests import pytest_source
from accord.testing.recorded_server import RecordedServer
from accord.testing.recording import read_messages
from accord.testing.replayer import play
from accord.visible_text import single_line, truncate, visible
from accord.wire.session_file import encode_line

MAX_REPLAYED = 64 << 20
"""Bytes of the largest session file that is replayed."""
_REPLAY_SECONDS = 60.0
_MAX_DIFFERENCES = 500
_CHARACTERS = 5_000
_NAME_CHARACTERS = 100


class SessionDescription(msgspec.Struct, frozen=True, rename="camel"):
    """A session that can be shown."""

    id: str
    name: str
    rows: int
    seconds: float
    size: int
    began: str
    """The date and time of the beginning."""
    program: str
    target: str
    redacted: bool
    remark: str
    """What is missing in it."""


class SessionList(msgspec.Struct, frozen=True):
    """All sessions, the live one first."""

    sessions: list[SessionDescription]


class SaveSessionParams(SessionParams, frozen=True, kw_only=True):
    """The session, and the filter of the entries to save; empty for all."""

    filter: str = ""


class CompareSessionsParams(CommandParams, frozen=True, kw_only=True):
    """The ids of two sessions."""

    left: str
    right: str


class CompareServersParams(ServerParams, frozen=True, kw_only=True):
    """Two servers; without `other`, all revisions of one server are compared with its newest one."""

    other: str = ""


class ReplayParams(ServerParams, frozen=True, kw_only=True):
    """A session, and the server that gets its requests. `ignore` are paths that may differ."""

    session: str
    ignore: tuple[str, ...] = ()


class SurfaceComparison(msgspec.Struct, frozen=True):
    """The changes between two surfaces, the worst first."""

    old: str
    new: str
    changes: list[Change]


class ServerComparison(msgspec.Struct, frozen=True):
    """Comparisons of surfaces: one of two servers, or one for each older revision of a server."""

    comparisons: list[SurfaceComparison]


class ReplayResult(msgspec.Struct, frozen=True):
    """The differences between the recorded messages of a server and the new ones."""

    messages: int
    differences: list[str]


async def list_sessions(workspace: Workspace, params: NoParams) -> SessionList:
    """Return all sessions."""
    return SessionList([_describe(workspace, id) for id in workspace.sessions.sources])


def _describe(workspace: Workspace, id: str) -> SessionDescription:
    source = workspace.sessions.find(id)
    index = source.index
    header = index.header
    last = len(index) - 1
    return SessionDescription(
        id=id,
        name=source.name,
        rows=len(index),
        seconds=round(index.seconds, 3),
        size=int(index.places[last] + index.lengths[last]) if last >= 0 else 0,
        began=truncate(visible(header.at), 50) if header else "",
        program=truncate(visible(header.program), 200) if header else "",
        target=truncate(visible(header.target), 500) if header else "",
        redacted=header.redacted if header else True,
        remark=workspace.sessions.remark(source),
    )


async def open_upload(workspace: Workspace, params: Upload) -> SessionDescription:
    """Open a session file that the page sent. Raises `InspectorError`."""
    name = truncate(single_line(params.name), _NAME_CHARACTERS)
    return _describe(workspace, await workspace.sessions.open(params.path, name, owned=True))


async def close_session(workspace: Workspace, params: SessionParams) -> SessionList:
    """Close a session. Raises `InspectorError`."""
    await workspace.sessions.close(params.session)
    return await list_sessions(workspace, NoParams())


async def save(workspace: Workspace, params: SaveSessionParams) -> Download:
    """Return a session as a file, or its entries that match; it is redacted as it was recorded. Raises
    `InspectorError`.
    """
    source = source_of(workspace, params.session)
    if source.index.header is None:
        raise InspectorError("nothing was recorded", "connect a server")
    await workspace.recording.written()
    if not params.filter.strip():
        return Download("session.jsonl", source.file, "application/jsonl")
    try:
        rows = await matching(source, params.filter, "save")
    except (FilterError, SearchCancelled) as exc:
        raise InspectorError(str(exc), getattr(exc, "cure", ""), status=400) from exc
    file = await asyncio.to_thread(_store_rows, source, rows, workspace.folder)
    return Download("session.jsonl", file, "application/jsonl", delete=True)


def _store_rows(source: TrafficSource, rows: Iterable[int], folder: Path) -> Path:
    assert source.index.header is not None, "it was recorded"
    with new_file(folder) as stream:
        stream.write(encode_line(source.index.header))
        for row in rows:
            stream.write(source.reader.line(row))
    return Path(stream.name)


async def save_tests(workspace: Workspace, params: SessionParams) -> Download:
    """Return a session as tests for pytest, which read it from `session.jsonl` beside them. Raises `InspectorError`."""
    file = _replayable(workspace, params.session)
    await workspace.recording.written()
    try:
        source = await asyncio.to_thread(pytest_source, file, name="session.jsonl")
    except (ValueError, AssertionError) as exc:
        raise InspectorError(f"the session cannot be replayed: {exc}", status=400) from exc
    with new_file(workspace.folder) as stream:
        stream.write(source.encode())
    return Download("test_session.py", Path(stream.name), "text/x-python", delete=True)


async def compare_two(workspace: Workspace, params: CompareSessionsParams) -> SessionComparison:
    """Return the differences of two sessions. Raises `InspectorError`."""
    left, right = source_of(workspace, params.left), source_of(workspace, params.right)
    return await asyncio.to_thread(compare_sessions, left, right)


async def compare_surfaces(workspace: Workspace, params: CompareServersParams) -> ServerComparison:
    """Return the differences of two servers, or of the revisions of one, over connections of their own.

    Raises `InspectorError`, `ConnectError`.
    """
    server = await _approved(workspace, params.server)
    options: dict[str, Any] = {"record": workspace.recording.recorder}
    if not params.other:
        surfaces = await fetch_surfaces(server.target, REVISIONS, **options)
        newest = max(surfaces)
        return ServerComparison(
            [
                SurfaceComparison(
                    old, newest, changes_by_revision({"": surfaces[old]}, {"": surfaces[newest]})[:MAX_CHANGES]
                )
                for old in sorted(surfaces.keys() - {newest}, reverse=True)
            ]
        )
    other = await _approved(workspace, params.other)
    comparison = await compare_servers(server.target, other.target, **options)
    return ServerComparison([SurfaceComparison(params.server, params.other, list(comparison.changes[:MAX_CHANGES]))])


async def _approved(workspace: Workspace, name: str) -> InspectedServer:
    server = workspace.server(name)
    await workspace.approve(server)
    return server


async def replay_client(workspace: Workspace, params: ReplayParams) -> ReplayResult:
    """Send the messages of the client in a session to a server; return what the server answers differently.

    Raises `InspectorError`, `ConnectError`.
    """
    file = _replayable(workspace, params.session)
    server = await _approved(workspace, params.server)
    try:
        messages = await asyncio.to_thread(read_messages, file)
    except ValueError as exc:
        raise InspectorError(f"the session cannot be replayed: {exc}", status=400) from exc
    recorder = workspace.recording.recorder
    found = await play(messages, server.target, params.ignore, _REPLAY_SECONDS, recorder)
    differences = [truncate(visible(each), _CHARACTERS) for each in found[:_MAX_DIFFERENCES]]
    return ReplayResult(len(messages), differences)


async def replay_server(workspace: Workspace, params: SessionParams) -> SessionParams:
    """Add a server that answers as the one in a session did. Raises `InspectorError`."""
    file = _replayable(workspace, params.session)
    try:
        recorded = await asyncio.to_thread(RecordedServer, file)
    except (ValueError, AssertionError) as exc:
        raise InspectorError(f"the session cannot be replayed: {exc}", status=400) from exc
    return SessionParams(session=workspace.add("recorded", recorded, "program").name)


def _replayable(workspace: Workspace, session: str) -> Path:
    """Return the file of a session. Raises `InspectorError` if it is too long to be replayed."""
    source = source_of(workspace, session)
    if source.file.stat().st_size > MAX_REPLAYED:
        raise InspectorError(
            f"a session of more than {MAX_REPLAYED >> 20} MB cannot be replayed", "record a shorter one"
        )
    return source.file


COMMANDS: Mapping[str, PageCommand] = {
    "session/list": PageCommand(NoParams, list_sessions),
    "session/open": PageCommand(Upload, open_upload, upload=True),
    "session/close": PageCommand(SessionParams, close_session),
    "session/save": PageCommand(SaveSessionParams, save),
    "session/save-tests": PageCommand(SessionParams, save_tests),
    "session/compare": PageCommand(CompareSessionsParams, compare_two),
    "session/compare-servers": PageCommand(CompareServersParams, compare_surfaces),
    "session/replay-client": PageCommand(ReplayParams, replay_client),
    "session/replay-server": PageCommand(SessionParams, replay_server),
}
