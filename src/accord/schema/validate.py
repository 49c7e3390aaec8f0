"""Validation with JSON Schemas that are not Python types: compiled once, and used often.

Peers send schemas, so they are measured first (`cost`), never fetch anything, and their patterns run on an engine
without backtracking, for as much text as it can read in a second (`pattern_times`); only a pattern that this engine
does not support (look-around, back-references) runs on one that counts its backtracking, of which long texts get less.
The default dialect is 2020-12, as the specification says; older drafts are used if `$schema` names them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.errors import Mismatch, SchemaError
from accord.limits import DEFAULT_LIMITS, Limits
from accord.schema.cost import Cost, measure
from accord.schema.keywords import KEYWORDS
from accord.schema.pattern_engine import PATTERN_BYTES
from accord.schema.pattern_size import check_sizes
from accord.schema.pattern_times import MAX_BACKTRACKS, PatternTimes
from accord.schema.pattern_work import ReadingWork, max_characters
from accord.schema.subschema_cost import UNIQUE_TIME
from accord.schema.validation_work import MOST, ValidationWork, whole_width

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
"""Limit of the failures among which the first is reported: jsonschema-rs creates an object for each, in every arm."""
_MAX_COPIED = 100_000_000
"""Limit of the bytes of JSON in these failures, times four (`max_characters`)."""
_MAX_COPY = 2 * _MAX_COPIED
"""The same for a single failure, which may be that of the whole value: 0.4 s."""
_PART_SIZE = 500
"""A part of a value takes as long to copy as so many of these bytes."""
_DIGITS = 100
"""A comparison of a number of so many digits takes a step, and one of more digits in proportion to their square."""
_MAX_COMPARED = 400_000
"""Limit of the steps for such numbers."""
_READING_TIME = 100_000_000
"""Nanoseconds for all keywords that read texts, except patterns."""
_COPIES = 4
"""Copies of a path, or of a part of the schema, in one failure."""
_OPTIONS: dict[str, Any] = {"offline": True, "keywords": KEYWORDS, "validate_formats": False}
"""`format` is an annotation, as in 2020-12: older drafts would read each text as often as the schema says."""


class SchemaFailure(NamedTuple):
    """A place of a value that does not fit a schema: the steps to it, and the reason."""

    path: Sequence[str | int]
    reason: str


class Validator:
    """A compiled schema. `slowest` is the longest time of its patterns for a character, in nanoseconds."""

    def __init__(self, schema: Any, cost: Cost, limits: Limits, slowest: int) -> None:
        self._compiled, self._backtracks = _compile(schema)
        self._times = PatternTimes(schema, cost, slowest, self._backtracks)
        self._schema = schema
        self._cost = cost
        self._depth = int(min(limits.depth, cost.depth))
        self._width = whole_width(cost, self._depth)
        self._reads_texts = bool(cost.numbers or cost.reading)
        self._limits = limits
        self._stricter: dict[int, Compiled] = {}

    def validate(self, value: Any) -> None:
        """Raise `Mismatch` for the first failure."""
        levels = self._check_work(value)
        compiled = self._compiled_for(value) if self._cost.patterns else self._compiled
        try:
            if compiled.is_valid(value):
                return
            if self._explains(value, levels):
                compiled.validate(value)
        except (ValueError, RecursionError) as exc:
            raise _mismatch(exc) from None
        raise self._mismatch_somewhere()

    def failures(self, value: Any, most: int) -> list[SchemaFailure]:
        """Return up to `most` failures, or only the first one if all of them would take too long.

        Raises `Mismatch` for a value that cannot be checked: too large or too deep for the schema.
        """
        levels = self._check_work(value)
        compiled = self._compiled_for(value) if self._cost.patterns else self._compiled
        try:
            if compiled.is_valid(value):
                return []
            if self._lists_all(value, levels):
                return list(islice(_failures_of(compiled.iter_errors(value)), most))
            if self._explains(value, levels):
                compiled.validate(value)
        except (ValueError, RecursionError) as exc:
            return [SchemaFailure(getattr(exc, "instance_path", ()), _mismatch(exc).reason)]
        raise self._mismatch_somewhere()

    def _mismatch_somewhere(self) -> Mismatch:
        reason = ", or takes too much work for its patterns" if self._backtracks else ""
        return Mismatch(
            f"does not fit the schema{reason}, at a place that was not searched for, because the value is too large"
        )

    def _check_work(self, value: Any) -> list[int]:
        """Return the number of values on each level. Raise `Mismatch` for a value that takes too long to check."""
        levels = list(islice(_levels(value), self._depth + 2))
        if len(levels) > self._depth + 1:
            name = " (Limits.depth)" if self._depth == self._limits.depth else ""
            raise Mismatch(f"nested more than {self._depth} levels deep, too deep for this schema{name}")
        if sum(levels) * self._width > MOST and self._is_too_wide(levels):
            raise Mismatch("too large for this schema, which looks at its parts with too many subschemas")
        if self._reads_texts:
            self._check_texts(value, len(levels))
        return levels

    def _is_too_wide(self, levels: list[int]) -> bool:
        return sum(levels) * whole_width(self._cost, len(levels)) > MOST and not self._work.fits(levels)

    def _check_texts(self, value: Any, levels: int) -> None:
        if self._cost.numbers and self._compares_too_long_numbers(value, levels):
            raise Mismatch("its numbers have too many digits for this schema, which compares them with many subschemas")
        if self._cost.reading and self._reads_too_much(value, levels):
            raise Mismatch("too much text for this schema, which reads the same texts with too many subschemas")

    def _compares_too_long_numbers(self, value: Any, levels: int) -> bool:
        times = self._cost.numbers * float(self._cost.branching) ** levels
        longest = max_characters(value) / _DIGITS
        return longest**2 * times > _MAX_COMPARED and _digit_work(value) * times > _MAX_COMPARED

    def _lists_all(self, value: Any, levels: list[int]) -> bool:
        """Return whether all failures are few and small, even if each subschema and each name fails at each place."""
        places = sum(levels) * float(self._cost.branching) ** len(levels)
        failures = (self._cost.nodes + self._cost.compared) * places
        copied = _copied_size(value, levels) + _COPIES * self._cost.path * len(levels) + _COPIES * self._cost.copied
        return failures <= _MAX_FAILURES and failures * copied <= _MAX_COPIED

    def _compiled_for(self, value: Any) -> Compiled:
        """Return the schema, compiled with fewer backtracks if its patterns check long texts. Raise `Mismatch` for too
        much text."""
        allowed = self._times.allowed_backtracks(value)
        if allowed == MAX_BACKTRACKS:
            return self._compiled
        if allowed not in self._stricter:
            self._stricter[allowed] = _compile_counted(self._schema, allowed)
        return self._stricter[allowed]

    def _reads_too_much(self, value: Any, levels: int) -> bool:
        characters = max_characters(value)
        limit = max(_READING_TIME, characters * UNIQUE_TIME)
        most = characters * self._cost.reading * (levels if self._cost.unique else 1)
        return most * float(self._cost.branching) ** levels > limit and self._reading_work.time(value) > limit

    @cached_property
    def _reading_work(self) -> ReadingWork:
        return ReadingWork(self._schema, self._cost)

    @cached_property
    def _work(self) -> ValidationWork:
        return ValidationWork(self._schema, self._cost, self._limits)

    def _explains(self, value: Any, levels: list[int]) -> bool:
        """Return whether the failures that are created for the first one are few, and small: each has a copy of its
        part of the value.

        Without alternatives there is one, but where a pattern goes back too often, there are all.
        """
        if self._backtracks:
            return self._lists_all(value, levels)
        if not self._cost.choices:
            return _copied_size(value, levels) <= _MAX_COPY
        parts = sum(levels) * float(self._cost.branching) ** len(levels) if self._cost.alternatives else 1
        if parts > 1 and self._cost.failures * parts > _MAX_FAILURES:
            return False
        copied = self._cost.failures * (_copied_size(value, levels) + _COPIES * self._cost.path * len(levels))
        return copied + _COPIES * self._cost.copied * parts <= _MAX_COPIED


def _copied_size(value: Any, levels: list[int]) -> int:
    """Return the bytes that take as long to copy as a value."""
    return max_characters(value) + _PART_SIZE * sum(levels)


def compile(schema: Any, limits: Limits = DEFAULT_LIMITS) -> Validator:
    """Compile a schema. Raises `SchemaError` if it is invalid, too costly, of another dialect, or refers outside
    itself."""
    if not isinstance(schema, (dict, bool)):
        raise SchemaError(f"a JSON Schema must be an object or a boolean, not {type(schema).__name__}")
    _check_dialect(schema)
    cost = measure(schema, limits)
    return Validator(schema, cost, limits, slowest=check_sizes(cost.patterns))


def _check_dialect(schema: Any) -> None:
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") not in _DIALECTS):
        raise SchemaError(f"the schema dialect {dialect!r} is not supported; use 2020-12, 2019-09 and drafts 4 to 7")


def _compile(schema: Any) -> tuple[Compiled, bool]:
    """Return the compiled schema, and whether some of its patterns need backtracking."""
    import jsonschema_rs  # takes 25 ms to import

    linear = jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES)
    try:
        try:
            return jsonschema_rs.validator_for(schema, pattern_options=linear, **_OPTIONS), False
        except jsonschema_rs.ValidationError as exc:
            if "regex" not in exc.message:
                raise
            return _compile_counted(schema, MAX_BACKTRACKS), True
    except (ValueError, RecursionError, jsonschema_rs.ReferencingError) as exc:
        where = _path(getattr(exc, "instance_path", ()))
        reason = _shorten(str(getattr(exc, "message", exc)))
        raise SchemaError(f"not a valid JSON Schema: {where}: {reason}") from None


def _compile_counted(schema: Any, backtracks: int) -> Compiled:
    import jsonschema_rs

    counted = jsonschema_rs.FancyRegexOptions(backtrack_limit=backtracks, size_limit=PATTERN_BYTES)
    return jsonschema_rs.validator_for(schema, pattern_options=counted, **_OPTIONS)


def _mismatch(exc: Exception) -> Mismatch:
    path = getattr(exc, "instance_path", None)
    if path is not None:
        reason = str(getattr(exc, "message", exc))
        if "backtracking" in reason:
            reason = (
                "too much work for the text: the pattern has look-around or back-references, and goes back too often"
            )
        return Mismatch(_shorten(reason), _path(path))
    return Mismatch(f"not a JSON value: {exc}")


def _failures_of(errors: Iterable[Any]) -> Iterator[SchemaFailure]:
    """Yield each failure; for alternatives, those of the only alternative that the value seems to mean."""
    for error in errors:
        path, kind = error.instance_path, error.kind
        branches = getattr(kind, "context", ())
        meant = [branch for branch in branches if not any(_excludes(each, path) for each in branch)]
        if len(meant) == 1 and meant[0]:
            yield from _failures_of(meant[0])
        elif kind.name == "required":
            yield SchemaFailure([*path, kind.property], "required, and missing")
        elif kind.name == "additionalProperties":
            yield from (SchemaFailure([*path, name], "not a member that the schema allows") for name in kind.unexpected)
        else:
            yield SchemaFailure(path, _mismatch(error).reason)


def _excludes(error: Any, path: Sequence[str | int]) -> bool:
    """Return whether an error of an alternative for the value at `path` means that the value is of another kind: it has
    another type, or a member that names the kind has another value."""
    below = len(error.instance_path) - len(path)
    return below < _EXCLUDING.get(error.kind.name, 0)


_EXCLUDING = {"type": 1, "falseSchema": 1, "const": 2, "enum": 2}
"""Keywords whose failures exclude an alternative, up to how many levels below the value."""


def _shorten(message: str) -> str:
    return message if len(message) <= 300 else f"{message[:140]} ... {message[-140:]}"


def _path(steps: Any) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def _levels(value: Any) -> Iterator[int]:
    """Yield the number of values on each level of nesting."""
    level = [value]
    while level:
        yield len(level)
        containers = [outer for outer in level if isinstance(outer, (dict, list))]
        level = [inner for outer in containers for inner in (outer.values() if isinstance(outer, dict) else outer)]


def _digit_work(value: Any) -> float:
    """Return the steps to compare all long numbers of a value once."""
    work, pending = 0.0, [value]
    while pending:
        value = pending.pop()
        if isinstance(value, int):
            work += (value.bit_length() * log10(2) / _DIGITS) ** 2
        elif isinstance(value, (dict, list)):
            pending += value.values() if isinstance(value, dict) else value
    return work
