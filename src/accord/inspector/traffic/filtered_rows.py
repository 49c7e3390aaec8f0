"""The rows that match a filter, in order; new and changed rows are evaluated when they are needed."""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

from accord.inspector.traffic.exact_types import TypeCheck
from accord.inspector.traffic.filter import FilterTerm, parse_filter, pattern
from accord.inspector.traffic.index import KINDS, OTHER, OUTCOMES, TrafficIndex
from accord.inspector.traffic.text_search import SearchCancelled, rows_with_text

_MESSAGES = range(OTHER + 1)
_STEP = 2_000
"""Rows that are evaluated between two looks whether the search was cancelled."""


class FilteredRows:
    """The rows of one filter. Raises `FilterError`."""

    def __init__(self, text: str, index: TrafficIndex, file: Path, types: TypeCheck) -> None:
        self._terms = parse_filter(text)
        self._index = index
        self._file = file
        self._types = types
        self._rows: array[int] = array("I")
        self._evaluated = 0
        self._changes = 0

    def update(self, cancelled: threading.Event) -> array[int]:
        """Return the rows that match now. Raises `SearchCancelled`, `OSError`."""
        index, count = self._index, len(self._index)
        changed = sorted({row for row in index.changes[self._changes :] if row < self._evaluated})
        self._changes = len(index.changes)
        if changed:
            self._replace(changed, self._matching(changed, cancelled))
        if not self._terms:
            self._rows.extend(range(self._evaluated, count))
        else:
            self._rows.extend(self._matching(range(self._evaluated, count), cancelled))
        self._evaluated = count
        return self._rows

    def _replace(self, changed: list[int], matching: list[int]) -> None:
        """Update the rows that changed since they were evaluated."""
        now = set(matching)
        for row in changed:
            place = bisect_left(self._rows, row)
            is_there = place < len(self._rows) and self._rows[place] == row
            if row in now and not is_there:
                self._rows.insert(place, row)
            elif row not in now and is_there:
                del self._rows[place]

    def _matching(self, rows: range | list[int], cancelled: threading.Event) -> list[int]:
        found = list(rows)
        for term in sorted(self._terms, key=_cost):
            if not found:
                break
            found = self._matching_term(term, found, cancelled)
        return found

    def _matching_term(self, term: FilterTerm, rows: list[int], cancelled: threading.Event) -> list[int]:
        if not term.key:
            with_text = rows_with_text(self._index, self._file, term.values[0], rows[0], rows[-1] + 1, cancelled)
            return [row for row in rows if (row in with_text) is not term.negated]
        matches = _CONDITIONS[term.key](self._index, term, self._types)
        found: list[int] = []
        for start in range(0, len(rows), _STEP):
            if cancelled.is_set():
                raise SearchCancelled
            found += [row for row in rows[start : start + _STEP] if matches(row) is not term.negated]
        return found


def _cost(term: FilterTerm) -> int:
    return 2 if term.key == "type" else 1 if not term.key else 0


# --- conditions ----------------------------------------------------------------------------------------------------

_Matches = Callable[[int], bool]


def _texts(index: TrafficIndex, term: FilterTerm, types: TypeCheck) -> _Matches:
    column = index.methods if term.key == "method" else index.names
    patterns = [pattern(value) for value in term.values]
    numbers = column.find(lambda text: any(each.match(text) for each in patterns))
    of_rows = column.numbers
    return lambda row: of_rows[row] in numbers


def _ids(index: TrafficIndex, term: FilterTerm, types: TypeCheck) -> _Matches:
    values, ids = set(term.values), index.ids
    return lambda row: str(ids[row]).lower() in values and ids[row] is not None


def _kinds(index: TrafficIndex, term: FilterTerm, types: TypeCheck) -> _Matches:
    numbers = {KINDS.index(value) for value in term.values if value != "message"}
    numbers |= set(_MESSAGES) if "message" in term.values else set()
    kinds = index.kinds
    return lambda row: kinds[row] in numbers


def _directions(index: TrafficIndex, term: FilterTerm, types: TypeCheck) -> _Matches:
    numbers = {("", "sent", "received").index(value) for value in term.values}
    directions = index.directions
    return lambda row: directions[row] in numbers


def _statuses(index: TrafficIndex, term: FilterTerm, types: TypeCheck) -> _Matches:
    names = {OUTCOMES.index(value) for value in term.values if value in OUTCOMES}
    classes = {int(value[0]) for value in term.values if value.endswith("xx")}
    numbers = {int(value) for value in term.values if value.lstrip("-").isdigit()}
    outcomes, codes = index.outcomes, index.codes
    if not classes and not numbers:
        return lambda row: outcomes[row] in names
    return lambda row: (
        outcomes[row] in names or codes[row] in numbers or (codes[row] > 0 and codes[row] // 100 in classes)
    )


def _types(index: TrafficIndex, term: FilterTerm, types: TypeCheck) -> _Matches:
    wanted = {value == "invalid" for value in term.values}
    return lambda row: types.is_checked(row) and bool(types.mismatch(row)) in wanted


def _quantities(index: TrafficIndex, term: FilterTerm, types: TypeCheck) -> _Matches:
    low, high = term.low, term.high
    columns: dict[str, array[int] | array[float]] = {
        "size": index.sizes,
        "at": index.times,
        "connection": index.connections,
        "span": index.row_spans,
    }
    if term.key == "row":
        return lambda row: low <= row <= high
    if term.key != "time":
        column = columns[term.key]
        return lambda row: low <= column[row] <= high
    partners, times = index.partners, index.times
    return lambda row: partners[row] >= 0 and low <= abs(times[partners[row]] - times[row]) <= high


_CONDITIONS: dict[str, Callable[[TrafficIndex, FilterTerm, TypeCheck], _Matches]] = {
    "method": _texts,
    "name": _texts,
    "id": _ids,
    "kind": _kinds,
    "direction": _directions,
    "status": _statuses,
    "type": _types,
    **dict.fromkeys(("connection", "row", "span", "time", "at", "size"), _quantities),
}
