"""Measures that keep the time to convert a value linear in its size.

- The arms of a union convert the same parts of a value again. `ConvertedParts` caches the outcome of each part, so
  that unions inside unions do not double the time with each level.
- Integers, and values that contain them, have hashes that anyone can calculate: with values that share one hash,
  each insertion into a set or a dict compares all earlier ones. `check_hashes` refuses them; `pydantic_types` calls it
  for the sets that pydantic creates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from threading import local
from typing import Any

MAX_EQUAL_HASHES: int = 64
"""Limit of different values with one hash: random values stay below it."""

Outcome = tuple[Any, str | None]
"""The converted value, or the reason why the conversion failed."""


class ConvertedParts(local):
    """The outcomes of one conversion, in its thread, by converter and value. It keeps references to the values, so that
    their ids are not reused."""

    def __init__(self) -> None:
        self._outcomes: dict[tuple[int, int], tuple[Any, Outcome]] | None = None

    def outcome(self, converter: object, value: Any, find: Callable[[Any], Outcome]) -> Outcome:
        """Return the result of `find` for the value; for an array or an object it is called once per conversion."""
        if not isinstance(value, (list, dict)):
            return find(value)
        if self._outcomes is not None:
            return self._outcome(self._outcomes, converter, value, find)
        self._outcomes = {}
        try:
            return self._outcome(self._outcomes, converter, value, find)
        finally:
            self._outcomes = None

    @staticmethod
    def _outcome(
        outcomes: dict[tuple[int, int], tuple[Any, Outcome]],
        converter: object,
        value: Any,
        find: Callable[[Any], Outcome],
    ) -> Outcome:
        key = id(converter), id(value)
        if key not in outcomes:
            outcomes[key] = value, find(value)
        return outcomes[key][1]


converted_parts: ConvertedParts = ConvertedParts()
"""The outcomes of the current conversion of this thread."""


def check_hashes(values: Iterable[Any]) -> None:
    """Raise `ValueError` for more than 64 different values with one hash, `TypeError` for a value without a hash."""
    values = list(values)
    counts = Counter(map(hash, values))
    common = {each for each, count in counts.items() if count > MAX_EQUAL_HASHES}
    if not common:
        return
    different: dict[int, list[Any]] = {each: [] for each in common}
    for value in values:
        same = different.get(hash(value))
        if same is None or value in same:
            continue
        same.append(value)
        if len(same) > MAX_EQUAL_HASHES:
            raise ValueError(f"More than {MAX_EQUAL_HASHES} different values share one hash")
