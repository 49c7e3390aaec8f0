"""Types that only pydantic can handle: its models, and hints with its validators.

pydantic is never imported here. A hint can only need pydantic if it is in `sys.modules` already.
"""

from __future__ import annotations

import os
import pathlib
import sys
from collections.abc import Awaitable
from functools import lru_cache
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

import msgspec

from accord.schema.conversion_cost import check_numbers

JSONObject = dict[str, Any]

_MAX_FAILURES = 100
"""Number of failures in an error."""
_MAX_READ_FAILURES = 1_000
"""Number of failures up to which all are read from pydantic, which takes 3 us for each: there are as many for an item
as a union has types."""
_MAX_ITEMS = 3
"""Number of items of each array whose failures are in the error for a value with more failures."""

JSON_TYPES = "use a built-in type, a dataclass, a TypedDict, an Enum, a msgspec.Struct or a pydantic model"
"""Advice for a type without JSON."""


def schema(hint: Any, *, output: bool) -> tuple[JSONObject, JSONObject]:
    """Return the schema from pydantic, without titles, and its definitions."""
    mode = "serialization" if output else "validation"
    written = _without_titles(_adapter(hint).json_schema(mode=mode))
    return written, written.pop("$defs", {})


def load(hint: Any, value: Any) -> Any:
    """Convert a JSON value with pydantic. Raises `ValueError`, with the first failures."""
    adapter = _adapter(hint)
    text = msgspec.json.encode(value)
    check_numbers(text)  # pydantic creates sets of them
    try:
        return adapter.validate_json(text)
    except sys.modules["pydantic"].ValidationError as exc:
        count = exc.error_count()
        failures = (
            _errors(exc)
            if count <= _MAX_READ_FAILURES
            else _failures_of(adapter, _beginning(msgspec.json.decode(text)))
        )
        rest = [f"and more, {count:,} in all"] if count > _MAX_READ_FAILURES else []
    raise ValueError("; ".join([*map(_line, failures[:_MAX_FAILURES]), *rest]))


def _failures_of(adapter: Any, value: Any) -> list[Any]:
    """Return the failures of a value that is the beginning of another one, except that it is too short."""
    try:
        adapter.validate_json(msgspec.json.encode(value))
    except sys.modules["pydantic"].ValidationError as exc:
        if exc.error_count() <= _MAX_READ_FAILURES:
            return [error for error in _errors(exc) if error["type"] != "too_short"]
    return []


def _errors(exc: Any) -> list[Any]:
    failures: list[Any] = exc.errors(include_url=False, include_context=False, include_input=False)
    return failures


def _beginning(value: Any) -> Any:
    """Return a JSON value with the first items of each array."""
    if isinstance(value, list):
        return [_beginning(item) for item in value[:_MAX_ITEMS]]
    return {key: _beginning(item) for key, item in value.items()} if isinstance(value, dict) else value


def dump(value: Any) -> Any:
    """Return a pydantic object or a path as JSON; an `enc_hook` for msgspec. Raises `TypeError`."""
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if "pydantic" in sys.modules and hasattr(type(value), "__get_pydantic_core_schema__"):
        return _adapter(type(value)).dump_python(value, mode="json")
    raise TypeError(f"{type(value).__qualname__} cannot be turned into JSON{_hint(value)}")


def _hint(value: Any) -> str:
    """Return a hint at the probable mistake of the author."""
    if isinstance(value, CoroutineType):
        code = value.cr_code
        place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        return f": {value.__qualname__}() ({place}) was called without `await`; did you forget `await`?"
    if isinstance(value, Awaitable):
        return "; did you forget `await`?"
    if isinstance(value, GeneratorType | AsyncGeneratorType):
        return f": {value.__qualname__}() yields; collect what it yields in a list and return that"
    return f": {JSON_TYPES}"


@lru_cache(maxsize=256)
def _adapter_of(hint: Any) -> Any:
    return sys.modules["pydantic"].TypeAdapter(hint)


def _adapter(hint: Any) -> Any:
    try:
        return _adapter_of(hint)
    except TypeError:  # the hint has metadata without a hash
        return sys.modules["pydantic"].TypeAdapter(hint)


def _line(error: Any) -> str:
    where = ".".join(map(str, error["loc"]))
    return f"{where}: {error['msg']}" if where else str(error["msg"])


_MAPS = ("properties", "$defs", "patternProperties")


def _without_titles(schema: Any) -> Any:
    """Return the schema without `title`; the keys under `properties` and similar keywords are names."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(inner) for name, inner in value.items()} if key in _MAPS else _keyword(key, value)
        for key, value in schema.items()
        if key != "title"
    }


def _keyword(key: str, value: Any) -> Any:
    return value if key in ("default", "const", "enum", "examples") else _without_titles(value)
