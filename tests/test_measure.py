"""The measures notice what they are there for."""

from __future__ import annotations

import pytest

from tests.measure import assert_linear, costs_at_most, slowness


def test_linear_work_passes() -> None:
    assert_linear(lambda size: sum(range(size)), 20_000)


def test_work_that_grows_with_the_square_is_noticed() -> None:
    with pytest.raises(AssertionError, match="for 10 times the size"):
        assert_linear(lambda size: [None for _ in range(size) for _ in range(size)], 100)


def test_work_that_takes_long_is_noticed() -> None:
    with pytest.raises(AssertionError, match="where a unit is"), costs_at_most(0.1):
        sum(range(1_000_000))
    with costs_at_most(50):
        sum(range(100_000))


def test_slowness_is_within_its_bounds() -> None:
    assert 1 <= slowness() <= 5
