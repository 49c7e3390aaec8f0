"""Schemas as text: `city: string, days: integer = 3, unit?: "C" | "F"`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from accord.cli.values import Schema, resolve

_MAX_DEPTH = 4
_MAX_DEFAULT_LENGTH = 32
_MAX_LENGTH = 1_000
"""The maximum length of a value or a type in characters."""

_MAX_PARTS = 1_000
"""The maximum number of schemas and values for one tool, because references and unions may expand to billions."""


def parameters(schema: Schema) -> list[str]:
    """Return one entry per parameter: required ones without a mark, the others with a default or a question mark."""
    required = schema.get("required")
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    names = {each for each in required if isinstance(each, str)} if isinstance(required, list) else set[str]()
    writer = _TypeWriter(schema)
    texts = [writer.parameter(name, properties[name], name in names) for name in list(properties)[:_MAX_PARTS]]
    return [*texts, *["…"][: len(properties) - len(texts)]]


class _TypeWriter:
    """Writes the parameter types of one tool, up to a number of parts; `…` stands for the rest."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._remaining = _MAX_PARTS

    def parameter(self, name: str, schema: Any, required: bool) -> str:
        """Return a parameter as text: `unit?: "C" | "F"`."""
        fields = schema if isinstance(schema, dict) else {}
        if required:
            return f"{name}: {self._type(schema)}"
        if fields.get("default") is not None:
            return f"{name}: {self._type(schema)} = {self._value(fields['default'], _MAX_DEFAULT_LENGTH)}"
        return f"{name}?: {self._type(schema)}"

    def _type(self, schema: Any, depth: int = _MAX_DEPTH) -> str:
        """Return a schema as a type: `string`, `integer[]`, `"a" | "b"`."""
        self._remaining -= 1
        if depth == 0 or self._remaining < 0:
            return "…"
        schema = resolve(schema, self._root)
        if "const" in schema:
            return self._value(schema["const"])
        if isinstance(values := schema.get("enum"), list):
            return self._union(map(self._value, values))
        members = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(members, list):
            return self._union(self._type(member, depth - 1) for member in members)
        declared = schema.get("type", "any")
        names = declared if isinstance(declared, list) else [declared]
        return self._union(self._array(schema, depth) if name == "array" else str(name)[:_MAX_LENGTH] for name in names)

    def _array(self, schema: Schema, depth: int) -> str:
        if "items" not in schema:
            return "array"
        items = self._type(schema["items"], depth - 1)
        return f"({items})[]" if " | " in items else f"{items}[]"

    def _value(self, value: Any, most: int = _MAX_LENGTH) -> str:
        text = json.dumps(value, ensure_ascii=False)
        self._remaining -= 1 + len(text) // _MAX_LENGTH
        return text if len(text) <= most else f"{text[:most]}…"

    def _union(self, texts: Iterable[str]) -> str:
        members: dict[str, None] = {}
        for text in texts:
            members[text] = None
            if self._remaining < 0:
                members["…"] = None
                break
        return " | ".join(members)
