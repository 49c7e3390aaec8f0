"""Damage in the journal (WAL) that a killed process leaves beside its SQLite file.

SQLite takes the first frame whose checksum is wrong for the end of the journal: so it is where a process was killed in
the middle of a write. Where a bit has changed, it would drop what was acknowledged after it and say nothing. The two
can be told apart: a transaction that others follow was on the disk before these began.

What changes in the last transaction alone cannot be told from a write that was not finished.
"""

from __future__ import annotations

import struct

_HEADER = 32
_FRAME = 24
_MASK = 0xFFFFFFFF

Sums = tuple[int, int]


def loses_transactions(journal: bytes) -> bool:
    """Whether SQLite would pass over a transaction of this journal that others follow."""
    if len(journal) < _HEADER:
        return False
    magic, page = struct.unpack_from(">I4xI", journal)
    order = ">" if magic & 1 else "<"
    salts = journal[16:24]
    sums = _sums(order, journal[:24], (0, 0))
    if not page or sums != struct.unpack_from(">II", journal, 24):
        return False  # the header of a journal that was about to begin anew: all before it is in the file
    intact, lost = True, False
    for at in range(_HEADER, len(journal) - _FRAME - page + 1, _FRAME + page):
        same = journal[at + 8 : at + 16] == salts  # others are left from before the journal began anew
        if intact and same:
            sums = _sums(order, journal[at + _FRAME : at + _FRAME + page], _sums(order, journal[at : at + 8], sums))
        intact = intact and same and sums == struct.unpack_from(">II", journal, at + 16)
        if same and lost:
            return True
        is_commit = journal[at + 4 : at + 8] != b"\0\0\0\0"
        lost = lost or (same and not intact and is_commit)
    return False


def _sums(order: str, data: bytes, sums: Sums) -> Sums:
    """The running checksum of SQLite's journals."""
    first, second = sums
    for one, other in struct.iter_unpack(f"{order}II", data):
        first = (first + one + second) & _MASK
        second = (second + other + first) & _MASK
    return first, second
