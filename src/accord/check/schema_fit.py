"""Whether arguments and results fit the schemas of tools, and arguments that do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from accord.check.content import get_object, get_objects
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.check.message_log import MessageLog
from accord.check.message_reader import answered_requests
from accord.errors import Mismatch, SchemaError
from accord.messages.base import JSONObject
from accord.schema.validate import compile

_MOST = 20
"""Forms of arguments of one tool."""


def listed_tools(records: Iterable[MessageLog]) -> dict[str, JSONObject]:
    """Every tool that was listed, by its name."""
    pages = [page.result for page in answered_requests(records, "tools/list")]
    return {str(tool.get("name")): tool for page in pages for tool in get_objects(page, "tools")}


def invalid_arguments(schema: JSONObject) -> Iterator[JSONObject]:
    """Arguments that a schema forbids, beyond any reading: something required left out, or of quite another type."""
    try:
        good = smallest(schema)
    except GenerationError:
        return
    required = schema.get("required")
    candidates: list[JSONObject] = [
        {name: value for name, value in good.items() if name != missing}
        for missing in (required if isinstance(required, list) else [])
    ]
    candidates += [{**good, name: _wrong_value(part)} for name, part in get_object(schema, "properties").items()]
    for arguments in candidates[:_MOST]:
        if matches_schema(schema, arguments) is False:
            yield arguments


def _wrong_value(schema: Any) -> Any:
    """A value that nobody can take for one of this schema by being kind."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return 5 if kind in ("object", "array") else {"accord": ["check"]}


def matches_schema(schema: JSONObject, value: Any) -> bool | None:
    """None where the schema cannot be used."""
    fault = schema_mismatch(schema, value)
    return None if fault is None else not fault


def schema_mismatch(schema: JSONObject, value: Any) -> str | None:
    """What does not fit; empty where all does; None where the schema cannot be used."""
    try:
        compile(schema).validate(value)
    except Mismatch as exc:
        return str(exc)
    except SchemaError:
        return None
    return ""
