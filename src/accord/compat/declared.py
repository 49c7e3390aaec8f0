"""Tools, prompts and resources that are declared first and registered later.

The objects `Tool.from_function(f)` and `FunctionResource(...)`, and FastMCP's decorators `@tool`, `@resource(uri)` and
`@prompt`, whose functions are passed to `mcp.add_tool`, `mcp.add_resource` and `mcp.add_prompt`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar


class DeclaredFunction:
    """A function with the options of its declaration, as the decorators take them."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.function: Callable[..., Any] = function
        self.options: dict[str, Any] = options

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **options: Any) -> DeclaredFunction:
        """Return a declaration for `add_tool` or `add_prompt`."""
        return cls(fn, name=name, **options)


class Tool(DeclaredFunction):
    """A tool."""


class Prompt(DeclaredFunction):
    """A prompt."""


class FunctionResource(DeclaredFunction):
    """A resource whose content a function returns: `FunctionResource(uri=..., name=..., fn=...)`."""

    def __init__(self, *, uri: Any, fn: Callable[..., Any], **options: Any) -> None:
        super().__init__(fn, **options)
        self.uri: str = str(uri)


class TextResource(FunctionResource):
    """A resource with a fixed text: `TextResource(uri=..., text=...)`."""

    def __init__(self, *, uri: Any, text: str, name: str | None = None, **options: Any) -> None:
        super().__init__(uri=uri, fn=lambda: text, name=name or str(uri), **options)


F = TypeVar("F", bound=Callable[..., Any])

_MARK = "__accord_made__"


def tool(name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
    """Declare a function as a tool, with the options of `mcp.tool`."""
    return _declare(Tool, name_or_fn, name, options)


def prompt(name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
    """Declare a function as a prompt, with the options of `mcp.prompt`."""
    return _declare(Prompt, name_or_fn, name, options)


def resource(uri: str, **options: Any) -> Callable[[F], F]:
    """Declare a function as a resource, with the options of `mcp.resource`."""

    def mark(function: F) -> F:
        setattr(function, _MARK, FunctionResource(uri=uri, fn=function, **options))
        return function

    return mark


def declared_function(value: Any, kind: type[DeclaredFunction]) -> DeclaredFunction:
    """Return a declaration: the value itself, a decorator's, or a new one of `kind` for a plain function."""
    if isinstance(value, DeclaredFunction):
        return value
    marked = getattr(value, _MARK, None)
    return marked if isinstance(marked, DeclaredFunction) else kind(value)


def _declare(kind: type[DeclaredFunction], name_or_fn: Any, name: str | None, options: dict[str, Any]) -> Any:
    def mark(function: F) -> F:
        named = name if callable(name_or_fn) else name or name_or_fn
        setattr(function, _MARK, kind(function, name=named, **options))
        return function

    return mark(name_or_fn) if callable(name_or_fn) else mark
