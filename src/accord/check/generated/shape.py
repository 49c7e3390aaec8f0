"""Schemas that all hold at one place, and offer no choice, read as one: which kinds, within which bounds.

What they say of what is inside stays apart: `member` and `item` give the schemas that all hold there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from accord.check.generated.document import Conjunction
from accord.check.generated.matching import compiled

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

KINDS = ("null", "boolean", "integer", "fraction", "string", "array", "object")
"""As JSON Schema's types, but a number is an integer or a fraction."""

_SPEAKS_OF: dict[str, tuple[str, ...]] = {
    "object": (
        "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
        "maxProperties", "unevaluatedProperties",
    ),
    "array": ("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"),
    "string": ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "fraction": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}  # fmt: skip

_PLENTY = 1 << 53


class Shape:
    """One alternative of what may stand at a place. `flat` are its schemas, none of which offers a choice."""

    def __init__(self, flat: Conjunction) -> None:
        self.flat: tuple[dict[str, Any], ...] = tuple(schema for schema in flat if isinstance(schema, dict))
        self.kinds: tuple[str, ...] = self._kinds()

    @property
    def possible(self) -> bool:
        """Whether nothing in it is a plain contradiction."""
        if not self.kinds:
            return False
        return self.kinds != ("object",) or not any(False in self.member(name) for name in self.required)

    @property
    def likely(self) -> tuple[str, ...]:
        """The kinds that its author had in mind: without `type`, what its other keywords speak of."""
        if self.all("type"):
            return self.kinds
        meant = [kind for kind in self.kinds if any(self.all(word) for word in _SPEAKS_OF.get(kind, ()))]
        return tuple(meant) or self.kinds

    def all(self, keyword: str) -> list[Any]:
        """The values of one keyword in all schemas that have it."""
        return [schema[keyword] for schema in self.flat if keyword in schema]

    def candidates(self) -> list[Any]:
        """Values that stand in the schema: the only ones, where it lists them; otherwise what it suggests."""
        for keyword in ("const", "enum"):
            if found := self.all(keyword):
                return [found[0]] if keyword == "const" else list(found[0])
        return [
            *(each for some in self.all("examples") if isinstance(some, list) for each in some),
            *self.all("default"),
        ]

    @property
    def listed(self) -> bool:
        """Whether its candidates are all that can fit."""
        return bool(self.all("const") or self.all("enum"))

    # --- numbers and strings

    def bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """The least and the largest number; an excluded bound is itself given, see `excluded`."""
        low = [*_numbers(self.all("minimum")), *_numbers(self.all("exclusiveMinimum"))]
        high = [*_numbers(self.all("maximum")), *_numbers(self.all("exclusiveMaximum"))]
        return (max(low) if low else None), (min(high) if high else None)

    def excluded(self, bound: Fraction | None, keyword: str) -> bool:
        """Whether a bound itself is out: `exclusiveMinimum` or `exclusiveMaximum` says so."""
        return bound is not None and bound in _numbers(self.all(keyword))

    def whole_bounds(self) -> tuple[int | None, int | None]:
        """The least and the largest integer."""
        low, high = self.bounds()
        least = None if low is None else math.ceil(low) + (self.excluded(low, "exclusiveMinimum") and low == int(low))
        most = (
            None if high is None else math.floor(high) - (self.excluded(high, "exclusiveMaximum") and high == int(high))
        )
        return least, most

    def step(self) -> Fraction | None:
        """The number that all others are a multiple of."""
        steps = [each for each in _numbers(self.all("multipleOf")) if each > 0]
        if not steps:
            return None
        return Fraction(math.lcm(*(step.numerator for step in steps)), math.gcd(*(step.denominator for step in steps)))

    def span(self, least: str, most: str) -> tuple[int, int | None]:
        """The bounds of a length: `minLength` and `maxLength`, for instance."""
        low, high = _numbers(self.all(least)), _numbers(self.all(most))
        return int(max(low, default=Fraction(0))), (int(min(high)) if high else None)

    # --- objects

    @property
    def declared(self) -> list[str]:
        """Names of members that are spoken of, the required ones first."""
        return _unique([*self.required, *(name for each in self.all("properties") for name in each)])

    @property
    def required(self) -> list[str]:
        return _unique(name for names in self.all("required") if isinstance(names, list) for name in names)

    def member(self, name: str) -> Conjunction:
        """What holds for a member of that name."""
        applying = [each for schema in self.flat for each in _of_member(schema, name)]
        return tuple(applying or self.all("unevaluatedProperties"))

    @property
    def more_members(self) -> bool:
        """Whether it says itself what other members look like, and allows them."""
        said = self.all("additionalProperties") + self.all("unevaluatedProperties")
        return bool(said or self.all("patternProperties")) and False not in said

    # --- arrays

    def item(self, index: int) -> Conjunction:
        """What holds for the item at an index."""
        applying = [each for schema in self.flat for each in _of_item(schema, index)]
        return tuple(applying or self.all("unevaluatedItems"))

    def sizes(self) -> tuple[int, int | None]:
        """How few and how many items there may be."""
        low, high = self.span("minItems", "maxItems")
        low = max(low, sum(least for _, least in self.contained()))
        prefix = max((len(_prefix(schema)) for schema in self.flat), default=0)
        end = next((index for index in range(prefix + 1) if False in self.item(index)), None)
        return low, high if end is None else min(end, _PLENTY if high is None else high)

    def contained(self) -> list[tuple[Any, int]]:
        """What an array must have an item of, and how many."""
        return [(schema["contains"], schema.get("minContains", 1)) for schema in self.flat if "contains" in schema]

    def _kinds(self) -> tuple[str, ...]:
        left = set(KINDS)
        for said in self.all("type"):
            left &= {kind for name in ([said] if isinstance(said, str) else said) for kind in _kinds_of(name)}
        for listed in [*self.all("enum"), *([each] for each in self.all("const"))]:
            left &= {kind_of(value) for value in listed}
        return tuple(kind for kind in KINDS if kind in left)


def kind_of(value: Any) -> str:
    """The kind of a JSON value; 1.0 is an integer, as in JSON Schema."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == value // 1 else "fraction"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def _kinds_of(name: str) -> tuple[str, ...]:
    return ("integer", "fraction") if name == "number" else (name,)


def _numbers(values: Iterable[Any]) -> list[Fraction]:
    """Exactly as they are written: 0.1 is a tenth."""
    return [Fraction(str(each)) for each in values if isinstance(each, int | float) and not isinstance(each, bool)]


def _of_member(schema: dict[str, Any], name: str) -> list[Any]:
    found = [schema["properties"][name]] if name in schema.get("properties", ()) else []
    found += [each for pattern, each in schema.get("patternProperties", {}).items() if _matches(pattern, name)]
    return found or ([schema["additionalProperties"]] if "additionalProperties" in schema else [])


def _of_item(schema: dict[str, Any], index: int) -> list[Any]:
    prefix = _prefix(schema)
    if index < len(prefix):
        return [prefix[index]]
    rest = "additionalItems" if isinstance(schema.get("items"), list) else "items"
    return [schema[rest]] if rest in schema else []


def _prefix(schema: dict[str, Any]) -> list[Any]:
    """The items with schemas of their own; in older drafts they stood in `items`."""
    older = schema.get("items")
    found: list[Any] = older if isinstance(older, list) else schema.get("prefixItems", [])
    return found


def _matches(pattern: str, name: str) -> bool:
    found = compiled(pattern)
    return found is not None and found.search(name) is not None


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
