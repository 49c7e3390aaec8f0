"""Tests of one argument of a call, as the rules of a policy have them.

A list is tested by its elements, except by `Equals` with a list: all must pass for "met", and none for "unmet". A value
of another type than the test expects is unclear, because a server may convert it: "true" to true, 1 to "1".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from accord.host.policy import hosts, patterns
from accord.host.policy.condition_result import ConditionResult, all_of, each_of, negated
from accord.host.policy.paths import PathReader
from accord.messages.base import JSONValue

_MAX_VALUES = 256
"""Limit of the values that one test compares; with more, it is unclear."""
_EXACT = 1 << 53
"""Integers up to this one are the same in all languages."""


class ValueTest(Protocol):
    """A test of one value."""

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """Return whether the value passes."""
        ...


class Equals(msgspec.Struct, frozen=True):
    """The value is this one: same type, same content. 1 equals 1.0."""

    expected: JSONValue

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """See `ValueTest.check`."""
        state = _compare(self.expected, value)
        return ConditionResult(state, f"{_VERBS[state]} {_json_text(self.expected)}")


_VERBS: dict[str, str] = {"met": "is", "unmet": "is not", "unclear": "is of another type than"}


class OneOf(msgspec.Struct, frozen=True):
    """The value equals one of these."""

    options: tuple[JSONValue, ...]

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """See `ValueTest.check`."""
        shown = ", ".join(map(_json_text, self.options))
        states = [_compare(option, value) for option in self.options]
        if "met" in states:
            return ConditionResult("met", f"is one of {shown}")
        if "unmet" in states:  # an option of the same type
            return ConditionResult("unmet", f"is none of {shown}")
        return ConditionResult("unclear", f"is of another type than {shown}")


class TextPattern(msgspec.Struct, frozen=True):
    """The value is a text that matches one of these patterns."""

    patterns: tuple[str, ...]

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """See `ValueTest.check`."""
        shown = ", ".join(self.patterns)
        if not isinstance(value, str):
            return ConditionResult("unclear", "is not a text")
        if patterns.matches_any(self.patterns, value):
            return ConditionResult("met", f"matches {shown}")
        return ConditionResult("unmet", f"does not match {shown}")


class UnderFolder(msgspec.Struct, frozen=True):
    """The value is the path of a file, and under one of these folders."""

    folders: tuple[str, ...]

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """See `ValueTest.check`."""
        return paths.check(value, self.folders)


class HostIn(msgspec.Struct, frozen=True):
    """The value is a URL, and its host one of these."""

    hosts: tuple[hosts.HostPattern, ...]
    shown: str

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """See `ValueTest.check`."""
        return hosts.check_host(value, self.hosts, self.shown)


class InRange(msgspec.Struct, frozen=True):
    """The value is a number, and not below or above these bounds."""

    minimum: float | None
    maximum: float | None

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """See `ValueTest.check`."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ConditionResult("unclear", "is not a number")
        if self.minimum is not None and value < self.minimum:
            return ConditionResult("unmet", f"is below {self.minimum}")
        if self.maximum is not None and value > self.maximum:
            return ConditionResult("unmet", f"is above {self.maximum}")
        return ConditionResult("met", "is in the range")


class Not(msgspec.Struct, frozen=True):
    """The value does not pass these tests; what is unclear for them remains so."""

    tests: tuple[ValueTest, ...]

    def check(self, value: JSONValue, paths: PathReader) -> ConditionResult:
        """See `ValueTest.check`."""
        return negated(all_of(test.check(value, paths) for test in self.tests))


class ArgumentCondition(msgspec.Struct, frozen=True):
    """The tests of an argument: of that name, or, if the name begins with a slash, of the values at that place.

    `/files/*/path` is the path of each of the files. An argument that is absent passes no test.
    """

    name: str
    tests: tuple[ValueTest, ...]

    def check(self, arguments: Mapping[str, JSONValue], paths: PathReader) -> ConditionResult:
        """Return whether all values of the argument pass all tests."""
        values = [arguments[self.name]] if self.name in arguments else []
        if self.name.startswith("/"):
            values = _values_at(arguments, [_unescaped(step) for step in self.name[1:].split("/")])
        values = [element for value in values for element in self._elements(value)]
        if not values:
            return ConditionResult("unmet", f"{self.name} is absent or empty")
        if len(values) > _MAX_VALUES:
            return ConditionResult("unclear", f"{self.name} has more than {_MAX_VALUES} values")
        result = each_of(all_of(test.check(value, paths) for test in self.tests) for value in values)
        return result._replace(reason=f"{self.name} {result.reason}")

    def _elements(self, value: JSONValue) -> list[JSONValue]:
        whole = any(isinstance(test, Equals) and isinstance(test.expected, list) for test in self.tests)
        return value if isinstance(value, list) and not whole else [value]


def _values_at(value: JSONValue, steps: list[str]) -> list[JSONValue]:
    found = [value]
    for step in steps:
        found = [member for each in found for member in _members(each, step)]
    return found


def _members(value: JSONValue, step: str) -> list[JSONValue]:
    if isinstance(value, dict):
        return list(value.values()) if step == "*" else [value[step]] if step in value else []
    if isinstance(value, list):
        return value if step == "*" else [value[int(step)]] if step.isdecimal() and int(step) < len(value) else []
    return []


def _unescaped(step: str) -> str:
    """Return a step of a JSON Pointer (RFC 6901, 4)."""
    return step.replace("~1", "/").replace("~0", "~")


def _compare(expected: JSONValue, value: JSONValue) -> Any:
    """Return whether two JSON values are equal: "met", "unmet", or "unclear" if their types differ."""
    if expected is None or value is None:
        return "met" if expected is value else "unmet"
    if _kind(expected) != _kind(value):
        return "unclear"
    if _kind(value) in ("list", "dict"):
        return "met" if _encode(expected) == _encode(value) else "unmet"
    if expected == value:
        return "met"
    if _kind(value) == "number" and abs(value) > _EXACT and float(expected) == float(value):
        return "unclear"
    return "unmet"


def _kind(value: JSONValue) -> str:
    if isinstance(value, bool):
        return "bool"
    return "number" if isinstance(value, int | float) else type(value).__name__


_encode: Callable[[Any], bytes] = msgspec.json.Encoder(order="deterministic").encode


def _json_text(value: JSONValue) -> str:
    return msgspec.json.encode(value).decode()
