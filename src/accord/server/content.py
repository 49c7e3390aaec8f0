"""What a value that is content has to say, so that whoever packs results need not know the kinds there are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.messages.content import AudioContent, EmbeddedResource, ImageContent, ResourceContents


class AsContent(ABC):
    """A value that a handler returns in the place of content; see `media`."""

    @abstractmethod
    def to_content(self) -> ImageContent | AudioContent | EmbeddedResource:
        """The block of content that it is sent as."""

    @abstractmethod
    def to_contents(self, uri: str, mime_type: str | None = None) -> ResourceContents:
        """The same as what the resource at `uri` holds."""
