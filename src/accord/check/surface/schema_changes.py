"""One change of what a server offers, and what it means for those who use the server already.

The keywords of JSON Schema that refuse values, in all its dialects, and those that refuse none.

What changed in the keywords of two schemas that refuse no value: the words, which models read, and the defaults.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import zip_longest
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

_TEXTS = _DATA | {"pattern", "format", "required", "dependentRequired"}
"""These hold texts that are no schemas."""

_MODELS = "models read it, and may act in another way"

_EFFECTS: dict[str, tuple[Kind, str]] = {
    "title": ("safe", "it is for people"),
    "examples": ("safe", "they are suggestions"),
    "deprecated": ("safe", "it works as before"),
    "$comment": ("safe", "it is for those who write the schema"),
    "$schema": ("safe", "what is accepted is compared by itself"),
    "$id": ("safe", "it is a name"),
    "$anchor": ("safe", "it is a name"),
    "description": ("risky", _MODELS),
}
"""Others are risky: nobody knows who reads them."""


class AnnotationComparison:
    """The walk through what refuses no value in two schemas, and is read nevertheless. `sent`: of what clients fill in.

    What stands in one schema only is compared with an empty one: models read text wherever it stands. `members` are
    members whose coming or going is told already, with all that is in them; `judged` are places whose values are; `old`
    is the whole old schema, whose texts may move.
    """

    def __init__(
        self, old: Any, members: Collection[tuple[str, ...]], judged: Collection[tuple[str, ...]], *, sent: bool
    ) -> None:
        self._members = members
        self._known = texts_in(old) | {place[-1] for place in members}
        self._judged = judged
        self._sent = sent

    def compare(self, old: Any, new: Any, path: tuple[str, ...]) -> Iterator[Change]:
        """The changes at a place, and in all that it holds."""
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
                if name not in was and name not in self._known and not self._is_told((*place, name)):
                    kind, why = _EFFECTS["$anchor"] if key in DEFINITIONS else _EFFECTS["description"]
                    yield change(kind, (*place, name), "new", why)
                yield from self.compare(was.get(name), now.get(name), (*place, name))
        elif key not in VALIDATING and (was != now or (key in old) is not (key in new)):
            yield _keyword_change(old, new, key, place, self._sent)
        elif key not in _TEXTS:
            yield from self.compare(was, now, place)
        elif was != now and texts_in(now) - self._known and not self._is_told(place):
            yield change("risky", place, describe_change(was, now), _MODELS)

    def _is_told(self, place: tuple[str, ...]) -> bool:
        """Whether another change tells of it."""
        return any(place[:end] in self._members or place[:end] in self._judged for end in range(len(place) + 1))


def texts_in(value: Any) -> set[str]:
    """All the texts in a JSON value, the names of members among them."""
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
    kind, why = _EFFECTS.get(key, ("risky", "who reads it may act in another way"))
    if key == "default":
        kind, why = ("risky", "calls that leave it out do something else") if sent else ("safe", "it is a suggestion")
    return change(kind, place, describe_change(old.get(key), new.get(key)), why)
