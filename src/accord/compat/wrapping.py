"""A function that is called through another: something is done before or after it, or it is read as having another
signature than it was written with.

Ordinary classes as return types, which mcp takes for structured output where their attributes are annotated.

accord asks for a dataclass, a TypedDict or a model; here their attributes are read into a record of the same fields. A
class without annotations is no structured output.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import msgspec

from accord.errors import DeclarationError
from accord.schema.hints import HintReader
from accord.server.core.results import UNSTRUCTURED

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


def as_record(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a return type that can be read."""
    returns = inspect.signature(function).return_annotation
    if not isinstance(returns, type) or returns is inspect.Signature.empty or _can_be_read(returns):
        return function
    fields = get_type_hints(returns)
    if not fields:
        return unstructured(function)
    record = msgspec.defstruct(returns.__name__, list(fields.items()))
    convert = wrapped(function, after=lambda value: record(**{name: getattr(value, name) for name in fields}))
    return with_return_annotation(convert, record)


def unstructured(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without its return annotation: what it returns is content, nothing structured."""
    return with_return_annotation(wrapped(function))


def _can_be_read(type_: type) -> bool:
    if issubclass(type_, tuple(UNSTRUCTURED)):
        return True
    try:
        HintReader({}, {}).read(type_)
    except (DeclarationError, NameError):
        return False
    return True
