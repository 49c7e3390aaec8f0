"""What must hold at one place of a value, taken apart: schemas that all hold become alternatives without any choice.

`allOf` and references are opened; `anyOf`, `oneOf`, `if`, `dependentRequired` and `dependentSchemas` give one
alternative for each way to satisfy them; a `not` of something simple is turned around. What an alternative no longer
says (that only one arm of `oneOf` may fit, most forms of `not`) is settled by asking the validator in the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from accord.check.fuzz.schema_document import REFERENCES, Conjunction, GenerationError, SchemaDocument
from accord.check.fuzz.shape import TYPES, ValueShape

_MAX_ALTERNATIVES = 48
"""Alternatives that are used of one place, at most."""
_STEPS = 4_000
"""Steps to find them, at most."""

_SIMPLE = frozenset(("required", "properties", "anyOf", "allOf", "type", "not"))
"""Keywords whose opposite is told completely by others."""
_NEGATED = "turned around already"
_OBJECT = {"type": "object"}
_ADDED = "added"

_Expansions = Iterable[Conjunction]


def alternatives(document: SchemaDocument, conjunction: Conjunction) -> list[ValueShape]:
    """The alternatives that can hold, the first ones of very many. Raises `GenerationError` if there are none."""
    if not (found := document.cached(_shapes, conjunction)):
        raise GenerationError("nothing can fit all that is asked for at one place")
    return found


def _shapes(document: SchemaDocument, conjunction: Conjunction) -> list[ValueShape]:
    steps = islice(_expand(document, conjunction, ()), _STEPS)
    shapes = (ValueShape(flat) for flat in steps if flat is not None)
    try:
        return list(islice((shape for shape in shapes if shape.is_satisfiable), _MAX_ALTERNATIVES))
    except RecursionError:  # too many schemas hold at one place
        return []


def _expand(document: SchemaDocument, todo: Conjunction, done: Conjunction) -> Iterator[Conjunction | None]:
    """Conjunctions without choices; `None` for a step that led nowhere, so that steps can be counted."""
    while todo and (todo[0] is True or (isinstance(todo[0], dict) and not todo[0])):
        todo = todo[1:]
    if not todo:
        yield done
    elif todo[0] is False or not ValueShape(done).kinds:
        yield None
    elif (ways := _expansions(document, todo[0])) is None:
        yield from _expand(document, todo[1:], (*done, todo[0]))
    else:
        for way in ways:
            yield from _expand(document, (*way, *todo[1:]), done)


def _expansions(document: SchemaDocument, schema: dict[str, Any]) -> _Expansions | None:
    """By what a schema can be replaced; `None` if it offers no choice."""
    for keyword in REFERENCES:
        if isinstance(schema.get(keyword), str):
            return [(document.resolve_reference(schema[keyword]), _without(schema, keyword))]
    if "allOf" in schema:
        return [(*schema["allOf"], _without(schema, "allOf"))]
    if "anyOf" in schema:
        return [(arm, _without(schema, "anyOf")) for arm in schema["anyOf"]]
    if "oneOf" in schema:
        return _only_one(schema["oneOf"], _without(schema, "oneOf"))
    if "if" in schema:
        return _conditional(schema)
    for keyword in ("dependentRequired", "dependentSchemas"):
        if schema.get(keyword):
            return _dependent(schema, keyword)
    turned = _negate(schema["not"]) if "not" in schema else None
    return None if turned is None else [(*way, _without(schema, "not")) for way in turned]


def _only_one(arms: list[Any], rest: dict[str, Any]) -> _Expansions:
    """Each arm: mostly that is enough; if not, without all others. One after the other: together they are the square
    of the arms.
    """
    yield from ((arm, rest) for arm in arms)
    denied = [{"not": arm} for arm in arms]
    for at, arm in enumerate(arms):
        yield (arm, *denied[:at], *denied[at + 1 :], rest)


def _conditional(schema: dict[str, Any]) -> _Expansions:
    rest = _without(schema, "if", "then", "else")
    condition = schema["if"]
    return [
        (condition, schema.get("then", True), rest),
        ({"not": condition}, schema.get("else", True), rest),
    ]


def _dependent(schema: dict[str, Any], keyword: str) -> _Expansions:
    """The first of the properties that others depend on: not there, or there with what it brings."""
    name, brings = next(iter(schema[keyword].items()))
    others = {other: each for other, each in schema[keyword].items() if other != name}
    rest = {**_without(schema, keyword), **({keyword: others} if others else {})}
    there = {"required": [name, *brings]} if keyword == "dependentRequired" else {"required": [name]}
    schemas = () if keyword == "dependentRequired" else (brings,)
    return [(_absent(name), rest), (there, *schemas, rest)]


def _negate(denied: Any) -> _Expansions | None:
    """The opposite of a schema: a way for each of its keywords that is not kept; None where it was turned before."""
    if isinstance(denied, bool):
        return [(not denied,)]
    if denied.get("$comment") == _NEGATED:
        return None
    ways = [way for keyword, value in denied.items() for way in _negate_keyword(keyword, value)]
    return ways if denied.keys() <= _SIMPLE else [*ways, ({"not": {**denied, "$comment": _NEGATED}},)]


def _negate_keyword(keyword: str, value: Any) -> _Expansions:
    """How one keyword is not kept, where that is easily said."""
    match keyword, value:
        case "required", [*names]:
            return [(_OBJECT, _absent(name)) for name in names]
        case "properties", {**named}:
            return [
                ({"required": [name], "properties": {name: {"not": inner}}}, _OBJECT) for name, inner in named.items()
            ]
        case ("anyOf", [*inner]):
            return [tuple({"not": each} for each in inner)]
        case ("allOf", [*inner]):
            return [({"not": each},) for each in inner]
        case "type", str() | [*_]:
            return [({"type": left},)] if (left := _other_types(value)) else []
        case "not", inner:
            return [(inner,)]
        case "items", dict() | bool():
            return [({"contains": {"not": value}, "type": "array"},)]
        case "contains", inner:
            return [({"items": {"not": inner}, "type": "array"},)]
        case "additionalProperties", inner:
            return [({"required": [_ADDED], "properties": {_ADDED: {"not": inner}}}, _OBJECT)]
        case "minimum" | "maximum", bound:
            other = "exclusiveMaximum" if keyword == "minimum" else "exclusiveMinimum"
            return [({"type": "number", other: bound},)]
    return []


def _other_types(denied: str | list[str]) -> list[str]:
    """A number that is no integer has no type of its own: the validator knows it."""
    named = [denied] if isinstance(denied, str) else denied
    return [each for each in TYPES if each not in named and not (each == "integer" and "number" in named)]


def _absent(name: str) -> dict[str, Any]:
    return {"properties": {name: False}}


def _without(schema: dict[str, Any], *keywords: str) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}
