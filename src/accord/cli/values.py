"""`key=value` words as arguments of a tool, parsed by its schema.

days=3           an integer if the schema has one, a string if it has that
tags='["a"]'     arrays and objects are JSON; an array may also be given as tags=a tags=b
days:=3          always JSON, whatever the schema says
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from accord.cli.columns import one_line

_WORD = re.compile(r"(?P<key>[^=]+?)(?P<json>:?)=(?P<value>.*)", re.DOTALL)

Schema = Mapping[str, Any]

_MAX_DEPTH = 16
"""The maximum length of a chain of references, and of nested arrays."""

_MAX_REFERENCE = 1_000
"""The maximum length of a reference in characters."""


def pairs(words: Iterable[str]) -> list[tuple[str, bool, str]]:
    """Return each word as its key, whether `:=` marks its value as JSON, and its value."""
    parsed = []
    for word in words:
        match = _WORD.fullmatch(_check_utf8(word))
        if match is None:
            raise click.UsageError(f"{word!r} is not key=value")
        parsed.append((match["key"], bool(match["json"]), match["value"]))
    return parsed


def document(text: str) -> dict[str, Any]:
    """Return the arguments of a JSON object: inline, in `@FILE`, or on stdin for `-`."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        decoded = json.loads(_check_utf8(text))
    except (OSError, ValueError, RecursionError) as exc:
        raise click.UsageError(f"--args: {exc}") from exc
    if not isinstance(decoded, dict):
        raise click.UsageError("--args: give a JSON object")
    return decoded


def arguments_of(words: Iterable[str], schema: Schema) -> dict[str, Any]:
    """Return the arguments that the words stand for under a tool's input schema."""
    arguments: dict[str, Any] = {}
    properties = schema.get("properties")
    for key, is_json, value in pairs(words):
        property_schema = resolve(properties.get(key), schema) if isinstance(properties, dict) else {}
        if key not in arguments:
            arguments[key] = _json(key, value) if is_json else _value(key, value, property_schema, schema)
        elif "array" in kinds(property_schema, schema) and isinstance(arguments[key], list) and not is_json:
            arguments[key] += _value(key, value, property_schema, schema)
        else:
            raise click.UsageError(f"{key} is given twice")
    return arguments


def _value(key: str, text: str, schema: Schema, root: Schema, depth: int = _MAX_DEPTH) -> Any:
    expected = kinds(schema, root)
    if depth and expected == {"array"} and not text.lstrip().startswith("["):
        return [_value(key, text, resolve(schema.get("items"), root), root, depth - 1)]
    if not expected or "string" in expected:
        return text
    value = _json(key, text, expected)
    if _kind(value) in expected or (_kind(value) == "integer" and "number" in expected):
        return value
    raise _mismatch(key, text, expected)


def _json(key: str, text: str, expected: Iterable[str] = ("JSON",)) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _mismatch(key, text, expected) from exc


def _mismatch(key: str, text: str, expected: Iterable[str]) -> click.UsageError:
    types = one_line(" or ".join(sorted(expected)))
    return click.UsageError(f"{key}: expected {types}, got {text!r}")


def kinds(schema: Any, root: Schema) -> set[str]:
    """Return the JSON types that a schema allows, or an empty set if it allows any."""
    types, pending, seen = set[str](), [schema], set[int]()
    while pending:
        schema = resolve(pending.pop(), root)
        if id(schema) in seen:  # a schema may refer to itself, or to another in several ways
            continue
        seen.add(id(schema))
        members = schema.get("anyOf") or schema.get("oneOf")
        if own_types := _own_kinds(schema):
            types |= own_types
        elif members and isinstance(members, list):
            pending += members
        else:
            return set()
    return types


def _own_kinds(schema: Schema) -> set[str]:
    """Return the JSON types that a schema names itself."""
    if isinstance(declared := schema.get("type"), str | list):
        return {name for name in ([declared] if isinstance(declared, str) else declared) if isinstance(name, str)}
    if isinstance(values := schema.get("enum"), list):
        return {_kind(value) for value in values}
    return {_kind(schema["const"])} if "const" in schema else set()


def resolve(schema: Any, root: Schema, depth: int = _MAX_DEPTH) -> Schema:
    """Return a schema with its references within the root resolved."""
    while isinstance(schema, dict) and isinstance(ref := schema.get("$ref"), str) and ref.startswith("#/") and depth:
        if len(ref) > _MAX_REFERENCE:
            return {}
        schema, depth = root, depth - 1
        for key in ref[2:].split("/"):
            schema = schema.get(key, {}) if isinstance(schema, dict) else {}
    return schema if isinstance(schema, dict) else {}


_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null")


def _check_utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise click.UsageError(f"{text!r} is not valid UTF-8") from exc
    return text
