"""A change of a surface with its effect on clients, and the changes of annotation keywords in schemas.

The keywords of JSON Schema, in all dialects, are divided into those that validate values and annotations, such as
descriptions and defaults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, Literal, TypeAlias

import msgspec

from accord.messages.base import JSONValue

Kind: TypeAlias = Literal["breaking", "risky", "safe"]
"""`breaking`: something that worked fails, or changes its meaning. `risky`: it may, or models may behave differently.
`safe`: conforming clients notice only additions.
"""

KINDS: tuple[Kind, ...] = ("breaking", "risky", "safe")
"""The kinds, the worst first."""

REMOVED = "removed"
ADDED = "added"
ADDED_REQUIRED = "added, and required"
FOR_MODELS = "models read it, and may behave differently"
FOR_PEOPLE = "only people read it"

_LONGEST = 120
"""The maximum number of characters of a value to show."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change: its place, what changed, and the effect that determines its kind."""

    kind: Kind
    place: str
    """The path, its keys joined by dots: `tools.forecast.inputSchema.properties.days`."""
    what: str
    """What changed: `"string" → "integer"`."""
    why: str
    """The effect on clients."""


def worst_kind(changes: Iterable[Change]) -> Kind:
    """Return the worst kind of the changes; `safe` for none."""
    found = {change.kind for change in changes}
    return next((kind for kind in KINDS if kind in found), "safe")


def change(kind: Kind, path: Sequence[str], what: str, why: str) -> Change:
    """Return a change at a path."""
    return Change(kind=kind, place=".".join(path), what=what, why=why)


def describe_change(was: JSONValue, now: JSONValue) -> str:
    """Return `1 → 2`; None stands for an absent value."""
    return f"{'none' if was is None else preview_json(was)} → {'none' if now is None else preview_json(now)}"


def preview_json(value: JSONValue) -> str:
    """Return a value as JSON, shortened."""
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor"))

DEFINITIONS = frozenset(("$defs", "definitions"))

SIMPLE = frozenset((
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties",
    "maxProperties",
))  # fmt: skip
"""Keywords that validate a value independently of other keywords, and contain no schemas."""

VALIDATING = SIMPLE | REFERENCES | DEFINITIONS
VALIDATING |= frozenset((
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "items",
    "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "unevaluatedItems",
    "unevaluatedProperties", "dependentRequired", "dependentSchemas", "dependencies", "allOf", "anyOf", "oneOf",
    "not", "if", "then", "else",
))  # fmt: skip
"""All keywords that validate values or contain such keywords."""


_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_DATA = frozenset(("const", "enum", "default", "examples"))

_TEXTS = _DATA | {"pattern", "format", "required", "dependentRequired"}
"""Keywords with texts that are not schemas."""

_EFFECTS: dict[str, tuple[Kind, str]] = {
    "title": ("safe", FOR_PEOPLE),
    "examples": ("safe", "they are suggestions"),
    "deprecated": ("safe", "it works as before"),
    "$comment": ("safe", "only authors of the schema read it"),
    "$schema": ("safe", "the accepted values are compared separately"),
    "$id": ("safe", "it is a name"),
    "$anchor": ("safe", "it is a name"),
    "description": ("risky", FOR_MODELS),
}
"""The effect of a change by keyword; other keywords are risky, because their readers are unknown."""


class AnnotationComparison:
    """A comparison of the annotations of two schemas. `sent`: clients send values of the schemas.

    A subschema of one schema only is compared with an empty one, because models read text at every location. `members`
    are members whose addition or removal is already reported with their content; `judged` are locations with a reported
    change of their values; `old` is the whole old schema, whose texts may move.
    """

    def __init__(
        self, old: Any, members: Collection[tuple[str, ...]], judged: Collection[tuple[str, ...]], *, sent: bool
    ) -> None:
        self._members = members
        self._known = texts_in(old) | {place[-1] for place in members}
        self._judged = judged
        self._sent = sent

    def compare(self, old: Any, new: Any, path: tuple[str, ...]) -> Iterator[Change]:
        """Yield the changes at a location and below it."""
        if path in self._members:
            return
        if isinstance(old, list) or isinstance(new, list):
            items = (each if isinstance(each, list) else [] for each in (old, new))
            for index, (one, other) in enumerate(zip_longest(*items, fillvalue={})):
                yield from self.compare(one, other, (*path, str(index)))
        elif isinstance(old, dict) or isinstance(new, dict):
            was, now = (each if isinstance(each, dict) else {} for each in (old, new))
            for key in sorted(was.keys() | now.keys()):
                yield from self._compare_keyword(was, now, key, (*path, key))

    def _compare_keyword(
        self, old: dict[str, Any], new: dict[str, Any], key: str, place: tuple[str, ...]
    ) -> Iterator[Change]:
        was, now = old.get(key), new.get(key)
        if key in _MAPS and all(isinstance(each, dict | None) for each in (was, now)):
            was, now = was or {}, now or {}
            for name in sorted(was.keys() | now.keys()):
                if name not in was and name not in self._known and not self._is_reported((*place, name)):
                    kind, why = _EFFECTS["$anchor"] if key in DEFINITIONS else _EFFECTS["description"]
                    yield change(kind, (*place, name), ADDED, why)
                yield from self.compare(was.get(name), now.get(name), (*place, name))
        elif key not in VALIDATING and (was != now or (key in old) is not (key in new)):
            yield _keyword_change(old, new, key, place, self._sent)
        elif key not in _TEXTS:
            yield from self.compare(was, now, place)
        elif was != now and texts_in(now) - self._known and not self._is_reported(place):
            yield change("risky", place, describe_change(was, now), FOR_MODELS)

    def _is_reported(self, place: tuple[str, ...]) -> bool:
        """Return whether another change reports a location or one above it."""
        return any(place[:end] in self._members or place[:end] in self._judged for end in range(len(place) + 1))


def texts_in(value: Any) -> set[str]:
    """Return all texts in a JSON value, with the names of members."""
    found: set[str] = set()
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            found.add(each)
        elif isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            pending.extend((*each.keys(), *each.values()))
    return found


def _keyword_change(old: dict[str, Any], new: dict[str, Any], key: str, place: tuple[str, ...], sent: bool) -> Change:
    kind, why = _EFFECTS.get(key, ("risky", "clients that read it may behave differently"))
    if key == "default":
        kind, why = ("risky", "calls that omit it get another value") if sent else ("safe", "it is a suggestion")
    return change(kind, place, describe_change(old.get(key), new.get(key)), why)
