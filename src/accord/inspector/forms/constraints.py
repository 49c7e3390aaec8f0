"""The constraints of a schema as text: "at least 3 characters"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from accord.inspector.forms.subschemas import FormPlace, Subschema, json_text

_MOST_TEXT = 500
"""Characters of one constraint, such as a pattern."""


def _count(words: str, thing: str) -> Callable[[Any], str]:
    return lambda value: f"{words} {json_text(value)} {thing}{'' if value == 1 else 's'}"


def _number(words: str) -> Callable[[Any], str]:
    return lambda value: f"{words} {json_text(value)}"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "minimum": _number("at least"),
    "exclusiveMinimum": _number("greater than"),
    "maximum": _number("at most"),
    "exclusiveMaximum": _number("less than"),
    "multipleOf": _number("a multiple of"),
    "minLength": _count("at least", "character"),
    "maxLength": _count("at most", "character"),
    "pattern": "matches {}".format,
    "contentEncoding": "encoded as {}".format,
    "contentMediaType": "content of type {}".format,
    "minItems": _count("at least", "item"),
    "maxItems": _count("at most", "item"),
    "minContains": _count("at least", "matching item"),
    "maxContains": _count("at most", "matching item"),
    "minProperties": _count("at least", "member"),
    "maxProperties": _count("at most", "member"),
}
_CHECKED_ONLY = {
    "not": "may not match a further schema (not)",
    "if": "has conditions (if, then, else)",
    "contains": "some items must match a further schema (contains)",
    "propertyNames": "the names of members must match a further schema (propertyNames)",
    "dependentSchemas": "some members have conditions (dependentSchemas)",
    "dependencies": "some members need others (dependencies)",
    "dependentRequired": "some members need others (dependentRequired)",
    "unevaluatedProperties": "further members are restricted (unevaluatedProperties)",
    "unevaluatedItems": "further items are restricted (unevaluatedItems)",
    "contentSchema": "its content has a schema (contentSchema)",
}


def constraint_texts(place: FormPlace) -> list[str]:
    """Return what the schemas of a place demand of a value, beside its type and its parts."""
    return list(dict.fromkeys(text[:_MOST_TEXT] for part in place.parts for text in _texts_of(part)))


def _texts_of(part: Subschema) -> Iterator[str]:
    for keyword, text in _TEXTS.items():
        value = part.get(keyword)
        if value is not None and not isinstance(value, (bool, list, dict)):
            yield text(value)
    if part.get("uniqueItems") is True:
        yield "items must differ from each other"
    if part.get("exclusiveMinimum") is True or part.get("exclusiveMaximum") is True:  # draft 4
        yield "the bounds themselves are not allowed"
    yield from (text for keyword, text in _CHECKED_ONLY.items() if part.has(keyword) and part.get(keyword) is not True)
