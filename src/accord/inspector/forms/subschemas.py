"""The subschemas that apply to one place of a value: references and `allOf` followed, in a document of JSON Schema.

A place may have several: a property that two parts of an `allOf` name has two. All of them apply together, so the rest
of the form reads a list of subschemas and needs no merged schema. References are followed only inside the document, and
each subschema is followed once, so a schema that contains itself ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from accord.errors import SchemaError
from accord.limits import DEFAULT_LIMITS
from accord.schema.cost import count_values
from accord.schema.references import References, is_resource
from accord.schema.subschema_cost import REFERENCES

_MOST_PARTS = 100
"""Limit of the subschemas for one place."""
_OLD_DIALECTS = ("draft-04", "draft-06", "draft-07")
"""In these, the keywords beside a `$ref` are ignored."""

_PART_WORK = 20
"""Steps to look for the keywords of a subschema."""
FOLLOWED = frozenset((*REFERENCES, "allOf"))
"""Keywords that lead to further subschemas of the same place."""
_LEFT_OUT = FOLLOWED | {"anyOf", "oneOf"}
"""Keywords that may be left out of a subschema, because what they lead to is described already."""

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode


PartKey = tuple[int, frozenset[str]]
"""The identity of a subschema, and the keywords that are left out of it."""


class Subschema(NamedTuple):
    """A subschema of a document. `base` is its resource; the keywords `without` are left out of it."""

    schema: Any
    base: Any
    without: frozenset[str] = frozenset()

    def key(self) -> PartKey:
        """Return the identity of the subschema."""
        return id(self.schema), self.without

    def get(self, keyword: str) -> Any:
        """Return the value of a keyword, or None."""
        return None if keyword in self.without else self.schema.get(keyword)

    def has(self, keyword: str) -> bool:
        """Return whether the keyword applies."""
        return keyword in self.schema and keyword not in self.without


class FormPlace(NamedTuple):
    """All subschemas that apply to one place. `refused`: one of them is `false`, so no value is valid."""

    parts: list[Subschema]
    notes: list[str]
    refused: bool

    def each(self, keyword: str, type_: type | tuple[type, ...]) -> list[Any]:
        """Return the values of a keyword that have a type, of all subschemas."""
        values = (part.get(keyword) for part in self.parts)
        return [value for value in values if isinstance(value, type_) and isinstance(value, bool) == (type_ is bool)]

    def keys(self) -> frozenset[PartKey]:
        """Return the identities of the subschemas."""
        return frozenset(part.key() for part in self.parts)

    def work(self) -> int:
        """Return the number of steps to describe the place, about as many as characters in the time for each."""
        sizes = (len(value) for part in self.parts for value in part.schema.values() if isinstance(value, (dict, list)))
        return _PART_WORK * len(self.parts) + sum(sizes)

    def first(self, keyword: str) -> Any:
        """Return the first text of a keyword, or None."""
        return next(iter(self.each(keyword, str)), None)


class FormSchema:
    """A document of JSON Schema. Numbers keep their digits. Raises `SchemaError` for a text that is no JSON Schema,
    or one with too many values."""

    def __init__(self, text: str | bytes) -> None:
        self.root: Any = decode_exactly(text)
        if not isinstance(self.root, (dict, bool)):
            raise SchemaError(f"a JSON Schema must be an object or a boolean, not {type(self.root).__name__}")
        count_values(self.root, DEFAULT_LIMITS.depth)
        self._references = References(self.root)
        self._parents: dict[int, tuple[Any, str]] | None = None
        dialect = self.root.get("$schema") if isinstance(self.root, dict) else None
        self._ignores_siblings = isinstance(dialect, str) and any(old in dialect for old in _OLD_DIALECTS)

    def top(self) -> list[Subschema]:
        """Return the whole schema."""
        return [Subschema(self.root, self.root)]

    def inner(self, part: Subschema, schema: Any) -> Subschema:
        """Return a subschema inside a part."""
        return Subschema(schema, schema if isinstance(schema, dict) and is_resource(schema) else part.base)

    def place(self, parts: Sequence[Subschema]) -> FormPlace:
        """Follow the references and `allOf` of the subschemas of a place."""
        found, notes, refused = list[Subschema](), list[str](), False
        pending, seen = list(reversed(parts)), set[PartKey]()
        while pending:
            part = pending.pop()
            if isinstance(part.schema, bool) or not isinstance(part.schema, dict):
                refused |= part.schema is False
                notes += [] if isinstance(part.schema, bool) else ["the schema has something else than a schema here"]
                continue
            part = self._without_siblings(part)
            if part.key() in seen:
                continue
            seen.add(part.key())
            if len(found) == _MOST_PARTS:
                notes.append(f"more than {_MOST_PARTS} subschemas apply here; the form shows some of them")
                break
            found.append(part)
            pending += reversed([*self._referenced(part, notes), *self._all_of(part)])
        return FormPlace(found, notes, refused)

    def _referenced(self, part: Subschema, notes: list[str]) -> Iterable[Subschema]:
        for keyword in REFERENCES:
            reference = part.get(keyword)
            if isinstance(reference, str):
                try:
                    target, base = next(iter(self._references.targets(reference, part.base)))
                except SchemaError as exc:
                    notes.append(str(exc)[:500])
                else:
                    yield Subschema(target, target if isinstance(target, dict) and is_resource(target) else base)

    def _all_of(self, part: Subschema) -> Iterable[Subschema]:
        every = part.get("allOf")
        return [self.inner(part, schema) for schema in every] if isinstance(every, list) else []

    def _without_siblings(self, part: Subschema) -> Subschema:
        if self._ignores_siblings and "$ref" in part.schema:
            return part._replace(without=part.without | part.schema.keys() - {"$ref", "title", "description"})
        return part

    # --- references to places ----------------------------------------------------------------------------------

    def reference(self, part: Subschema) -> str:
        """Return a reference to a part, for `resolve`: the keywords that are left out, and a JSON Pointer."""
        if isinstance(part.schema, bool):
            return str(part.schema).lower()
        if self._parents is None:
            self._parents = _find_parents(self.root)
        steps, value = list[str](), part.schema
        while value is not self.root:
            value, step = self._parents[id(value)]
            steps.append(step.replace("~", "~0").replace("/", "~1"))
        return ",".join(sorted(part.without & _LEFT_OUT)) + ":" + "".join(f"/{step}" for step in reversed(steps))

    def resolve(self, reference: str) -> Subschema:
        """Return the part of a reference. Raises `SchemaError`."""
        if reference in ("true", "false"):
            return Subschema(reference == "true", self.root)
        without, _, pointer = reference.partition(":")
        value = base = self.root
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            try:
                value = value[int(key)] if isinstance(value, list) else value[key]
            except (LookupError, TypeError, ValueError):
                raise SchemaError(f"the schema has nothing at {pointer[:200]!r}") from None
            base = value if isinstance(value, dict) and is_resource(value) else base
        return Subschema(value, base, frozenset(filter(None, without.split(","))))


def decode_exactly(text: str | bytes) -> Any:
    """Return a JSON value whose fractions are decimal numbers. Raises `SchemaError`."""
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ArithmeticError) as exc:
        raise SchemaError(f"the schema is not valid JSON: {exc}") from None


def json_text(value: Any) -> str:
    """Return a value of a schema as JSON."""
    return _encode(value).decode()


def _find_parents(root: Any) -> dict[int, tuple[Any, str]]:
    """Return the parent of each array and object, and the name or index in it."""
    parents: dict[int, tuple[Any, str]] = {}
    pending = [root]
    while pending:
        outer = pending.pop()
        pairs = outer.items() if isinstance(outer, dict) else enumerate(outer)
        for step, inner in pairs:
            if isinstance(inner, (dict, list)):
                parents[id(inner)] = outer, str(step)
                pending.append(inner)
    return parents
