"""Tools, prompts and resources made as objects, and added later: `Tool.from_function(f)`, `FunctionResource(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
