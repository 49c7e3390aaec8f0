"""JSON Schema that is not a Python type: compiled once, then asked often.

Schemas come from peers, so they are measured first (`cost`), never fetch anything, and their patterns run on
an engine of linear time; only a pattern that engine does not know (look-around, back-references) gets one
that counts its backtracking. The default dialect is 2020-12, as the specification says; the older drafts are
read when `$schema` names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from accord.errors import Mismatch, SchemaError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.schema.cost import Cost, measure
from accord.schema.work import MOST, Work

if TYPE_CHECKING:
    from jsonschema_rs import Validator as Compiled

_DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
}
_MAX_FAILURES = 20_000
"""Failures, at most, among which the first is named: jsonschema-rs makes an object of each, in every arm."""
_MAX_BACKTRACKS = 1_000
_PATTERN_BYTES = 1 << 18


class Validator:
    """A compiled schema."""

    def __init__(self, schema: Any, cost: Cost, limits: Limits) -> None:
        self._compiled = _compile(schema)
        self._schema = schema
        self._cost = cost
        self._depth = min(limits.depth, cost.depth)
        self._limits = limits

    def validate(self, value: Any) -> None:
        """Raises Mismatch for the first thing that does not fit."""
        levels = list(islice(_levels(value), int(self._depth) + 2))
        if len(levels) > self._depth + 1:
            raise Mismatch(f"nested more than {int(self._depth)} levels deep, too deep for this schema")
        if sum(levels) * (self._cost.nodes + self._cost.size) > MOST and not self._work.fits(levels):
            raise Mismatch("too large for this schema, which looks at its parts with too many subschemas")
        try:
            if self._compiled.is_valid(value):
                return
            if not self._cost.alternatives or self._failures(levels) <= _MAX_FAILURES:
                self._compiled.validate(value)
        except (ValueError, RecursionError) as exc:
            raise _mismatch(exc) from None
        raise Mismatch("does not fit the schema, somewhere in a value too large to say where")

    @cached_property
    def _work(self) -> Work:
        return Work(self._schema, self._cost.nodes, self._limits)

    def _failures(self, levels: list[int]) -> float:
        return self._cost.nodes * sum(levels) * float(self._cost.branching) ** len(levels)


def compile(schema: Any, limits: Limits = DEFAULT_LIMITS) -> Validator:
    """Compiles a schema. Raises SchemaError: invalid, too costly, another dialect, a reference outside."""
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a JSON Schema is an object or a boolean, not {type(schema).__name__}")
    _check_dialect(schema)
    return Validator(schema, measure(schema, limits), limits)


def _check_dialect(schema: Any) -> None:
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") not in _DIALECTS):
        raise SchemaError(
            f"the schema is written in the dialect {dialect!r}; known are 2020-12, 2019-09 and drafts 4 to 7"
        )


def _compile(schema: Any) -> Compiled:
    import jsonschema_rs  # 25 ms, for those who need it

    linear = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES)
    counted = jsonschema_rs.FancyRegexOptions(backtrack_limit=_MAX_BACKTRACKS, size_limit=_PATTERN_BYTES)
    try:
        try:
            return jsonschema_rs.validator_for(schema, offline=True, pattern_options=linear)
        except jsonschema_rs.ValidationError as exc:
            if "regex" not in exc.message:
                raise
            return jsonschema_rs.validator_for(schema, offline=True, pattern_options=counted)
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as exc:
        where = _path(getattr(exc, "instance_path", ()))
        why = _shorten(str(getattr(exc, "message", exc)))
        raise SchemaError(f"not a valid JSON Schema: {where}: {why}") from None


def _mismatch(exc: Exception) -> Mismatch:
    path = getattr(exc, "instance_path", None)
    if path is not None:
        return Mismatch(_shorten(str(getattr(exc, "message", exc))), _path(path))
    return Mismatch(f"not a JSON value: {exc}")


def _shorten(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:140]} ... {message[-140:]}"


def _path(steps: Any) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _levels(value: Any) -> Iterator[int]:
    """For each level of nesting, how many values are on it."""
    level = [value]
    while level:
        yield len(level)
        containers = [outer for outer in level if isinstance(outer, (dict, list))]
        level = [inner for outer in containers for inner in (outer.values() if isinstance(outer, dict) else outer)]
