"""What a prompt or a template proposes for its arguments: functions that complete them, or the choices of their types.

Nothing is read of a function that completes before it is declared, and nothing of a type before someone asks.

A prompt or a resource as it stays in the program: still the function it was, and `complete` for its arguments.

    @server.prompt
    def plan(city: str) -> str: ...

    @plan.complete("city")
    async def cities(prefix: str) -> list[str]: ...

    plan("Oslo")                             # what the function returns

For everything that looks at it (`inspect.signature`, `inspect.iscoroutinefunction`, `help`) it is that function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from accord.errors import DeclarationError, InvalidArguments, InvalidParams
from accord.messages import codec
from accord.server.core.registration import Registration, dependencies_in
from accord.server.declare.signature import Signature, signature
from accord.server.depends.markers import is_dependency


class Completer:
    """A function that completes one argument."""

    def __init__(self, function: Callable[..., Any], read: Signature) -> None:
        self._signature = read
        self._value_parameter, *self._context_parameters = read.names
        self.registration: Registration = Registration(
            function,
            lambda _: None,
            bind=self._bind,
            context=read.context is not None,
            is_async=read.is_async,
            depends=dependencies_in(read),
        )

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._signature.name

    @cached_property
    def _needs(self) -> Collection[str]:
        needs: Collection[str] = self._signature.input_schema.get("required", ())
        return [name for name in needs if name != self._value_parameter]

    @property
    def defaults(self) -> dict[str, str]:
        """The values of the arguments that it depends on, where a client gives none."""
        return {name: value for name, value in self._signature.defaults.items() if isinstance(value, str)}

    def is_ready(self, known: Mapping[str, str]) -> bool:
        """Whether the arguments that it depends on have their values."""
        return all(name in known for name in self._needs)

    def _bind(self, values: Any, context: Any) -> tuple[Any, Any]:
        """What to call it with: what was typed, and the arguments that it depends on. Raises `InvalidParams`."""
        typed, known = values
        given = {
            self._value_parameter: typed,
            **{name: known[name] for name in self._context_parameters if name in known},
        }
        try:
            return self._signature.bind(codec.encode(given), context)
        except InvalidArguments as error:
            raise InvalidParams(error.message) from error


class ArgumentCompletions:
    """What is proposed for the arguments of one prompt or template; `variables` are those of a template."""

    def __init__(self, what: str, read: Signature, variables: Collection[str] | None = None) -> None:
        self.what: str = what
        """As errors name it: `prompt 'plan'`."""
        self.completers: dict[str, Completer] = {}
        self._signature = read
        self._variables = variables

    def __bool__(self) -> bool:
        """Whether anything is proposed for any argument."""
        if self.completers:
            return True
        with suppress(DeclarationError):  # a type that cannot be read yet
            return any(choices for name, choices in self._signature.choices.items() if self.has(name))
        return False

    @property
    def context(self) -> bool:
        """Whether any of the functions takes a context."""
        return any(completer.registration.context for completer in self.completers.values())

    def add(self, argument: str, function: Callable[..., Any], context: type) -> None:
        """Complete an argument by a function. Raises `DeclarationError`."""
        read = signature(function, context=context, injected=is_dependency)
        if not read.names:
            raise DeclarationError(f"{read.name} must take the text typed so far as its first parameter")
        for name in (argument, *read.names[1:]):
            if not self.has(name):
                raise DeclarationError(f"{read.name}: {self.what} has no argument {name!r}")
        if argument in self.completers:
            raise DeclarationError(f"{read.name}: {argument!r} of {self.what} already has a completer")
        self.completers[argument] = Completer(function, read)

    def has(self, argument: str) -> bool:
        """Whether there is such an argument."""
        if self._variables is not None:
            return argument in self._variables
        return argument in self._signature.choices or self._signature.is_open

    def choices(self, argument: str, typed: str) -> list[str]:
        """What the type of an argument allows, as far as it begins with what was typed."""
        start = typed.casefold()
        return [text for text in self._signature.choices.get(argument, ()) if text.casefold().startswith(start)]


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
