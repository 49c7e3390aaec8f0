"""Content of tools, prompts and models: blocks of text, images, audio and resources.

It also converts content that a revision does not have: kinds of blocks, and output that is not an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType, field

from accord.lazy_patterns import lazy_pattern
from accord.locked_cache import safe_convert
from accord.messages.base import (
    LIVES,
    Arm,
    JSONObject,
    JSONValue,
    Meta,
    Model,
    Number,
    Role,
    arms,
    bounded,
    lives,
    seen_as,
    since,
)
from accord.messages.identity import Icon
from accord.messages.revision import is_in_revision

_T = TypeVar("_T")


class Annotations(Model):
    """The audience of a value, its importance (0 to 1), and when it changed (ISO 8601)."""

    audience: list[Role] | None = None
    priority: Annotated[Number | None, bounded(ge=0, le=1)] = None
    last_modified: Annotated[str | None, since("2025-06-18")] = None


class Block(Model):
    """Base class of content with a `type`."""

    @property
    def type(self) -> str:
        """Return the kind of the block, such as "text" or "image"."""
        return str(self.__struct_config__.tag)


class TextContent(Block, tag_field="type", tag="text"):
    """Text."""

    text: str
    annotations: Annotations | None = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


class ImageContent(Block, tag_field="type", tag="image"):
    """An image; `data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


@lives(since="2025-03-26")
class AudioContent(Block, tag_field="type", tag="audio"):
    """Audio; `data` is base64."""

    data: str
    mime_type: str
    annotations: Annotations | None = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


class Resource(Model):
    """An entry of `resources/list` (server, Resources)."""

    uri: str
    name: str
    title: Annotated[str | None, since("2025-06-18")] = None
    description: str | None = None
    mime_type: str | None = None
    annotations: Annotations | None = None
    size: int | None = None
    icons: Annotated[list[Icon] | None, since("2025-11-25")] = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


@lives(since="2025-06-18")
class ResourceLink(Resource, Block, tag_field="type", tag="resource_link"):
    """A link to a resource that can be read; the resource need not be in any list."""


@arms(Arm("TextResourceContents", {"text": str}), Arm("BlobResourceContents", {"blob": str}))
class ResourceContents(Model):
    """The content of a resource: `text`, or `blob` in base64."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


class EmbeddedResource(Block, tag_field="type", tag="resource"):
    """A resource with its content."""

    resource: ResourceContents
    annotations: Annotations | None = None
    meta: Annotated[Meta | None, since("2025-06-18")] = field(default=None, name="_meta")


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource


@lives(since="2025-11-25")
class ToolUseContent(Block, tag_field="type", tag="tool_use"):
    """A request of a model to use a tool (client, Sampling)."""

    id: str
    name: str
    input: JSONObject
    meta: Meta | None = field(default=None, name="_meta")


@lives(since="2025-11-25")
class ToolResultContent(Block, tag_field="type", tag="tool_result"):
    """The result of a tool for the model (client, Sampling)."""

    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Annotated[JSONValue | UnsetType, seen_as(JSONObject, until="2026-07-28")] = UNSET
    is_error: bool | None = None
    meta: Meta | None = field(default=None, name="_meta")


SamplingMessageContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent

_BLOCKS = (
    TextContent,
    ImageContent,
    AudioContent,
    ResourceLink,
    EmbeddedResource,
    ToolUseContent,
    ToolResultContent,
)
_KNOWN = {block.__struct_config__.tag for block in _BLOCKS}


def decode_around_unknown(raw: bytes | msgspec.Raw, type_: type[_T]) -> _T:
    """Decode a value whose content has kinds of blocks that no type here describes; a newer peer may send them.

    Use it after the plain decoder has failed, because it is slower. An unknown block stays a dict, in its place, and is
    encoded unchanged. `type_` has `content`, or has `messages` with it. Raises `msgspec.ValidationError` if anything
    else is invalid.
    """
    hidden: list[JSONObject | None] = []

    def hide(block: Any) -> Any:
        known = not isinstance(block, dict) or block.get("type") in _KNOWN
        hidden.append(None if known else block)
        return block if known else {"type": "text", "text": ""}

    data = msgspec.json.decode(raw)
    for holder in _holders(data):
        holder["content"] = _map_content(holder["content"], hide)
    value = safe_convert(data, type_)
    found = iter(hidden)
    restored: _T = _restore(value, lambda block: next(found) or block)
    return restored


def _holders(data: Any) -> Iterator[JSONObject]:
    if isinstance(data, dict):
        inner = data.get("messages")
        for holder in (data, *(inner if isinstance(inner, list) else ())):
            if isinstance(holder, dict) and "content" in holder:
                yield holder


def _restore(value: Any, restore: Callable[[Any], Any]) -> Any:
    if hasattr(value, "messages"):
        return msgspec.structs.replace(value, messages=[_restore(each, restore) for each in value.messages])
    return msgspec.structs.replace(value, content=_map_content(value.content, restore))


def _map_content(content: Any, change: Callable[[Any], Any]) -> Any:
    return [change(block) for block in content] if isinstance(content, list) else change(content)


def audio_as_resource(block: AudioContent) -> EmbeddedResource:
    """Return audio for a revision without it: the same bytes as an embedded resource."""
    return EmbeddedResource(
        resource=ResourceContents(uri="data:", mime_type=block.mime_type, blob=block.data),
        annotations=block.annotations,
    )


def link_as_text(block: ResourceLink) -> TextContent:
    """Return a link for a revision without it: its name and URI as text."""
    title = block.title or block.name
    about = f": {block.description}" if block.description else ""
    return TextContent(text=f"[{title}]({block.uri}){about}", annotations=block.annotations)


_ADAPTERS: dict[type, Any] = {AudioContent: audio_as_resource, ResourceLink: link_as_text}


def adapt_content(blocks: Sequence[Any], revision: str) -> list[Any]:
    """Return `blocks` in kinds that `revision` has, without loss of content."""
    return [_adapt(block, revision) for block in blocks]


def _adapt(block: Any, revision: str) -> Any:
    adapter = _ADAPTERS.get(type(block))
    life = LIVES.get(type(block))
    if adapter is None or life is None or is_in_revision(revision, life.since, life.until):
        return block
    return adapter(block)


_WRAPS = "x-fastmcp-wrap-result"
"""The mark of a schema that only wraps a value; other implementations read and write it too."""
_SDK_TITLE = lazy_pattern(r"[a-z_]\w*Output")


def wrap_schema(schema: JSONObject) -> JSONObject:
    """Return the schema of `{"result": value}`, with a mark, for the schema of `value`, where the root must be an
    object."""
    inner = dict(schema)
    defs = {"$defs": inner.pop("$defs")} if "$defs" in inner else {}
    return {"type": "object", "properties": {"result": inner}, "required": ["result"], _WRAPS: True, **defs}


def is_wrapper(schema: JSONObject | None) -> bool:
    """Return whether a schema is marked by `wrap_schema`. A user's own object with the only key "result" is not.

    The official SDK sets no mark, but names its wrappers after the function: "forecastOutput", unlike any class name.
    """
    if schema is None:
        return False
    title = schema.get("title")
    made_by_sdk = isinstance(title, str) and _SDK_TITLE.fullmatch(title) and schema.get("required") == ["result"]
    return schema.get(_WRAPS) is True or bool(made_by_sdk)
