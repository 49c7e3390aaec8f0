"""Combine the schemas of one alternative: the kinds and bounds that they allow together.

Schemas of members and items are not combined: `member_schemas` and `item_schemas` return all that apply.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from accord.check.fuzz.pattern_texts import compile_pattern
from accord.check.fuzz.schema_document import Conjunction

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

KINDS = ("null", "boolean", "integer", "fraction", "string", "array", "object")
"""JSON Schema's types, with `number` split into integers and fractions."""

_KIND_KEYWORDS: dict[str, tuple[str, ...]] = {
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

LONGEST_TEXT = 1 << 20
"""The maximum length in characters of a generated text."""
MOST_ITEMS = 10_000
"""The maximum number of items of a generated array."""
MOST_MEMBERS = 1_000
"""The maximum number of members of a generated object."""


class ValueShape:
    """One alternative for the value at a location. `schemas` are its schemas, none of which offers a choice."""

    def __init__(self, flat: Conjunction) -> None:
        self.schemas: tuple[dict[str, Any], ...] = tuple(schema for schema in flat if isinstance(schema, dict))
        self.kinds: tuple[str, ...] = self._kinds()

    @property
    def is_satisfiable(self) -> bool:
        """Return whether the alternative has no obvious contradiction."""
        if not self.kinds:
            return False
        return self.kinds != ("object",) or not any(False in self.member_schemas(name) for name in self.required)

    @property
    def likely_kinds(self) -> tuple[str, ...]:
        """Return the kinds that the schema describes: those of its other keywords if it has no `type`."""
        if self.keyword_values("type"):
            return self.kinds
        likely = [
            kind for kind in self.kinds if any(self.keyword_values(word) for word in _KIND_KEYWORDS.get(kind, ()))
        ]
        return tuple(likely) or self.kinds

    def keyword_values(self, keyword: str) -> list[Any]:
        """Return the values of one keyword in all schemas that have it."""
        return [schema[keyword] for schema in self.schemas if keyword in schema]

    def candidates(self) -> list[Any]:
        """Return the values in the schema: of `const` or `enum`, or else of `examples` and `default`."""
        for keyword in ("const", "enum"):
            if found := self.keyword_values(keyword):
                return [found[0]] if keyword == "const" else list(found[0])
        return [
            *(each for some in self.keyword_values("examples") if isinstance(some, list) for each in some),
            *self.keyword_values("default"),
        ]

    @property
    def is_enumerated(self) -> bool:
        """Return whether only its candidates can be valid."""
        return bool(self.keyword_values("const") or self.keyword_values("enum"))

    # --- numbers and strings

    def bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """Return the lower and upper bound of numbers; these may be excluded, see `is_exclusive`."""
        low = [*_numbers(self.keyword_values("minimum")), *_numbers(self.keyword_values("exclusiveMinimum"))]
        high = [*_numbers(self.keyword_values("maximum")), *_numbers(self.keyword_values("exclusiveMaximum"))]
        return (max(low) if low else None), (min(high) if high else None)

    def is_exclusive(self, bound: Fraction | None, keyword: str) -> bool:
        """Return whether a bound is excluded by `keyword`, `exclusiveMinimum` or `exclusiveMaximum`."""
        return bound is not None and bound in _numbers(self.keyword_values(keyword))

    def integer_bounds(self) -> tuple[int | None, int | None]:
        """Return the smallest and largest integer."""
        low, high = self.bounds()
        least = (
            None if low is None else math.ceil(low) + (self.is_exclusive(low, "exclusiveMinimum") and low == int(low))
        )
        most = (
            None
            if high is None
            else math.floor(high) - (self.is_exclusive(high, "exclusiveMaximum") and high == int(high))
        )
        return least, most

    def multiple_of(self) -> Fraction | None:
        """Return the number that every value is a multiple of."""
        steps = [each for each in _numbers(self.keyword_values("multipleOf")) if each > 0]
        if not steps:
            return None
        return Fraction(math.lcm(*(step.numerator for step in steps)), math.gcd(*(step.denominator for step in steps)))

    def length_bounds(self, least: str, most: str) -> tuple[int, int | None]:
        """Return the bounds of a length by two keywords, such as `minLength` and `maxLength`."""
        low, high = _numbers(self.keyword_values(least)), _numbers(self.keyword_values(most))
        return int(max(low, default=Fraction(0))), (int(min(high)) if high else None)

    # --- objects

    @property
    def declared(self) -> list[str]:
        """Return the names of members in the schema, the required ones first."""
        return _unique([*self.required, *(name for each in self.keyword_values("properties") for name in each)])

    @property
    def required(self) -> list[str]:
        return _unique(name for names in self.keyword_values("required") if isinstance(names, list) for name in names)

    def member_schemas(self, name: str) -> Conjunction:
        """Return the schemas for a member."""
        applying = [each for schema in self.schemas for each in _member_schemas(schema, name)]
        return tuple(applying or self.keyword_values("unevaluatedProperties"))

    @property
    def allows_more_members(self) -> bool:
        """Return whether the schema describes and allows other members."""
        entry = self.keyword_values("additionalProperties") + self.keyword_values("unevaluatedProperties")
        return bool(entry or self.keyword_values("patternProperties")) and False not in entry

    # --- arrays

    def item_schemas(self, index: int) -> Conjunction:
        """Return the schemas for the item at an index."""
        applying = [each for schema in self.schemas for each in _item_schemas(schema, index)]
        return tuple(applying or self.keyword_values("unevaluatedItems"))

    def size_bounds(self) -> tuple[int, int | None]:
        """Return the minimum and maximum number of items."""
        low, high = self.length_bounds("minItems", "maxItems")
        low = max(low, sum(least for _, least in self.contains_minimums()))
        prefix = max((len(_prefix(schema)) for schema in self.schemas), default=0)
        end = next((index for index in range(prefix + 1) if False in self.item_schemas(index)), None)
        return low, high if end is None else min(end, _PLENTY if high is None else high)

    def contains_minimums(self) -> list[tuple[Any, int]]:
        """Return each schema of `contains` with the number of items that must match it."""
        return [(schema["contains"], schema.get("minContains", 1)) for schema in self.schemas if "contains" in schema]

    def _kinds(self) -> tuple[str, ...]:
        left = set(KINDS)
        for entry in self.keyword_values("type"):
            left &= {kind for name in ([entry] if isinstance(entry, str) else entry) for kind in _kinds_of(name)}
        for listed in [*self.keyword_values("enum"), *([each] for each in self.keyword_values("const"))]:
            left &= {kind_of(value) for value in listed}
        return tuple(kind for kind in KINDS if kind in left and self._can_be_made(kind))

    def _can_be_made(self, kind: str) -> bool:
        """Return whether its smallest values are within the bounds of generation."""
        match kind:
            case "string":
                return self.length_bounds("minLength", "maxLength")[0] <= LONGEST_TEXT
            case "array":
                return self.size_bounds()[0] <= MOST_ITEMS
            case "object":
                return self.length_bounds("minProperties", "maxProperties")[0] <= MOST_MEMBERS
        return True


def kind_of(value: Any) -> str:
    """Return the kind of a JSON value; 1.0 is an integer, as in JSON Schema."""
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
    """Return the numbers as exact fractions of their decimal form: 0.1 is one tenth."""
    return [Fraction(str(each)) for each in values if isinstance(each, int | float) and not isinstance(each, bool)]


def _member_schemas(schema: dict[str, Any], name: str) -> list[Any]:
    found = [schema["properties"][name]] if name in schema.get("properties", ()) else []
    found += [each for pattern, each in schema.get("patternProperties", {}).items() if _matches(pattern, name)]
    return found or ([schema["additionalProperties"]] if "additionalProperties" in schema else [])


def _item_schemas(schema: dict[str, Any], index: int) -> list[Any]:
    prefix = _prefix(schema)
    if index < len(prefix):
        return [prefix[index]]
    rest = "additionalItems" if isinstance(schema.get("items"), list) else "items"
    return [schema[rest]] if rest in schema else []


def _prefix(schema: dict[str, Any]) -> list[Any]:
    """Return the schemas of `prefixItems`, or of an array in `items` as in older drafts."""
    older = schema.get("items")
    found: list[Any] = older if isinstance(older, list) else schema.get("prefixItems", [])
    return found


def _matches(pattern: str, name: str) -> bool:
    found = compile_pattern(pattern)
    return found is not None and found.search(name) is not None


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
