from __future__ import annotations

import random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from accord.host.line_difference import difference, with_few_removed

from tests.measure import assert_linear

texts = st.lists(st.sampled_from("abcdef"), max_size=20)


@given(old=texts, new=texts)
def test_it_has_each_line_of_both_texts_in_order(old: list[str], new: list[str]) -> None:
    lines = difference(old, new, 40)
    if old == new:
        assert lines == []
    else:
        assert [line[1:] for line in lines if line[0] != "+"] == old
        assert [line[1:] for line in lines if line[0] != "-"] == new


@given(old=texts, new=texts, context=st.integers(0, 3))
def test_all_changes_are_shown_with_few_lines_around_them(old: list[str], new: list[str], context: int) -> None:
    whole = difference(old, new, 40)
    changed = [at for at, line in enumerate(whole) if line[0] != " "]
    assert difference(old, new, context) == [
        line for at, line in enumerate(whole) if any(abs(at - each) <= context for each in changed)
    ]


def test_only_what_differs_is_marked() -> None:
    old = ["{", "  a", "  b", "  c", "  d", "}"]
    assert difference(old, ["{", "  a", "  x", "  c", "  new", "  d", "}"], 0) == ["-  b", "+  x", "+  new"]
    assert difference(old, old[:2] + old[3:], 1) == ["   a", "-  b", "   c"]
    assert difference([], ["a"], 2) == ["+a"]
    assert difference(["a"], [], 2) == ["-a"]


def test_few_removed_lines_are_shown() -> None:
    removed, rest = [f"-{number}" for number in range(60)], ["+new", " same", "-last"]
    assert with_few_removed([*removed, *rest]) == [*removed[:50], "+new", " same", "-… 11 more removed lines"]
    assert with_few_removed(rest) == rest


@pytest.mark.parametrize("kind", ["repeated", "equal", "shuffled", "reversed", "halves"])
def test_it_takes_time_that_grows_with_the_texts(kind: str) -> None:
    def compare(size: int) -> None:
        old = [str(number) for number in range(size)]
        new = old[::-1]
        if kind == "repeated":
            old, new = [str(at % 100) for at in range(size)], [str(at * 7 % 101) for at in range(size)]
        elif kind == "equal":
            old, new = ["x"] * size, ["z", "x"] * (size // 2)
        elif kind == "shuffled":
            random.Random(1).shuffle(new)
        elif kind == "halves":
            new = old[size // 2 :] + old[: size // 2]
        difference(old, new, 2)

    assert_linear(compare, 1_000, 8)
