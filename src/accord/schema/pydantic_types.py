"""Types that only pydantic can handle: its models, and hints with its validators.

pydantic is never imported here. A hint can only need pydantic if it is in `sys.modules` already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

import msgspec

from accord.schema.conversion_cost import MAX_EQUAL_HASHES, check_hashes

JSONObject = dict[str, Any]

_MAX_FAILURES = 100
"""Number of failures in an error."""
_MAX_READ_FAILURES = 1_000
"""Number of failures up to which all are read from pydantic, which takes 3 us for each: there are as many for an item
as a union has types."""
_MAX_ITEMS = 3
"""Number of items of each array whose failures are in the error for a value with more failures."""

_PLAIN: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__index__),
    (float, float.__float__),
)
"""Conversions of subclasses to plain values, whatever methods these have: `numpy.float64`, a text of BeautifulSoup."""

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
    if probes := _probes(hint):
        _check_collections(value, probes)
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
    """Return a pydantic object, a path, or a text or number of a subclass as JSON; an `enc_hook` for msgspec. Raises
    `TypeError`.
    """
    if "pathlib" in sys.modules and isinstance(value, sys.modules["pathlib"].PurePath):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if "pydantic" in sys.modules and hasattr(type(value), "__get_pydantic_core_schema__"):
        return _adapter(type(value)).dump_python(value, mode="json")
    for plain, convert in _PLAIN:
        if isinstance(value, plain):
            return convert(value)
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
    if hasattr(value, "to_content"):
        return ": return it alone or in a list, or with data as ToolOutput(data, content=[...])"
    return f": {JSON_TYPES}"


@lru_cache(maxsize=256)
def _adapter_of(hint: Any) -> Any:
    return sys.modules["pydantic"].TypeAdapter(hint)


def _adapter(hint: Any) -> Any:
    try:
        return _adapter_of(hint)
    except TypeError:  # the hint has metadata without a hash
        return sys.modules["pydantic"].TypeAdapter(hint)


# Sets and dicts. pydantic creates them item by item, in quadratic time if the items share one hash, and which items do
# depends on how pydantic reads them: "1_0" is the integer 10. Every array and object that could become a set or a dict
# is therefore converted to a list first, by the types of the items of all sets and dicts in the hint.

_UNPREDICTABLE = {"str", "bytes", "none", "bool", "literal", "enum", "date", "time", "datetime", "url"}
"""Schemas of pydantic for values with random hashes, or of which only few share one hash."""
_SCALARS = {"int", "float", "decimal", "uuid", "complex"}
_UNREAD = {"metadata", "serialization", "default", "config", "cls"}
"""Members of a schema of pydantic that contain no schema of a value."""
_ITEMS = {"set": "items_schema", "frozenset": "items_schema", "dict": "keys_schema"}


@lru_cache(maxsize=256)
def _probes_of(hint: Any) -> tuple[Any, ...]:
    return _make_probes(_adapter(hint))


def _probes(hint: Any) -> tuple[Any, ...]:
    try:
        return _probes_of(hint)
    except TypeError:  # the hint has metadata without a hash
        return _make_probes(_adapter(hint))


def _make_probes(adapter: Any) -> tuple[Any, ...]:
    """Return a validator, and whether it takes only scalars, for each type of items whose hashes a peer can choose."""
    schemas = list(_schemas(adapter.core_schema))
    definitions = _lax([each for schema in schemas for each in schema.get("definitions", ())])
    items: list[JSONObject] = []
    for schema in schemas:
        item = _lax(schema.get(_ITEMS.get(schema["type"], ""), {"type": "str"}), without=("strict", "ref"))
        if item["type"] not in _UNPREDICTABLE and item not in items:
            items.append(item)
    probes = []
    for item in items:
        with suppress(sys.modules["pydantic_core"].SchemaError):  # a part that cannot stand alone
            probes.append((_make_probe(item, definitions), item["type"] in _SCALARS))
    return tuple(probes)


def _make_probe(item: JSONObject, definitions: list[JSONObject]) -> Any:
    """Return a validator of lists of these items, which keeps items of other types."""
    union = {"type": "union", "choices": [item, {"type": "any"}], "mode": "left_to_right"}
    schema: JSONObject = {"type": "list", "items_schema": union}
    if definitions:
        schema = {"type": "definitions", "schema": schema, "definitions": definitions}
    return sys.modules["pydantic_core"].SchemaValidator(schema)


def _schemas(schema: Any) -> Iterator[Any]:
    """Yield a schema of pydantic, and those in it."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("type"), str):
            yield schema
        for key, value in schema.items():
            if key not in _UNREAD:
                yield from _schemas(value)
    elif isinstance(schema, list | tuple):
        for each in schema:
            yield from _schemas(each)


def _lax(schema: Any, without: Collection[str] = ("strict",)) -> Any:
    """Return a schema that is not strict, because the keys of an object are texts; `without` these members."""
    if isinstance(schema, Mapping):
        kept = {key: value for key, value in schema.items() if key not in without}
        return {key: value if key in _UNREAD else _lax(value, without) for key, value in kept.items()}
    return [_lax(each, without) for each in schema] if isinstance(schema, list | tuple) else schema


def _check_collections(value: Any, probes: tuple[Any, ...]) -> None:
    """Raise `ValueError` for an array, or keys of an object, of which too many share one hash as items of a set."""
    pending = [value]
    while pending:
        part = pending.pop()
        if not isinstance(part, list | dict):
            continue
        pending += part.values() if isinstance(part, dict) else part
        if len(part) > MAX_EQUAL_HASHES:
            for probe, is_scalar in probes:
                if is_scalar:
                    check_hashes(_converted(probe, [each for each in part if not isinstance(each, list | dict)]))
                else:
                    check_hashes(each for each in _converted(probe, list(part)) if _is_hashable(each))


def _converted(probe: Any, items: list[Any]) -> list[Any]:
    """Return the items as pydantic reads them, without those for which a validator of the author fails."""
    try:
        return list(probe.validate_python(items))
    except Exception:  # such a validator may raise anything
        return [each for item in items for each in _converted(probe, [item])] if len(items) > 1 else []


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except Exception:  # the `__hash__` of the author may raise anything
        return False
    return True


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
