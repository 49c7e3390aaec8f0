"""The time of a schema's patterns: whether they can check a value in time, and how often they may go back.

The states of a pattern take up to 0.1 s to count, so they are counted only for a value that could take too long if the
engine followed all positions of each pattern for each character.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from accord.errors import Mismatch
from accord.schema.cost import PATTERN, Cost
from accord.schema.pattern_cost import BACKTRACKING, PatternCosts, nanoseconds_without_table
from accord.schema.pattern_degree import captures_ahead
from accord.schema.pattern_engine import goes_back
from accord.schema.pattern_work import PatternWork, max_characters

MAX_BACKTRACKS = 1_000
"""Limit of one pattern on one text; each backtrack may take as long as reading the text once."""
_BACKTRACKED = 100_000_000
"""Nanoseconds to read texts once, times the number of backtracks of a pattern in them: 0.1 s."""
_PATTERN_TIME = 1_000_000_000
"""Nanoseconds for all patterns and texts of a value."""


class PatternTimes:
    """The times of the patterns of one schema. `slowest` is the longest for a character, in nanoseconds; `backtracks`
    is whether some of them need backtracking.
    """

    def __init__(self, schema: Any, cost: Cost, slowest: int, backtracks: bool) -> None:
        self._schema = schema
        self._cost = cost
        self._slowest = slowest
        self._backtracks = backtracks
        self._costs = PatternCosts()
        self._are_counted = False

    def allowed_backtracks(self, value: Any) -> int:
        """Return how often a pattern may go back in a text of a value: 1,000, 100, 10, or 1 times.

        Raises `Mismatch` for more text than the patterns can check in time.
        """
        most = max_characters(value) * (self._cost.nodes // PATTERN)  # patterns, with references expanded
        if not self._backtracks and most * self._slowest <= _PATTERN_TIME:
            return MAX_BACKTRACKS
        if not self._are_counted and self._estimate_fits(value):
            return MAX_BACKTRACKS
        self._are_counted = True
        may_be_slow = most * self._work.slowest > _PATTERN_TIME or self._work.degree > 1
        if may_be_slow and self._work.time(value) > _PATTERN_TIME:
            raise Mismatch("too much text for the patterns of this schema, which could take more than a second")
        allowed = _allowed(self._backtracking_work.time(value)) if self._backtracks else MAX_BACKTRACKS
        if not allowed:
            raise Mismatch("too much text for the patterns of this schema, which have look-around or back-references")
        return allowed

    def _estimate_fits(self, value: Any) -> bool:
        time = self._estimated_work.time(value)
        return time <= _PATTERN_TIME and (not self._backtracks or _allowed(time) == MAX_BACKTRACKS)

    @cached_property
    def _estimated_work(self) -> PatternWork:
        return PatternWork(self._schema, self._cost, _estimate)

    @cached_property
    def _work(self) -> PatternWork:
        return PatternWork(self._schema, self._cost, self._costs.nanoseconds)

    @cached_property
    def _backtracking_work(self) -> PatternWork:
        return PatternWork(self._schema, self._cost, self._backtracking_nanoseconds)

    def _backtracking_nanoseconds(self, pattern: str) -> int:
        """Return the time of a pattern for a character each time that it goes back; 0 if it never does."""
        if not goes_back(pattern):
            return 0
        if captures_ahead(pattern):  # the engine has no table for what groups capture
            return nanoseconds_without_table(pattern)
        return self._costs.table_nanoseconds(pattern)


def _estimate(pattern: str) -> int:
    """Return an upper bound of `PatternCosts.nanoseconds`."""
    return max(nanoseconds_without_table(pattern), BACKTRACKING)


def _allowed(nanoseconds: int) -> int:
    """Return the number of backtracks for patterns that read their texts once in this time: 1,000, 100, 10, 1, or 0."""
    limit = _BACKTRACKED // max(nanoseconds, 1)
    return next((allowed for allowed in (MAX_BACKTRACKS, 100, 10, 1) if allowed <= limit), 0)
