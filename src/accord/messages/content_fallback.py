"""What a revision does not have, said in what it has: kinds of content, and output that is no object."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from accord.messages.base import LIVES, JSONObject
from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from accord.messages.revision import is_in_revision


def audio_as_resource(block: AudioContent) -> EmbeddedResource:
    """Sound for a revision without it: the same bytes, embedded."""
    return EmbeddedResource(
        resource=ResourceContents(uri="data:", mime_type=block.mime_type, blob=block.data),
        annotations=block.annotations,
    )


def link_as_text(block: ResourceLink) -> TextContent:
    """A link for a revision without it: its name and address, to read."""
    title = block.title or block.name
    about = f": {block.description}" if block.description else ""
    return TextContent(text=f"[{title}]({block.uri}){about}", annotations=block.annotations)


_ADAPTERS: dict[type, Any] = {AudioContent: audio_as_resource, ResourceLink: link_as_text}


def adapt_content(blocks: Sequence[Any], revision: str) -> list[Any]:
    """`blocks` in kinds that `revision` has; nothing is lost, whatever the revision."""
    return [_adapt(block, revision) for block in blocks]


def _adapt(block: Any, revision: str) -> Any:
    adapter = _ADAPTERS.get(type(block))
    life = LIVES.get(type(block))
    if adapter is None or life is None or is_in_revision(revision, life.since, life.until):
        return block
    return adapter(block)


_WRAPS = "x-fastmcp-wrap-result"
"""The mark of a schema that only wraps; other implementations read and write it too."""
_SDK_TITLE = re.compile(r"[a-z_]\w*Output")


def wrap_schema(schema: JSONObject) -> JSONObject:
    """The schema of `{"result": value}` for the schema of `value`, where the root must be an object; marked so."""
    inner = dict(schema)
    defs = {"$defs": inner.pop("$defs")} if "$defs" in inner else {}
    return {"type": "object", "properties": {"result": inner}, "required": ["result"], _WRAPS: True, **defs}


def is_wrapper(schema: JSONObject | None) -> bool:
    """Whether a schema is marked as `wrap_schema`. An object of somebody's own with the one key "result" is not.

    The official SDK has no mark, but names what it makes after the function: "forecastOutput", as no class is called.
    """
    if schema is None:
        return False
    title = schema.get("title")
    made_by_sdk = isinstance(title, str) and _SDK_TITLE.fullmatch(title) and schema.get("required") == ["result"]
    return schema.get(_WRAPS) is True or bool(made_by_sdk)
