"""Types of the protocol in accord's words: `TextContent(type="text", text=...)` is `TextContent(text=...)`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from accord.migrate.arguments import keywords_of, remove_arguments, rename_keywords
from accord.migrate.edits import Edit, ManualStep, SourceText

SAME = ("Audio", "Depends", "File", "Image", "ToolError")
"""What is called in the same way, and used in the same way."""

TYPES = {
    name: name
    for name in (
        *SAME,
        *("Annotations", "AudioContent", "CallToolResult", "Completion", "EmbeddedResource", "Icon", "ImageContent"),
        *("ModelHint", "ModelPreferences", "PromptMessage", "ResourceLink", "SamplingMessage", "TextContent"),
        *("Tool", "ToolAnnotations"),
    )
} | {"TextResourceContents": "ResourceContents", "BlobResourceContents": "ResourceContents"}
"""What is called so there, and what it is called here."""


def type_edits(source: SourceText, local: str, name: str) -> Iterator[Edit | ManualStep]:
    """What to change for a type, under its name in the program; or what keeps it from that."""
    if name in SAME:
        return
    called = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == local:
            called.add(node.func)
            yield from _constructor_edits(node, source)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == local:
            yield ManualStep(node.lineno, f"{source.text_of(node)}: accord's types have fields only")
    if name == "ResourceContents":
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name) and node.id == local and node not in called:
                yield ManualStep(node.lineno, f"{local}: accord has one type for both, see .text and .blob")


def _constructor_edits(call: ast.Call, source: SourceText) -> Iterator[Edit | ManualStep]:
    keywords = keywords_of(call)
    if keywords is None or call.args:
        yield ManualStep(call.lineno, f"{source.text_of(call.func)}(...): name its fields one by one")
        return
    yield from rename_keywords(call, {name: to_snake_case(name) for name in keywords}, source)
    yield from remove_arguments(call, [keyword for name, keyword in keywords.items() if name == "type"], source)


def to_snake_case(name: str) -> str:
    """A field as Python names it: `isError` as `is_error`, `_meta` as `meta`."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda found: f"_{found[1].lower()}", name).lstrip("_")
