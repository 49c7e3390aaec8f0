"""Limits on the cost of a peer's JSON Schema, checked before it is compiled.

A schema of a few lines can keep a validator busy for ever: `allOf` of two references to `allOf` of two references, or a
schema that refers to itself twice. So, without compiling anything:

- the nesting is limited, of the JSON and of the subschemas, references included;
- subschemas count as often as references expand them;
- a reference must lead to an existing place in the schema itself (`#...`); nothing is ever fetched;
- the work of the measurement itself is limited, for references that refer to each other in many ways;
- a schema that refers to itself at the same place of a value, without end, is refused;
- for a schema that checks the same place of a value through several references to itself, the time is exponential
  in the depth of the value: its `Cost` limits the depth of values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from accord.errors import SchemaError
from accord.limits import Limits
from accord.schema.references import References, is_resource
from accord.schema.subschema_cost import (
    REFERENCES,
    UNIQUE_TIME,
    check_names,
    compared_numbers,
    compared_values,
    copied_characters,
    has_unique_items,
    inside,
    longest_step,
    looks_again,
    patterns,
    reading_time,
)

_MAX_STEPS = 1_000_000
"""Limit of the subschemas that are checked for one value, roughly 100 ms."""

_VALUES = 100_000
"""Limit of the values in a schema: `enum` may list many, and each takes microseconds to compile."""

_MAX_PASSED_ON = 50_000
"""Limit of the references to open subschemas that are passed on while a schema is measured, roughly 100 ms."""

PATTERN, _PATTERN_CHARACTERS = 20, 5
"""A pattern takes as long to compile as `PATTERN` subschemas, and one more for each `_PATTERN_CHARACTERS`
characters."""
UNEVALUATED = 3
"""`unevaluated...` evaluates everything beside it again, so nested ones take exponential time."""

# Keyword -> place in a value that its subschemas check: the same (""), an item or a member ("[]", "*").
_ONE = {
    "not": "", "if": "", "then": "", "else": "",
    "items": "[]", "additionalItems": "[]", "contains": "[]", "unevaluatedItems": "[]",
    "additionalProperties": "*", "unevaluatedProperties": "*", "propertyNames": "key", "contentSchema":
    "content",
}  # fmt: skip
_MANY = {"allOf": "", "anyOf": "", "oneOf": "", "prefixItems": "[]", "items": "[]"}
_NAMED = {"properties": ".", "patternProperties": "*", "dependentSchemas": "", "dependencies": ""}

ValuePath = tuple[str, ...]


class _SubschemaCost(msgspec.Struct):
    """The number of subschemas after expansion, and the references to open ones: (target, place in the value)."""

    nodes: int = 1
    failures: int = 1
    """`nodes` without its patterns: each subschema may fail."""
    compared: int = 0
    """The number of values that it compares, and of names that it looks up, at one place."""
    numbers: int = 0
    """How often it compares a number."""
    reading: int = 0
    """Nanoseconds for a character of the texts that it reads, except by patterns."""
    copied: int = 0
    """Characters of its values and names, which failures copy."""
    path: int = 0
    """Characters of the longest path to a subschema."""
    deep: bool = False
    """Whether it checks items or members."""
    back: Counter[tuple[int, ValuePath]] = msgspec.field(default_factory=Counter)


class Cost(msgspec.Struct, frozen=True):
    """The cost of validation with a schema."""

    nodes: int
    """Number of subschemas, counted as often as they expand."""
    branching: int
    """Number of references to itself that meet at one place: the base of the exponent, mostly 1."""
    alternatives: bool
    """Whether it has alternatives that check items or members, so that one failure may have very many parts."""
    patterns: frozenset[str] = frozenset()
    """Its patterns, of texts and of names."""
    compared: int = 0
    """Number of values in its `enum` and `const`, and of names in `required`, counted as often as they expand."""
    numbers: int = 0
    """How often it compares a number, counted as often as it expands."""
    reading: int = 0
    """Nanoseconds for a character of a text, for all keywords that read texts, except patterns."""
    copied: int = 0
    """Characters of its values and names, counted as often as they expand."""
    path: int = 0
    """Characters of the longest path to a subschema."""
    failures: int = 0
    """Number of subschemas that may fail."""
    choices: bool = False
    """Whether it has alternatives: all failures of theirs count, and each has a copy of its value."""
    unique: bool = False
    """Whether it has `uniqueItems`, which reads all that is inside of an array."""

    @property
    def depth(self) -> float:
        """Return the maximum depth of a value."""
        return math.inf if self.branching == 1 else math.log(_MAX_STEPS) / math.log(self.branching)


def measure(schema: Any, limits: Limits) -> Cost:
    """Return the cost of a schema. Raise `SchemaError` for one that may not be used."""
    count_values(schema, limits.depth)
    return _CostWalk(schema, limits).cost()


def count_values(schema: Any, depth: int, most: int = _VALUES) -> int:
    """Return the number of values in a schema. Raise `SchemaError` for more than `most`, and for deeper nesting."""
    level, size = [schema] if isinstance(schema, (dict, list)) else [], 0
    for _ in range(depth + 1):
        size += sum(map(len, level))
        if size > most:
            raise SchemaError(f"the schema has more than {most:,} values")
        level = [inner for outer in level for inner in inside(outer) if isinstance(inner, (dict, list))]
        if not level:
            return size
    raise SchemaError(f"the schema is nested more than {depth} levels deep")


class _CostWalk:
    """One traversal of a schema that follows references. Each subschema is measured once."""

    def __init__(self, root: Any, limits: Limits) -> None:
        self._root = root
        self._limits = limits
        self._references = References(root)
        self._done: dict[tuple[int, int], _SubschemaCost] = {}
        self._open: set[tuple[int, int]] = set()
        self._passed_on = 0
        self._branching = 1
        self._alternatives = self._choices = self._unique = False
        self._patterns = set[str]()

    def cost(self) -> Cost:
        total = self._measure(self._root, self._root, 0)
        return Cost(
            total.nodes,
            self._branching,
            self._alternatives,
            frozenset(self._patterns),
            total.compared,
            numbers=total.numbers,
            reading=total.reading,
            copied=total.copied,
            path=total.path,
            failures=total.failures,
            choices=self._choices,
            unique=self._unique,
        )

    def _measure(self, schema: Any, base: Any, depth: int) -> _SubschemaCost:
        if not isinstance(schema, dict):
            return _SubschemaCost()
        if depth > self._limits.schema_depth:
            raise SchemaError(
                f"the schema is nested more than {self._limits.schema_depth} subschemas deep (Limits.schema_depth)"
            )
        base = schema if is_resource(schema) else base
        key = id(schema), id(base)
        if key in self._open:
            return _SubschemaCost(back=Counter({(key[0], ()): 1}))
        if key not in self._done:
            self._open.add(key)
            self._done[key] = self._sum(schema, base, depth)
            self._open.discard(key)
        return self._done[key]

    def _pass_on(self, references: int) -> None:
        self._passed_on += references
        if self._passed_on > _MAX_PASSED_ON:
            raise SchemaError("the schema refers to itself in too many ways")

    def _sum(self, schema: dict[str, Any], base: Any, depth: int) -> _SubschemaCost:
        check_names(schema)
        own = [*patterns(schema)]
        self._patterns.update(own)
        total = _SubschemaCost(
            1 + sum(PATTERN + len(pattern) // _PATTERN_CHARACTERS for pattern in own),
            compared=compared_values(schema),
            numbers=compared_numbers(schema),
            reading=reading_time(schema) + UNIQUE_TIME * has_unique_items(schema),
            copied=copied_characters(schema),
        )
        longest = longest_step(schema)
        references = 0
        self._check(total, references)
        factor = UNEVALUATED if looks_again(schema) else 1
        for step, inner, base_inside in subschemas(schema, base, self._references):
            place = "[]" if step[:1] == "[" else step
            measured = self._measure(inner, base_inside, depth + 1)
            looks = 1 if place else factor
            total.nodes += looks * measured.nodes
            total.failures += looks * measured.failures
            total.compared += looks * measured.compared
            total.numbers += looks * measured.numbers
            total.reading += looks * measured.reading
            total.copied += looks * measured.copied
            total.path = max(total.path, longest + measured.path)
            total.deep |= bool(place) or measured.deep
            self._pass_on(len(measured.back))
            for (target, below), times in measured.back.items():
                total.back[target, _prepend(place, below)] += looks * times
                references += looks * times
            self._check(total, references)
        self._close(id(schema), total)
        choices = bool(schema.keys() & {"anyOf", "oneOf"})
        self._choices |= choices
        self._alternatives |= total.deep and choices
        self._unique |= has_unique_items(schema)
        return total

    def _check(self, total: _SubschemaCost, references: int) -> None:
        limit = self._limits.schema_nodes
        if total.nodes > limit or references > limit:
            raise SchemaError(
                f"the schema costs more than {limit:,} subschemas (Limits.schema_nodes), with its references expanded "
                "and its patterns weighed"
            )

    def _close(self, target: int, total: _SubschemaCost) -> None:
        """Remove the references to this schema from the total, and record how many of them check one place."""
        own = {place: total.back.pop((target, place)) for back, place in list(total.back) if back == target}
        if () in own:
            raise SchemaError("the schema refers to itself without end: a $ref leads back to itself")
        self._branching = max(self._branching, _max_references(own))


def subschemas(schema: dict[str, Any], base: Any, references: References) -> Iterator[tuple[str, Any, Any]]:
    """Yield each subschema that applies, with the step to the place of the value that it checks, and its resource.

    `base` is the resource of the schema. The step is "" for the same place, "[]" for any item and "[0]" for one, "*"
    for any member and ".name" for one."""
    for keyword, value in schema.items():
        if keyword in REFERENCES and isinstance(value, str):
            yield from (("", *found) for found in references.targets(value, base))
        elif keyword in _ONE and not isinstance(value, list):
            yield _ONE[keyword], value, base
        elif keyword in _MANY and isinstance(value, list):
            step = _MANY[keyword]
            yield from ((f"[{at}]" if step else "", inner, base) for at, inner in enumerate(value))
        elif keyword in _NAMED and isinstance(value, dict):
            step = _NAMED[keyword]
            yield from ((step + name if step == "." else step, inner, base) for name, inner in value.items())


def _prepend(step: str, below: ValuePath) -> ValuePath:
    return (step, *below) if step else below


def _max_references(places: Mapping[ValuePath, int]) -> int:
    """Return the number of references that meet at the fullest place; one that ends above another leads there too."""
    if len(places) > 100:
        return sum(places.values())
    return max((sum(places[other] for other in places if _leads_to(other, place)) for place in places), default=1)


def _leads_to(shorter: ValuePath, longer: ValuePath) -> bool:
    return len(shorter) <= len(longer) and all(
        a == b or (a == "*" and b[0] == ".") or (b == "*" and a[0] == ".")
        for a, b in zip(shorter, longer, strict=False)
    )
