"""Values that a handler returns to be sent as content: media, and structured data with content beside them.

How long a client may keep what it was told (2026-07-28, server, Caching).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from accord.errors import DeclarationError

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


T_co = TypeVar("T_co", covariant=True)


class ToolOutput(Generic[T_co]):
    """Structured data and content in one result of a tool (server, Tools: Structured Content).

        @server.tool
        def chart(city: str) -> ToolOutput[Report]:
            return ToolOutput(report, content=[Image(path="chart.png")])

    The tool declares the schema of `Report` and checks `data` against it. `content` holds texts, media and blocks of
    content. The JSON of the data stands before it as text, unless `content` has a text of its own: "a tool that returns
    structured content SHOULD also return the serialized JSON in a TextContent block". `meta` is the `_meta` of the
    result. Raises `DeclarationError` for content that is no list or tuple.
    """

    __slots__ = ("content", "data", "meta")

    def __init__(self, data: T_co, content: Sequence[Any] = (), meta: Mapping[str, Any] | None = None) -> None:
        if not isinstance(content, list | tuple):
            raise DeclarationError(f"content={content!r:.100} is no list: write ToolOutput(data, content=[...])")
        self.data: T_co = data
        """The structured data."""
        self.content: Sequence[Any] = content
        """Texts, media and blocks of content that are sent beside the data."""
        self.meta: dict[str, Any] | None = None if meta is None else dict(meta)
        """The `_meta` of the result."""

    def __repr__(self) -> str:
        return f"ToolOutput({self.data!r}, content={self.content!r})"


class CacheHint(msgspec.Struct, frozen=True, kw_only=True):
    """`ttl`: seconds for which a result counts as fresh; 0 means that it is to be asked for each time.

    `scope`: "public" for what is the same for every user, so that shared caches may hand it to others; "private" for
    anything else. Raises `ValueError` for a time that is negative or no number.
    """

    ttl: float = 0
    scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        if not (self.ttl >= 0 and isfinite(self.ttl)):
            raise ValueError(f"ttl must be a number of seconds, 0 or more, not {self.ttl}")
        if self.scope not in ("public", "private"):
            raise ValueError(f'scope must be "public" or "private", not {self.scope!r}')

    @property
    def ttl_ms(self) -> int:
        """The time in milliseconds, as it travels."""
        return round(self.ttl * 1000)


NO_CACHE = CacheHint()
"""What holds where nothing is said: "default of `0` (immediately stale)"."""
