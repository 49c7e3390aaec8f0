"""Images, audio and files as return values of a tool, a prompt or a resource.

    @server.tool
    def plot(city: str) -> Image:
        return Image(path=draw(city))

A file is read when the value is created: in the function, where its errors belong, in the thread of a plain `def`, and
while a temporary file still exists.
"""

from __future__ import annotations

import os
import re
from binascii import b2a_base64
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from accord.messages.content import Annotations, AudioContent, EmbeddedResource, ImageContent, ResourceContents
from accord.server.core.content import AsContent
from accord.server.files.media_types import BYTES, kind_of_data, kind_of_name, text_of
from accord.server.files.root import FileTooLarge, read_file

MOST = 32 << 20
"""The maximum size of one image, audio or file in bytes: in base64 they still fit into a message that clients
accept.
"""


_FORMAT = re.compile(r"[\w!#$&^.+-]+(/[\w!#$&^.+-]+)?( ?;[\x20-\x7e]*)?", re.ASCII).fullmatch
"""A file name extension or a media type (RFC 6838, 4.2), optionally with parameters."""


class Media(AsContent):
    """Data with a media type, from `path` or `data`.

    `format` is a file name extension ("png", "wav", "csv") or a media type ("image/png"); without it, the first bytes
    and the extension of the path determine the type. Raises `ValueError` for neither or both of `path` and `data`, for
    an invalid format, and for more than 32 MiB; `TypeError` for data that is not bytes; `OSError` for a file that
    cannot be read.
    """

    _family: ClassVar[str] = ""
    _default: ClassVar[str] = BYTES

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        data: bytes | None = None,
        format: str | None = None,
        annotations: Annotations | None = None,
    ) -> None:
        self.path: Path | None = None if path is None else Path(path).expanduser()
        """The file it was read from."""
        self.data: bytes = self._data(self.path, data)
        """The content."""
        self.mime_type: str = self._kind(format)
        """Its media type."""
        self.annotations: Annotations | None = annotations
        """The audience and the priority."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.mime_type}: {len(self.data):,} bytes>"

    def to_contents(self, uri: str, mime_type: str | None = None) -> ResourceContents:
        """Return the contents of the resource at `uri`: text, or bytes if it is not text."""
        kind = mime_type or self.mime_type
        text = text_of(self.data, kind)
        if text is not None:
            return ResourceContents(uri=uri, mime_type=kind, text=text)
        return ResourceContents(uri=uri, mime_type=kind, blob=self._base64())

    def to_data_uri(self, mime_type: str | None = None) -> str:
        """Return the data as a `data:` URI, for an icon or a page."""
        return f"data:{mime_type or self.mime_type};base64,{self._base64()}"

    def _data(self, path: Path | None, data: bytes | None) -> bytes:
        name = type(self).__name__
        if (path is None) == (data is None):
            raise ValueError(f"{name} takes either path= or data=")
        if data is not None and not isinstance(data, bytes | bytearray | memoryview):
            raise TypeError(f"{name}(data=...) takes bytes, not {type(data).__name__}; a file is given as path")
        try:
            found = read_file(path, MOST) if path is not None else bytes(data or b"")
        except FileTooLarge:
            found = None
        if found is None or len(found) > MOST:
            raise ValueError(f"{name} holds more than {MOST >> 20} MiB; return a resource link instead")
        return found

    def _kind(self, format: str | None) -> str:
        if format is not None:
            return self._kind_of_format(format.lower().removeprefix("."))
        found = (kind_of_data(self.data), kind_of_name(self.path.name) if self.path else None)
        fitting = (kind for kind in found if kind and kind.startswith(self._family))
        return next(fitting, BYTES if self.path else self._default)

    def _kind_of_format(self, format: str) -> str:
        if not _FORMAT(format):
            raise ValueError(f"{format!r:.100} is not a format: give a suffix ('png') or a media type ('image/png')")
        if "/" in format:
            return format
        kind = kind_of_name(f"x.{format}")
        return kind if kind and kind.startswith(self._family) else f"{self._family or 'application/'}{format}"

    def _base64(self) -> str:
        return b2a_base64(self.data, newline=False).decode("ascii")


class Image(Media):
    """An image: `Image(path="plot.png")`, `Image(data=png)`, `Image(data=pixels, format="webp")`."""

    _family = "image/"
    _default = "image/png"

    def to_image_content(self, mime_type: str | None = None, annotations: Annotations | None = None) -> ImageContent:
        """Return the content block to send."""
        return ImageContent(
            data=self._base64(), mime_type=mime_type or self.mime_type, annotations=annotations or self.annotations
        )

    def to_content(self) -> ImageContent:
        """As `to_image_content`."""
        return self.to_image_content()


class Audio(Media):
    """Audio: `Audio(path="hello.wav")`, `Audio(data=spoken, format="mp3")`."""

    _family = "audio/"
    _default = "audio/wav"

    def to_audio_content(self, mime_type: str | None = None, annotations: Annotations | None = None) -> AudioContent:
        """Return the content block to send; 2024-11-05 receives an embedded resource instead."""
        return AudioContent(
            data=self._base64(), mime_type=mime_type or self.mime_type, annotations=annotations or self.annotations
        )

    def to_content(self) -> AudioContent:
        """As `to_audio_content`."""
        return self.to_audio_content()


class File(Media):
    """A file of any type: `File(path="report.pdf")`, `File(data=rows, format="csv", name="rows")`.

    It is embedded as text if it is text, else as bytes. `name` is the last segment of its URI.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        data: bytes | None = None,
        format: str | None = None,
        name: str | None = None,
        annotations: Annotations | None = None,
    ) -> None:
        super().__init__(path, data, format, annotations)
        self._suffix = (format or "").lower().removeprefix(".").rpartition("/")[2]
        self._name = name

    @property
    def uri(self) -> str:
        """The URI of its path, or `file:///` and its name."""
        if self._name is None and self.path is not None:
            return self.path.resolve().as_uri()
        name = (self._name or "").rpartition("/")[2]
        if name.strip(".") == "":  # no name, or a parent folder
            name = "resource"
        if "." not in name and self._suffix:
            name += f".{self._suffix}"
        return "file:///" + quote(name, errors="replace")

    def to_resource_content(
        self, mime_type: str | None = None, annotations: Annotations | None = None
    ) -> EmbeddedResource:
        """Return the content block to send."""
        contents = self.to_contents(self.uri, mime_type)
        return EmbeddedResource(resource=contents, annotations=annotations or self.annotations)

    def to_content(self) -> EmbeddedResource:
        """As `to_resource_content`."""
        return self.to_resource_content()

    def _kind(self, format: str | None) -> str:
        kind = super()._kind(_TEXTS.get(format.lower(), format) if format else None)
        return "text/plain" if kind == BYTES and text_of(self.data, None) is not None else kind


_TEXTS = {"plain": "text/plain", "text": "text/plain"}
