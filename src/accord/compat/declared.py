"""Tools, prompts and resources made as objects, and added later: `Tool.from_function(f)`, `FunctionResource(...)`.

Functions that are declared before there is a server: FastMCP's `@tool`, `@resource(uri)` and `@prompt`, to be given
to `mcp.add_tool` and its like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar


class DeclaredFunction:
    """A function with what is said of it, as the decorators take that."""

    def __init__(self, function: Callable[..., Any], **about: Any) -> None:
        self.function: Callable[..., Any] = function
        self.about: dict[str, Any] = about

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **about: Any) -> DeclaredFunction:
        """A function, to be given to `add_tool` or `add_prompt`."""
        return cls(fn, name=name, **about)


class Tool(DeclaredFunction):
    """A tool."""


class Prompt(DeclaredFunction):
    """A prompt."""


class FunctionResource(DeclaredFunction):
    """A resource that a function gives: `FunctionResource(uri=..., name=..., fn=...)`."""

    def __init__(self, *, uri: Any, fn: Callable[..., Any], **about: Any) -> None:
        super().__init__(fn, **about)
        self.uri: str = str(uri)


class TextResource(FunctionResource):
    """A resource that is a text: `TextResource(uri=..., text=...)`."""

    def __init__(self, *, uri: Any, text: str, name: str | None = None, **about: Any) -> None:
        super().__init__(uri=uri, fn=lambda: text, name=name or str(uri), **about)


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
