"""`key=value` words as arguments of a tool; values are parsed by its schema.

days=3           an integer where the schema has one, a string where it has that
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

_WORD = re.compile(r"(?P<key>[^=]+?)(?P<json>:?)=(?P<value>.*)", re.DOTALL)

Schema = Mapping[str, Any]


def pairs(words: Iterable[str]) -> list[tuple[str, bool, str]]:
    """Each word as key, whether its value is JSON by itself, and value."""
    found = []
    for word in words:
        match = _WORD.fullmatch(_check_utf8(word))
        if match is None:
            raise click.UsageError(f"{word!r} is not key=value")
        found.append((match["key"], bool(match["json"]), match["value"]))
    return found


def document(text: str) -> dict[str, Any]:
    """Arguments as one JSON object: itself, `@FILE`, or `-` for stdin."""
    try:
        if text == "-":
            text = sys.stdin.read()
        elif text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        given = json.loads(_check_utf8(text))
    except (OSError, ValueError, RecursionError) as exc:
        raise click.UsageError(f"--args: {exc}") from exc
    if not isinstance(given, dict):
        raise click.UsageError("--args: give a JSON object")
    return given


def arguments_of(words: Iterable[str], schema: Schema) -> dict[str, Any]:
    """The arguments that the words mean under a tool's input schema."""
    arguments: dict[str, Any] = {}
    for key, is_json, value in pairs(words):
        about = resolve(schema.get("properties", {}).get(key, {}), schema)
        if key not in arguments:
            arguments[key] = _json(key, value) if is_json else _value(key, value, about, schema)
        elif "array" in kinds(about, schema) and isinstance(arguments[key], list) and not is_json:
            arguments[key] += _value(key, value, about, schema)
        else:
            raise click.UsageError(f"{key} is given twice")
    return arguments


def _value(key: str, text: str, about: Schema, root: Schema) -> Any:
    expected = kinds(about, root)
    if expected == {"array"} and not text.lstrip().startswith("["):
        return [_value(key, text, resolve(about.get("items", {}), root), root)]
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
    return click.UsageError(f"{key}: expected {' or '.join(sorted(expected))}, got {text!r}")


def kinds(about: Any, root: Schema) -> set[str]:
    """The JSON types that a schema allows; none where it does not say."""
    about = resolve(about, root)
    if isinstance(declared := about.get("type"), str):
        return {declared}
    if isinstance(declared, list):
        return set(declared)
    if "enum" in about or "const" in about:
        return {_kind(value) for value in about.get("enum", [about.get("const")])}
    arms = about.get("anyOf") or about.get("oneOf") or []
    allowed = [kinds(arm, root) for arm in arms]
    return set().union(*allowed) if all(allowed) else set()


def resolve(about: Any, root: Schema, depth: int = 16) -> Schema:
    """A schema with a reference to within its root followed."""
    while isinstance(about, dict) and isinstance(ref := about.get("$ref"), str) and ref.startswith("#/") and depth:
        about, depth = root, depth - 1
        for step in ref[2:].split("/"):
            about = about.get(step, {}) if isinstance(about, dict) else {}
    return about if isinstance(about, dict) else {}


_KINDS = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null")


def _check_utf8(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise click.UsageError(f"{text!r} is not valid UTF-8") from exc
    return text
