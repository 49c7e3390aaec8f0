"""Limits on the cost of a peer's JSON Schema, checked before it is compiled.

A schema of a few lines can keep a validator busy for ever: `allOf` of two references to `allOf` of two references, or a
schema that refers to itself twice. So, without compiling anything:

- the nesting is limited, of the JSON and of the subschemas, references included;
- subschemas count as often as references expand them;
- a reference must lead to an existing place in the schema itself (`#...`); nothing is ever fetched;
- a schema that refers to itself at the same place of a value, without end, is refused;
- for a schema that checks the same place of a value through several references to itself, the time is exponential
  in the depth of the value: its `Cost` limits the depth of values.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

from accord.errors import SchemaError
from accord.limits import Limits

_MAX_STEPS = 1_000_000
"""Limit of the subschemas that are checked for one value, roughly 100 ms."""

_VALUES = 100_000
"""Limit of the values in a schema: `enum` may list many, and each takes microseconds to compile."""

PATTERN, _PATTERN_CHARACTERS = 20, 5
"""A pattern takes as long to compile as `PATTERN` subschemas, and one more for each `_PATTERN_CHARACTERS`
characters."""
UNEVALUATED = 3
"""`unevaluated...` evaluates everything beside it again, so nested ones take exponential time."""
_UNEVALUATED_KEYWORDS = {"unevaluatedItems", "unevaluatedProperties"}

# Keyword -> place in a value that its subschemas check: the same (""), an item or a member ("[]", "*").
_ONE = {
    "not": "", "if": "", "then": "", "else": "",
    "items": "[]", "additionalItems": "[]", "contains": "[]", "unevaluatedItems": "[]",
    "additionalProperties": "*", "unevaluatedProperties": "*", "propertyNames": "key", "contentSchema":
    "content",
}  # fmt: skip
_MANY = {"allOf": "", "anyOf": "", "oneOf": "", "prefixItems": "[]", "items": "[]"}
_NAMED = {"properties": None, "patternProperties": "*", "dependentSchemas": "", "dependencies": ""}
_DEFINITIONS = ("$defs", "definitions")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

ValuePath = tuple[str, ...]

Anchors = dict[int, dict[str, Any]]
"""The targets of the anchors of a resource, by the `id()` of the resource: each is searched once."""


class _SubschemaCost(msgspec.Struct):
    """The number of subschemas after expansion, and the references to open ones: (target, place in the value)."""

    nodes: int = 1
    failures: int = 1
    """`nodes` without its patterns: each subschema may fail."""
    compared: int = 0
    """The number of values that it compares at one place."""
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
    """Number of values in its `enum` and `const`, counted as often as they expand."""
    failures: int = 0
    """Number of subschemas that can fail at once because some are alternatives; each failure has a copy of its value.
    0 without alternatives: then only the first failure counts."""
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
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, (dict, list))]
        if not level:
            return size
    raise SchemaError(f"the schema is nested more than {depth} levels deep")


def _inside(value: Any) -> Any:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


class _CostWalk:
    """One traversal of a schema that follows references. Each subschema is measured once."""

    def __init__(self, root: Any, limits: Limits) -> None:
        self._root = root
        self._limits = limits
        self._anchors: Anchors = {}
        self._done: dict[tuple[int, int], _SubschemaCost] = {}
        self._open: set[tuple[int, int]] = set()
        self._branching = 1
        self._alternatives = self._choices = self._unique = False
        self._patterns = set[str]()

    def cost(self) -> Cost:
        for definition in _definitions(self._root):
            self._measure(definition, self._root, 1)
        total = self._measure(self._root, self._root, 0)
        return Cost(
            total.nodes,
            self._branching,
            self._alternatives,
            frozenset(self._patterns),
            total.compared,
            total.failures if self._choices else 0,
            self._unique,
        )

    def _measure(self, schema: Any, base: Any, depth: int) -> _SubschemaCost:
        if not isinstance(schema, dict):
            return _SubschemaCost()
        if depth > self._limits.schema_depth:
            raise SchemaError(f"the schema is nested more than {self._limits.schema_depth} subschemas deep")
        base = schema if is_resource(schema) else base
        key = id(schema), id(base)
        if key in self._open:
            return _SubschemaCost(back=Counter({(key[0], ()): 1}))
        if key not in self._done:
            self._open.add(key)
            self._done[key] = self._sum(schema, base, depth)
            self._open.discard(key)
        return self._done[key]

    def _sum(self, schema: dict[str, Any], base: Any, depth: int) -> _SubschemaCost:
        own = [*patterns(schema)]
        self._patterns.update(own)
        total = _SubschemaCost(
            1 + sum(PATTERN + len(pattern) // _PATTERN_CHARACTERS for pattern in own),
            compared=compared_values(schema),
        )
        self._check(total)
        factor = UNEVALUATED if looks_again(schema) else 1
        for step, inner in subschemas(schema, base, self._anchors):
            place = "[]" if step[:1] == "[" else step
            measured = self._measure(inner, base, depth + 1)
            looks = 1 if place else factor
            total.nodes += looks * measured.nodes
            total.failures += looks * measured.failures
            total.compared += looks * measured.compared
            total.deep |= bool(place) or measured.deep
            for (target, below), times in measured.back.items():
                total.back[target, _prepend(place, below)] += looks * times
            self._check(total)
        self._close(id(schema), total)
        choices = bool(schema.keys() & {"anyOf", "oneOf"})
        self._choices |= choices
        self._alternatives |= total.deep and choices
        self._unique |= has_unique_items(schema)
        return total

    def _check(self, total: _SubschemaCost) -> None:
        limit = self._limits.schema_nodes
        if total.nodes > limit or total.back.total() > limit:
            raise SchemaError(
                f"the schema costs more than {limit} subschemas, with its references expanded and its patterns weighed"
            )

    def _close(self, target: int, total: _SubschemaCost) -> None:
        """Remove the references to this schema from the total, and record how many of them check one place."""
        own = {place: total.back.pop((target, place)) for back, place in list(total.back) if back == target}
        if () in own:
            raise SchemaError("the schema refers to itself without end: a $ref leads back to itself")
        self._branching = max(self._branching, _max_references(own))


def subschemas(schema: dict[str, Any], base: Any, anchors: Anchors) -> Iterator[tuple[str, Any]]:
    """Yield each subschema that applies, with the step to the place of the value that it checks: "" for the same place,
    "[]" for any item and "[0]" for one, "*" for any member and ".name" for one."""
    for keyword, value in schema.items():
        if keyword in _REFERENCES and isinstance(value, str):
            yield "", target(value, base, anchors)
        elif keyword in _ONE and not isinstance(value, list):
            yield _ONE[keyword], value
        elif keyword in _MANY and isinstance(value, list):
            step = _MANY[keyword]
            yield from ((f"[{at}]" if step else "", inner) for at, inner in enumerate(value))
        elif keyword in _NAMED and isinstance(value, dict):
            yield from ((_NAMED[keyword] or f".{name}", inner) for name, inner in value.items())


def looks_again(schema: dict[str, Any]) -> bool:
    """Return whether a schema evaluates everything beside it again."""
    return bool(schema.keys() & _UNEVALUATED_KEYWORDS)


def has_unique_items(schema: dict[str, Any]) -> bool:
    """Return whether a schema compares the items of an array, with all that is inside of them."""
    return schema.get("uniqueItems") is True


def compared_values(schema: dict[str, Any]) -> int:
    """Return the number of values that `enum` and `const` compare one after the other, on all levels; texts and whole
    numbers of `enum` are looked up."""
    values = schema.get("enum")
    listed = isinstance(values, list) and {type(value) for value in values} not in ({str}, {int})
    return sum(_count_inside(each) for each in (values if listed else None, schema.get("const")))


def _count_inside(value: Any) -> int:
    count, pending = 0, [value]
    while pending:
        inside = _inside(pending.pop())
        count += len(inside)
        pending += (each for each in inside if isinstance(each, (dict, list)))
    return count


def is_resource(schema: dict[str, Any]) -> bool:
    """Return whether references inside a subschema are relative to it: it has an `$id` of its own."""
    name = schema.get("$id")
    return isinstance(name, str) and not name.startswith("#")


def patterns(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the patterns of a subschema, of texts and of names, without those of its own subschemas."""
    if "pattern" in schema:
        yield str(schema["pattern"])
    named = schema.get("patternProperties")
    if isinstance(named, dict):
        yield from named


def _definitions(schema: Any) -> Iterator[Any]:
    for keyword in _DEFINITIONS:
        definitions = schema.get(keyword) if isinstance(schema, dict) else None
        if isinstance(definitions, dict):
            yield from definitions.values()


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


def target(reference: str, base: Any, anchors: Anchors) -> Any:
    """Return the target of a reference; `anchors` caches the anchors of resources.

    Raises `SchemaError` if the target is not inside this schema.
    """
    if not reference.startswith("#"):
        raise SchemaError(f"the schema refers to {reference!r}: only references inside it (#...) are followed")
    pointer = unquote(reference[1:])
    if not pointer:
        return base
    destination = _at_pointer(pointer, base) if pointer.startswith("/") else _at_anchor(pointer, base, anchors)
    if destination is None:
        raise SchemaError(f"the schema refers to {reference!r}, which does not exist")
    return destination


def _at_pointer(pointer: str, value: Any) -> Any:
    for step in pointer.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list) and key.isdecimal() and len(key) < 10 and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value


def _at_anchor(name: str, base: Any, anchors: Anchors) -> Any:
    if id(base) not in anchors:
        anchors[id(base)] = _anchors_of(base)
    return anchors[id(base)].get(name)


def _anchors_of(base: Any) -> dict[str, Any]:
    """Return the anchors of a resource. Resources inside it have their own."""
    anchors: dict[str, Any] = {}
    pending = [base]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if value is not base and is_resource(value):
                continue
            own = value.get("$id")
            fragment = own[1:] if isinstance(own, str) and own.startswith("#") else None
            names = value.get("$anchor"), value.get("$dynamicAnchor"), fragment
            anchors.update((name, value) for name in names if isinstance(name, str) and name not in anchors)
        pending.extend(_inside(value))
    return anchors
