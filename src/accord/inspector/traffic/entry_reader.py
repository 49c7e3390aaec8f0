"""The bytes of the entries of a session file, read from the file when they are needed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from accord.inspector.traffic.index import HTTP, TrafficIndex
from accord.inspector.traffic.text_search import content_place
from accord.visible_text import single_line, truncate
from accord.wire.session_file import Entry, MessageEntry

_decode: msgspec.json.Decoder[Entry] = msgspec.json.Decoder(Entry)
_PREVIEW_BYTES = 2_048
_PREVIEW_CHARACTERS = 300


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
        """Return the bytes of a message; empty for another entry. Raises as `entry` does."""
        entry = self.entry(row)
        return entry.data if isinstance(entry, MessageEntry) else b""

    def preview(self, row: int) -> str:
        """Return the beginning of the content of a row in one line. Raises `OSError`."""
        index = self._index
        is_message = index.kinds[row] < HTTP
        start = content_place(index, row) if is_message else index.places[row]
        end = index.places[row] + index.lengths[row] - (2 if is_message else 1)
        raw = self._read(start, min(_PREVIEW_BYTES, end - start))
        return truncate(single_line(raw.decode("utf-8", "replace")), _PREVIEW_CHARACTERS)

    def _read(self, place: int, size: int) -> bytes:
        with self._file.open("rb", buffering=0) as stream:
            stream.seek(place)
            return stream.read(size)
