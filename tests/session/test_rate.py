"""A bound on how often something may happen: never more than it says, never less than it could."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from accord.errors import InternalError
from accord.session.rate import Pace, RateLimiter, RequestLoad

per_seconds = st.floats(0.01, 10_000)
bursts = st.integers(1, 200)
starts = st.floats(0, 1e7)


@given(per_seconds, bursts, starts)
def test_a_burst_may_happen_at_once_and_not_one_more(per_second: float, burst: int, now: float) -> None:
    rate = RateLimiter(per_second, burst)
    assert [rate.allow(now) for _ in range(burst + 1)] == [True] * burst + [False]


@given(per_seconds, bursts, starts, st.lists(st.floats(0, 3), max_size=200))
def test_no_stretch_of_time_has_more_than_its_share(
    per_second: float, burst: int, start: float, pauses: list[float]
) -> None:
    rate, now, taken = RateLimiter(per_second, burst), start, []
    for pause in pauses:
        now += pause / per_second
        if rate.allow(now):
            taken.append(now)
    for first, begun in enumerate(taken):
        for count, ended in enumerate(taken[first:], 1):
            assert count <= burst + (ended - begun) * per_second + 0.05


@given(per_seconds, bursts, starts)
def test_what_keeps_the_pace_is_never_refused(per_second: float, burst: int, start: float) -> None:
    rate = RateLimiter(per_second, burst)
    assert all(rate.allow(start + n / per_second) for n in range(300))


@given(per_seconds, bursts, starts, st.integers(0, 300))
def test_the_wait_ends_when_the_next_is_allowed(per_second: float, burst: int, now: float, before: int) -> None:
    rate = RateLimiter(per_second, burst)
    for _ in range(before):
        rate.allow(now)
    wait = rate.delay(now)
    assert (wait == 0) == (before < burst)
    assert wait <= 1 / per_second * 1.01 + 1e-6
    if wait > 0.1 / per_second:
        assert not rate.allow(now + wait / 2)
    assert rate.allow(now + wait)


def test_a_refusal_costs_nothing() -> None:
    rate = RateLimiter(10, 1)
    assert rate.allow(0)
    assert not any(rate.allow(0.09) for _ in range(1_000))
    assert rate.allow(0.1)


def test_idle_time_is_worth_one_burst() -> None:
    rate = RateLimiter(10, 5)
    assert [rate.allow(1_000_000) for _ in range(6)] == [True] * 5 + [False]
    assert [rate.allow(2_000_000) for _ in range(6)] == [True] * 5 + [False]


@pytest.mark.parametrize(("per_second", "at_once"), [(20, 20), (1, 1), (0.1, 1), (2.5, 2)])
def test_a_burst_is_one_seconds_worth_unless_it_is_given(per_second: float, at_once: int) -> None:
    rate = RateLimiter(per_second)
    assert sum(rate.allow(0) for _ in range(100)) == at_once


@pytest.mark.parametrize("per_second", [None, math.inf])
def test_without_a_bound_all_may_happen(per_second: float | None) -> None:
    rate = RateLimiter(per_second)
    assert all(rate.allow(0) for _ in range(10_000))
    assert rate.delay(0) == 0


@pytest.mark.parametrize("burst", [None, 1, 100])
def test_a_rate_of_zero_is_never(burst: float | None) -> None:
    rate = RateLimiter(0, burst)
    assert not any(rate.allow(now) for now in (0, 1, 1e12))
    assert rate.delay(1e12) == math.inf


def test_a_clock_that_goes_back_gives_nothing_away() -> None:
    rate = RateLimiter(10, 1)
    assert rate.allow(100)
    assert not rate.allow(50)
    assert rate.delay(50) == pytest.approx(50.1)
    assert rate.allow(100.1)


@pytest.mark.parametrize(("per_second", "burst"), [(-1, None), (math.nan, None), (1, 0), (1, 0.5), (1, math.nan)])
def test_a_bound_that_means_nothing_is_refused(per_second: float, burst: float | None) -> None:
    with pytest.raises(ValueError, match="a rate must be 0 or more"):
        RateLimiter(per_second, burst)


@given(st.one_of(st.none(), st.just(0.0), per_seconds), bursts, st.lists(st.floats(0, 10), max_size=50))
def test_a_pace_with_its_number_elsewhere_says_the_same(
    per_second: float | None, burst: int, times: list[float]
) -> None:
    rate, pace, due = RateLimiter(per_second, burst), Pace(per_second, burst), -math.inf
    for now in sorted(times):
        assert pace.wait(due, now) == rate.delay(now)
        stepped = pace.step(due, now)
        assert (stepped is not None) == rate.allow(now)
        due = due if stepped is None else stepped


def test_requests_of_many_accounts_together_exceed_their_limit_by_few_for_each() -> None:
    whole = RequestLoad(4_096, 1)
    parts = [RequestLoad(2_048, 1, whole) for _ in range(1_000)]
    for part in parts:
        with suppress(InternalError):
            while True:
                part.check()
                part.add(1)
    assert whole.running <= 2 * 4_096 + 8 * len(parts)
    assert parts[0].running == 2_048
    assert parts[-1].running == 8
