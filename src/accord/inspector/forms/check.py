"""The check of a value against its schema, with each error at its field."""

from __future__ import annotations

from typing import Any

import msgspec

from accord.errors import Mismatch, SchemaError
from accord.schema.validate import compile
from accord.visible_text import truncate

_MOST_ERRORS = 100
_REASON = 1_000


class FieldError(msgspec.Struct, frozen=True):
    """An error at a place of a value. `pointer` is a JSON Pointer; a missing member has its own."""

    pointer: str
    reason: str


class ValueCheck(msgspec.Struct, frozen=True):
    """The errors of a value, at most 100. `problem`: why it cannot be checked."""

    errors: list[FieldError] = []
    problem: str | None = None


def check_value(schema_text: str | bytes, text: str | bytes) -> ValueCheck:
    """Check a value against a JSON Schema; both are JSON."""
    try:
        schema = msgspec.json.decode(schema_text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        return ValueCheck(problem=f"the schema is not valid JSON: {exc}")
    try:
        value = msgspec.json.decode(text)
    except msgspec.ValidationError as exc:
        return ValueCheck(problem=f"the value cannot be checked: {exc}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        return ValueCheck([FieldError("", f"not valid JSON: {exc}")])
    return check_decoded(schema, value)


def check_decoded(schema: Any, value: Any) -> ValueCheck:
    """Check a value against a JSON Schema, both decoded."""
    try:
        failures = compile(schema).failures(value, _MOST_ERRORS)
    except SchemaError as exc:
        return ValueCheck(problem=truncate(str(exc), _REASON))
    except Mismatch as exc:
        return ValueCheck([FieldError("", truncate(exc.reason, _REASON))])
    return ValueCheck([FieldError(pointer(path), truncate(reason, _REASON)) for path, reason in failures])


def pointer(path: Any) -> str:
    """Return the steps to a place as a JSON Pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
