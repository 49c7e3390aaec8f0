"""A function with another signature than it was written with: some parameters are filled here, or its return
annotation is left out.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

Fill = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Makes the keywords of a call out of those that were given."""


def unannotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without its return annotation: what it returns is content, nothing structured."""
    written = inspect.signature(function).replace(return_annotation=inspect.Signature.empty)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def waits(*args: Any, **kwargs: Any) -> Any:
            return await function(*args, **kwargs)

        return with_signature(waits, written)

    @functools.wraps(function)
    def runs(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return with_signature(runs, written)


def filled(function: Callable[..., Any], fill: Fill, signature: inspect.Signature) -> Callable[..., Any]:
    """The function behind `signature`, called with what `fill` makes of the arguments."""

    @functools.wraps(function)
    async def called(**given: Any) -> Any:
        return await call(function, **await fill(given))

    return with_signature(called, signature)


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function returns, plain or async. A plain one runs in a thread: it may wait."""
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    return await asyncio.to_thread(function, *args, **kwargs)


def with_signature(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """The function, read as having this signature."""
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function
