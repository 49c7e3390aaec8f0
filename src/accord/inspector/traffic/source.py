"""`TrafficSource`: one session that the page shows, live or from a file, with the filters that pages use."""

from __future__ import annotations

import asyncio
import threading
from array import array
from collections import OrderedDict
from functools import partial
from pathlib import Path

from accord.inspector.traffic.entry_reader import EntryReader
from accord.inspector.traffic.exact_types import TypeCheck
from accord.inspector.traffic.filtered_rows import FilteredRows
from accord.inspector.traffic.index import TrafficIndex
from accord.testing.recording import is_transcript, read_recorded
from accord.wire.session_file import LINE_BYTES, SessionFileError, encode_line

_MAX_FILTERS = 8
_MAX_VIEWS = 50


class TrafficSource:
    """The traffic of one session file. `remark` says what is missing in it."""

    def __init__(self, name: str, file: Path, index: TrafficIndex, remark: str = "") -> None:
        self.name: str = name
        self.file: Path = file
        self.index: TrafficIndex = index
        self.remark: str = remark
        self.reader: EntryReader = EntryReader(index, file)
        self.types: TypeCheck = TypeCheck(index, self.reader)
        self._filters: OrderedDict[str, FilteredRows] = OrderedDict()
        self._searches: OrderedDict[str, threading.Event] = OrderedDict()
        self._lock = threading.Lock()

    async def rows(self, text: str, view: str = "") -> array[int]:
        """Return the rows that match a filter, in a thread; a further search of the same view cancels this one.

        Raises `FilterError`, `SearchCancelled`, `OSError`.
        """
        filtered = self._filters.get(text)
        if filtered is None:
            filtered = self._filters[text] = FilteredRows(text, self.index, self.file, self.types)
            if len(self._filters) > _MAX_FILTERS:
                self._filters.popitem(last=False)
        self._filters.move_to_end(text)
        return await asyncio.to_thread(self._update, filtered, self._begin_search(view))

    def _begin_search(self, view: str) -> threading.Event:
        earlier = self._searches.pop(view, None)
        if earlier is not None:
            earlier.set()
        search = self._searches[view] = threading.Event()
        if len(self._searches) > _MAX_VIEWS:
            self._searches.popitem(last=False)
        return search

    def _update(self, filtered: FilteredRows, cancelled: threading.Event) -> array[int]:
        with self._lock:
            return filtered.update(cancelled)


async def open_source(name: str, file: Path) -> TrafficSource:
    """Read a session file, or a transcript. Raises `SessionFileError`, `OSError`.

    A last line without its end is left out, and the remark says so.
    """
    return await asyncio.to_thread(_read, name, file)


def _read(name: str, file: Path) -> TrafficSource:
    with file.open("rb") as stream:
        start = stream.peek(1)
    if not start:
        raise SessionFileError("it is empty")
    if is_transcript(start[:100]):
        _convert(file)
    index = TrafficIndex()
    remark = ""
    with file.open("rb") as stream:
        place = 0
        for number, line in enumerate(iter(partial(stream.readline, LINE_BYTES + 2), b""), 1):
            if len(line) > LINE_BYTES + 1:
                raise SessionFileError(f"line {number} is longer than {LINE_BYTES:,} bytes")
            try:
                if line.strip():
                    index.add_line(line, place)
            except SessionFileError as exc:
                if line.endswith(b"\n"):
                    raise SessionFileError(f"line {number} is invalid: {exc}") from None
                remark = f"the last line ({number}) is incomplete; it is left out"
            place += len(line)
    if index.header is None:
        raise SessionFileError("it has no header, and is no session file")
    if not index.is_complete:
        remark = f"it has more than {len(index):,} entries; the rest is not shown"
    return TrafficSource(name, file, index, remark)


def _convert(file: Path) -> None:
    """Replace a transcript by a session file with the same messages. Raises `SessionFileError`."""
    try:
        session = read_recorded(file)
    except ValueError as exc:
        raise SessionFileError(f"it is neither a session file nor a transcript: {exc}") from exc
    file.write_bytes(b"".join(encode_line(each) for each in (session.header, *session.entries)))
