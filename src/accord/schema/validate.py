"""Validation with JSON Schemas that are not Python types: compiled once, and used often.

Peers send schemas, so they are measured first (`cost`), never fetch anything, and their patterns run on an engine
without backtracking, for as much text as it can read in a second (`pattern_cost`); only a pattern that this engine does
not support (look-around, back-references) runs on one that counts its backtracking, of which long texts get less. The
default dialect is 2020-12, as the specification says; older drafts are used if `$schema` names them.

`Work` is the cost of checking a value against a schema: for each level of the value, the number of subschemas that
check one place.

A schema within the limits of `cost` can still take minutes: 4,000 alternatives for the items of an array, and an array
of 10,000 items. An object of many properties costs one subschema for each, so places are distinguished by their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from accord.errors import Mismatch, SchemaError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.schema.cost import (
    PATTERN,
    UNEVALUATED,
    Anchors,
    Cost,
    compared_values,
    has_unique_items,
    is_resource,
    looks_again,
    measure,
    subschemas,
)
from accord.schema.keywords import KEYWORDS
from accord.schema.pattern_cost import PATTERN_BYTES, SLOWEST, PatternCosts, goes_back
from accord.schema.pattern_work import PatternWork, max_characters

if TYPE_CHECKING:
    from jsonschema_rs import Validator as Compiled

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


class Work:
    """The widths of one schema that was measured (`cost.measure`)."""

    def __init__(self, schema: Any, cost: Cost, limits: Limits) -> None:
        self._whole = whole_width(cost, limits.depth)
        self._anchors: Anchors = {}
        self._known: dict[_Key, tuple[dict[str, Any], Any]] = {}
        self._closures: dict[_Key, tuple[int, dict[str, _Group]]] = {
            _PLAIN: (1, {}),
            _UNIQUE: (1, {"[]": _UNIQUE_GROUP, "*": _UNIQUE_GROUP}),
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
            for step, inner in subschemas(schema, base, self._anchors):
                group = self._group(inner, base)
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


_DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
}
_MAX_FAILURES = 20_000
"""Limit of the failures among which the first is reported: jsonschema-rs creates an object for each, in every arm."""
_MAX_COPIED = 100_000_000
"""Limit of the bytes of JSON in these failures, times four (`max_characters`)."""
_MAX_BACKTRACKS = 1_000
"""Limit of one pattern on one text; each backtrack may take as long as reading the text once."""
_BACKTRACKED = 100_000_000
"""Nanoseconds to read texts once, times the number of backtracks of a pattern in them: 0.1 s."""
_PATTERN_TIME = 1_000_000_000
"""Nanoseconds for all patterns and texts of a value."""


def whole_width(cost: Cost, depth: int) -> int:
    """Return an upper bound of the widths of a schema."""
    return (cost.nodes + cost.compared) * (depth + 1 if cost.unique else 1)


_OPTIONS: dict[str, Any] = {"offline": True, "keywords": KEYWORDS, "validate_formats": False}
"""`format` is an annotation, as in 2020-12: older drafts would read each text as often as the schema says."""


class Validator:
    """A compiled schema."""

    def __init__(self, schema: Any, cost: Cost, limits: Limits) -> None:
        self._compiled, self._backtracks = _compile(schema)
        self._schema = schema
        self._cost = cost
        self._depth = min(limits.depth, cost.depth)
        self._limits = limits
        self._stricter: dict[int, Compiled] = {}

    def validate(self, value: Any) -> None:
        """Raise `Mismatch` for the first failure."""
        levels = list(islice(_levels(value), int(self._depth) + 2))
        if len(levels) > self._depth + 1:
            raise Mismatch(f"nested more than {int(self._depth)} levels deep, too deep for this schema")
        if sum(levels) * whole_width(self._cost, len(levels)) > MOST and not self._work.fits(levels):
            raise Mismatch("too large for this schema, which looks at its parts with too many subschemas")
        compiled = self._compiled_for(value) if self._cost.patterns else self._compiled
        try:
            if compiled.is_valid(value):
                return
            if not self._cost.failures or self._explains(value, levels):
                compiled.validate(value)
        except (ValueError, RecursionError) as exc:
            raise _mismatch(exc) from None
        raise Mismatch("does not fit the schema, at a place that was not searched for, because the value is too large")

    def _compiled_for(self, value: Any) -> Compiled:
        """Return the schema, compiled with fewer backtracks if its patterns check long texts."""
        most = max_characters(value) * (self._cost.nodes // PATTERN)  # patterns, with references expanded
        if (
            most * SLOWEST > _PATTERN_TIME
            and most * self._pattern_work.slowest > _PATTERN_TIME
            and self._pattern_work.time(value) > _PATTERN_TIME
        ):
            raise Mismatch("too much text for the patterns of this schema, which could take more than a second")
        if not self._backtracks:
            return self._compiled
        return self._compiled_counted(_allowed_backtracks(self._backtracking_work.time(value)))

    def _compiled_counted(self, allowed: int) -> Compiled:
        if allowed == _MAX_BACKTRACKS:
            return self._compiled
        if not allowed:
            raise Mismatch("too much text for the patterns of this schema, which have look-around or back-references")
        if allowed not in self._stricter:
            self._stricter[allowed] = _compile_counted(self._schema, allowed)
        return self._stricter[allowed]

    @cached_property
    def _pattern_costs(self) -> PatternCosts:
        return PatternCosts()

    @cached_property
    def _pattern_work(self) -> PatternWork:
        return PatternWork(self._schema, self._cost, self._pattern_costs.nanoseconds)

    @cached_property
    def _backtracking_work(self) -> PatternWork:
        return PatternWork(
            self._schema,
            self._cost,
            lambda pattern: self._pattern_costs.table_nanoseconds(pattern) if goes_back(pattern) else 0,
        )

    @cached_property
    def _work(self) -> Work:
        return Work(self._schema, self._cost, self._limits)

    def _explains(self, value: Any, levels: list[int]) -> bool:
        """Return whether the failures of all arms are few, and small: each has a copy of its part of the value."""
        failures = self._cost.failures * sum(levels) * float(self._cost.branching) ** len(levels)
        if self._cost.alternatives and failures > _MAX_FAILURES:
            return False
        return self._cost.failures * max_characters(value) <= _MAX_COPIED


def compile(schema: Any, limits: Limits = DEFAULT_LIMITS) -> Validator:
    """Compile a schema. Raises `SchemaError` if it is invalid, too costly, of another dialect, or refers outside
    itself."""
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a JSON Schema must be an object or a boolean, not {type(schema).__name__}")
    _check_dialect(schema)
    return Validator(schema, measure(schema, limits), limits)


def _check_dialect(schema: Any) -> None:
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") not in _DIALECTS):
        raise SchemaError(f"the schema dialect {dialect!r} is not supported; use 2020-12, 2019-09 and drafts 4 to 7")


def _compile(schema: Any) -> tuple[Compiled, bool]:
    """Return the compiled schema, and whether some of its patterns need backtracking."""
    import jsonschema_rs  # takes 25 ms to import

    linear = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES)
    try:
        try:
            return jsonschema_rs.validator_for(schema, pattern_options=linear, **_OPTIONS), False
        except jsonschema_rs.ValidationError as exc:
            if "regex" not in exc.message:
                raise
            return _compile_counted(schema, _MAX_BACKTRACKS), True
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as exc:
        where = _path(getattr(exc, "instance_path", ()))
        reason = _shorten(str(getattr(exc, "message", exc)))
        raise SchemaError(f"not a valid JSON Schema: {where}: {reason}") from None


def _compile_counted(schema: Any, backtracks: int) -> Compiled:
    import jsonschema_rs

    counted = jsonschema_rs.FancyRegexOptions(backtrack_limit=backtracks, size_limit=PATTERN_BYTES)
    return jsonschema_rs.validator_for(schema, pattern_options=counted, **_OPTIONS)


def _allowed_backtracks(nanoseconds: int) -> int:
    """Return the number of backtracks for patterns that read their texts once in this time: 1,000, 100, 10, 1, or 0."""
    limit = _BACKTRACKED // max(nanoseconds, 1)
    return next((allowed for allowed in (_MAX_BACKTRACKS, 100, 10, 1) if allowed <= limit), 0)


def _mismatch(exc: Exception) -> Mismatch:
    path = getattr(exc, "instance_path", None)
    if path is not None:
        reason = str(getattr(exc, "message", exc))
        if "backtracking" in reason:
            reason = (
                "too much work for the text: the pattern has look-around or back-references, and goes back too often"
            )
        return Mismatch(_shorten(reason), _path(path))
    return Mismatch(f"not a JSON value: {exc}")


def _shorten(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:140]} ... {message[-140:]}"


def _path(steps: Any) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _levels(value: Any) -> Iterator[int]:
    """Yield the number of values on each level of nesting."""
    level = [value]
    while level:
        yield len(level)
        containers = [outer for outer in level if isinstance(outer, (dict, list))]
        level = [inner for outer in containers for inner in (outer.values() if isinstance(outer, dict) else outer)]
