"""Values that handlers return as content: media, structured data together with content, and cache hints (2026-07-28,
server, Caching).
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
    """A value that a handler returns in place of content; see `media`."""

    @abstractmethod
    def to_content(self) -> ImageContent | AudioContent | EmbeddedResource:
        """Return the content block to send."""

    @abstractmethod
    def to_contents(self, uri: str, mime_type: str | None = None) -> ResourceContents:
        """Return the contents of the resource at `uri`."""


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
    """The time that clients may cache a result. `ttl`: seconds that the result is fresh; 0 means immediately stale.

    `scope`: "public" if the result is the same for every user, so that shared caches may serve it to others; otherwise
    "private". Raises `ValueError` for a time that is negative or not finite.
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
        """The time to live in milliseconds, as it is sent."""
        return round(self.ttl * 1000)


NO_CACHE = CacheHint()
"""The hint of results without one: "default of `0` (immediately stale)"."""
