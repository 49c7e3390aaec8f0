"""A visit to a server: everything it lists, and what it answers to the calls of one program's entry.

What is seen is plain JSON, in one spelling for all libraries, so that two visits can be compared:

- of a tool its name, its arguments and which of them are required; of the rest names and URIs;
- of a call its value: the structured content, out of `{"result": ...}`, or else the text, read as JSON if it is JSON;
- of a failure only that it failed: the words are each library's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from inspect import cleandoc
from typing import Any

from msgspec import UNSET

from accord import Client, ElicitParams, ElicitResult, ProtocolError, ToolResult
from accord.client.target import Command
from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)

from tests.switching.programs import Program

REVISION = "2025-11-25"
"""The newest that all three libraries speak with the same questions."""


async def visit(command: Command, program: Program) -> dict[str, Any]:
    """What there is to see of the server that `command` starts."""
    answers: Iterator[dict[str, Any]] = iter(program.answers)

    def person(question: ElicitParams) -> ElicitResult:
        return ElicitResult(**next(answers))

    client = Client(
        command,
        revisions=[REVISION],
        timeout=30,
        elicitation=person if program.answers else None,
        elicitation_modes=("form", "url"),
        sampling=(lambda question: program.said) if program.said else None,
        roots=program.roots or None,
    )
    async with client:
        seen = {**await _listed(client), **await _asked(client, program)}
    seen = json.loads(json.dumps(seen).replace(command.cwd or "", "/program"))  # where it is laid out differs
    return _without(seen, program.varies)  # type: ignore[no-any-return]


async def _listed(client: Client) -> dict[str, Any]:
    can = client.server_capabilities
    tools = await client.list_tools() if can.tools else []
    prompts = await client.list_prompts() if can.prompts else []
    resources = await client.list_resources() if can.resources else []
    templates = await client.list_resource_templates() if can.resources else []
    return {
        "tools": {one.name: [cleandoc(one.description or ""), _arguments(one.input_schema)] for one in tools},
        "prompts": {one.name: sorted(each.name for each in one.arguments or ()) for one in prompts},
        "resources": sorted(one.uri for one in resources),
        "templates": sorted(one.uri_template for one in templates),
    }


def _arguments(schema: dict[str, Any]) -> dict[str, bool]:
    """The arguments by name, and whether each is required."""
    required = schema.get("required", ())
    return {name: name in required for name in sorted(schema.get("properties", {}))}


async def _asked(client: Client, program: Program) -> dict[str, Any]:
    return {
        "calls": [await _call(client, name, arguments) for name, arguments in program.calls],
        "reads": [await _read(client, uri) for uri in program.reads],
        "messages": [await _prompt(client, name, arguments) for name, arguments in program.prompts],
        "completions": [(await client.complete(**each)).values for each in program.completes],
    }


async def _call(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    try:
        result = await client.call_tool(name, arguments)
    except ProtocolError:
        return "an error"
    return "an error" if result.is_error else _value(result)


def _value(result: ToolResult) -> Any:
    structured = result.structured_content
    others = [_block(block) for block in result.content if not isinstance(block, TextContent)]
    if structured is not UNSET and structured is not None and not _is_block(structured):
        value = structured["result"] if isinstance(structured, dict) and set(structured) == {"result"} else structured
        value = _text(value) if isinstance(value, str) else value
        return [value, *others] if others else value
    texts = [_text(block.text) for block in result.content if isinstance(block, TextContent)]
    whole = [*texts, *others]
    return whole[0] if len(whole) == 1 else whole


def _is_block(structured: Any) -> bool:
    """Whether it only says again what the content says: mcp 1 does so where a tool returns a block."""
    return isinstance(structured, dict) and structured.get("type") in ("image", "audio", "resource", "resource_link")


def _text(text: str) -> Any:
    """The text, or the value of which it is the JSON: how that is laid out is nobody's promise."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _block(block: Any) -> Any:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(data=data, mime_type=mime_type) | AudioContent(data=data, mime_type=mime_type):
            return [mime_type, _digest(data)]
        case EmbeddedResource(resource=contents):
            return _contents(contents)
        case ResourceLink(uri=uri):
            return [uri]
    return repr(block)


def _contents(contents: ResourceContents) -> Any:
    held = _text(contents.text) if contents.text is not None else _digest(contents.blob or "")
    return [contents.uri.rstrip("/"), held]  # where the libraries have pydantic put one


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


async def _read(client: Client, uri: str) -> Any:
    try:
        result = await client.read_resource(uri)
    except ProtocolError:
        return "an error"
    return [_contents(each) for each in result.contents]


async def _prompt(client: Client, name: str, arguments: dict[str, str]) -> Any:
    result = await client.get_prompt(name, arguments)
    return [[message.role, _block(message.content)] for message in result.messages]


def _without(seen: Any, varies: list[str]) -> Any:
    """What was seen, without keys and texts that are others each time."""
    if isinstance(seen, dict):
        return {key: _without(value, varies) for key, value in seen.items() if key not in varies}
    if isinstance(seen, list | tuple):
        return [_without(value, varies) for value in seen]
    return seen
