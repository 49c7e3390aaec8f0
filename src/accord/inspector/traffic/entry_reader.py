"""The bytes of the entries of a session file, read from the file when they are needed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from accord.inspector.traffic.index import HTTP, TrafficIndex
from accord.inspector.traffic.text_search import content_place
from accord.lazy_patterns import lazy_pattern
from accord.visible_text import single_line, truncate
from accord.wire.session_file import (
    Entry,
    HTTPEntry,
    LostEntry,
    MessageEntry,
    RemarkEntry,
    SkippedEntry,
    StderrEntry,
    UnansweredEntry,
)

_decode: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)
_PREVIEW_BYTES = 2_048
_PREVIEW_CHARACTERS = 300
_DECODED_BYTES = 16_384
"""Bytes of the longest entry that is decoded for its preview; of a longer one, the beginning is shown."""
_SCHEME_AND_HOST = lazy_pattern(r"^[a-z]+://[^/]*")
_LEFT_OUT = ("_meta", "resultType", "ttlMs", "cacheScope")


class _MessageContent(msgspec.Struct):
    """The member of a message that has its content."""

    params: dict[str, msgspec.Raw] = {}
    result: dict[str, msgspec.Raw] = {}
    error: dict[str, msgspec.Raw] = {}


class EntryReader:
    """The entries of one file by row."""

    def __init__(self, index: TrafficIndex, file: Path) -> None:
        self._index = index
        self._file = file

    def line(self, row: int) -> bytes:
        """Return the line of a row. Raises `OSError`."""
        return self._read(self._index.places[row], self._index.lengths[row])

    def entry(self, row: int) -> Entry:
        """Return the entry of a row. Raises `OSError`, and `msgspec.DecodeError` if the file was changed."""
        return _decode.decode(self.line(row))

    def message(self, row: int) -> bytes:
        """Return the bytes of a message; empty for another entry, and for an invalid line. Raises `OSError`."""
        try:
            entry = self.entry(row)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the index reads less of a line
            return b""
        return entry.data if isinstance(entry, MessageEntry) else b""

    def preview(self, row: int) -> str:
        """Return in one line what a row says beside its method: arguments, a result, a line of stderr. Raises
        `OSError`.
        """
        index = self._index
        if index.lengths[row] <= _DECODED_BYTES:
            with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # the index reads less of a line
                return truncate(single_line(_content_of(self.entry(row))), _PREVIEW_CHARACTERS)
        is_message = index.kinds[row] < HTTP
        start = content_place(index, row) if is_message else index.places[row]
        end = index.places[row] + index.lengths[row] - (2 if is_message else 1)
        raw = self._read(start, min(_PREVIEW_BYTES, end - start))
        return truncate(single_line(raw.decode("utf-8", "replace")), _PREVIEW_CHARACTERS)

    def _read(self, place: int, size: int) -> bytes:
        with self._file.open("rb", buffering=0) as stream:
            stream.seek(place)
            return stream.read(size)


def _content_of(entry: Entry) -> str:
    match entry:
        case StderrEntry() | RemarkEntry():
            return entry.text
        case LostEntry() | SkippedEntry() | UnansweredEntry():
            return entry.reason
        case HTTPEntry():
            return _SCHEME_AND_HOST.sub("", entry.url)  # the whole URL is its name, and the status has a column
        case MessageEntry():
            return _content_of_message(entry.data).decode("utf-8", "replace")
        case _:
            return ""


def _content_of_message(data: bytes) -> bytes:
    """Return the arguments, else the params, the result or the error of a message; all of it if it has none."""
    try:
        message = msgspec.json.decode(data, type=_MessageContent)
    except (msgspec.MsgspecError, RecursionError):
        return data
    found = {**message.params, **message.result, **message.error}
    arguments = found.get("arguments")
    if arguments is not None:
        return bytes(arguments)
    shown = {name: value for name, value in found.items() if name not in _LEFT_OUT}
    return msgspec.json.encode(shown) if shown else b""
