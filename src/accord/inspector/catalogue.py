"""The lists of a server as the page shows them: tools, resources, templates and prompts, with their exact JSON.

Each entry is decoded by itself, so that an invalid one does not hide the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from accord.client.client import Client
from accord.errors import AccordError, DeclarationError, InvalidResult, MethodNotFound, NotSupported
from accord.inspector.commands import CommandParams, InspectorError, PageCommand, ServerParams
from accord.inspector.workspace import Workspace
from accord.messages.meta import PaginatedParams
from accord.messages.tools import Tool
from accord.server.declare.templates import Template
from accord.visible_text import truncate

_MOST_PAGES = 1_000
_MOST_ITEMS = 5_000
"""Entries of one list that the page shows."""
_MOST_BYTES = 8 << 20
"""JSON of one list for the page; further entries are left out."""
_TITLE, _DESCRIPTION = 300, 20_000
_MOST_PARTS = 200

_HINTS = {
    "readOnlyHint": ("read-only", "changes something"),
    "destructiveHint": ("destructive", "not destructive"),
    "idempotentHint": ("idempotent: a repeated call changes nothing more", "not idempotent"),
    "openWorldHint": ("reaches the outside world", "stays in a closed world"),
}


class CatalogueArgument(msgspec.Struct, rename="camel", omit_defaults=True):
    """An argument of a prompt, or a variable of a template."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False


class CatalogueItem(msgspec.Struct, rename="camel", omit_defaults=True):
    """One tool, resource, template or prompt. `name` identifies it: the URI of a resource."""

    name: str
    title: str = ""
    description: str = ""
    claims: list[str] = []
    """What the server says about a tool; nobody has checked it."""
    mime_type: str = ""
    size: int | None = None
    icons: list[str] = []
    """Addresses of icons; none is fetched."""
    arguments: list[CatalogueArgument] = []
    input_schema_json: str = ""
    output_schema_json: str = ""
    item_json: str = ""
    problem: str = ""
    """What is invalid about it."""


class CatalogueList(msgspec.Struct, rename="camel"):
    """A list of a server; `note` says what is missing from it."""

    items: list[CatalogueItem]
    note: str = ""


async def list_tools(workspace: Workspace, params: ServerParams) -> CatalogueList:
    """Return the tools of a server."""
    client = workspace.server(params.server).client
    raws, note = await _entries(client, "tools/list", "tools")
    items = [_tool(raw) for raw in raws]
    valid = [tool for raw, item in zip(raws, items, strict=True) if not item.problem and (tool := _decoded_tool(raw))]
    known = client._learn_tools(valid)
    workspace.notifications.of(params.server).lists.learn("tools", known)
    usable = {tool.name for tool in known}
    for item in items:
        if not item.problem and item.name not in usable:
            item.problem = "its declaration of headers is invalid, so clients leave this tool out"
    return CatalogueList(items, note)


async def list_resources(workspace: Workspace, params: ServerParams) -> CatalogueList:
    """Return the resources of a server."""
    raws, note = await _entries(workspace.server(params.server).client, "resources/list", "resources")
    return CatalogueList([_item(raw, "uri") for raw in raws], note)


async def list_templates(workspace: Workspace, params: ServerParams) -> CatalogueList:
    """Return the resource templates of a server."""
    client = workspace.server(params.server).client
    raws, note = await _entries(client, "resources/templates/list", "resourceTemplates")
    return CatalogueList([_template(raw) for raw in raws], note)


async def list_prompts(workspace: Workspace, params: ServerParams) -> CatalogueList:
    """Return the prompts of a server."""
    raws, note = await _entries(workspace.server(params.server).client, "prompts/list", "prompts")
    return CatalogueList([_prompt(raw) for raw in raws], note)


async def _entries(client: Client, method: str, field: str) -> tuple[list[Raw], str]:
    """Return the JSON of all entries of a list, and what is missing from it. Raises `AccordError`."""
    found: list[Raw] = []
    size, cursor = 0, None
    for _ in range(_MOST_PAGES):
        params = None if cursor is None else PaginatedParams(cursor=cursor)
        try:
            page = msgspec.json.decode(await client.request(method, params, result=Raw), type=dict[str, Raw])
            entries = msgspec.json.decode(page[field], type=list[Raw])
            cursor = msgspec.json.decode(page["nextCursor"], type=str | None) if "nextCursor" in page else None
        except (NotSupported, MethodNotFound):
            return [], f"the server has no {field}: it does not support {method}"
        except (msgspec.MsgspecError, KeyError) as exc:
            raise InvalidResult(f"the result of {method} is invalid: {exc}; the timeline shows it") from exc
        for entry in entries:
            size += len(entry)
            if len(found) == _MOST_ITEMS or size > _MOST_BYTES:
                return found, f"the list is longer; the page shows its first {len(found):,} entries"
            found.append(entry)
        if cursor is None:
            return found, ""
    return found, f"the list has more than {_MOST_PAGES:,} pages"


# --- entries -------------------------------------------------------------------------------------------------------


def _fields(raw: Raw) -> dict[str, Any]:
    """Return the fields of an entry; schemas stay JSON."""
    try:
        members = msgspec.json.decode(raw, type=dict[str, Raw])
        schemas = {"inputSchema", "outputSchema"}
        return {name: each if name in schemas else msgspec.json.decode(each) for name, each in members.items()}
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _item(raw: Raw, key: str) -> CatalogueItem:
    """Return an entry with the fields that all kinds have."""
    fields = _fields(raw)
    name = fields.get(key)
    item = CatalogueItem(
        name=name if isinstance(name, str) else "",
        title=_text(fields.get("title"), _TITLE) or (_text(fields.get("name"), _TITLE) if key != "name" else ""),
        description=_text(fields.get("description"), _DESCRIPTION),
        mime_type=_text(fields.get("mimeType"), _TITLE),
        size=size if type(size := fields.get("size")) is int else None,
        icons=[_text(icon.get("src"), _TITLE) for icon in _objects(fields.get("icons"))],
        item_json=bytes(raw).decode(errors="replace"),
    )
    if not isinstance(name, str):
        item.problem = f"the entry has no {key}, or one that is not a text"
    return item


def _tool(raw: Raw) -> CatalogueItem:
    item, fields = _item(raw, "name"), _fields(raw)
    for name in ("inputSchema", "outputSchema"):
        if name in fields:
            setattr(item, "input_schema_json" if name == "inputSchema" else "output_schema_json", _json(fields[name]))
    if not item.problem and not item.input_schema_json:
        item.problem = "the tool has no inputSchema"
    annotations = fields.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    item.title = item.title or _text(annotations.get("title"), _TITLE)
    item.claims = [
        words[not value] for hint, words in _HINTS.items() if isinstance(value := annotations.get(hint), bool)
    ]
    if not item.problem and _decoded_tool(raw) is None:
        item.problem = "the entry does not match the protocol's type of a tool"
    return item


def _decoded_tool(raw: Raw) -> Tool | None:
    try:
        return msgspec.json.decode(raw, type=Tool)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _template(raw: Raw) -> CatalogueItem:
    item = _item(raw, "uriTemplate")
    try:
        variables = Template(item.name).variables if item.name else ()
    except DeclarationError as exc:
        item.problem = item.problem or truncate(str(exc), _TITLE)
    else:
        item.arguments = [CatalogueArgument(name) for name in variables[:_MOST_PARTS]]
    return item


def _prompt(raw: Raw) -> CatalogueItem:
    item = _item(raw, "name")
    item.arguments = [
        CatalogueArgument(
            name=_text(each.get("name"), _TITLE),
            title=_text(each.get("title"), _TITLE),
            description=_text(each.get("description"), _DESCRIPTION),
            required=each.get("required") is True,
        )
        for each in _objects(_fields(raw).get("arguments"))
    ]
    return item


def _text(value: Any, most: int) -> str:
    return truncate(value, most) if isinstance(value, str) else ""


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value[:_MOST_PARTS] if isinstance(each, dict)] if isinstance(value, list) else []


def _json(raw: Raw) -> str:
    return bytes(raw).decode(errors="replace")


# --- templates and completion --------------------------------------------------------------------------------------


class ExpandParams(CommandParams, frozen=True):
    """A URI template, and texts for its variables; those left out are absent."""

    template: str
    values: dict[str, str]


class CompleteTextParams(ServerParams, frozen=True):
    """The text typed for an argument of a prompt, or for a variable of a template; `context` has the other values."""

    argument: str
    value: str
    prompt: str | None = None
    template: str | None = None
    context: dict[str, str] | None = None


class CompletionValues(msgspec.Struct, rename="camel"):
    """Suggested values; `total` and `has_more` as the server says."""

    values: list[str]
    total: int | None = None
    has_more: bool = False


async def expand(workspace: Workspace, params: ExpandParams) -> dict[str, str]:
    """Return the URI of a template. Raises `InspectorError`."""
    try:
        return {"uri": Template(params.template).expand(params.values)}
    except (DeclarationError, TypeError, UnicodeEncodeError) as exc:
        raise InspectorError(f"the template cannot be expanded: {exc}", "change its values", status=400) from exc


async def complete(workspace: Workspace, params: CompleteTextParams) -> CompletionValues:
    """Return the values that a server suggests; none from a server without completion."""
    client = workspace.server(params.server).client
    try:
        found = await client.complete(
            argument=params.argument,
            value=params.value,
            prompt=params.prompt,
            template=params.template,
            context=params.context,
        )
    except (NotSupported, MethodNotFound):  # the second in 2024-11-05, which has no capability for it
        return CompletionValues([])
    except AccordError as exc:
        raise InspectorError(f"the server suggests nothing: {exc}", "type the value") from exc
    values = [truncate(value, _TITLE) for value in found.values[:100]]
    return CompletionValues(values, found.total, bool(found.has_more))


COMMANDS: Mapping[str, PageCommand] = {
    "tools/list": PageCommand(ServerParams, list_tools),
    "resources/list": PageCommand(ServerParams, list_resources),
    "templates/list": PageCommand(ServerParams, list_templates),
    "templates/expand": PageCommand(ExpandParams, expand),
    "prompts/list": PageCommand(ServerParams, list_prompts),
    "completion/complete": PageCommand(CompleteTextParams, complete),
}
