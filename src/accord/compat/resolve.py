"""`Annotated[Stock, Resolve(check_stock)]` of mcp 2: a parameter filled by a function, which may ask the client.

A resolver takes the tool's arguments by their names, a context, and what other resolvers give. It runs once for a call.
accord's own `Depends` does not see arguments; a question that is always asked is declared as
`Annotated[bool, Elicit("Delete {path}?")]`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from accord.compat.context import Context
from accord.compat.wrapping import call, filled
from accord.errors import DeclarationError, ToolError
from accord.messages.roots import ListRootsResult
from accord.server.asking.question import Question
from accord.server.asking.questions import Accepted, Cancelled, Declined, Roots
from accord.server.context import Context as Native

_CONTEXT = "_accord_context"
"""The parameter that a tool with resolvers gets, if it has no context of its own."""


class Resolve:
    """Fill a parameter with what `function` returns, or with the answer to the question that it returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function


def resolving(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its `Resolve` parameters filled; as it is where it has none. Raises `DeclarationError`."""
    written = inspect.signature(function)
    wanted = _wanted(function)
    if not wanted:
        return function
    left = [one for one in written.parameters.values() if one.name not in wanted]
    own = next((one.name for one in left if _is_context(_hints(function).get(one.name))), None)
    if own is None:
        left.append(inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=Native))

    async def fill(given: dict[str, Any]) -> dict[str, Any]:
        context = given[own] if own is not None else given.pop(_CONTEXT)
        values = _Call(given, context)
        return {**given, **{name: await values.of(hint, resolve) for name, (hint, resolve) in wanted.items()}}

    return filled(function, fill, written.replace(parameters=left))


class _Call:
    """The resolvers of one call, and what they gave."""

    def __init__(self, arguments: dict[str, Any], context: Context) -> None:
        self._arguments = arguments
        self._context = context
        self._made: dict[Callable[..., Any], Any] = {}

    async def of(self, hint: Any, resolve: Resolve) -> Any:
        """The value of a parameter with this hint. Raises `ToolError` where the person said no."""
        if resolve.function not in self._made:
            self._made[resolve.function] = await self._make(resolve.function)
        return _fit(hint, self._made[resolve.function])

    async def _make(self, function: Callable[..., Any]) -> Any:
        wanted, hints = _wanted(function), _hints(function)
        keywords: dict[str, Any] = {}
        for name in inspect.signature(function).parameters:
            if name in wanted:
                keywords[name] = await self.of(*wanted[name])
            elif _is_context(hints.get(name)):
                keywords[name] = self._context
            elif name in self._arguments:
                keywords[name] = self._arguments[name]
        value = await call(function, **keywords)
        if not isinstance(value, Question):
            return value
        (answer,) = await self._context.ask(value)
        return ListRootsResult(roots=list(answer)) if isinstance(value, Roots) else answer


def _fit(hint: Any, value: Any) -> Any:
    """What was answered, as the parameter wants it: the outcome, or what was filled in."""
    outcomes = (Accepted, Declined, Cancelled)
    wants = any(arm is one or get_origin(arm) is one for arm in _arms(hint) for one in outcomes)
    if wants:
        return value if isinstance(value, outcomes) else Accepted(value)
    if isinstance(value, Declined | Cancelled):
        raise ToolError("the person did not answer the question that this call depends on")
    return value.data if isinstance(value, Accepted) else value


def _arms(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows, one by one."""
    origin = get_origin(hint)
    if origin is None or origin in (Accepted, Declined, Cancelled):
        return (hint,)
    return tuple(arm for each in get_args(hint) for arm in _arms(each))


def _wanted(function: Callable[..., Any]) -> dict[str, tuple[Any, Resolve]]:
    """The parameters with a resolver: by name, their hint and it."""
    found = {}
    for name, hint in _hints(function).items():
        if get_origin(hint) is Annotated:
            inner, *metadata = get_args(hint)
            resolve = next((one for one in metadata if isinstance(one, Resolve)), None)
            if resolve is not None:
                found[name] = (inner, resolve)
    return found


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError:  # a name for type checkers only: no resolver can hide in it
        return dict(getattr(function, "__annotations__", {}))
    except TypeError as exc:
        raise DeclarationError(f"the hints of {function!r} cannot be read: {exc}") from exc


def _is_context(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Native)
