"""The rules for sending a request to a model again: which failures may pass, and after which pause.

"`Retry-After`: a date, or a non-negative decimal integer, representing time in seconds" (RFC 9110, 10.2.3). Providers
of models also send `retry-after-ms`, and `x-should-retry`, which decides if it is there.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from accord.host.models.limits import ModelLimits

_RETRYABLE_STATUSES = (408, 409, 429)
"""Timeout, conflict of locks, too many requests; and all from 500 on."""
_FIRST_BOUND = 0.5
"""Seconds: the bound of the first pause; it doubles for each retry."""


def is_retryable(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether a failure with this status may pass. Names of headers are in lower case."""
    wish = headers.get("x-should-retry", "").strip().lower()
    if wish in ("true", "false"):
        return wish == "true"
    return status in _RETRYABLE_STATUSES or status >= 500


def retry_after(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Return the seconds after which the provider allows a retry, at least 0; None if it does not say."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now())
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def pause(
    attempt: int,
    after: float | None,
    limits: ModelLimits,
    pick: Callable[[float, float], float] = random.uniform,
) -> float | None:
    """Return the seconds to wait after failed attempt number `attempt` (from 1), or None to give up.

    `after` is what the provider said; the pause is never shorter. Without it, the pause is random between zero and a
    bound that doubles (full jitter). `pick(0, bound)` returns a random number between the two.
    """
    if attempt > limits.retries or (after is not None and after > limits.retry_after_seconds):
        return None
    bound = min(limits.retry_seconds, _FIRST_BOUND * 2.0 ** min(attempt - 1, 64))
    return pick(0, bound) if after is None else after + pick(0, min(bound, after / 4))
