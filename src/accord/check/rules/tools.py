"""Tools: the list, names, schemas, annotations, and icons of all features."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from accord.check.engine.rule import JudgedItems, NotApplicable, rule
from accord.check.probes import lists
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.lists import TOOLS
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import ObservedMessage, received_messages
from accord.check.probes.probe import Probe
from accord.check.probes.schemas import schema_fault
from accord.messages.base import JSONObject
from accord.wire.headers import ANNOTATION, mirrored


@rule(
    "tools/declared",
    "must",
    case="tools/list, without regard to the capabilities",
    at="server/tools#capabilities",
    cause="The capabilities are written by hand: add `tools`, or clients will not list any.",
)
async def tools_declared(probe: Probe) -> None:
    """A server that has tools declares the capability `tools`."""
    await lists.require_declared(probe, TOOLS)


@rule(
    "tools/listed",
    "must",
    case="tools/list",
    needs="tools",
    at="server/tools#listing-tools",
    cause="The capability is declared, but no handler answers `tools/list`.",
)
async def tools_listed(probe: Probe) -> None:
    """A server that declares the capability `tools` lists its tools."""
    await lists.require_list(probe, TOOLS)


@rule(
    "tools/same-everywhere",
    "must",
    case="two concurrent sessions",
    needs="tools",
    at="server/tools#capabilities",
    since="2026-07-28",
    cause="The list is stored for each connection: it may depend on the authorization only.",
)
async def tools_same_everywhere(probe: Probe) -> None:
    """The list of tools does not depend on the connection or on earlier requests."""
    await lists.require_same_list(probe, TOOLS)


@rule(
    "tools/order",
    "should",
    case="three lists in sequence",
    needs="tools",
    at="server/tools#capabilities",
    since="2026-07-28",
    cause="The tools are in a set or an unordered map: sort them, since prompt caches of models depend on the order.",
)
async def tools_order(probe: Probe) -> None:
    """The order of tools is the same in each list."""
    first = await lists.list_names(probe, TOOLS)
    for _ in range(2):
        again = await lists.list_names(probe, TOOLS)
        if sorted(first) == sorted(again) and first != again:
            raise probe.violation(f"first {preview_json(first)}, then {preview_json(again)}")


@rule(
    "tools/list-changed",
    "should",
    case="calls that may change the list",
    kind="own",
    needs="tools.listChanged",
    calls=True,
    at="server/tools#list-changed-notification",
    cause="The list changes without a notification, or the notification is not sent to subscribers.",
)
async def tools_list_changed(probe: Probe) -> None:
    """A server that declares `tools.listChanged` sends a notification when its list of tools changes."""
    await lists.require_change_notification(probe, TOOLS)


@rule(
    "tools/unique-names",
    "should",
    case="all names",
    needs="tools",
    at=("server/tools#tool-names", "server/tools#tool"),
    cause="Tools of several sources are combined without a prefix.",
)
async def tools_unique_names(probe: Probe) -> None:
    """The names of tools are unique."""
    name = lists.duplicate_name(await probe.tools(), TOOLS)
    if name is not None:
        raise probe.violation(f"two tools have the name {name!r}")


_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}").fullmatch


@rule(
    "tools/names",
    "should",
    case="all names",
    needs="tools",
    at="server/tools#tool-names",
    since="2025-11-25",
    cause="The name is a title: models and clients refuse other names.",
)
async def tools_names(probe: Probe) -> None:
    """The name of a tool has 1 to 128 characters: ASCII letters and digits, `_`, `-` and `.`."""
    wrong = [name for tool in await probe.tools() if isinstance(name := tool.get("name"), str) and not _NAME(name)]
    if wrong:
        raise probe.violation(f"names with other characters, or too long: {preview_json(wrong)}")


@rule(
    "tools/schemas",
    "must",
    case="all schemas, in any dialect",
    needs="tools",
    at="server/tools#tool",
    until="2025-11-25",
    cause="The schema is written by hand and has a mistake: from 2025-11-25 on, a schema names its dialect.",
)
async def tools_schemas(probe: Probe) -> None:
    """The input and output of a tool are described by valid JSON Schemas."""
    for tool, field in await _tool_schemas(probe):
        faults = [schema_fault({"$schema": dialect, **tool[field]}) for dialect in _DIALECTS]
        if all(faults):
            raise probe.violation(f"the {field} of {tool.get('name')!r} is not a valid JSON Schema: {faults[0]}")


_DIALECTS = ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#")
"""Dialects of schemas without `$schema`."""


async def _tool_schemas(probe: Probe) -> list[tuple[JSONObject, str]]:
    """Yield the schemas of all tools that are objects; `shapes` reports others."""
    fields = ("inputSchema", "outputSchema")
    return [(tool, field) for tool in await probe.tools() for field in fields if isinstance(tool.get(field), dict)]


@rule(
    "tools/mirrored-arguments",
    "must",
    case="each inputSchema",
    needs="tools",
    at="server/tools#x-mcp-header",
    since="2026-07-28",
    cause="Clients over HTTP omit the tool: correct the annotation, or remove it.",
)
async def tools_mirrored_arguments(probe: Probe) -> None:
    """Each `x-mcp-header` is a valid header name, unique, and on a string, an integer or a boolean that `properties`
    alone reaches.
    """
    for tool in await _tools_with_headers(probe):
        try:
            mirrored(tool["inputSchema"])
        except ValueError as exc:
            raise probe.violation(f"{tool.get('name')!r}: {exc}") from None


_SECRET = re.compile(r"passw|secret|credential|(api|private)_?key|(access|refresh)_?token", re.IGNORECASE).search


@rule(
    "tools/mirrored-secrets",
    "should",
    case="the names of arguments with x-mcp-header",
    needs="tools",
    at="server/tools#x-mcp-header",
    since="2026-07-28",
    cause="All proxies between client and server see headers, and may log them.",
)
async def tools_mirrored_secrets(probe: Probe) -> None:
    """Secret arguments have no headers."""
    for tool in await _tools_with_headers(probe):
        for name, schema in get_object(tool, "inputSchema", "properties").items():
            if isinstance(schema, dict) and ANNOTATION in schema and _SECRET(name):
                raise probe.violation(f"{tool.get('name')!r} has {name!r} in a header")


async def _tools_with_headers(probe: Probe) -> list[JSONObject]:
    found = [tool for tool in await probe.tools() if _has_annotation(tool.get("inputSchema"))]
    if not found:
        raise NotApplicable(f"no tool has {ANNOTATION}")
    return found


def _has_annotation(schema: Any) -> bool:
    return ANNOTATION.encode() in msgspec.json.encode(schema)


ICONS = "basic/index#icons"
SINCE = "2025-11-25"
_OWNERS = ("tools", "prompts", "resources", "resourceTemplates")
_SIZE = re.compile(r"[1-9]\d*x[1-9]\d*|any")


@rule(
    "icons/source",
    "should",
    case="all icons",
    at=(ICONS, "schema#icon"),
    since=SINCE,
    cause="The icon is a path, or has its own scheme: clients must refuse it.",
)
def icons_source(logs: Sequence[MessageLog]) -> JudgedItems:
    """An icon has an http or https URL, or a data URI."""
    for each, icon in _icons(logs):
        yield
        if not str(icon.get("src")).lower().startswith(("https://", "http://", "data:")):
            raise each.violation(f"src is {preview_json(icon.get('src'))}")


@rule(
    "icons/data",
    "should",
    case="all icons that are data URIs",
    at=(ICONS, "schema#icon"),
    since=SINCE,
    cause="The bytes are not encoded, or the part before the comma has no media type.",
)
def icons_data(logs: Sequence[MessageLog]) -> JudgedItems:
    """The data URI of an icon is an image in base64."""
    for each, icon in _icons(logs):
        source = str(icon.get("src"))
        if source.lower().startswith("data:"):
            yield
            kind, _, data = source[5:].partition(",")
            if not kind.lower().startswith("image/") or not kind.lower().endswith(";base64") or not _is_base64(data):
                raise each.violation(f"src is {preview_json(source)}")


@rule(
    "icons/sizes",
    "should",
    case="all icons with sizes",
    at=(ICONS, "schema#icon"),
    since=SINCE,
    cause="All sizes are in one string, or a size is a number.",
)
def icons_sizes(logs: Sequence[MessageLog]) -> JudgedItems:
    """The sizes of an icon are strings such as "48x48", or "any"."""
    for each, icon in _icons(logs):
        if "sizes" in icon:
            yield
            sizes = icon["sizes"]
            if not isinstance(sizes, list) or not all(
                isinstance(size, str) and _SIZE.fullmatch(size) for size in sizes
            ):
                raise each.violation(f"sizes are {preview_json(sizes)}")


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _icons(logs: Sequence[MessageLog]) -> Iterator[tuple[ObservedMessage, JSONObject]]:
    """Yield each icon of the server and of its features."""
    for each in received_messages(logs):
        result = each.message.get("result")
        if isinstance(result, dict):
            for owner in _owners(result):
                icons = owner.get("icons") if isinstance(owner, dict) else None
                yield from ((each, icon) for icon in icons or () if isinstance(icon, dict))


def _owners(result: JSONObject) -> Iterator[Any]:
    yield result.get("serverInfo")
    meta = result.get("_meta")
    yield meta.get("io.modelcontextprotocol/serverInfo") if isinstance(meta, dict) else None
    for field in _OWNERS:
        listed = result.get(field)
        yield from listed if isinstance(listed, list) else ()
