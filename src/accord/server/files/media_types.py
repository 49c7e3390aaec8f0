"""Detection of a file's media type, by its suffix and its first bytes, and of text.

The system's tables are not read, so that a server returns the same media types on every machine.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from functools import cache

_MORE = {
    ".aac": "audio/aac",
    ".avif": "image/avif",
    ".flac": "audio/flac",
    ".jsonl": "application/jsonl",
    ".m4a": "audio/mp4",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".ndjson": "application/x-ndjson",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".rst": "text/x-rst",
    ".toml": "application/toml",
    ".ts": "text/x-typescript",
    ".wav": "audio/wav",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
"""Media types that Python lacks, or for which it has an unusual one."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"%PDF-", "application/pdf"),
    (b"PK\3\4", "application/zip"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}
_BRANDS = {b"avif": "image/avif", b"M4A ": "audio/mp4"}

BYTES = "application/octet-stream"
_NEVER_TEXT = ("image/", "audio/", "video/", "font/")


@cache
def _known() -> mimetypes.MimeTypes:
    return mimetypes.MimeTypes()


def kind_of_name(name: str, more: Mapping[str, str] | None = None) -> str | None:
    """Return the media type of a name's suffix, or None if it is unknown. `more`, by suffix, takes precedence."""
    base, dot, suffix = name.lower().rpartition(".")
    suffix = dot + suffix if base else ""
    if more and suffix in more:
        return more[suffix]
    if suffix in _MORE:
        return _MORE[suffix]
    kind, packed = _known().guess_type("x" + suffix, strict=False)
    return f"application/{packed}" if packed else kind


def kind_of_data(data: bytes) -> str | None:
    """Return the media type of images, audio and a few other formats by their first bytes, or None."""
    for beginning, kind in _BEGINNINGS:
        if data.startswith(beginning):
            return kind
    if data.startswith(b"RIFF"):
        return _RIFF.get(data[8:12])
    return _BRANDS.get(data[8:12]) if data[4:8] == b"ftyp" else None


def text_of(data: bytes, kind: str | None) -> str | None:
    """Return the data as text, or None: if it is not UTF-8, contains a NUL, or has a binary media type."""
    if (kind or "").startswith(_NEVER_TEXT) and kind != "image/svg+xml":
        return None
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
