"""Patterns of names."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from accord.host.policy.patterns import matches, matches_any

from tests.measure import assert_linear


@given(st.text("ab*", max_size=8), st.text("ab\n.", max_size=12))
def test_a_star_stands_for_any_characters(pattern: str, text: str) -> None:
    expression = ".*".join(map(re.escape, pattern.split("*")))
    assert matches(pattern, text) == (re.fullmatch(expression, text, re.DOTALL) is not None)


def test_all_other_characters_stand_for_themselves() -> None:
    assert matches("read_?[a].x", "read_?[a].x")
    assert not matches("read_?", "read_x")
    assert not matches("Read", "read")
    assert matches_any(["a", "b*"], "bc")
    assert not matches_any([], "")


def test_matching_takes_linear_time() -> None:
    assert_linear(lambda size: matches("*a" * 50 + "*b", "a" * size), 20_000)
