"""Content of messages in the kinds that models take: text, images and audio."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from accord.errors import visible
from accord.host.models.failures import ProviderFailure
from accord.messages.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    ToolResultContent,
    link_as_text,
)

ModelContent: TypeAlias = TextContent | ImageContent | AudioContent


class ContentKinds(msgspec.Struct, frozen=True):
    """The images and the audio that an API takes, by media type; for audio also the API's own name of the format."""

    api: str
    images: Collection[str] = ()
    audio: Mapping[str, str] = {}

    def has(self, block: ModelContent) -> bool:
        """Return whether the API takes the block."""
        if isinstance(block, TextContent):
            return True
        return block.mime_type.lower() in (self.images if isinstance(block, ImageContent) else self.audio)

    def check(self, block: Any) -> ModelContent:
        """Return a block of a message. Raises `ProviderFailure` if the API does not take it."""
        if isinstance(block, TextContent | ImageContent | AudioContent) and self.has(block):
            return block
        raise ProviderFailure(f"{self.api} takes no {_kind(block)}; nothing was sent")

    def convert(self, blocks: Iterable[Any]) -> list[ModelContent]:
        """Return the content of a tool's result; what the API does not take becomes a text that says so, because the
        conversation has to go on with it."""
        converted = [_plain(block) for block in blocks]
        return [block if self.has(block) else _missing(block) for block in converted]


def result_blocks(result: ToolResultContent, kinds: ContentKinds) -> list[ModelContent]:
    """Return the content of a tool's result, or its structured content if it has no other."""
    if not result.content and result.structured_content is not UNSET:
        return [TextContent(text=msgspec.json.encode(result.structured_content).decode())]
    return kinds.convert(result.content)


def data_url(block: ImageContent) -> str:
    """Return an image as a `data:` URL (RFC 2397)."""
    return f"data:{block.mime_type.lower()};base64,{block.data}"


def _plain(block: Any) -> ModelContent:
    if isinstance(block, TextContent | ImageContent | AudioContent):
        return block
    if isinstance(block, ResourceLink):
        return link_as_text(block)
    if isinstance(block, EmbeddedResource):
        return _resource(block)
    return _missing(block)


def _resource(block: EmbeddedResource) -> ModelContent:
    resource = block.resource
    kind = (resource.mime_type or "").lower()
    if resource.text is not None:
        return TextContent(text=f"[resource {resource.uri}]\n{resource.text}")
    if resource.blob is not None and kind.startswith("image/"):
        return ImageContent(data=resource.blob, mime_type=kind)
    if resource.blob is not None and kind.startswith("audio/"):
        return AudioContent(data=resource.blob, mime_type=kind)
    return TextContent(text=f"[resource {resource.uri} ({kind or 'unknown type'}) is not shown to the model]")


def _missing(block: Any) -> TextContent:
    return TextContent(text=f"[{_kind(block)} is not shown to the model]")


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else getattr(block, "type", None)
    media = getattr(block, "mime_type", None)
    return visible(f"content of kind {str(kind)[:50]}" + (f" ({media[:100]})" if media else ""))
