"""One change of what a server offers, and what it means for those who use the server already.

The keywords of JSON Schema that refuse values, in all its dialects, and those that refuse none.

What changed in the keywords of two schemas that refuse no value: the words, which models read, and the defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from accord.messages.base import JSONValue

Kind: TypeAlias = Literal["breaking", "risky", "safe"]
"""`breaking`: what worked fails, or loses its meaning. `risky`: it may, or a model may act in another way. `safe`:
nobody who keeps to the protocol notices, but for what is new.
"""

KINDS: tuple[Kind, ...] = ("breaking", "risky", "safe")
"""The worst first."""

_LONGEST = 120
"""Characters of a value that are shown."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Where, what, and why it is of this kind."""

    kind: Kind
    place: str
    """Keys from the outside in, joined by dots: `tools.forecast.inputSchema.properties.days`."""
    what: str
    """What changed: `"string" → "integer"`."""
    why: str
    """What follows from it."""


def worst_kind(changes: Iterable[Change]) -> Kind:
    """The worst kind among them; `safe` for none."""
    found = {change.kind for change in changes}
    return next((kind for kind in KINDS if kind in found), "safe")


def change(kind: Kind, path: Sequence[str], what: str, why: str) -> Change:
    """A change at a place, whose keys are given one by one."""
    return Change(kind=kind, place=".".join(path), what=what, why=why)


def describe_change(was: JSONValue, now: JSONValue) -> str:
    """`1 → 2`; what is None was not there."""
    return f"{'none' if was is None else preview_json(was)} → {'none' if now is None else preview_json(now)}"


def preview_json(value: JSONValue) -> str:
    """A value as JSON, shortened."""
    text = msgspec.json.encode(value, order="sorted").decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor"))

DEFINITIONS = frozenset(("$defs", "definitions"))

SIMPLE = frozenset((
    "type", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minLength", "maxLength", "pattern", "format", "minItems", "maxItems", "uniqueItems", "minProperties",
    "maxProperties",
))  # fmt: skip
"""These judge a value on their own, whatever stands beside them, and hold no schemas."""

VALIDATING = SIMPLE | REFERENCES | DEFINITIONS
VALIDATING |= frozenset((
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "items",
    "prefixItems", "additionalItems", "contains", "minContains", "maxContains", "unevaluatedItems",
    "unevaluatedProperties", "dependentRequired", "dependentSchemas", "dependencies", "allOf", "anyOf", "oneOf",
    "not", "if", "then", "else",
))  # fmt: skip
"""All that decide whether a value passes, and those that hold them."""


_MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
_DATA = frozenset(("const", "enum", "default", "examples"))

_EFFECTS: dict[str, tuple[Kind, str]] = {
    "title": ("safe", "it is for people"),
    "examples": ("safe", "they are suggestions"),
    "deprecated": ("safe", "it works as before"),
    "$comment": ("safe", "it is for those who write the schema"),
    "$schema": ("safe", "what is accepted is compared by itself"),
    "$id": ("safe", "it is a name"),
    "$anchor": ("safe", "it is a name"),
    "description": ("risky", "models read it, and may act in another way"),
}
"""Others are risky: nobody knows who reads them."""


def annotation_keyword_changes(old: Any, new: Any, path: tuple[str, ...], *, sent: bool) -> Iterator[Change]:
    """The changes of annotations wherever a place is there in both. `sent`: of what clients fill in."""
    if isinstance(old, list) and isinstance(new, list):
        for index, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from annotation_keyword_changes(one, other, (*path, str(index)), sent=sent)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    for key in sorted(old.keys() | new.keys()):
        place = (*path, key)
        was, now = old.get(key), new.get(key)
        if key in _MAPS and isinstance(was, dict) and isinstance(now, dict):
            for name in sorted(was.keys() & now.keys()):
                yield from annotation_keyword_changes(was[name], now[name], (*place, name), sent=sent)
        elif key not in VALIDATING and (was != now or (key in old) is not (key in new)):
            yield _keyword_change(old, new, key, place, sent)
        elif key not in _DATA:
            yield from annotation_keyword_changes(was, now, place, sent=sent)


def _keyword_change(old: dict[str, Any], new: dict[str, Any], key: str, place: tuple[str, ...], sent: bool) -> Change:
    kind, why = _EFFECTS.get(key, ("risky", "who reads it may act in another way"))
    if key == "default":
        kind, why = ("risky", "calls that leave it out do something else") if sent else ("safe", "it is a suggestion")
    return change(kind, place, describe_change(old.get(key), new.get(key)), why)
