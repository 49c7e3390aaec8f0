"""A cache whose values are made by one thread at a time.

Two threads that use a new type of msgspec at once, directly or as a part of another type, read it half built: the
process crashes. Decoders of types are therefore made under one lock, which a cached value does not need.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, ParamSpec, TypeVar

import msgspec

P = ParamSpec("P")
R = TypeVar("R")

building: threading.RLock = threading.RLock()
"""Held while msgspec uses a type for the first time."""


def locked_cache(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with a cache; all functions with this decorator share the lock."""

    @cache
    def make(*args: P.args, **kwargs: P.kwargs) -> R:
        with building:
            return function(*args, **kwargs)

    return make  # type: ignore[return-value]


@locked_cache
def _build(type_: Any) -> None:
    msgspec.json.Decoder(type_)


def safe_convert(value: Any, type_: Any, *, strict: bool = True) -> Any:
    """Return `msgspec.convert(value, type_)`, for a type that other threads may use for the first time now.

    Raises `msgspec.ValidationError`.
    """
    _build(type_)
    return msgspec.convert(value, type_, strict=strict)
