"""Whether patterns can check a value in time is estimated first, and only then counted."""

from __future__ import annotations

from typing import Any

import pytest

from accord.errors import Mismatch
from accord.schema import pattern_cost
from accord.schema.pattern_times import MAX_BACKTRACKS, PatternTimes, _estimate
from accord.schema.validate import compile

from tests.schema.test_pattern_cost import HONEST, HOSTILE


@pytest.mark.parametrize("pattern", [*HONEST, *HOSTILE])
def test_the_estimate_of_a_pattern_is_not_less_than_its_time(pattern: str) -> None:
    assert _estimate(pattern) >= pattern_cost.PatternCosts().nanoseconds(pattern)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": r"^(?=.*\d)[a-z0-9]{8,}$"}, "abcdefg1"),
        ({"pattern": r"^.{1,1000}$"}, "a" * 1_000),
        ({"properties": {f"p{n}": {"pattern": f"^.{{1,{n}}}$"} for n in range(200, 230)}}, {"p200": "a" * 200}),
        ({"pattern": r"[ab]*a[ab]{500}c"}, "a" * 501 + "c"),
    ],
)
def test_the_states_of_patterns_are_not_counted_for_short_texts(
    monkeypatch: pytest.MonkeyPatch, schema: Any, value: Any
) -> None:
    def count(*_: object, **__: object) -> None:
        raise AssertionError("no state is counted")

    monkeypatch.setattr(pattern_cost, "_Machine", count)
    compile(schema).validate(value)


def test_the_states_are_counted_once_for_a_text_that_could_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    count = pattern_cost.PatternCosts._measure
    monkeypatch.setattr(
        pattern_cost.PatternCosts, "_measure", lambda costs, pattern: counted.append(pattern) or count(costs, pattern)
    )
    validator = compile({"pattern": r"^[0-9a-f]{8}(-[0-9a-f]{4}){4}[0-9a-f]{8}.*$"})
    for _ in range(3):
        validator.validate("f81d4fae-7dec-11d0-a765-00a0c91e6bf6" + "x" * 4_000_000)
    assert len(counted) == 1


def test_longer_texts_get_fewer_backtracks() -> None:
    times: PatternTimes = compile({"pattern": r"^(?!.*\d\d)(a|b)*\1$"})._times
    allowed = [times.allowed_backtracks("a" * length) for length in (10, 10_000, 100_000, 1_000_000)]
    assert allowed[0] == MAX_BACKTRACKS
    assert allowed == sorted(allowed, reverse=True)
    assert allowed[-1] < MAX_BACKTRACKS
    with pytest.raises(Mismatch, match="too much text for the patterns"):
        times.allowed_backtracks("a" * 100_000_000)


@pytest.mark.parametrize("keyword", ["pattern", "maxLength"])
def test_names_may_be_checked_by_the_schema_of_their_object(keyword: str) -> None:
    schema = {"propertyNames": {"$ref": "#"}, keyword: "(?=a)a" if keyword == "pattern" else 3}
    validator = compile(schema)
    validator.validate({"a": {"ab": 1}})
    with pytest.raises(Mismatch):
        validator.validate({"bbbbb": 1})
