"""What kind of data a file holds: by the suffix of its name, by how it begins, and whether it is text.

The tables of the system are not read: a server says the same of a file on every machine.
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
"""What Python has no type for, or another one than people expect."""

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
    """The media type for the suffix of a name, None where there is none. `more` goes first, by suffix."""
    base, dot, suffix = name.lower().rpartition(".")
    suffix = dot + suffix if base else ""
    if more and suffix in more:
        return more[suffix]
    if suffix in _MORE:
        return _MORE[suffix]
    kind, packed = _known().guess_type("x" + suffix, strict=False)
    return f"application/{packed}" if packed else kind


def kind_of_data(data: bytes) -> str | None:
    """The media type of images, sounds and a few others by how they begin; None for all else."""
    for beginning, kind in _BEGINNINGS:
        if data.startswith(beginning):
            return kind
    if data.startswith(b"RIFF"):
        return _RIFF.get(data[8:12])
    return _BRANDS.get(data[8:12]) if data[4:8] == b"ftyp" else None


def text_of(data: bytes, kind: str | None) -> str | None:
    """The data as text; None where it is none: no UTF-8, a NUL in it, or of a kind that is no text."""
    if (kind or "").startswith(_NEVER_TEXT) and kind != "image/svg+xml":
        return None
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
