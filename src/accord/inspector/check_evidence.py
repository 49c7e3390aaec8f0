"""The evidence of a finding: entries of the session file of its check, as the page shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from accord.inspector.commands import InspectorError
from accord.visible_text import visible
from accord.wire.session_file import Entry, MessageEntry, SessionFileError, SessionHeader, decode_line

MOST_CHARACTERS = 20_000
"""Characters of one entry that the page shows; the session file has the whole."""


class EntryView(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An entry of a session file."""

    number: int
    kind: str
    direction: str
    connection: int
    exchange: int
    at: float
    """Seconds since the beginning of the check."""
    text: str
    """The bytes of a message; of another entry, its fields as JSON. Hidden characters are escaped."""
    size: int
    """Bytes of it all."""
    is_shortened: bool


def read_entries(file: Path, numbers: Sequence[int]) -> list[EntryView]:
    """Return the entries with these numbers, in order. Raises `InspectorError` for a file that cannot be read.

    Takes up to a second for a file of hundreds of megabytes.
    """
    try:
        return [_view(number, entry) for number, entry in _entries(file, frozenset(numbers))]
    except OSError as exc:
        raise InspectorError(f"the messages cannot be read: {exc.strerror}", "start the check again") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, SessionFileError) as exc:
        raise InspectorError(f"the messages cannot be read: {exc}", "start the check again") from exc


def _entries(file: Path, wanted: frozenset[int]) -> Iterator[tuple[int, Entry]]:
    left = len(wanted)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, -1):  # the first line is the header
            if not left:
                return
            if number in wanted and line.endswith(b"\n"):
                entry = decode_line(line)
                assert not isinstance(entry, SessionHeader), "it is the first line"
                left -= 1
                yield number, entry


def _view(number: int, entry: Entry) -> EntryView:
    data = entry.data if isinstance(entry, MessageEntry) else _fields(entry)
    text = data[: 4 * MOST_CHARACTERS].decode("utf-8", "backslashreplace")[:MOST_CHARACTERS]
    return EntryView(
        number=number,
        kind=str(type(entry).__struct_config__.tag),
        direction=getattr(entry, "direction", ""),
        connection=entry.connection,
        exchange=getattr(entry, "exchange", 0),
        at=entry.at,
        text=visible(text),
        size=len(data),
        is_shortened=len(data) > MOST_CHARACTERS and len(text) >= MOST_CHARACTERS,
    )


def _fields(entry: Entry) -> bytes:
    """Return the fields of an entry that its view has not."""
    fields = msgspec.to_builtins(entry)
    return msgspec.json.encode(
        {key: fields[key] for key in fields.keys() - {"kind", "at", "connection"}}, order="sorted"
    )
