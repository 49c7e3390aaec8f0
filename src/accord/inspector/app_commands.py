"""Commands about apps: list and open them, and what an app asks of its own server."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from time import monotonic
from typing import Any

import msgspec

from accord.client.client import Client
from accord.inspector.app_frames import MIME_TYPE, AppFrame, content_policy
from accord.inspector.commands import CommandParams, InspectorError, PageCommand, ServerParams
from accord.inspector.workspace import Workspace
from accord.messages.content import ResourceContents
from accord.messages.tools import Tool
from accord.visible_text import single_line, truncate

_MAX_RESULT = 8 << 20
"""Bytes of a result that is passed on to an app."""
_LISTED_SECONDS = 1.0
"""The time for which a list of tools is used: an app may call many of them in a second."""


class AppDescription(msgspec.Struct, frozen=True, rename="camel"):
    """A tool with an app."""

    tool: str
    title: str
    uri: str
    visibility: list[str]


class AppList(msgspec.Struct, frozen=True):
    """The tools of a server that have an app."""

    apps: list[AppDescription]


class OpenedApp(msgspec.Struct, frozen=True, rename="camel"):
    """An app, ready to be shown in a frame."""

    id: str
    policy: list[str]
    """The directives of its content security policy."""
    ignored: list[str]
    """Sources in its metadata that are invalid, and not part of the policy."""
    tool_json: str


class AppResult(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a request that an app sent to its server."""

    result_json: str


class BlockedLoads(msgspec.Struct, frozen=True):
    """The loads that the policy of an app blocked: directive and URL."""

    blocked: list[str]


class OpenParams(ServerParams, frozen=True):
    """The tool whose app is opened."""

    tool: str


class AppParams(CommandParams, frozen=True):
    """The id of an opened app."""

    app: str


class AppCallParams(AppParams, frozen=True):
    """A call of an app; `approved` by the user in the page."""

    name: str
    arguments_json: str = "{}"
    approved: bool = False
    by_user: bool = False
    """Whether the user calls the tool, to see its result in the app."""


class AppReadParams(AppParams, frozen=True):
    """A resource that an app reads."""

    uri: str


async def list_apps(workspace: Workspace, params: ServerParams) -> AppList:
    """Return the tools of a server that have an app."""
    tools = await workspace.server(params.server).client.list_tools()
    return AppList([found for tool in tools if (found := _described(tool)) is not None])


def _ui_of(meta: Mapping[str, Any] | None) -> Mapping[str, Any]:
    ui = (meta or {}).get("ui")
    return ui if isinstance(ui, Mapping) else {}


def _described(tool: Tool) -> AppDescription | None:
    ui = _ui_of(tool.meta)
    uri = ui.get("resourceUri")
    if not isinstance(uri, str) or not uri.startswith("ui://"):
        return None
    given = ui.get("visibility")
    visibility = [each for each in given if each in ("model", "app")] if isinstance(given, list) else ["model", "app"]
    return AppDescription(tool.name, truncate(single_line(tool.title or tool.name), 200), uri, visibility)


async def open_app(workspace: Workspace, params: OpenParams) -> OpenedApp:
    """Read the resource of an app, and prepare its frame. Raises `InspectorError`."""
    client = workspace.server(params.server).client
    tool = next((each for each in await client.list_tools() if each.name == params.tool), None)
    described = None if tool is None else _described(tool)
    if tool is None or described is None:
        raise InspectorError(f"{params.tool!r:.200} has no app", "its _meta.ui.resourceUri must be a ui:// URI")
    result = await client.read_resource(described.uri)
    contents = next((each for each in result.contents if each.uri == described.uri), None)
    if contents is None or (contents.mime_type or "").replace(" ", "").lower() != MIME_TYPE:
        raise InspectorError(f"{described.uri:.200} is not an app", f"its MIME type must be {MIME_TYPE}")
    csp = _ui_of(contents.meta).get("csp")
    policy, ignored = content_policy(csp if isinstance(csp, Mapping) else {})
    id = workspace.apps.add(AppFrame(params.server, described.uri, _document(contents), policy))
    return OpenedApp(id, policy, ignored, msgspec.json.encode(tool).decode())


def _document(contents: ResourceContents) -> bytes:
    if contents.text is not None:
        return contents.text.encode(errors="replace")
    try:
        return b64decode(contents.blob or "", validate=True)
    except ValueError as exc:
        raise InspectorError(f"{contents.uri:.200} is not valid base64") from exc


async def call_tool(workspace: Workspace, params: AppCallParams) -> AppResult:
    """Call a tool for an app, at its own server.

    Raises `InspectorError` for one that apps may not call, and one that may change something and is not approved: its
    status is 428.
    """
    frame = workspace.apps.frame(params.app)
    client = workspace.server(frame.server).client
    tool = (await _tools_of(frame, client)).get(params.name)
    visibility = _ui_of(tool.meta).get("visibility") if tool is not None else None
    if tool is None or (isinstance(visibility, list) and "app" not in visibility and not params.by_user):
        raise InspectorError(
            f"apps cannot call {params.name!r:.200}", 'its _meta.ui.visibility has no "app"', status=400
        )
    is_read_only = tool.annotations is not None and tool.annotations.read_only_hint is True
    if not (is_read_only or params.approved or params.by_user):
        name = truncate(single_line(params.name), 200)
        raise InspectorError(f"the app wants to call {name}", "approve the call", status=428)
    try:
        arguments = msgspec.json.decode(params.arguments_json, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError as exc:
        raise InspectorError(f"the arguments are not a JSON object: {exc}", status=400) from exc
    result = await client.call_tool(params.name, arguments)
    return _result(msgspec.structs.replace(result, output_schema=None))


async def _tools_of(frame: AppFrame, client: Client) -> Mapping[str, Tool]:
    """Return the tools of the server of an app by name; they are listed once in some time, not for each call."""
    now = monotonic()
    if frame.listed_at is None or now - frame.listed_at > _LISTED_SECONDS:
        tools: dict[str, Tool] = {}
        for tool in await client.list_tools():
            tools.setdefault(tool.name, tool)
        frame.tools, frame.listed_at = tools, now
    return frame.tools


async def read_resource(workspace: Workspace, params: AppReadParams) -> AppResult:
    """Read a resource for an app, at its own server."""
    frame = workspace.apps.frame(params.app)
    return _result(await workspace.server(frame.server).client.read_resource(params.uri))


def _result(result: Any) -> AppResult:
    encoded = msgspec.json.encode(result)
    if len(encoded) > _MAX_RESULT:
        raise InspectorError(f"the result has more than {_MAX_RESULT:,} bytes", "the traffic has all of it")
    return AppResult(encoded.decode())


async def blocked(workspace: Workspace, params: AppParams) -> BlockedLoads:
    """Return what the policy of an app blocked, as the browser reported it."""
    return BlockedLoads(list(workspace.apps.frame(params.app).blocked))


COMMANDS: Mapping[str, PageCommand] = {
    "apps/list": PageCommand(ServerParams, list_apps),
    "apps/open": PageCommand(OpenParams, open_app),
    "apps/call": PageCommand(AppCallParams, call_tool),
    "apps/read": PageCommand(AppReadParams, read_resource),
    "apps/blocked": PageCommand(AppParams, blocked),
}
