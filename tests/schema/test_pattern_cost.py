"""What a pattern takes per character: known before a text is read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from accord.errors import Mismatch
from accord.schema.cost import Cost
from accord.schema.pattern_cost import FAST, PatternCosts, nanoseconds_without_table
from accord.schema.pattern_size import pattern_size
from accord.schema.pattern_work import PatternWork, count_characters, max_characters
from accord.schema.validate import compile

from tests.measure import costs_at_most

HONEST = [
    r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$",
    r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$",
    r"^[^@]{1,64}@[^@]{1,190}$",
    r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    r"^https?://[^\s/$.?#].[^\s]*$",
    r"^[^\n]{1,200}$",
    r"^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])(?=.*[^\w\s]).{12,128}$",
    r"^(?!.*<script)[\s\S]*$",
    r"^([a-z])\1+$",
    r"(?i)^(?:png|jpe?g|gif|webp|monday|tuesday|wednesday|thursday)$",
    r"(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    r"(?s)^<p>.*</p>$",
]
HOSTILE = [
    r"[ab]*a[ab]{500}c",
    r"^[ab]{500}a[ab]*$",  # many states from the back
    r"(?:[ab]*a[ab]{40})+x",
    r"(?=[ab]*a[ab]{500}c)x",
    r"(?=x)[ab]*a[ab]{500}c",
    r"(){4294967294}[ab]*a[ab]{200}",
    r"(?:(?:){1000}){1000}[ab]*a[ab]{200}",
    r"(?i)[a-b]*A[a-b]{100}C",  # few states, if A were no a
    r"(?s)[ab]*\n.{60}C",
    r"(?m)[ab\n]*^[ab\n]{60}C",
    r"(?i)[^a]*K[\u212A]{60}C",
]


@pytest.mark.parametrize("pattern", HONEST)
def test_an_honest_pattern_is_fast(pattern: str) -> None:
    assert PatternCosts().table_nanoseconds(pattern) == FAST


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_pattern_of_many_states_is_slow(pattern: str) -> None:
    assert PatternCosts().nanoseconds(pattern) > 100 * FAST


@pytest.mark.parametrize("pattern", [r"^\p{Lu}{40}$", r"^(?<name>[a-z]{60})x$", r"\b[a-z]{60}\b", r"^(?i:[a-z]{60})$"])
def test_a_pattern_of_unknown_states_counts_as_slow(pattern: str) -> None:
    assert PatternCosts().nanoseconds(pattern) > FAST


@pytest.mark.parametrize("pattern", [r"(?:\B[a-z]*\B[a-z]*\B[a-z]*)[0-9]", r"\bx", r"x\<", r"\>x"])
def test_word_boundaries_take_longer_than_a_table(pattern: str) -> None:
    """The engine leaves its table for the first character beyond ASCII."""
    assert PatternCosts().nanoseconds(pattern) >= 20 * FAST


@pytest.mark.parametrize("pattern", [r"^(?:(?=a)a)*z", r"(a)\1z", r"^(?!x).*$"])
def test_parts_that_are_tried_in_turn_take_longer_than_a_table(pattern: str) -> None:
    assert PatternCosts().table_nanoseconds(pattern) == FAST
    assert PatternCosts().nanoseconds(pattern) >= 20 * FAST


def test_sets_of_many_characters_are_followed_in_a_moment() -> None:
    patterns = ["[" + "".join(chr(0x4E00 + 2 * n + k) for n in range(500)) + "][a-z]x" for k in range(30)]
    with costs_at_most(20):
        costs = PatternCosts()
        assert min(costs.nanoseconds(pattern) for pattern in patterns) >= FAST


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(?:().(?:[\s\S]?[^a])+|\S?|(){0,200}(?:){1000}){0,5}z",
        "^(?:(){0,3000}(?:b|" + "|".join("a" * number + "b" for number in range(60)) + "))*z",
        "^(?:(){0,4000}(?:.?.?.?.?[^a]){0,200})*z",
    ],
)
def test_positions_that_read_nothing_count_as_steps(pattern: str) -> None:
    with costs_at_most(30):
        assert PatternCosts().nanoseconds(pattern) > FAST


def test_many_patterns_share_the_work_of_looking_at_them() -> None:
    costs = PatternCosts()
    found = [costs.nanoseconds(rf"^[^@]{{1,{n}}}@[^@]{{1,190}}$") for n in range(40, 100)]
    assert found[0] == FAST < found[-1] <= nanoseconds_without_table("^[^@]{1,99}@[^@]{1,190}$")


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": HOSTILE[0]}, "ab" * 2_000_000),
        ({"items": {"pattern": HOSTILE[0]}}, ["ab" * 50] * 40_000),
        ({"propertyNames": {"pattern": HOSTILE[0]}}, {"ab" * 1_000_000: 1}),
        ({"pattern": HOSTILE[3]}, "ab" * 2_000_000),
        ({"pattern": HOSTILE[4]}, "ab" * 2_000_000),
        ({"allOf": [{"pattern": HOSTILE[0]}] * 100}, "ab" * 20_000),
        ({"allOf": [{"pattern": r"(?:\B[a-z]*\B[a-z]*\B[a-z]*)[0-9]"}] * 10}, "\u4e2d" * 1_000_000),
        ({"allOf": [{"pattern": "^(?:(?=a)a)*z" + "y" * n} for n in range(10)]}, "a" * 1_000_000),
    ],
)
def test_more_text_than_the_patterns_can_read_in_time_is_refused(schema: Any, value: Any) -> None:
    validator = compile(schema)
    with costs_at_most(100), pytest.raises(Mismatch, match="too much text for the patterns of this schema"):
        validator.validate(value)


def test_a_short_text_is_matched_by_a_slow_pattern() -> None:
    compile({"pattern": HOSTILE[0]}).validate("a" * 501 + "c")
    with pytest.raises(Mismatch, match="does not match"):
        compile({"pattern": HOSTILE[0]}).validate("ab" * 1_000)


@pytest.mark.parametrize("pattern", HONEST[:3])
def test_a_table_of_100_000_rows_is_matched_by_an_honest_pattern(pattern: str) -> None:
    fitting = "2026-01-31T12:00:00Z" if "T" in pattern else "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
    compile({"items": {"properties": {"id": {"pattern": pattern}}}}).validate([{"id": fitting}] * 100_000)


def test_a_schema_too_wide_to_follow_counts_all_text() -> None:
    wide = {f"p{n}": {"$ref": "#"} for n in range(400)}
    schema = {"properties": wide, "pattern": "^a$"}
    value = ["x" * 1_000, {f"p{n}": {f"p{m}": "y" * 10 for m in range(400)} for n in range(400)}]
    work = PatternWork({"items": schema}, Cost(5_000, 1, False, frozenset({"^a$"})), lambda pattern: FAST)
    work._steps = 1_000_000
    assert work.time(value) >= count_characters(value)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_the_bound_of_the_characters_is_one(value: Any) -> None:
    assert max_characters(value) >= count_characters(value)


@settings(max_examples=300)
@given(st.text(alphabet="ab(|)[]*+?{1,}^$.\\d", max_size=30))
def test_any_text_has_a_cost(pattern: str) -> None:
    assert FAST <= PatternCosts().nanoseconds(pattern) <= max(200, pattern_size(pattern).bytes)
