"""JSON Schemas of tools: valid, in a known dialect, and complete."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from accord.check.engine.rule import NotApplicable, NotObserved, rule
from accord.check.probes.content import preview_json
from accord.check.probes.probe import Probe
from accord.check.probes.schemas import draft, schema_fault
from accord.messages.base import JSONObject

DIALECT = "basic/index#schema-dialect"
VALIDATION = "basic/index#schema-validation"
SINCE = "2025-11-25"


_rule = partial(rule, since=SINCE, needs="tools")


@_rule(
    "schemas/valid",
    "must",
    case="the schemas of all tools",
    at=VALIDATION,
    cause="A keyword has a value of another dialect, such as `required: true`, or a type that JSON does not have.",
)
async def schemas_valid(probe: Probe) -> None:
    """The schemas of tools are valid in their dialect, by default JSON Schema 2020-12."""
    judged = 0
    for where, schema in await _schemas(probe):
        if draft(schema):
            judged += 1
            if why := schema_fault(schema):
                raise probe.violation(f"{where}: {why}", symptom="invalid schema")
    if not judged:
        raise NotObserved("no tool has a schema in a known dialect")


@_rule(
    "schemas/known-dialect",
    "should",
    case="the schemas of all tools",
    at=DIALECT,
    cause="$schema is not the URL of a dialect: clients must refuse unknown dialects.",
)
async def schemas_known_dialect(probe: Probe) -> None:
    """A schema has no `$schema`, or one that clients know."""
    found = await _schemas(probe)
    if not found:
        raise NotObserved("no tool has a schema")
    for where, schema in found:
        if not draft(schema):
            raise probe.violation(f"{where} has the dialect {preview_json(schema['$schema'])}")


@_rule(
    "schemas/references",
    "should",
    case="each $ref in the schemas of all tools",
    at=(VALIDATION, "basic/index#ref-resolution"),
    cause="The definitions were omitted when the schema was extracted from a larger one, or they are "
    "on the network, where clients must not fetch them.",
)
async def schemas_references(probe: Probe) -> None:
    """Each `$ref` of a schema refers to a part of the same schema."""
    judged = 0
    for where, schema in await _schemas(probe):
        for reference in _references(schema):
            judged += 1
            if not reference.startswith("#") and "$id" not in schema:
                raise probe.violation(f"{where} refers to {reference!r}")
            if reference.startswith("#/") and not _pointer_exists(schema, reference):
                raise probe.violation(f"{where} refers to {reference!r}, which does not exist")
    if not judged:
        raise NotObserved("no schema has a $ref")


_FIXTURE = "json_schema_2020_12_tool"
_KEYWORDS = ("$schema", "$defs", "properties", "additionalProperties")


@_rule(
    "schemas/kept",
    "must",
    case=f"the tool {_FIXTURE} of the conformance suite",
    at=("basic/index#implementation-requirements", DIALECT),
    cause="The schema is converted to types that support a part of JSON Schema only.",
)
async def schemas_kept(probe: Probe) -> None:
    """A schema with many keywords of JSON Schema 2020-12 is listed without changes."""
    tool = next((tool for tool in await probe.tools() if tool.get("name") == _FIXTURE), None)
    if tool is None:
        raise NotApplicable(f"the server has no {_FIXTURE}")
    schema = tool.get("inputSchema")
    missing = [word for word in _KEYWORDS if not isinstance(schema, dict) or word not in schema]
    if missing:
        raise probe.violation(f"{', '.join(missing)} are missing: {preview_json(schema)}")


async def _schemas(probe: Probe) -> list[tuple[str, JSONObject]]:
    """Yield all schemas that are objects, with their places."""
    return [
        (f"{field} of {tool.get('name')}", tool[field])
        for tool in await probe.tools()
        for field in ("inputSchema", "outputSchema")
        if isinstance(tool.get(field), dict)
    ]


def _references(value: Any) -> Iterator[str]:
    """Yield each `$ref` in a schema, but not in values that are not schemas."""
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, list):
            pending += each
        elif isinstance(each, dict):
            if isinstance(each.get("$ref"), str):
                yield each["$ref"]
            pending += [item for name, item in each.items() if name not in ("const", "enum", "default", "examples")]


def _pointer_exists(schema: JSONObject, reference: str) -> bool:
    """Return whether a JSON pointer resolves."""
    at: Any = schema
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(at, list) and name.isdecimal() and int(name) < len(at):
            at = at[int(name)]
        elif isinstance(at, dict) and name in at:
            at = at[name]
        else:
            return False
    return True
