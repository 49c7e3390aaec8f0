"""Calls that are over soon: what says how long something takes is always there, and small. Nobody waits for a day."""

from __future__ import annotations

import re
from typing import Any

from accord.check.blocks import inside
from accord.check.generated.document import Unserved
from accord.check.generated.smallest import smallest
from accord.messages.base import JSONObject

_TIMES = re.compile(
    r"(?:^|_|\b)(?:duration|delay|sleep|wait|timeout|interval|pause|ttl|seconds|secs|minutes|millis(?:econds)?|ms)(?:$|_|\b)"
)
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def brief(schema: JSONObject) -> JSONObject:
    """The same schema of arguments, with the least time for each that is a time, at most one; as it was, where nothing
    fits that.
    """
    properties = inside(schema, "properties")
    short = {name: _short(each) for name, each in properties.items() if _takes_time(name, each)}
    required = schema.get("required")
    wanted = dict.fromkeys((*(required if isinstance(required, list) else ()), *short))
    found = {**schema, "properties": {**properties, **short}, "required": list(wanted)} if short else schema
    try:
        smallest(found)
    except Unserved:
        return schema
    return found


def _takes_time(name: str, schema: Any) -> bool:
    is_number = isinstance(schema, dict) and schema.get("type") in ("number", "integer")
    return is_number and _TIMES.search(_HUMPS.sub("_", name).lower()) is not None


def _short(schema: JSONObject) -> JSONObject:
    rest = {key: value for key, value in schema.items() if key not in ("default", "examples")}
    most = max(1 if schema["type"] == "integer" else 0.1, schema.get("minimum", 0))
    return {**rest, "maximum": min(most, schema.get("maximum", most))}
