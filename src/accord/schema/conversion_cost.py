"""What keeps the time to convert a value linear in its size.

- The arms of a union convert the same parts of a value again. `ConvertedParts` keeps what came of each part, so that
  unions inside unions do not double the time with each level.
- Integers, and what holds them, have hashes that anyone can calculate: values that share one hash make each insertion
  into a set or a dict compare with all before it. `check_hashes` refuses them, and `check_numbers` where somebody else
  makes the sets.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from threading import local
from typing import Any

_MAX_EQUAL_HASHES = 64
"""Different values with one hash: chance gives fewer."""

_INTEGER = re.compile(rb"\d{19,4300}")
"""An integer of about 64 bits or more: of smaller ones, few share one hash."""
_UUID = re.compile(rb"[0-9A-Fa-f]{8}(?:-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}")

Outcome = tuple[Any, str | None]
"""What a value was converted to, or why it was not."""


class ConvertedParts(local):
    """The outcomes of one conversion, in its thread: by converter and value. Values are held, so that no other value
    has their ids.
    """

    def __init__(self) -> None:
        self._outcomes: dict[tuple[int, int], tuple[Any, Outcome]] | None = None

    def outcome(self, converter: object, value: Any, find: Callable[[Any], Outcome]) -> Outcome:
        """Return what `find` returns for the value; of an array or an object it is called once in a conversion."""
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
"""Those of the conversion that this thread is at."""


def check_hashes(values: Iterable[Any]) -> None:
    """Raise `ValueError` for more than 64 different values with one hash, `TypeError` for one without a hash."""
    values = list(values)
    counts = Counter(map(hash, values))
    common = {each for each, count in counts.items() if count > _MAX_EQUAL_HASHES}
    if not common:
        return
    different: dict[int, list[Any]] = {each: [] for each in common}
    for value in values:
        same = different.get(hash(value))
        if same is None or value in same:
            continue
        same.append(value)
        if len(same) > _MAX_EQUAL_HASHES:
            raise ValueError(f"More than {_MAX_EQUAL_HASHES} different values share one hash")


def check_numbers(text: bytes) -> None:
    """Raise `ValueError` for JSON with more than 64 different integers, or UUIDs, that share one hash."""
    if len(text) < _MAX_EQUAL_HASHES * 19:
        return
    check_hashes(map(int, set(_INTEGER.findall(text))))
    check_hashes(int(each, 16) for each in {each.replace(b"-", b"") for each in _UUID.findall(text)})
