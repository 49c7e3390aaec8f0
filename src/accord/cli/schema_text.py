"""Schemas as a person writes them: `city: string, days: integer = 3, unit?: "C" | "F"`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from accord.cli.values import Schema, resolve

_MAX_DEPTH = 4
_MAX_DEFAULT_LENGTH = 32
_MAX_LENGTH = 1_000
"""Characters of a value or a type."""

_MAX_PARTS = 1_000
"""Schemas and values that are written for one tool: references and unions may make billions of a few."""


def parameters(schema: Schema) -> list[str]:
    """One entry per parameter, the required ones as they come, the others with default or question mark."""
    required = schema.get("required")
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    names = {each for each in required if isinstance(each, str)} if isinstance(required, list) else set[str]()
    writer = _TypeWriter(schema)
    shown = [writer.parameter(name, properties[name], name in names) for name in list(properties)[:_MAX_PARTS]]
    return [*shown, *["…"][: len(properties) - len(shown)]]


class _TypeWriter:
    """Writes the types of the parameters of one tool, up to a number of parts; `…` stands for the others."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._remaining = _MAX_PARTS

    def parameter(self, name: str, about: Any, required: bool) -> str:
        """`unit?: "C" | "F"`."""
        given = about if isinstance(about, dict) else {}
        if required:
            return f"{name}: {self._type(about)}"
        if given.get("default") is not None:
            return f"{name}: {self._type(about)} = {self._value(given['default'], _MAX_DEFAULT_LENGTH)}"
        return f"{name}?: {self._type(about)}"

    def _type(self, about: Any, depth: int = _MAX_DEPTH) -> str:
        """A schema as a type: `string`, `integer[]`, `"a" | "b"`."""
        self._remaining -= 1
        if depth == 0 or self._remaining < 0:
            return "…"
        about = resolve(about, self._root)
        if "const" in about:
            return self._value(about["const"])
        if isinstance(values := about.get("enum"), list):
            return self._union(map(self._value, values))
        arms = about.get("anyOf") or about.get("oneOf")
        if isinstance(arms, list):
            return self._union(self._type(arm, depth - 1) for arm in arms)
        declared = about.get("type", "any")
        names = declared if isinstance(declared, list) else [declared]
        return self._union(self._array(about, depth) if name == "array" else str(name)[:_MAX_LENGTH] for name in names)

    def _array(self, about: Schema, depth: int) -> str:
        if "items" not in about:
            return "array"
        items = self._type(about["items"], depth - 1)
        return f"({items})[]" if " | " in items else f"{items}[]"

    def _value(self, value: Any, most: int = _MAX_LENGTH) -> str:
        text = json.dumps(value, ensure_ascii=False)
        self._remaining -= 1 + len(text) // _MAX_LENGTH
        return text if len(text) <= most else f"{text[:most]}…"

    def _union(self, texts: Iterable[str]) -> str:
        shown: dict[str, None] = {}
        for text in texts:
            shown[text] = None
            if self._remaining < 0:
                shown["…"] = None
                break
        return " | ".join(shown)
