"""Schemas as a person writes them: `city: string, days: integer = 3, unit?: "C" | "F"`."""

from __future__ import annotations

import json
from typing import Any

from accord.cli.values import Schema, resolve

_MAX_DEPTH = 4
_MAX_DEFAULT_LENGTH = 32


def parameters(schema: Schema) -> list[str]:
    """One entry per parameter, the required ones as they come, the others with default or question mark."""
    required = schema.get("required") or []
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return []
    return [_parameter(name, about, schema, name in required) for name, about in properties.items()]


def _parameter(name: str, about: Any, root: Schema, required: bool) -> str:
    given = about if isinstance(about, dict) else {}
    if required:
        return f"{name}: {shape(about, root)}"
    if given.get("default") is not None:
        default = json.dumps(given["default"], ensure_ascii=False)
        shown = default if len(default) <= _MAX_DEFAULT_LENGTH else f"{default[:_MAX_DEFAULT_LENGTH]}…"
        return f"{name}: {shape(about, root)} = {shown}"
    return f"{name}?: {shape(about, root)}"


def shape(about: Any, root: Schema, depth: int = _MAX_DEPTH) -> str:
    """A schema as a type: `string`, `integer[]`, `"a" | "b"`."""
    about = resolve(about, root)
    if depth == 0:
        return "…"
    if "const" in about:
        return json.dumps(about["const"], ensure_ascii=False)
    if isinstance(values := about.get("enum"), list):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values)
    arms = about.get("anyOf") or about.get("oneOf")
    if isinstance(arms, list):
        return " | ".join(dict.fromkeys(shape(arm, root, depth - 1) for arm in arms))
    declared = about.get("type", "any")
    names = declared if isinstance(declared, list) else [declared]
    return " | ".join(_array(about, root, depth) if name == "array" else str(name) for name in names)


def _array(about: Schema, root: Schema, depth: int) -> str:
    if "items" not in about:
        return "array"
    items = shape(about["items"], root, depth - 1)
    return f"({items})[]" if " | " in items else f"{items}[]"
