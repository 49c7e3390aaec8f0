"""`Annotated[Stock, Resolve(check_stock)]` of mcp 2: a parameter filled by a function, which may ask the client.

A resolver takes the tool's arguments by their names, a context, and what other resolvers give. It runs once for a call.
accord's own `Depends` does not see arguments; a question that is always asked is declared as
`Annotated[bool, Elicit("Delete {path}?")]`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin

from accord.compat.wrapping import call, with_filled_arguments
from accord.errors import DeclarationError, ToolError
from accord.messages.input_required import ListRootsResult
from accord.schema.hints import HintReader
from accord.server.core.context import Context
from accord.server.declare.parameters import enclosing_names
from accord.server.input.question import InputQuestion
from accord.server.input.questions import Accepted, Cancelled, Declined, Roots

_CONTEXT = "_accord_context"
"""The parameter that a tool with resolvers gets, if it has no context of its own."""
_OUTCOMES = (Accepted, Declined, Cancelled)


class Resolve:
    """Fill a parameter with what `function` returns, or with the answer to the question that it returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function


def with_resolvers(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its `Resolve` parameters filled; as it is where it has none. Raises `DeclarationError`."""
    hints = _hints(function)
    if not any(_resolve_in(hint) for hint in hints.values()):
        return function
    read = _ResolverSignature(function, hints, ())
    written = inspect.signature(function)
    left = [one for one in written.parameters.values() if one.name not in read.wanted]
    if read.context is None:
        left.append(inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=Context))

    async def fill(given: dict[str, Any]) -> dict[str, Any]:
        context = given[read.context] if read.context is not None else given.pop(_CONTEXT)
        resolved = _ResolverCall(given, context)
        return {**given, **{name: await resolved.resolve(*wanted) for name, wanted in read.wanted.items()}}

    return with_filled_arguments(function, fill, written.replace(parameters=left))


class _ResolverSignature:
    """What a function takes: what resolvers give it, by name, its context, and the rest."""

    def __init__(
        self, function: Callable[..., Any], hints: Mapping[str, Any], above: tuple[Callable[..., Any], ...]
    ) -> None:
        if function in above:
            raise DeclarationError(f"{function.__name__}() resolves itself")
        self.function: Callable[..., Any] = function
        self.wanted: dict[str, tuple[Any, _ResolverSignature]] = {}
        self.context: str | None = None
        self.arguments: list[str] = []
        for name in inspect.signature(function).parameters:
            hint = hints.get(name)
            resolve = _resolve_in(hint)
            if resolve is not None:
                inner = _ResolverSignature(resolve.function, _hints(resolve.function), (*above, function))
                self.wanted[name] = get_args(hint)[0], inner
            elif isinstance(hint, type) and issubclass(hint, Context):
                self.context = name
            else:
                self.arguments.append(name)


class _ResolverCall:
    """The resolvers of one call, and what they gave."""

    def __init__(self, arguments: Mapping[str, Any], context: Context) -> None:
        self._arguments = arguments
        self._context = context
        self._values: dict[Callable[..., Any], Any] = {}

    async def resolve(self, hint: Any, read: _ResolverSignature) -> Any:
        """The value of a parameter with this hint. Raises `ToolError` where the person said no."""
        if read.function not in self._values:
            self._values[read.function] = await self._run(read)
        return _unwrap(hint, self._values[read.function])

    async def _run(self, read: _ResolverSignature) -> Any:
        keywords = {name: self._arguments[name] for name in read.arguments if name in self._arguments}
        if read.context is not None:
            keywords[read.context] = self._context
        for name, wanted in read.wanted.items():
            keywords[name] = await self.resolve(*wanted)
        value = await call(read.function, **keywords)
        if not isinstance(value, InputQuestion):
            return value
        (answer,) = await self._context.ask(value)
        return ListRootsResult(roots=list(answer)) if isinstance(value, Roots) else answer


def _unwrap(hint: Any, value: Any) -> Any:
    """What was answered, as the parameter wants it: the outcome, or what was filled in."""
    if any(arm is one or get_origin(arm) is one for arm in _arms(hint) for one in _OUTCOMES):
        return value if isinstance(value, _OUTCOMES) else Accepted(value)
    if isinstance(value, Declined | Cancelled):
        raise ToolError("the person did not answer the question that this call depends on")
    return value.data if isinstance(value, Accepted) else value


def _arms(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows, one by one."""
    origin = get_origin(hint)
    if origin is None or origin in _OUTCOMES:
        return (hint,)
    return tuple(arm for each in get_args(hint) for arm in _arms(each))


def _resolve_in(hint: Any) -> Resolve | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((one for one in get_args(hint)[1:] if isinstance(one, Resolve)), None)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The hints of a function, also of one inside another. Raises `DeclarationError` for a resolver that is unknown."""
    reader = HintReader(getattr(function, "__globals__", {}), enclosing_names(inspect.unwrap(function)))
    found = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        try:
            found[name] = reader.resolve(hint) if isinstance(hint, str) else hint
        except NameError as exc:  # a name for type checkers only: no resolver can hide in it
            if Resolve.__name__ in hint:
                raise DeclarationError(f"{function.__name__}: the hint of {name!r} cannot be read: {exc}") from exc
    return found
