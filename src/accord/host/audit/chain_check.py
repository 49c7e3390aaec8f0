"""The check of a hash chain: what is wrong with a sequence of lines, which of them, and in which way.

`ChainCheck` reads the lines in order, and needs memory only for what is wrong.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from accord.host.audit.chain import (
    ENTRY_END,
    HEADER_START,
    MAX_ENTRY_BYTES,
    BrokenEntry,
    Link,
    entry_start,
    read_link,
)

_MAX_PROBLEMS = 1_000
"""Limit of the problems that are listed."""


class AuditProblem(msgspec.Struct, frozen=True):
    """Something that was done to a log. `number` is the entry, 0 for the header, or None for what is none of them."""

    kind: Literal["edited", "missing", "reordered", "duplicate", "cut off"]
    number: int | None
    text: str


class ChainCheck:
    """The check of one chain. Call `read` with each line, then `finish` with what follows the last line break."""

    def __init__(self) -> None:
        self.problems: list[AuditProblem] = []
        self.id: str = ""
        self.last: Link | None = None
        """The last entry in order, or the header."""
        self.incomplete: int | None = None
        """The bytes of an incomplete last entry."""
        self._expected = 0
        self._hash: str | None = ""
        """The hash that the next entry has to name; None after an entry that cannot be read."""
        self._gaps: list[tuple[int, int]] = []
        """First and last numbers of entries that have not been found yet."""
        self._broken: int | None = None
        """The first of the places just before this one that cannot be read."""

    def read(self, line: bytes) -> None:
        """Check the next line, without its line break."""
        try:
            link = read_link(line)
        except BrokenEntry as exc:
            self._add("edited", self._expected, f"{_name(self._expected)} was edited: {exc}")
            self._broken = self._expected if self._broken is None else self._broken
            self._expected += 1
            self._hash = None
            return
        if self._broken is not None and self._broken <= link.number < self._expected:
            self._expected = link.number  # no entry was edited: something else was inserted
        self._broken = None
        if link.number >= self._expected:
            self._accept(link)
        elif self._fill_gap(link.number):
            self._add("reordered", link.number, f"{_name(link.number)} stands after {_name(self._expected - 1)}")
        else:
            self._add("duplicate", link.number, f"{_name(link.number)} occurs again after {_name(self._expected - 1)}")

    def finish(self, rest: bytes = b"") -> None:
        """Check what follows the last line break, and list what is missing."""
        if rest or self._expected == 0:
            self._read_rest(rest)
        for first, last in self._gaps:
            self._add_missing(first, last)
        self._gaps.clear()
        self.problems.sort(key=lambda problem: -1 if problem.number is None else problem.number)

    def _accept(self, link: Link) -> None:
        if link.number > self._expected:
            self._add_gap(self._expected, link.number - 1)
        elif self._hash is not None and link.previous != self._hash:
            before = self._expected - 1
            text = f"{_name(before)} or {_name(link.number)} was edited: they do not fit together"
            self._add("edited", max(before, 0), text)
        if link.number == 0:
            self.id = str(link.content["id"])
        self.last, self._hash, self._expected = link, link.hash, link.number + 1

    def _add_gap(self, first: int, last: int) -> None:
        if len(self._gaps) < _MAX_PROBLEMS:
            self._gaps.append((first, last))
        else:
            self._add_missing(first, last)

    def _add_missing(self, first: int, last: int) -> None:
        names = _name(first) if first == last else f"entries {first:,} to {last:,}"
        self._add("missing", first, f"{names} {'is' if first == last else 'are'} missing")

    def _fill_gap(self, number: int) -> bool:
        for at, (first, last) in enumerate(self._gaps):
            if first <= number <= last:
                parts = ((first, number - 1), (number + 1, last))
                self._gaps[at : at + 1] = [(start, end) for start, end in parts if start <= end]
                return True
        return False

    def _read_rest(self, rest: bytes) -> None:
        """Tell an entry whose process was killed from one that was edited: the former is the beginning of an entry."""
        start = HEADER_START
        if self._expected > 0:
            start = entry_start(self._expected, self._hash) if self._hash is not None else b""
        end = ENTRY_END.search(rest)
        is_beginning = rest.startswith(start) or start.startswith(rest)
        if is_beginning and len(rest) < MAX_ENTRY_BYTES and (end is None or end.end() == len(rest)):
            self.incomplete = len(rest)
        else:
            text = f"{_name(self._expected)} was edited: it is neither whole nor the beginning of an entry"
            self._add("edited", self._expected, text)

    def _add(self, kind: Literal["edited", "missing", "reordered", "duplicate"], number: int, text: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(AuditProblem(kind, number, text))


def _name(number: int) -> str:
    return f"entry {number:,}" if number > 0 else "the header"
