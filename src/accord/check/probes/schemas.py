"""JSON Schemas of tools: validation of arguments, results, and the schemas themselves in their dialects.

Unknown dialects are ignored: `$schema` comes from the peer, and nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.check.probes.content import get_object, get_objects
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.errors import Mismatch, SchemaError
from accord.messages.base import JSONObject
from accord.redaction import redact_beginning
from accord.schema.validate import compile

_MOST = 20
"""Maximum number of invalid arguments for one tool."""


def listed_tools(logs: Iterable[MessageLog]) -> dict[str, JSONObject]:
    """Return each listed tool, by its name."""
    pages = [page.result for page in answered_requests(logs, "tools/list")]
    return {str(tool.get("name")): tool for page in pages for tool in get_objects(page, "tools")}


def invalid_arguments(schema: JSONObject) -> Iterator[JSONObject]:
    """Yield arguments that a schema forbids in any reading: a required one missing, or one of another type."""
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
    """Return a value that does not match a schema, even with conversions."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    return 5 if kind in ("object", "array") else {"accord": ["check"]}


def matches_schema(schema: JSONObject, value: Any) -> bool | None:
    """Return a validator; None if the schema is invalid."""
    fault = schema_mismatch(schema, value)
    return None if fault is None else not fault


def schema_mismatch(schema: JSONObject, value: Any) -> str | None:
    """Describe what does not match; empty if all does; None if the schema is invalid."""
    try:
        compile(schema).validate(value)
    except Mismatch as exc:
        return str(exc)
    except SchemaError:
        return None
    return ""


LATEST = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of schemas without `$schema` (from 2025-11-25 on)."""

_KNOWN = re.compile(
    r"https?://json-schema\.org/(?:draft/(?P<year>2019|2020)-(?:09|12)|draft-0(?P<draft>[467]))/schema#?"
)


def draft(schema: JSONObject) -> int:
    """Return the number of the dialect: 2020, 2019, 7, 6, 4; 0 if it is unknown."""
    known = _KNOWN.fullmatch(str(schema.get("$schema", LATEST)))
    return int(known["year"] or known["draft"]) if known else 0


def schema_fault(schema: JSONObject) -> str | None:
    """Describe why a schema is invalid in its dialect; None if it is valid, or its dialect is unknown."""
    import jsonschema_rs

    if not draft(schema):
        return None
    named = {**schema, "$schema": _dialect_url(schema)}
    try:
        jsonschema_rs.meta.validate(named)
    except (jsonschema_rs.ValidationError, ValueError) as exc:
        path = "".join(f"[{step!r}]" for step in getattr(exc, "instance_path", ()))
        return f"at ${path}: {redact_beginning(str(exc).splitlines()[0])[:200]}"
    return None


def _dialect_url(schema: JSONObject) -> str:
    """Return the URL of the dialect that the library knows."""
    number = draft(schema)
    if number < 2019:
        return f"http://json-schema.org/draft-0{number}/schema#"
    return LATEST if number == 2020 else "https://json-schema.org/draft/2019-09/schema"
