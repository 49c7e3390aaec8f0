"""A prompt or a resource in the program: still the declared function, with `complete` for its arguments.

    @server.prompt
    def plan(city: str) -> str: ...

    @plan.complete("city")
    async def cities(prefix: str) -> list[str]: ...

    plan("Oslo")                             # what the function returns

For introspection (`inspect.signature`, `inspect.iscoroutinefunction`, `help`) it is that function.
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
    """A function registered as a prompt or a resource; see `Server.prompt` and `Server.resource`."""

    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], complete: Complete) -> None:
        above = (function,) if isinstance(function, Completable) else ()
        update_wrapper(self, plain(function))
        self._completes: tuple[Complete, ...] = (complete, *(one for each in above for one in each._completes))
        """One for each registration of the function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.__wrapped__(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__":  # not set yet: the object is being copied
            raise AttributeError(name)
        return getattr(self.__wrapped__, name)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)

    def complete(self, argument: str) -> Callable[[F], F]:
        """Register a completer for an argument (server, Completion).

        The completer takes the text typed so far, and returns the matching values (an iterable of str, best first) or a
        `Completion`. Further parameters receive, by name, arguments that have a value already: give them defaults, or
        nothing is proposed until they have one. A parameter annotated `Context` receives the context. Raises
        `DeclarationError` for an unknown argument.
        """

        def declare(function: F) -> F:
            for complete in self._completes:
                complete(argument, function)
            return function

        return declare


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the declared function itself, registered before or not."""
    return function.__wrapped__ if isinstance(function, Completable) else function
