"""Search for a text in the entries of a session file, in blocks: memory does not grow with the file.

Letters of ASCII match in both cases. A text that JSON may write with escapes is searched for in both forms.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from accord.inspector.traffic.index import HTTP, TrafficIndex

_BLOCK = 1 << 20
_AFTER_CONTENT = 2
"""The closing brace and the line break after the message in a line."""


class SearchCancelled(Exception):
    """A search was replaced by another one."""


def rows_with_text(
    index: TrafficIndex, file: Path, text: str, first: int, last: int, cancelled: threading.Event
) -> set[int]:
    """Return the rows from `first` to before `last` that contain the text. Raises `SearchCancelled`, `OSError`."""
    found: set[int] = set()
    if first < last:
        end = index.places[last - 1] + index.lengths[last - 1]
        for form in _forms(text):
            with file.open("rb", buffering=0) as stream:
                _search(index, stream, form, (index.places[first], end), found, cancelled)
    return found


def _forms(text: str) -> Iterable[bytes]:
    """Return a text as it may stand in JSON, in lower case."""
    forms = (text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1])
    return {form.encode("utf-8", "replace").lower() for form in forms}


def _search(
    index: TrafficIndex,
    stream: BinaryIO,
    form: bytes,
    part: tuple[int, int],
    found: set[int],
    cancelled: threading.Event,
) -> None:
    base, end = part
    while base < end:
        if cancelled.is_set():
            raise SearchCancelled
        stream.seek(base)
        block = stream.read(min(_BLOCK + len(form) - 1, end - base))
        if not block:
            return
        _search_block(index, block.lower(), base, form, found)
        base += max(1, len(block) - len(form) + 1)


def _search_block(index: TrafficIndex, block: bytes, base: int, form: bytes, found: set[int]) -> None:
    places, count = index.places, len(index)
    at = block.find(form)
    while at >= 0:
        row = bisect_right(places, base + at, 0, count) - 1
        content = content_place(index, row)
        if row < 0:
            at = block.find(form, at + 1)
        elif base + at < content:  # in the members around the message
            at = block.find(form, content - base)
        else:
            found.add(row)
            at = block.find(form, places[row] + index.lengths[row] - base)


def content_place(index: TrafficIndex, row: int) -> int:
    """Return where the content of a row begins in the file: its message, or of another entry the whole line."""
    if row < 0 or index.kinds[row] >= HTTP:
        return 0 if row < 0 else index.places[row]
    return int(index.places[row] + index.lengths[row] - index.sizes[row] - _AFTER_CONTENT)
