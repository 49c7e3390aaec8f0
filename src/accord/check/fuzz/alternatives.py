"""Expand the schemas at one location of a value into alternatives without choices.

`allOf` and references are expanded; `anyOf`, `oneOf`, `if`, `dependentRequired` and `dependentSchemas` produce one
alternative for each way to satisfy them; a simple `not` is replaced by its negation. An alternative does not express
every constraint (that only one branch of `oneOf` may match, most forms of `not`), so the caller validates each value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from accord.check.fuzz.schema_document import REFERENCES, Conjunction, GenerationError, SchemaDocument
from accord.check.fuzz.shape import TYPES, ValueShape

_MAX_ALTERNATIVES = 48
"""The maximum number of alternatives for one location."""
_STEPS = 4_000
"""The maximum number of steps to find them."""

_SIMPLE = frozenset(("required", "properties", "anyOf", "allOf", "type", "not"))
"""Keywords whose negation other keywords express completely."""
_NEGATED = "already negated"
_OBJECT = {"type": "object"}
_ADDED = "added"

_Expansions = Iterable[Conjunction]


def alternatives(document: SchemaDocument, conjunction: Conjunction) -> list[ValueShape]:
    """Return the satisfiable alternatives, at most `_MAX_ALTERNATIVES`. Raises `GenerationError` if there are none."""
    if not (found := document.cached(_shapes, conjunction)):
        raise GenerationError("no value can match all the schemas at one location")
    return found


def _shapes(document: SchemaDocument, conjunction: Conjunction) -> list[ValueShape]:
    steps = islice(_expand(document, conjunction, ()), _STEPS)
    shapes = (ValueShape(flat) for flat in steps if flat is not None)
    try:
        return list(islice((shape for shape in shapes if shape.is_satisfiable), _MAX_ALTERNATIVES))
    except RecursionError:  # too many schemas apply to one location
        return []


def _expand(document: SchemaDocument, todo: Conjunction, done: Conjunction) -> Iterator[Conjunction | None]:
    """Yield conjunctions without choices, and None for each step without a result, so that the caller counts steps."""
    while todo and (todo[0] is True or (isinstance(todo[0], dict) and not todo[0])):
        todo = todo[1:]
    if not todo:
        yield done
    elif todo[0] is False or not ValueShape(done).kinds:
        yield None
    elif (expansions := _expansions(document, todo[0])) is None:
        yield from _expand(document, todo[1:], (*done, todo[0]))
    else:
        for expansion in expansions:
            yield from _expand(document, (*expansion, *todo[1:]), done)


def _expansions(document: SchemaDocument, schema: dict[str, Any]) -> _Expansions | None:
    """Return the conjunctions that can replace a schema, or None if it offers no choice."""
    for keyword in REFERENCES:
        if isinstance(schema.get(keyword), str):
            return [(document.resolve_reference(schema[keyword]), _without(schema, keyword))]
    if "allOf" in schema:
        return [(*schema["allOf"], _without(schema, "allOf"))]
    if "anyOf" in schema:
        return [(branch, _without(schema, "anyOf")) for branch in schema["anyOf"]]
    if "oneOf" in schema:
        return _only_one(schema["oneOf"], _without(schema, "oneOf"))
    if "if" in schema:
        return _conditional(schema)
    for keyword in ("dependentRequired", "dependentSchemas"):
        if schema.get(keyword):
            return _dependent(schema, keyword)
    negations = _negate(schema["not"]) if "not" in schema else None
    return None if negations is None else [(*negation, _without(schema, "not")) for negation in negations]


def _only_one(branches: list[Any], rest: dict[str, Any]) -> _Expansions:
    """Yield each branch alone, which is usually enough, then each branch with the negation of all others.

    This is a generator because the second group has the square of the number of branches.
    """
    yield from ((branch, rest) for branch in branches)
    negated = [{"not": branch} for branch in branches]
    for index, branch in enumerate(branches):
        yield (branch, *negated[:index], *negated[index + 1 :], rest)


def _conditional(schema: dict[str, Any]) -> _Expansions:
    rest = _without(schema, "if", "then", "else")
    condition = schema["if"]
    return [
        (condition, schema.get("then", True), rest),
        ({"not": condition}, schema.get("else", True), rest),
    ]


def _dependent(schema: dict[str, Any], keyword: str) -> _Expansions:
    """Return two expansions for the first property with dependents: without it, or with it and its dependents."""
    name, dependents = next(iter(schema[keyword].items()))
    others = {other: each for other, each in schema[keyword].items() if other != name}
    rest = {**_without(schema, keyword), **({keyword: others} if others else {})}
    present = {"required": [name, *dependents]} if keyword == "dependentRequired" else {"required": [name]}
    schemas = () if keyword == "dependentRequired" else (dependents,)
    return [(_absent(name), rest), (present, *schemas, rest)]


def _negate(schema: Any) -> _Expansions | None:
    """Return an expansion for each keyword of a schema that a value can violate; None if it was negated before."""
    if isinstance(schema, bool):
        return [(not schema,)]
    if schema.get("$comment") == _NEGATED:
        return None
    negations = [each for keyword, value in schema.items() for each in _negate_keyword(keyword, value)]
    return negations if schema.keys() <= _SIMPLE else [*negations, ({"not": {**schema, "$comment": _NEGATED}},)]


def _negate_keyword(keyword: str, value: Any) -> _Expansions:
    """Return the expansions that violate one keyword, if other keywords can express them."""
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


def _other_types(excluded: str | list[str]) -> list[str]:
    """Return the types that are not excluded; the validator rejects an integer where `number` is excluded."""
    named = [excluded] if isinstance(excluded, str) else excluded
    return [each for each in TYPES if each not in named and not (each == "integer" and "number" in named)]


def _absent(name: str) -> dict[str, Any]:
    return {"properties": {name: False}}


def _without(schema: dict[str, Any], *keywords: str) -> dict[str, Any]:
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}
