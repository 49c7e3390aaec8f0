"""Arguments of a call that do not match at once: converted if that is safe, else reported so that a model can act.

It runs only after msgspec has failed: `3.0` is an integer in JSON Schema, and models often send an array or an object
as JSON in a string. Neither conversion is tried for a value that matches as it is; `strict` disables both. The
remaining failures are in one message, each argument on its own line:

    argument "days": expected integer, got string "three"
    unknown argument "cty", did you mean "city"?
    missing argument "city"
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from operator import is_
from typing import Any

import msgspec

from accord.errors import InvalidArguments, InvalidParams
from accord.messages.codec import check_duplicate_members, decode_text
from accord.schema import explain
from accord.schema.convert import convert
from accord.schema.hints import ConstrainedNode, Field, Node

log: logging.Logger = logging.getLogger("accord.server")


_MAX_COERCED_BYTES = 256 << 10
"""Limit of the size of a value for which conversions are tried."""
_MAX_FAILURES = 10
"""Number of failures that are reported one by one."""
_MAX_NAMES = 20
"""Number of known arguments in an error."""
_MAX_GUESS_LENGTH = 64
"""Maximum length of an unknown argument that may be a misspelled one."""
_ATOMS = frozenset({bool, int, str, type(None)})
"""Types of values without floats in them."""


class Rest(msgspec.Struct, frozen=True, eq=False):
    """The types of the arguments that `**kwargs` accepts."""

    node: Node
    type: Any


class ArgumentDecoder:
    """The parameters of one function, and the types of their arguments; `name` is for the log. `texts`: all values are
    texts (variables of a URI, arguments of a prompt), so JSON in them is not logged. `ignore_unknown` drops arguments
    without a parameter instead of refusing them."""

    def __init__(
        self,
        name: str,
        fields: Sequence[Field],
        types: Sequence[Any],
        *,
        rest: Rest | None = None,
        strict: bool = False,
        texts: bool = False,
        ignore_unknown: bool = False,
    ) -> None:
        self._name = name
        self._fields = fields
        self._types = types
        self._rest = rest
        self._strict = strict
        self._texts = texts
        self._ignore_unknown = ignore_unknown
        self._known = {field.key for field in fields}

    def decode(self, raw: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the values in the order of the fields, and the rest. Raise `InvalidArguments` with the first failures,
        and `InvalidParams` if the arguments are not an object or have a duplicate member."""
        failures = Failures()
        try:
            given = arguments_object(raw)
            values = tuple(
                [
                    self._value(field, type_, given, failures)
                    for field, type_ in zip(self._fields, self._types, strict=True)
                ]
            )
            rest = self._convert_rest(given, failures)
        except RecursionError:
            raise InvalidArguments("the arguments are nested too deeply") from None
        if failures.count:
            raise InvalidArguments(str(failures))
        return values, rest

    def _value(self, field: Field, type_: Any, given: Mapping[str, Any], failures: Failures) -> Any:
        if field.key in given:
            return self._convert(field.key, field.node, type_, given[field.key], failures)
        if field.required:
            failures.add(f'missing argument "{field.key}"')
        return field.factory() if field.factory else field.default

    def _convert_rest(self, given: Mapping[str, Any], failures: Failures) -> dict[str, Any]:
        if self._rest is None and self._ignore_unknown:
            return {}
        others = {key: value for key, value in given.items() if key not in self._known}
        if self._rest is None:
            listed = list(islice(others, failures.remaining))
            for key in listed:
                failures.add(self._unknown_argument_text(key))
            failures.count += len(others) - len(listed)
            return {}
        try:
            return convert(others, dict[str, self._rest.type])  # type: ignore[no-any-return, name-defined]
        except msgspec.ValidationError:
            pass  # one by one below, where each value may be converted
        converted = {}
        for key, value in others.items():
            if not failures.remaining:
                break
            converted[key] = self._convert(key, self._rest.node, self._rest.type, value, failures)
        return converted

    def _convert(self, key: str, node: Node, type_: Any, value: Any, failures: Failures) -> Any:
        try:
            return convert(value, type_)
        except msgspec.ValidationError as exc:
            failed, reason = value, str(exc)
        strict = self._strict or (isinstance(node, ConstrainedNode) and node.strict)
        exact = strict or explain.size(value) > _MAX_COERCED_BYTES
        for other in () if exact else _coercions(value):
            if other is value:  # no number changed
                continue
            try:
                converted = convert(other, type_)
            except msgspec.ValidationError as exc:
                if not isinstance(value, str):
                    failed, reason = other, str(exc)
                continue
            if isinstance(value, str) and not self._texts:
                log.warning("accord: argument %r of %s came as JSON in a string; it was decoded", key, self._name)
            return converted
        for line in explain.argument(key, node, failed, reason, failures.remaining):
            failures.add(line)
        return None

    def _unknown_argument_text(self, key: str) -> str:
        import difflib

        close = difflib.get_close_matches(key, self._known, n=1) if len(key) <= _MAX_GUESS_LENGTH else []
        known = f"known are: {self._known_names}" if self._known else "it takes none"
        hint = f'did you mean "{close[0]}"?' if close else known
        return f'unknown argument "{explain.shorten(key)}", {hint}'

    @cached_property
    def _known_names(self) -> str:
        names = [f'"{field.key}"' for field in self._fields]
        more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
        return ", ".join(names[:_MAX_NAMES]) + more


class Failures:
    """The failures of the arguments of one call: the first ten, and the number of further ones."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.count: int = 0

    @property
    def remaining(self) -> int:
        """Return how many further failures are listed."""
        return _MAX_FAILURES - len(self._lines)

    def add(self, line: str) -> None:
        """Add one failure."""
        self.count += 1
        if self.remaining:
            self._lines.append(line)

    def __str__(self) -> str:
        more = self.count - len(self._lines)
        return "\n".join([*self._lines, f"and {more:,} more"] if more else self._lines)


def arguments_object(raw: Any) -> dict[str, Any]:
    """Return the arguments of a call; null is `{}`.

    Raises `InvalidArguments` for invalid JSON, `InvalidParams` if they are not an object or have a duplicate member.
    """
    try:
        arguments = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise InvalidArguments(f"the arguments are not valid JSON: {exc}") from None
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise InvalidParams(f"the arguments must be an object, got {explain.excerpt(arguments)}")
    check_duplicate_members(bytes(raw), "arguments")
    return arguments


def _coercions(value: Any) -> Iterator[Any]:
    """Yield possible conversions of a value that does not match."""
    yield integers_of_floats(value)
    if isinstance(value, str):
        try:
            decoded = decode_text(value)
        except (msgspec.DecodeError, UnicodeError):
            return
        if decoded is not None and not isinstance(decoded, str):
            yield decoded
            if (changed := integers_of_floats(decoded)) is not decoded:
                yield changed


def integers_of_floats(value: Any) -> Any:
    """Return the value with 3.0 as 3: an integer, says JSON Schema, is any number without a fractional part. Return the
    value itself if there is none."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    if isinstance(value, list) and not _ATOMS.issuperset(map(type, value)):
        items = [integers_of_floats(item) for item in value]
        return value if all(map(is_, items, value)) else items
    if isinstance(value, dict) and not _ATOMS.issuperset(map(type, value.values())):
        members = {key: integers_of_floats(item) for key, item in value.items()}
        return value if all(map(is_, members.values(), value.values())) else members
    return value
