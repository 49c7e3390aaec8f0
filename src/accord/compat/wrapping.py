"""A function that is called through another: something is done before or after it, or it is read as having another
signature than it was written with.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

Fill = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Makes the keywords of a call out of those that were given."""


def wrapped(
    function: Callable[..., Any],
    *,
    before: Callable[..., None] = lambda *args, **kwargs: None,
    after: Callable[[Any], Any] = lambda value: value,
) -> Callable[..., Any]:
    """The function, plain or async as it is: `before` sees its arguments and may raise, `after` makes the result."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def waits(*args: Any, **kwargs: Any) -> Any:
            before(*args, **kwargs)
            return after(await function(*args, **kwargs))

        return waits

    @functools.wraps(function)
    def runs(*args: Any, **kwargs: Any) -> Any:
        before(*args, **kwargs)
        return after(function(*args, **kwargs))

    return runs


def with_return_annotation(function: Callable[..., Any], hint: Any = inspect.Signature.empty) -> Callable[..., Any]:
    """A wrapped function, read as having this return annotation; none if none is given."""
    return with_signature(function, inspect.signature(function).replace(return_annotation=hint))


def with_filled_arguments(function: Callable[..., Any], fill: Fill, signature: inspect.Signature) -> Callable[..., Any]:
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
