"""JSON Schema that is not a Python type: compiled once, then asked often.

Schemas come from peers, so they are measured first (`cost`), never fetch anything, and their patterns run on
an engine of linear time; only a pattern that engine does not know (look-around, back-references) gets one
that counts its backtracking. The default dialect is 2020-12, as the specification says; the older drafts are
read when `$schema` names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accord.errors import AccordError, SchemaError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.schema.cost import measure

if TYPE_CHECKING:
    from jsonschema_rs import Validator as Compiled

_DIALECTS = {
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
}
_BACKTRACKS = 1_000
_PATTERN_BYTES = 1 << 18


class Mismatch(AccordError, ValueError):
    """A value that does not fit a schema: `path` in the value (`$.days[0]`), `reason`."""

    def __init__(self, reason: str, path: str = "$") -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Validator:
    """A compiled schema."""

    def __init__(self, compiled: Compiled, depth: float) -> None:
        self._compiled = compiled
        self._depth = depth

    def validate(self, value: Any) -> None:
        """Raises Mismatch for the first thing that does not fit."""
        if _is_deeper(value, self._depth):
            raise Mismatch(f"nested more than {int(self._depth)} levels deep, too deep for this schema")
        try:
            self._compiled.validate(value)
        except (ValueError, RecursionError) as exc:
            raise _mismatch(exc) from None


def compile(schema: Any, limits: Limits = DEFAULT_LIMITS) -> Validator:
    """Compiles a schema. Raises SchemaError: invalid, too costly, another dialect, a reference outside."""
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a JSON Schema is an object or a boolean, not {type(schema).__name__}")
    _check_dialect(schema)
    depth = measure(schema, limits)
    return Validator(_compiled(schema), min(depth, limits.depth))


def _check_dialect(schema: Any) -> None:
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") not in _DIALECTS):
        raise SchemaError(
            f"the schema is written in the dialect {dialect!r}; known are 2020-12, 2019-09 and drafts 4 to 7"
        )


def _compiled(schema: Any) -> Compiled:
    import jsonschema_rs  # 25 ms, for those who need it

    linear = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES)
    counted = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS, size_limit=_PATTERN_BYTES)
    try:
        try:
            return jsonschema_rs.validator_for(schema, offline=True, pattern_options=linear)
        except jsonschema_rs.ValidationError as exc:
            if "regex" not in exc.message:
                raise
            return jsonschema_rs.validator_for(schema, offline=True, pattern_options=counted)
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as exc:
        where = _path(getattr(exc, "instance_path", ()))
        raise SchemaError(f"not a valid JSON Schema: {where}: {getattr(exc, 'message', exc)}") from None


def _mismatch(exc: Exception) -> Mismatch:
    path = getattr(exc, "instance_path", None)
    if path is not None:
        return Mismatch(_shortened(str(getattr(exc, "message", exc))), _path(path))
    return Mismatch(f"not a JSON value: {exc}")


def _shortened(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:140]} ... {message[-140:]}"


def _path(steps: Any) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _is_deeper(value: Any, depth: float) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    while depth >= 0 and level:
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        depth -= 1
    return bool(level)
