"""Retries: what the headers say, and how long the pauses are."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from accord.host import ModelLimits
from accord.host.models.retries import is_retryable, pause, retry_after

NOW = 1_445_412_480.0
"""Wed, 21 Oct 2015 07:28:00 GMT, the date in the example of RFC 9110."""


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:30 GMT"}, 30),
        ({"retry-after": "Wed, 21 Oct 2015 07:27:00 GMT"}, 0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:30 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "later"}, None),
    ],
)
def test_the_headers_say_when_to_retry(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=lambda: NOW) == seconds


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_header_is_a_number_or_nothing(after: str, milliseconds: str) -> None:
    found = retry_after({"retry-after": after, "retry-after-ms": milliseconds})
    assert found is None or (found >= 0 and math.isfinite(found))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529])
def test_the_status_says_whether_to_retry_unless_a_header_does(status: int) -> None:
    assert is_retryable(status, {}) == (status in (408, 409, 429) or status >= 500)
    assert is_retryable(status, {"x-should-retry": "true"})
    assert not is_retryable(status, {"x-should-retry": "false"})


LIMITS = ModelLimits(retries=6, retry_seconds=8)


def test_the_bound_of_pauses_doubles_up_to_the_limit() -> None:
    bounds = [pause(attempt, None, LIMITS, pick=lambda low, high: high) for attempt in range(1, 8)]
    assert bounds == [0.5, 1, 2, 4, 8, 8, None]
    assert [pause(attempt, None, LIMITS, pick=lambda low, high: low) for attempt in range(1, 7)] == [0] * 6


@given(st.integers(1, 10_000), st.one_of(st.none(), st.floats(0, 1e9)))
def test_a_pause_is_never_shorter_than_the_provider_wants(attempt: int, after: float | None) -> None:
    found = pause(attempt, after, ModelLimits(retries=10_000))
    if after is not None and after > 60:
        assert found is None
    else:
        assert found is not None
        assert (after or 0) <= found <= (after or 0) + 8
