"""What a prompt or a template proposes for its arguments: functions that complete them, or the choices of their types.

Nothing is read of a function that completes before it is declared, and nothing of a type before someone asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from accord.errors import DeclarationError, InvalidArguments, InvalidParams
from accord.messages import codec
from accord.server.depends.markers import is_dependency
from accord.server.registration import Registration, dependencies_in
from accord.server.signature import Signature, signature


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
            raise DeclarationError(
                f"{read.name} completes an argument: its first parameter takes what was typed so far"
            )
        for name in (argument, *read.names[1:]):
            if not self.has(name):
                raise DeclarationError(f"{read.name}: {self.what} has no argument {name!r}")
        if argument in self.completers:
            raise DeclarationError(f"{read.name}: {argument!r} of {self.what} is completed already")
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
