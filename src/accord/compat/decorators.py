"""Functions that are declared before there is a server: FastMCP's `@tool`, `@resource(uri)` and `@prompt`, to be given
to `mcp.add_tool` and its like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from accord.compat.declared import DeclaredFunction, FunctionResource, Prompt, Tool

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__accord_made__"


def tool(name_or_fn: Any = None, *, name: str | None = None, **about: Any) -> Any:
    """Say of a function what `mcp.tool` would."""
    return _declare(Tool, name_or_fn, name, about)


def prompt(name_or_fn: Any = None, *, name: str | None = None, **about: Any) -> Any:
    """Say of a function what `mcp.prompt` would."""
    return _declare(Prompt, name_or_fn, name, about)


def resource(uri: str, **about: Any) -> Callable[[F], F]:
    """Say of a function what `mcp.resource` would."""

    def mark(function: F) -> F:
        setattr(function, _MARK, FunctionResource(uri=uri, fn=function, **about))
        return function

    return mark


def declared_function(thing: Any, kind: type[DeclaredFunction]) -> DeclaredFunction:
    """What is to be added: an object of ours, a function with what was said of it, or a function alone."""
    if isinstance(thing, DeclaredFunction):
        return thing
    marked = getattr(thing, _MARK, None)
    return marked if isinstance(marked, DeclaredFunction) else kind(thing)


def _declare(kind: type[DeclaredFunction], name_or_fn: Any, name: str | None, about: dict[str, Any]) -> Any:
    def mark(function: F) -> F:
        named = name if callable(name_or_fn) else name or name_or_fn
        setattr(function, _MARK, kind(function, name=named, **about))
        return function

    return mark(name_or_fn) if callable(name_or_fn) else mark
