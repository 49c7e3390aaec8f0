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

from accord.cli.columns import one_line

_WORD = re.compile(r"(?P<key>[^=]+?)(?P<json>:?)=(?P<value>.*)", re.DOTALL)

Schema = Mapping[str, Any]

_MAX_DEPTH = 16
"""References that are followed, one to the next, and arrays within arrays."""

_MAX_REFERENCE = 1_000
"""Characters of a reference."""


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
    properties = schema.get("properties")
    for key, is_json, value in pairs(words):
        about = resolve(properties.get(key), schema) if isinstance(properties, dict) else {}
        if key not in arguments:
            arguments[key] = _json(key, value) if is_json else _value(key, value, about, schema)
        elif "array" in kinds(about, schema) and isinstance(arguments[key], list) and not is_json:
            arguments[key] += _value(key, value, about, schema)
        else:
            raise click.UsageError(f"{key} is given twice")
    return arguments


def _value(key: str, text: str, about: Schema, root: Schema, depth: int = _MAX_DEPTH) -> Any:
    expected = kinds(about, root)
    if depth and expected == {"array"} and not text.lstrip().startswith("["):
        return [_value(key, text, resolve(about.get("items"), root), root, depth - 1)]
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


def kinds(about: Any, root: Schema) -> set[str]:
    """The JSON types that a schema allows; none where it does not say."""
    found, waiting, seen = set[str](), [about], set[int]()
    while waiting:
        about = resolve(waiting.pop(), root)
        if id(about) in seen:  # a schema may refer to itself, or to another by many ways
            continue
        seen.add(id(about))
        arms = about.get("anyOf") or about.get("oneOf")
        if own := _own_kinds(about):
            found |= own
        elif arms and isinstance(arms, list):
            waiting += arms
        else:
            return set()
    return found


def _own_kinds(about: Schema) -> set[str]:
    """The JSON types that a schema names without the help of others."""
    if isinstance(declared := about.get("type"), str | list):
        return {each for each in ([declared] if isinstance(declared, str) else declared) if isinstance(each, str)}
    if isinstance(values := about.get("enum"), list):
        return {_kind(value) for value in values}
    return {_kind(about["const"])} if "const" in about else set()


def resolve(about: Any, root: Schema, depth: int = _MAX_DEPTH) -> Schema:
    """A schema with a reference to within its root followed."""
    while isinstance(about, dict) and isinstance(ref := about.get("$ref"), str) and ref.startswith("#/") and depth:
        if len(ref) > _MAX_REFERENCE:
            return {}
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
