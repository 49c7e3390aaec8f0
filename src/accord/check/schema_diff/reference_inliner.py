"""A schema that stands alone: what its references lead to is in their place, and what refuses no value is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from accord.check.schema_diff.keywords import DEFINITIONS, VALIDATING
from accord.messages.base import JSONObject

_NAMED = ("properties", "patternProperties", "dependentSchemas", "dependencies")
_DATA = ("const", "enum", "required", "dependentRequired")
_INLINED_KEYWORDS = VALIDATING - DEFINITIONS


class ReferenceInliner:
    """`target` gives what a reference leads to. `alone`: nothing counts that stands beside a reference."""

    def __init__(self, target: Callable[[str], Any], *, alone: bool) -> None:
        self._target = target
        self._alone = alone

    def inline(self, schema: Any, opened: tuple[str, ...] = ()) -> Any:
        """A copy of a schema. References that lead back to what they stand in, one of `opened`, are left."""
        if not isinstance(schema, dict):
            return [self.inline(each, opened) for each in schema] if isinstance(schema, list) else schema
        reference = schema.get("$ref")
        if not isinstance(reference, str) or reference in opened:
            return self._keywords(schema, opened)
        led = self.inline(self._target(reference), (*opened, reference))
        beside = {} if self._alone else self._keywords({key: schema[key] for key in schema if key != "$ref"}, opened)
        return {"allOf": [led, beside]} if beside else led

    def _keywords(self, schema: JSONObject, opened: tuple[str, ...]) -> JSONObject:
        return {key: self._keyword(key, value, opened) for key, value in schema.items() if key in _INLINED_KEYWORDS}

    def _keyword(self, key: str, value: Any, opened: tuple[str, ...]) -> Any:
        if key in _DATA:
            return value
        if key in _NAMED and isinstance(value, dict):
            return {name: self.inline(inner, opened) for name, inner in value.items()}
        return self.inline(value, opened)
