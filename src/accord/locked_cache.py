"""A cache whose values are made by one thread at a time.

Two threads that use a new type of msgspec at once, directly or as a part of another type, read it half built: the
process crashes. Decoders of types are therefore made under one lock, which a cached value does not need.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_making = threading.RLock()


def locked_cache(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a cache; all functions with this decorator share one lock."""

    @cache
    def make(*args: P.args, **kwargs: P.kwargs) -> R:
        with _making:
            return function(*args, **kwargs)

    return make  # type: ignore[return-value]
