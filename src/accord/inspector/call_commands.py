"""The commands of calls: start, watch, cancel, save and copy them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

import msgspec

from accord.inspector.call_copies import accord_command, curl_command, pytest_source
from accord.inspector.calls import CallKind, CallRequest, CallSummary
from accord.inspector.commands import CommandParams, Download, InspectorError, NoParams, PageCommand, ServerParams
from accord.inspector.result_views import ResultView, view_result
from accord.inspector.saved_calls import SavedCall
from accord.inspector.workspace import Workspace

_MOST_NAME = 200
_MOST_COMPARED = 1 << 20
"""Bytes of a result that a copied test contains."""


class CallParams(ServerParams, frozen=True, kw_only=True):
    """A call. `output_schema_json` is that of the tool."""

    kind: CallKind
    name: str
    arguments_json: str = ""
    output_schema_json: str = ""

    def request(self) -> CallRequest:
        """Return what is called."""
        return CallRequest(self.server, self.kind, self.name, self.arguments_json, self.output_schema_json)


class CallIdParams(CommandParams, frozen=True):
    """The id of a call."""

    id: str


class CallList(msgspec.Struct, frozen=True):
    """Calls, the newest first, without their log messages and schemas: `calls/read` has those of one."""

    calls: list[CallSummary]


class CallDetails(msgspec.Struct, frozen=True):
    """A call and its result, if it has one."""

    call: CallSummary
    result: ResultView | None


async def start(workspace: Workspace, params: CallParams) -> CallSummary:
    """Start a call; topic `calls` reports its changes. Raises `InspectorError`."""
    client = workspace.server(params.server).client
    return workspace.calls.start(client, params.request()).summary()


async def list_calls(workspace: Workspace, params: ServerParams) -> CallList:
    """Return the calls of a server."""
    return CallList([call.summary(brief=True) for call in workspace.calls.all(params.server)])


async def read(workspace: Workspace, params: CallIdParams) -> CallDetails:
    """Return a call and its result."""
    call = workspace.calls.get(params.id)
    if call.state not in ("done", "tool error"):
        return CallDetails(call.summary(), None)

    def view() -> ResultView:
        return view_result(call.file.read_bytes(), call.request.output_schema_json)

    return CallDetails(call.summary(), await asyncio.to_thread(view))


async def download(workspace: Workspace, params: CallIdParams) -> Download:
    """Return the whole result of a call, as a file. Raises `InspectorError`."""
    call = workspace.calls.get(params.id)
    if not call.file.exists():
        raise InspectorError("this call has no result", "repeat it", status=404)
    return Download(f"result-{call.id}.json", call.file, "application/json")


async def cancel(workspace: Workspace, params: CallIdParams) -> CallSummary:
    """Cancel a call."""
    return (await workspace.calls.cancel(params.id)).summary()


# --- saved calls ---------------------------------------------------------------------------------------------------


class SaveParams(CallParams, frozen=True, kw_only=True):
    """A call, and the name under which it is saved."""

    saved_name: str


class SavedNameParams(CommandParams, frozen=True):
    """The name of a saved call."""

    saved_name: str


class SavedList(msgspec.Struct, frozen=True):
    """All saved calls."""

    saved: list[SavedCall]


async def list_saved(workspace: Workspace, params: NoParams) -> SavedList:
    """Return the saved calls. Raises `StoreError`."""
    return SavedList(await workspace.saved_calls.all())


async def save(workspace: Workspace, params: SaveParams) -> SavedList:
    """Save a call under a name. Raises `InspectorError`, `StoreError`."""
    name = params.saved_name.strip()
    if not name or len(name) > _MOST_NAME:
        raise InspectorError(f"a name has 1 to {_MOST_NAME} characters", "choose another name", status=400)
    await workspace.saved_calls.save(name, params.request())
    return await list_saved(workspace, NoParams())


async def remove_saved(workspace: Workspace, params: SavedNameParams) -> SavedList:
    """Remove a saved call. Raises `StoreError`."""
    await workspace.saved_calls.remove(params.saved_name)
    return await list_saved(workspace, NoParams())


# --- copies --------------------------------------------------------------------------------------------------------


class CopyParams(CallParams, frozen=True, kw_only=True):
    """A call to copy. `input_schema_json`: arguments that are repeated in headers; `id`: a call whose result a test
    compares."""

    form: Literal["accord", "curl", "pytest"]
    input_schema_json: str = ""
    id: str = ""


class CopiedText(msgspec.Struct, frozen=True):
    """A text to copy."""

    text: str


async def copy(workspace: Workspace, params: CopyParams) -> CopiedText:
    """Return a call as a command or a test. Raises `InspectorError`."""
    server, request = workspace.server(params.server), params.request()
    if params.form == "accord":
        return CopiedText(accord_command(server, request))
    if params.form == "curl":
        return CopiedText(curl_command(server, request, server.client.revision, params.input_schema_json))
    call = workspace.calls.get(params.id) if params.id else None
    result = None
    if call is not None and call.file.exists() and call.file.stat().st_size <= _MOST_COMPARED:
        result = call.file.read_bytes()
    return CopiedText(pytest_source(server, request, result))


COMMANDS: Mapping[str, PageCommand] = {
    "calls/start": PageCommand(CallParams, start),
    "calls/list": PageCommand(ServerParams, list_calls),
    "calls/read": PageCommand(CallIdParams, read),
    "calls/download": PageCommand(CallIdParams, download),
    "calls/cancel": PageCommand(CallIdParams, cancel),
    "calls/saved": PageCommand(NoParams, list_saved),
    "calls/save": PageCommand(SaveParams, save),
    "calls/remove-saved": PageCommand(SavedNameParams, remove_saved),
    "calls/copy": PageCommand(CopyParams, copy),
}
