"""The features of the scripted server in each revision: a few tools, resources and prompts.

This is plain JSON. A scenario replaces a part: `ScriptedFeatures(tools=[...])`, `ScriptedFeatures(capabilities={})`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from accord.messages.base import JSONObject
from accord.messages.revision import RULES, is_in_revision

INFO: JSONObject = {"name": "accord-check", "version": "1.0.0"}

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
"""An image of one pixel."""

STRUCTURED = "2025-06-18"
"""The first revision with output schemas; completion is a capability since the one before."""

_COMPLETIONS = "2025-03-26"


def text_block(words: str) -> JSONObject:
    """Return a text block."""
    return {"type": "text", "text": words}


def tool_definition(name: str, description: str = "A tool of the check.", **properties: str | JSONObject) -> JSONObject:
    """Return a tool with arguments by their types or schemas, all required."""
    fields = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    schema = {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}
    return {"name": name, "description": description, "inputSchema": schema}


TOOLS: tuple[JSONObject, ...] = (
    tool_definition("echo", "Give back the text.", text="string"),
    tool_definition("add", "Add two numbers.", a="integer", b="integer"),
    tool_definition("fail", "Fail, so that a model can read why."),
    tool_definition("slow", "Take a few steps, and tell of each.", steps="integer"),
    tool_definition("picture", "Show a picture."),
)

_SUM = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}

RESOURCES: tuple[JSONObject, ...] = (
    {"uri": "notes://today", "name": "today", "mimeType": "text/plain"},
    {"uri": "notes://monday", "name": "monday", "mimeType": "text/plain"},
)
TEMPLATES: tuple[JSONObject, ...] = ({"uriTemplate": "notes://{day}", "name": "notes", "mimeType": "text/plain"},)
PROMPTS: tuple[JSONObject, ...] = (
    {"name": "plan", "description": "Plan a day.", "arguments": [{"name": "city", "required": True}]},
    {"name": "caf\u00e9", "description": "A name that no header can have as it is."},
)


class ScriptedFeatures(msgspec.Struct, frozen=True, kw_only=True):
    """The features of a server in one scenario. With `capabilities` None, it has all capabilities of its features."""

    tools: Sequence[JSONObject] = TOOLS
    resources: Sequence[JSONObject] = RESOURCES
    templates: Sequence[JSONObject] = TEMPLATES
    prompts: Sequence[JSONObject] = PROMPTS
    capabilities: JSONObject | None = None

    def server_capabilities(self, revision: str) -> JSONObject:
        """Return the server capabilities."""
        if self.capabilities is not None:
            return self.capabilities
        changed = {"listChanged": True}
        declared: JSONObject = {
            "tools": changed,
            "resources": {"subscribe": True, **changed},
            "prompts": changed,
            "logging": {},
        }
        return declared | ({"completions": {}} if is_in_revision(revision, _COMPLETIONS, None) else {})

    def tools_in(self, revision: str) -> list[JSONObject]:
        """Return the tools; one has an output schema if the revision supports that."""
        if not is_in_revision(revision, STRUCTURED, None):
            return list(self.tools)
        return [each | {"outputSchema": _SUM} if each is TOOLS[1] else each for each in self.tools]


def handshake_result(revision: str, features: ScriptedFeatures) -> JSONObject:
    """Return the result of `initialize` or `server/discover`."""
    capabilities = features.server_capabilities(revision)
    if RULES[revision].handshake:
        return {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": INFO}
    return {"supportedVersions": [revision], "capabilities": capabilities}


def call_result(name: str, arguments: Any, revision: str) -> JSONObject:
    """Return the result of a tool call."""
    given = arguments if isinstance(arguments, dict) else {}
    if name == "add":
        return _sum(given, revision)
    if name == "fail":
        return {"content": [text_block("it went wrong, as it was meant to")], "isError": True}
    if name == "picture":
        return {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}
    return {"content": [text_block(str(given.get("text", "done")))]}


def _sum(given: JSONObject, revision: str) -> JSONObject:
    try:
        total = int(given["a"]) + int(given["b"])
    except (KeyError, TypeError, ValueError):
        return {"content": [text_block("a and b must be integers")], "isError": True}
    structured = {"structuredContent": {"sum": total}} if is_in_revision(revision, STRUCTURED, None) else {}
    return {"content": [text_block(f'{{"sum":{total}}}')], **structured}
