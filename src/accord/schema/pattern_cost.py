"""The worst-case time of a pattern for each character of a text.

The engine builds a table of states while it reads (a lazy DFA), with one look-up for each character. A pattern such as
`[ab]*a[ab]{500}c` has more states than any table; then the engine follows all positions of the pattern for each
character, a thousand times as slow. So this module counts the states of a pattern, up to a limit: it follows the
positions as the engine does, in order of preference, from the front and from the back, because the engine searches from
either end.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from accord.schema.pattern_engine import fits, goes_back
from accord.schema.pattern_parser import UnknownStatesError, parse
from accord.schema.pattern_size import pattern_size

FAST = 5
"""Nanoseconds for a character, with a table."""

_SLOW = 200
"""Nanoseconds for a character of the smallest pattern without a table."""
_NARROW_STATES, _NARROW = 8, 1_000
"""Positions of each state of a pattern whose table may be too small for its states, and nanoseconds for a character:
to add a state, or to follow the positions."""
BACKTRACKING = 150
"""Nanoseconds for a character, where each part of a pattern is tried in turn: with look-around or back-references."""
_TABLE_BYTES = 1 << 10
"""Size up to which compiled patterns always have few states."""
_WORD_BOUNDARY = re.compile(r"\\[bB<>]")
"""Word boundaries: for a text that is not ASCII, the engine has no table of a pattern with these."""
_MAX_STATES = 256
"""Limit of the states per characters; the engine reads bytes, and needs a few times as many. It keeps thousands."""
_MAX_STEPS = 150_000
"""Limit of the positions followed for all patterns of one schema: 75 ms. Further patterns count as slow."""
_MAX_POSITIONS = 10_000

_Ranges = tuple[tuple[int, int], ...]
_CATEGORIES: dict[str, _Ranges] = {
    "DIGIT": ((48, 57),),
    "WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "SPACE": ((9, 13), (32, 32), (160, 160), (5760, 5760), (8192, 8202), (8232, 8233), (12288, 12288), (65279, 65279)),
}
_KNOWN_FLAGS = re.UNICODE | re.IGNORECASE | re.DOTALL
_OTHER_CASES = {"s": 0x17F, "k": 0x212A}
"""Characters beside the letters of ASCII that are the same as one of them, but for the case."""
_BEGINNING = ("AT_BEGINNING", "AT_BEGINNING_STRING")
_END = ("AT_END", "AT_END_STRING")


class PatternCosts:
    """The costs of the patterns of one schema; each pattern is measured once."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._steps = _MAX_STEPS

    def nanoseconds(self, pattern: str) -> int:
        """Return the longest time of a pattern for a character, in nanoseconds, if it does not backtrack."""
        return max(self.table_nanoseconds(pattern), BACKTRACKING if goes_back(pattern) else 0)

    def table_nanoseconds(self, pattern: str) -> int:
        """Return the longest time of those parts of a pattern that the engine can have a table of."""
        if pattern not in self._known:
            self._known[pattern] = self._measure(pattern)
        return self._known[pattern]

    def _measure(self, pattern: str) -> int:
        without_table = nanoseconds_without_table(pattern)
        if _WORD_BOUNDARY.search(pattern) is not None:
            return without_table
        if pattern_size(pattern).bytes <= 16 * _TABLE_BYTES and fits(pattern, _TABLE_BYTES):
            return FAST
        try:
            return min(without_table, self._follow(pattern))
        except UnknownStatesError:
            return without_table

    def _follow(self, pattern: str) -> int:
        """Return the longest time of a pattern by its states. Raises `UnknownStatesError`."""
        parsed = parse(pattern)
        if parsed.state.flags & ~_KNOWN_FLAGS:
            raise UnknownStatesError
        pending, most = [parsed], 0
        while pending:
            part = pending.pop()
            for backwards in (False, True):
                machine = _Machine(part, backwards, is_part=part is not parsed)
                for steps in machine.follow():
                    self._steps -= steps
                    if self._steps < 0:
                        raise UnknownStatesError
                most = max(most, machine.states)
            pending += machine.looks
        return FAST if most <= _MAX_STATES else _NARROW


def nanoseconds_without_table(pattern: str) -> int:
    """Return the longest time of a pattern for a character, where the engine follows all positions."""
    return max(_SLOW, pattern_size(pattern).nanoseconds)


class _Machine:
    """A pattern as positions: each reads a character, or leads to others at once, in order of preference. The contents
    of look-around are separate, in `looks`: the engine matches them by themselves."""

    _MATCH, _DEAD = 0, 1

    def __init__(self, parsed: Any, backwards: bool, *, is_part: bool) -> None:
        self.looks: list[Any] = []
        self.states: int = 0
        """The number of states, after `follow`."""
        self._backwards = backwards
        self._flags: int = parsed.state.flags
        self._classes: dict[int, _Ranges] = {}
        self._sets: dict[tuple[str, int], _Ranges] = {}
        self._targets: list[tuple[int, ...]] = [(), ()]
        self._only_at_start: set[int] = set()
        self._is_part = is_part  # it is matched where it stands, and not searched for
        self._left = _MAX_POSITIONS
        self._start = self._sequence(parsed, self._MATCH)

    def follow(self) -> Iterator[int]:
        """Follow all texts, and yield the number of positions of each step. Raise `UnknownStatesError`."""
        ranges = {bound for each in self._classes.values() for low, high in each for bound in (low, high + 1)}
        characters = sorted({0, *ranges} - {sys.maxunicode + 1})
        different = set(self._classes.values())
        yield len(different) * len(characters)
        characters = _representatives(different, characters)
        members = {each: frozenset(_members(each, characters)) for each in different}
        reads = {at: members[each] for at, each in self._classes.items()}
        restart = () if self._backwards or self._is_part else (self._start,)
        state, _ = self._closure((self._start,), at_start=True)
        seen, pending, widest = {state}, [state], len(state)
        while pending:
            state = pending.pop()
            if self._MATCH in state:  # the search ends here
                continue
            for character in characters:
                reached = [self._targets[at][0] for at in state if character in reads.get(at, ())]
                state_after, steps = self._closure((*reached, *restart), at_start=False)
                yield 1 + len(state) + steps
                if state_after not in seen:
                    seen.add(state_after)
                    pending.append(state_after)
                    widest = max(widest, len(state_after))
            if len(seen) > _MAX_STATES and widest > _NARROW_STATES:
                raise UnknownStatesError
        self.states = len(seen)

    def _closure(self, positions: Iterable[int], *, at_start: bool) -> tuple[tuple[int, ...], int]:
        """Return the positions that read, or match, in order of preference, and how many steps led to them."""
        seen: dict[int, None] = {}
        pending, steps = [*positions][::-1], 0
        while pending:
            at = pending.pop()
            steps += 1
            if at not in seen and (at_start or at not in self._only_at_start):
                seen[at] = None
                if at not in self._classes:
                    pending += self._targets[at][::-1]
        return tuple(at for at in seen if at in self._classes or at == self._MATCH), steps

    def _sequence(self, parsed: Any, after: int) -> int:
        """Add the positions of a part, from the last one; return the first position."""
        items = list(parsed)
        for op, value in items if self._backwards else reversed(items):
            after = self._item(str(op), value, after)
        return after

    def _item(self, op: str, value: Any, after: int) -> int:
        match op:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                at = self._add((after,))
                key = op, value if isinstance(value, int) else id(value)
                if key not in self._sets:  # a repetition reads the same set often
                    self._sets[key] = _ranges(op, value, self._flags)
                self._classes[at] = self._sets[key]
                return at
            case "SUBPATTERN" if not value[1] and not value[2]:
                return self._sequence(value[3], after)
            case "BRANCH":
                return self._add(tuple(self._sequence(each, after) for each in value[1]))
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeat(value, after, lazy=op == "MIN_REPEAT")
            case "AT":
                return self._anchor(str(value), after)
            case "ASSERT" | "ASSERT_NOT":
                self._is_part = True
                self.looks.append(value[1])
                return after
            case "GROUPREF":
                self._is_part = True
                return after
        raise UnknownStatesError

    def _repeat(self, value: tuple[int, int, Any], after: int, *, lazy: bool) -> int:
        low, high, inner = value
        unbounded = str(high) == "MAXREPEAT"
        at = after
        if unbounded:
            at = self._add(())
            self._targets[at] = self._choice(self._sequence(inner, at), after, lazy)
        for _ in range(0 if unbounded else int(high) - low):
            at = self._add(self._choice(self._sequence(inner, at), after, lazy))
        for _ in range(low):
            self._take()
            at = self._sequence(inner, at)
        return at

    def _choice(self, inside: int, after: int, lazy: bool) -> tuple[int, ...]:
        return (after, inside) if lazy else (inside, after)

    def _anchor(self, name: str, after: int) -> int:
        first, last = (_END, _BEGINNING) if self._backwards else (_BEGINNING, _END)
        if name in first:
            at = self._add((after,))
            self._only_at_start.add(at)
            return at
        if name in last:  # nothing can follow
            return self._DEAD
        raise UnknownStatesError

    def _add(self, targets: tuple[int, ...]) -> int:
        self._take()
        self._targets.append(targets)
        return len(self._targets) - 1

    def _take(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise UnknownStatesError


def _ranges(op: str, value: Any, flags: int) -> _Ranges:
    """Return the characters of a set."""
    if op == "ANY":
        return _complement(() if flags & re.DOTALL else ((10, 10),))
    items = [(str(kind), each) for kind, each in value] if op == "IN" else [("LITERAL", value)]
    inside = [each for kind, item in items if kind != "NEGATE" for each in _item_ranges(kind, item)]
    if flags & re.IGNORECASE:
        inside += [each for low, high in inside for each in _other_case(low, high)]
    outside = _complement(inside)
    return outside if op == "NOT_LITERAL" or items[0][0] == "NEGATE" else _complement(outside)


def _item_ranges(kind: str, item: Any) -> _Ranges:
    if kind == "RANGE":
        return (item,)
    if kind == "LITERAL":
        return ((item, item),)
    name = str(item).removeprefix("CATEGORY_")
    known = _CATEGORIES.get(name.removeprefix("NOT_"))
    if kind != "CATEGORY" or known is None:
        raise UnknownStatesError
    return _complement(known) if name.startswith("NOT_") else known


def _other_case(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield the same letters in the other case. Raises `UnknownStatesError` for characters beyond ASCII."""
    if high > 127:
        raise UnknownStatesError
    for first, last, other in ((ord("a"), ord("z"), -32), (ord("A"), ord("Z"), 32)):
        if low <= last and first <= high:
            yield max(low, first) + other, min(high, last) + other
    for letter, other in _OTHER_CASES.items():
        if low <= ord(letter) <= high or low <= ord(letter.upper()) <= high:
            yield other, other


def _complement(ranges: Sequence[tuple[int, int]]) -> _Ranges:
    complement, low = [], 0
    for first, last in sorted(ranges):
        if first > low:
            complement.append((low, first - 1))
        low = max(low, last + 1)
    return (*complement, (low, sys.maxunicode)) if low <= sys.maxunicode else tuple(complement)


def _members(ranges: _Ranges, characters: list[int]) -> Iterator[int]:
    for low, high in ranges:
        yield from characters[bisect_left(characters, low) : bisect_left(characters, high + 1)]


def _representatives(classes: Iterable[_Ranges], characters: list[int]) -> list[int]:
    """Return one character for all that are in the same sets."""
    belongs: dict[int, list[int]] = {character: [] for character in characters}
    for number, each in enumerate(classes):
        for character in _members(each, characters):
            belongs[character].append(number)
    return sorted({tuple(sets): character for character, sets in belongs.items()}.values())
