"""A prompt or a resource as it stays in the program: still the function it was, and `complete` for its arguments.

    @server.prompt
    def plan(city: str) -> str: ...

    @plan.complete("city")
    async def cities(prefix: str) -> list[str]: ...

    plan("Oslo")                             # what the function returns

For everything that looks at it (`inspect.signature`, `inspect.iscoroutinefunction`, `help`) it is that function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
F = TypeVar("F", bound=Callable[..., Any])

Complete = Callable[[str, Callable[..., Any]], None]
"""Takes the name of an argument and the function that completes it. Raises `DeclarationError`."""


class Completable(Generic[P, R]):
    """A function that is offered; see `Server.prompt` and `Server.resource`."""

    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], complete: Complete) -> None:
        above = (function,) if isinstance(function, Completable) else ()
        update_wrapper(self, plain(function))
        self._completes: tuple[Complete, ...] = (complete, *(one for each in above for one in each._completes))
        """One for each time that it is offered."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # not made yet: it is being copied
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def complete(self, argument: str) -> Callable[[F], F]:
        """Complete an argument while a person types it (server, Completion).

        The function takes what was typed so far, and returns the values that fit (an iterable of str, best first) or
        a `Completion`. Further parameters are filled, by their names, with arguments that have a value already: give
        them defaults, or nothing is proposed until there is one. A `Context` is filled in by its annotation.
        Raises `DeclarationError` for an argument that does not exist.
        """

        def declare(function: F) -> F:
            for complete in self._completes:
                complete(argument, function)
            return function

        return declare


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it was written, offered before or not."""
    return function.__wrapped__ if isinstance(function, Completable) else function
