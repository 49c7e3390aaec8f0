"""The match of messages with the exact types of their revision, as in `accord check`; computed when it is shown."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from accord.check.probes.message_log import LogEntry, decode_json
from accord.check.probes.message_validation import message_mismatches
from accord.inspector.traffic.entry_reader import EntryReader
from accord.inspector.traffic.index import NOTIFICATION, OTHER, REQUEST, RESPONSE, TrafficIndex
from accord.messages.base import JSONObject
from accord.messages.methods import Sender
from accord.visible_text import single_line, truncate
from accord.wire.transcript import RECEIVED

MAX_CHECKED = 2 << 20
"""Bytes of the largest message that is checked."""
_MEMORY = 50_000
_CHARACTERS = 500
_NOT_JSON = "this is not JSON: over stdio, a server writes only messages to stdout, and its logs to stderr"


class TypeCheck:
    """The check of the messages of one session file; its results are remembered."""

    def __init__(self, index: TrafficIndex, reader: EntryReader) -> None:
        self._index = index
        self._reader = reader
        self._mismatches: OrderedDict[int, str] = OrderedDict()

    def is_checked(self, row: int) -> bool:
        """Return whether a row can be checked: it is a message of a known revision, or is no message at all."""
        index = self._index
        kind = index.kinds[row]
        is_typed = kind in (REQUEST, RESPONSE, NOTIFICATION) and bool(index.revisions.numbers[row])
        return (is_typed or kind == OTHER) and index.sizes[row] <= MAX_CHECKED

    def mismatch(self, row: int) -> str:
        """Return what does not match; empty if the message is valid, or cannot be checked. Raises `OSError`."""
        if not self.is_checked(row):
            return ""
        known = self._mismatches.get(row)
        if known is None:
            known = self._mismatches[row] = self._find_mismatch(row)
            if len(self._mismatches) > _MEMORY:
                self._mismatches.popitem(last=False)
        return known

    def _find_mismatch(self, row: int) -> str:
        index = self._index
        raw = self._reader.message(row)
        if index.kinds[row] == OTHER:
            return "" if _is_json(raw) else _NOT_JSON
        message = decode_json(raw)
        if not isinstance(message, dict):
            return ""
        asked: dict[tuple[type, object], JSONObject] = {}
        request = index.partners[row] if index.kinds[row] == RESPONSE else -1
        if request >= 0 and index.sizes[request] <= MAX_CHECKED:
            found = decode_json(self._reader.message(request))
            id = message.get("id")
            asked = {(type(id), id): found} if isinstance(found, dict) and isinstance(id, int | str) else {}
        sender: Sender = "client" if index.is_by_client(row) else "server"
        entry = LogEntry(direction=RECEIVED, raw=raw, at=0.0, message=message)
        revision = index.revisions.text(row)
        for mismatch in message_mismatches(revision, sender, message, asked, entry):
            text = f"{mismatch.what} does not match its type in {revision}: {mismatch.why} (at {mismatch.where})"
            return truncate(single_line(text), _CHARACTERS)
        return ""


def _is_json(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
