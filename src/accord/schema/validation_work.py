"""The work of checking a value against a schema: for each level of the value, the subschemas that check one place.

A schema within the limits of `cost` can still take minutes: 4,000 alternatives for the items of an array, and an array
of 10,000 items. An object of many properties costs one subschema for each, so places are distinguished by their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from accord.limits import Limits
from accord.schema.cost import UNEVALUATED, Cost, subschemas
from accord.schema.references import References, is_resource
from accord.schema.subschema_cost import CALLED, compared_values, has_unique_items, looks_again

MOST = 2_000_000
"""Steps that any value may take: about a second, and up to four for each of its parts."""

_STEPS = 100_000
"""Limit of the steps of the count itself, each a subschema at a place; beyond it, every place counts for the whole
schema."""

_WILD = {".": "*", "[": "[]"}
"""Subschemas for any member also check each one, and so do subschemas for any item."""

_Key = tuple[int, int]
_PLAIN = (0, 0)
_UNIQUE = (0, 1)
"""`uniqueItems` at a place inside of its array: it reads that place and all places inside."""

_Group = Counter[_Key]
"""The subschemas that check one place, and how often each does."""
_UNIQUE_GROUP: _Group = Counter({_UNIQUE: 1})


class ValidationWork:
    """The widths of one schema that was measured (`cost.measure`)."""

    def __init__(self, schema: Any, cost: Cost, limits: Limits) -> None:
        self._whole = whole_width(cost, limits.depth)
        self._references = References(schema)
        self._known: dict[_Key, tuple[dict[str, Any], Any]] = {}
        self._closures: dict[_Key, tuple[int, dict[str, _Group]]] = {
            _PLAIN: (1, {}),
            _UNIQUE: (CALLED, {"[]": _UNIQUE_GROUP, "*": _UNIQUE_GROUP}),
        }
        self.steps: int = 0
        """Subschemas that were added to places in the calculation of the widths."""
        self.widths: list[int] = list(self._levels(schema, limits.depth))
        """For each level, the number of subschemas that check its fullest place; the last one is for all deeper
        levels."""
        self._widest = max(self.widths)

    def fits(self, levels: Sequence[int]) -> bool:
        """Return whether a value with so many parts on each of its levels can be checked in time."""
        parts = sum(levels)
        limit = max(MOST, 4 * parts)
        if parts * self._widest <= limit:
            return True
        deeper = self.widths[-1:] * len(levels)
        return sum(parts * width for parts, width in zip(levels, [*self.widths, *deeper], strict=False)) <= limit

    def _levels(self, schema: Any, depth: int) -> Iterator[int]:
        groups = [self._group(schema, schema)]
        seen: list[set[frozenset[Any]]] = []
        widest = 0
        for _ in range(depth + 1):
            looks = [self._measure_group(group) for group in groups]
            width = max((work for work, _ in looks), default=0)
            yield width
            widest = max(widest, width)
            if self.steps > _STEPS:
                yield max(widest, self._whole)
                return
            below = {frozenset(group.items()): group for _, inside in looks for group in inside.values()}
            if not below or below.keys() in seen:  # no further level, or a repeated one
                yield widest if below else 0
                return
            seen.append(set(below))
            groups = list(below.values())

    def _measure_group(self, group: _Group) -> tuple[int, dict[str, _Group]]:
        """Return the work at one place, and the subschemas for the places inside it."""
        work = 0
        inside: dict[str, _Group] = {}
        for key, times in group.items():
            own, steps = self._closure(key)
            work += times * own
            self._add(inside, steps, times)
        for step, below in inside.items():
            wild = _WILD.get(step[:1])
            if wild in inside and wild != step and self.steps <= _STEPS:
                self.steps += len(inside[wild])
                below.update(inside[wild])
        return work, inside

    def _closure(self, key: _Key) -> tuple[int, dict[str, _Group]]:
        """Return the work and the inner subschemas of one subschema, with those that check the same place for it."""
        if key not in self._closures:
            schema, base = self._known[key]
            work, inside = 1 + compared_values(schema), dict[str, _Group]()
            if has_unique_items(schema):
                self._add(inside, {"[]": _UNIQUE_GROUP}, 1)
            factor = UNEVALUATED if looks_again(schema) else 1
            for step, inner, base_inside in subschemas(schema, base, self._references):
                group = self._group(inner, base_inside)
                if step:
                    inside.setdefault(step, Counter()).update(group)
                    continue
                for each in group:
                    own, steps = self._closure(each)
                    work += factor * own
                    self._add(inside, steps, factor)
            self._closures[key] = work, inside
        return self._closures[key]

    def _add(self, inside: dict[str, _Group], more: dict[str, _Group], times: int) -> None:
        for step, group in more.items():
            if self.steps > _STEPS:  # the widths are not used in that case
                return
            self.steps += 1 + len(group)
            counter = inside.setdefault(step, Counter())
            for key, count in group.items():
                counter[key] += count * times

    def _group(self, schema: Any, base: Any) -> _Group:
        if not isinstance(schema, dict):  # true or false
            return Counter({_PLAIN: 1})
        base = schema if is_resource(schema) else base
        key = id(schema), id(base)
        self._known[key] = schema, base
        return Counter({key: 1})


def whole_width(cost: Cost, depth: int) -> int:
    """Return an upper bound of the widths of a schema."""
    return (cost.nodes + cost.compared) * (CALLED * (depth + 1) if cost.unique else 1)
