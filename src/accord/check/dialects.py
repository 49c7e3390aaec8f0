"""The dialects of JSON Schema that are known, and whether a schema is valid in its own.

What is not known is not looked at: the text of a `$schema` comes from the peer, and nothing is fetched for it.
"""

from __future__ import annotations

import re

from accord.messages.base import JSONObject

LATEST = "https://json-schema.org/draft/2020-12/schema"
"""What a schema is written in that names nothing (from 2025-11-25 on)."""

_KNOWN = re.compile(
    r"https?://json-schema\.org/(?:draft/(?P<year>2019|2020)-(?:09|12)|draft-0(?P<draft>[467]))/schema#?"
)


def draft(schema: JSONObject) -> int:
    """The number of its dialect: 2020, 2019, 7, 6, 4; 0 for one that is unknown."""
    known = _KNOWN.fullmatch(str(schema.get("$schema", LATEST)))
    return int(known["year"] or known["draft"]) if known else 0


def schema_fault(schema: JSONObject) -> str | None:
    """Why it is no schema of its dialect; None if it is, or its dialect is unknown."""
    import jsonschema_rs

    if not draft(schema):
        return None
    named = {**schema, "$schema": _dialect_url(schema)}
    try:
        jsonschema_rs.meta.validate(named)
    except (jsonschema_rs.ValidationError, ValueError) as exc:
        path = "".join(f"[{step!r}]" for step in getattr(exc, "instance_path", ()))
        return f"at ${path}: {str(exc).splitlines()[0][:200]}"
    return None


def _dialect_url(schema: JSONObject) -> str:
    """Its dialect as the library writes it, which has it on board under this name alone."""
    number = draft(schema)
    if number < 2019:
        return f"http://json-schema.org/draft-0{number}/schema#"
    return LATEST if number == 2020 else "https://json-schema.org/draft/2019-09/schema"
