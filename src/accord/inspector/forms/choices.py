"""The values that a schema lists: `enum`, `const`, titled alternatives; and the label of an alternative."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from accord.inspector.forms.description import FormValue
from accord.inspector.forms.subschemas import FormPlace, Subschema, json_text
from accord.schema.json_values import canonical_json

_MOST_VALUES = 1_000
"""Listed values that a form offers."""
_MOST_VALUE = 10_000
"""Characters of one of them."""
_MOST_NAMES = 20
"""Members among which the one is looked for that names the kind of an alternative."""
_TITLE, _DESCRIPTION = 200, 4_000

_ANNOTATIONS = {"const", "title", "description", "$comment", "deprecated", "type", "examples"}


def shorten(text: Any, most: int = _DESCRIPTION) -> str | None:
    """Return a text of the schema, shortened; None for another value."""
    if not isinstance(text, str):
        return None
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def title(text: Any) -> str | None:
    """Return a title of the schema, shortened."""
    return shorten(text, _TITLE)


def small_json(value: Any) -> str | None:
    """Return a value of the schema as JSON; None for one that is too long to show."""
    text = json_text(value)
    return text if len(text) <= _MOST_VALUE else None


def listed_values(lists: list[list[FormValue]], notes: list[str]) -> list[FormValue] | None:
    """Return the values that are in all lists, or None without a list."""
    if not lists:
        return None
    first, *others = sorted(lists, key=_titles, reverse=True)
    allowed = [{_canonical(value.value_json) for value in other} for other in others]
    values = [value for value in first if all(_canonical(value.value_json) in each for each in allowed)]
    small = [value for value in values[:_MOST_VALUES] if len(value.value_json) <= _MOST_VALUE]
    if len(small) < len(values):
        notes.append(f"{len(values) - len(small):,} more values are allowed, too many or too long to list")
    return small


def is_titled(part: Subschema, keyword: str) -> bool:
    """Return whether the alternatives of a keyword are values with titles."""
    arms = part.get(keyword)
    return isinstance(arms, list) and bool(arms) and all(map(_is_value, arms))


def _is_value(arm: Any) -> bool:
    return isinstance(arm, dict) and "const" in arm and arm.keys() <= _ANNOTATIONS


def lists_of(part: Subschema) -> Iterable[list[FormValue]]:
    """Yield the lists of values of a subschema."""
    if isinstance(values := part.get("enum"), list):
        names = part.get("enumNames")
        titles = [*names[: len(values)]] if isinstance(names, list) else []
        titles += [None] * (len(values) - len(titles))
        yield [FormValue(json_text(value), title(name)) for value, name in zip(values, titles, strict=True)]
    if part.has("const"):
        yield [FormValue(json_text(part.get("const")))]
    for keyword in ("oneOf", "anyOf"):
        if is_titled(part, keyword):
            yield [
                FormValue(json_text(arm["const"]), title(arm.get("title")), shorten(arm.get("description")))
                for arm in part.get(keyword)
            ]


def _titles(values: list[FormValue]) -> int:
    return sum(value.title is not None for value in values)


def _canonical(text: str) -> bytes:
    return canonical_json(text.encode())


def alternative_label(part: Subschema, place: FormPlace, types: list[str]) -> str:
    """Return the name of an alternative: its title, the value that marks it, its reference, or its types."""
    if name := title(part.schema.get("title")) if isinstance(part.schema, dict) else None:
        return name
    for properties in place.each("properties", dict):
        for name, schema in islice(properties.items(), _MOST_NAMES):
            if isinstance(schema, dict) and "const" in schema:
                return f"{title(name)}: {json_text(schema['const'])[:_TITLE]}"
    reference = part.schema.get("$ref") if isinstance(part.schema, dict) else None
    if isinstance(reference, str) and not reference.endswith("#"):
        return str(title(reference.rpartition("/")[2]))
    return " or ".join(types) or "nothing"
