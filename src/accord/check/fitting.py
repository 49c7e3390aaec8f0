"""Whether arguments and results fit the schemas of tools, and arguments that do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from accord.check.blocks import inside, items
from accord.check.generated.document import Unserved
from accord.check.generated.smallest import smallest
from accord.check.reading import answers
from accord.check.record import Record
from accord.errors import Mismatch, SchemaError
from accord.messages.base import JSONObject
from accord.schema.validate import compile

_MOST = 20
"""Forms of arguments of one tool."""


def listed(records: Iterable[Record]) -> dict[str, JSONObject]:
    """Every tool that was listed, by its name."""
    pages = [page.result for page in answers(records, "tools/list")]
    return {str(tool.get("name")): tool for page in pages for tool in items(page, "tools")}


def unfit(schema: JSONObject) -> Iterator[JSONObject]:
    """Arguments that a schema forbids, beyond any reading: something required left out, or of quite another type."""
    try:
        good = smallest(schema)
    except Unserved:
        return
    required = schema.get("required")
    candidates: list[JSONObject] = [
        {name: value for name, value in good.items() if name != missing}
        for missing in (required if isinstance(required, list) else [])
    ]
    candidates += [{**good, name: _other(part)} for name, part in inside(schema, "properties").items()]
    for arguments in candidates[:_MOST]:
        if fits(schema, arguments) is False:
            yield arguments


def _other(schema: Any) -> Any:
    """A value that nobody can take for one of this schema by being kind."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return 5 if kind in ("object", "array") else {"accord": ["check"]}


def fits(schema: JSONObject, value: Any) -> bool | None:
    """None where the schema cannot be used."""
    fault = mismatch(schema, value)
    return None if fault is None else not fault


def mismatch(schema: JSONObject, value: Any) -> str | None:
    """What does not fit; empty where all does; None where the schema cannot be used."""
    try:
        compile(schema).validate(value)
    except Mismatch as exc:
        return str(exc)
    except SchemaError:
        return None
    return ""
