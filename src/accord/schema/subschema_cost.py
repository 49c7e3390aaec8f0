"""The cost of one subschema by its own keywords, without its references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.errors import SchemaError

_NAME_LENGTH = 8 << 10
"""Limit of the characters of a reference, an anchor or an `$id`, which are copied for each reference."""
_NAMES = ("$id", "$anchor", "$dynamicAnchor", "$ref", "$dynamicRef", "$recursiveRef")

_UNEVALUATED_KEYWORDS = {"unevaluatedItems", "unevaluatedProperties"}
_REQUIRED = ("required", "dependentRequired", "dependencies")
_COPIED = ("enum", "const", "required", "dependentRequired")
_HAVE_NAMES = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_READING = frozenset(("minLength", "maxLength", "enum", "const"))
_COMPARING = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "const"))
UNIQUE_TIME = 10
"""Nanoseconds that `uniqueItems` takes for a character."""
_COMPARISON = 3
"""A value of `enum` or `const` takes as long to compare as so many subschemas, if it is a number."""
CALLED = 16
"""A keyword that Python checks takes as long for each value as so many subschemas."""
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def inside(value: Any) -> Any:
    """Return the members of an object or the items of an array; nothing for other values."""
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def looks_again(schema: dict[str, Any]) -> bool:
    """Return whether a schema evaluates everything beside it again."""
    return bool(schema.keys() & _UNEVALUATED_KEYWORDS)


def has_unique_items(schema: dict[str, Any]) -> bool:
    """Return whether a schema compares the items of an array, with all that is inside of them."""
    return schema.get("uniqueItems") is True


def compared_values(schema: dict[str, Any]) -> int:
    """Return how many subschemas take as long as what a subschema compares: numbers, values of `enum` and `const`, and
    names that are required. Texts of `enum` are looked up."""
    values = schema.get("enum")
    listed = isinstance(values, list) and {type(value) for value in values} != {str}
    compared = _count_inside(values if listed else None) + _count_inside(schema.get("const"))
    required = sum(_count_inside(schema.get(keyword)) for keyword in _REQUIRED)
    once = CALLED * len(schema.keys() & {"multipleOf"}) + len(schema.keys() & _COMPARING)
    return once + _COMPARISON * compared + required


def compared_numbers(schema: dict[str, Any]) -> int:
    """Return how often a subschema compares a number."""
    values = _count_inside(schema.get("enum")) + _count_inside(schema.get("const"))
    return len(schema.keys() & _COMPARING) + values


def reading_time(schema: dict[str, Any]) -> int:
    """Return the nanoseconds for a character of a text that a subschema reads, except by its patterns."""
    return len(schema.keys() & _READING)


def copied_characters(schema: dict[str, Any]) -> int:
    """Return the characters of the values and the names that a failure of a subschema may have a copy of."""
    return sum(map(_characters_inside, (schema[keyword] for keyword in _COPIED if keyword in schema)))


def _characters_inside(value: Any) -> int:
    characters, pending = 0, [value]
    while pending:
        value = pending.pop()
        characters += len(value) if isinstance(value, str) else 1
        pending += [*inside(value), *(value if isinstance(value, dict) else ())]
    return characters


def longest_step(schema: dict[str, Any]) -> int:
    """Return the characters of the longest step from a subschema to the next one: a name or a reference."""
    named = (schema[keyword] for keyword in _HAVE_NAMES if isinstance(schema.get(keyword), dict))
    references = (value for keyword in REFERENCES if isinstance(value := schema.get(keyword), str))
    return max(map(len, (*references, *(name for names in named for name in names))), default=0)


def check_names(schema: dict[str, Any]) -> None:
    """Raise `SchemaError` for a reference, an anchor or an `$id` that is too long."""
    for keyword in _NAMES:
        name = schema.get(keyword)
        if isinstance(name, str) and len(name) > _NAME_LENGTH:
            raise SchemaError(
                f"the schema has a {keyword} of {len(name):,} characters, expected at most {_NAME_LENGTH:,}"
            )


def _count_inside(value: Any) -> int:
    count, pending = 0, [value]
    while pending:
        values = inside(pending.pop())
        count += len(values)
        pending += (each for each in values if isinstance(each, (dict, list)))
    return count


def patterns(schema: dict[str, Any]) -> Iterator[str]:
    """Yield the patterns of a subschema, of texts and of names, without those of its own subschemas."""
    if "pattern" in schema:
        yield str(schema["pattern"])
    named = schema.get("patternProperties")
    if isinstance(named, dict):
        yield from named
