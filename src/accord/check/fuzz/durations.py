"""Calls that are over soon: what says how long something takes is always there, and small. Nobody waits for a day."""

from __future__ import annotations

import re
from typing import Any

from accord.check.content import get_object
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.messages.base import JSONObject

_DURATION_WORDS = re.compile(
    r"(?:^|_|\b)(?:duration|delay|sleep|wait|timeout|interval|pause|ttl|seconds|secs|minutes|millis(?:econds)?|ms)(?:$|_|\b)"
)
_CAMEL_CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def shorten_durations(schema: JSONObject) -> JSONObject:
    """The same schema of arguments, with the least time for each that is a time, at most one; as it was, where nothing
    fits that.
    """
    properties = get_object(schema, "properties")
    short = {name: _shortest_duration(each) for name, each in properties.items() if _is_duration(name, each)}
    required = schema.get("required")
    wanted = dict.fromkeys((*(required if isinstance(required, list) else ()), *short))
    found = {**schema, "properties": {**properties, **short}, "required": list(wanted)} if short else schema
    try:
        smallest(found)
    except GenerationError:
        return schema
    return found


def _is_duration(name: str, schema: Any) -> bool:
    is_number = isinstance(schema, dict) and schema.get("type") in ("number", "integer")
    return is_number and _DURATION_WORDS.search(_CAMEL_CASE.sub("_", name).lower()) is not None


def _shortest_duration(schema: JSONObject) -> JSONObject:
    rest = {key: value for key, value in schema.items() if key not in ("default", "examples")}
    most = max(1 if schema["type"] == "integer" else 0.1, schema.get("minimum", 0))
    return {**rest, "maximum": min(most, schema.get("maximum", most))}
