"""Wrappers of handler functions: a function called before or after, another signature, or another return type.

mcp takes ordinary classes as return types for structured output if their attributes are annotated. accord requires a
dataclass, a TypedDict or a model, so the attributes are copied into a record with the same fields. A class without
annotations is no structured output.
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
from accord.server.core.per_loop import PerLoop
from accord.server.core.results import UNSTRUCTURED
from accord.server.core.workers import WorkerPool

_WORKERS: PerLoop[WorkerPool] = PerLoop(WorkerPool.close)

Fill = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""A function that returns the keywords of a call from the given ones."""


def wrapped(
    function: Callable[..., Any],
    *,
    before: Callable[..., None] = lambda *args, **kwargs: None,
    after: Callable[[Any], Any] = lambda value: value,
) -> Callable[..., Any]:
    """Return the function with `before`, which receives the arguments and may raise, and `after`, which converts the
    result.

    The wrapper of an async function is async, of any other function plain.
    """
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            before(*args, **kwargs)
            return after(await function(*args, **kwargs))

        return call_async

    @functools.wraps(function)
    def call_plain(*args: Any, **kwargs: Any) -> Any:
        before(*args, **kwargs)
        return after(function(*args, **kwargs))

    return call_plain


def with_return_annotation(function: Callable[..., Any], hint: Any = inspect.Signature.empty) -> Callable[..., Any]:
    """Return a function with this return annotation in its signature, or with none."""
    return with_signature(function, inspect.signature(function).replace(return_annotation=hint))


def with_filled_arguments(function: Callable[..., Any], fill: Fill, signature: inspect.Signature) -> Callable[..., Any]:
    """Return a function with `signature`, which calls `function` with the keywords from `fill`."""

    @functools.wraps(function)
    async def call_filled(**arguments: Any) -> Any:
        return await call(function, **await fill(arguments))

    return with_signature(call_filled, signature)


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of a function, plain or async. A plain one runs in a thread, because it may block; not in one
    of the event loop's executor, which the server needs itself. Raises `InternalError` when all threads are busy.
    """
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    workers = _WORKERS.get(asyncio.get_running_loop()) or _WORKERS.add(WorkerPool())
    return await workers.run(function, *args, **kwargs)


def with_signature(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., Any]:
    """Set the signature of a function and return it."""
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def as_record(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with a return type that accord's schemas support."""
    returns = inspect.signature(function).return_annotation
    if not isinstance(returns, type) or returns is inspect.Signature.empty or _is_supported(returns):
        return function
    fields = get_type_hints(returns)
    if not fields:
        return unstructured(function)
    record = msgspec.defstruct(returns.__name__, list(fields.items()))
    convert = wrapped(function, after=lambda value: record(**{name: getattr(value, name) for name in fields}))
    return with_return_annotation(convert, record)


def unstructured(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function without its return annotation: its result is unstructured content."""
    return with_return_annotation(wrapped(function))


def _is_supported(type_: type) -> bool:
    if issubclass(type_, tuple(UNSTRUCTURED)):
        return True
    try:
        HintReader({}, {}).read(type_)
    except (DeclarationError, NameError):
        return False
    return True
