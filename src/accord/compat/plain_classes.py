"""Ordinary classes as return types, which mcp takes for structured output where their attributes are annotated.

accord asks for a dataclass, a TypedDict or a model; here their attributes are read into a record of the same fields. A
class without annotations is no structured output.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from accord.compat.wrapping import unannotated, with_signature
from accord.errors import DeclarationError
from accord.schema.hints import Reader


def as_record(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with a return type that can be read."""
    returns = inspect.signature(function).return_annotation
    if not isinstance(returns, type) or returns is inspect.Signature.empty or _can_be_read(returns):
        return function
    fields = get_type_hints(returns)
    if not fields:
        return unannotated(function)
    record = msgspec.defstruct(returns.__name__, [(name, hint) for name, hint in fields.items()])
    return _converted(function, lambda value: record(**{name: getattr(value, name) for name in fields}), record)


def _can_be_read(type_: type) -> bool:
    try:
        Reader({}, {}).read(type_)
    except (DeclarationError, NameError):
        return False
    return True


def _converted(function: Callable[..., Any], convert: Callable[[Any], Any], returns: type) -> Callable[..., Any]:
    signature = inspect.signature(function).replace(return_annotation=returns)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def waits(*args: Any, **kwargs: Any) -> Any:
            return convert(await function(*args, **kwargs))

        return with_signature(waits, signature)

    @functools.wraps(function)
    def runs(*args: Any, **kwargs: Any) -> Any:
        return convert(function(*args, **kwargs))

    return with_signature(runs, signature)
