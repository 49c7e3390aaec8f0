"""Ordinary classes as return types, which mcp takes for structured output where their attributes are annotated.

accord asks for a dataclass, a TypedDict or a model; here their attributes are read into a record of the same fields. A
class without annotations is no structured output.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from accord.compat.wrapping import with_return_annotation, wrapped
from accord.errors import DeclarationError
from accord.schema.hints import HintReader
from accord.server.results import UNSTRUCTURED


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
