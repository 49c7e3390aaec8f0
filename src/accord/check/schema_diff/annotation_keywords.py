"""What changed in the keywords of two schemas that refuse no value: the words, which models read, and the defaults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.check.schema_diff.change import Change, Kind, change, describe_change
from accord.check.schema_diff.keywords import VALIDATING

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
