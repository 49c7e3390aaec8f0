"""Functions that are declared before there is a server: FastMCP's `@tool`, `@resource(uri)` and `@prompt`, to be given
to `mcp.add_tool` and its like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from accord.compat.made import FunctionResource, Made, Prompt, Tool

F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__accord_made__"


def tool(name_or_fn: Any = None, *, name: str | None = None, **about: Any) -> Any:
    """Say of a function what `mcp.tool` would."""
    return _mark(Tool, name_or_fn, name, about)


def prompt(name_or_fn: Any = None, *, name: str | None = None, **about: Any) -> Any:
    """Say of a function what `mcp.prompt` would."""
    return _mark(Prompt, name_or_fn, name, about)


def resource(uri: str, **about: Any) -> Callable[[F], F]:
    """Say of a function what `mcp.resource` would."""

    def mark(function: F) -> F:
        setattr(function, _MARK, FunctionResource(uri=uri, fn=function, **about))
        return function

    return mark


def made(thing: Any, kind: type[Made]) -> Made:
    """What is to be added: an object of ours, a function with what was said of it, or a function alone."""
    if isinstance(thing, Made):
        return thing
    marked = getattr(thing, _MARK, None)
    return marked if isinstance(marked, Made) else kind(thing)


def _mark(kind: type[Made], name_or_fn: Any, name: str | None, about: dict[str, Any]) -> Any:
    def mark(function: F) -> F:
        named = name if callable(name_or_fn) else name or name_or_fn
        setattr(function, _MARK, kind(function, name=named, **about))
        return function

    return mark(name_or_fn) if callable(name_or_fn) else mark
