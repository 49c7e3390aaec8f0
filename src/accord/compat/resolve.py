"""`Annotated[Stock, Resolve(check_stock)]` of mcp 2: a parameter filled by a resolver, which may send the client a
question.

A resolver takes the tool's arguments by name, a context, and the values of other resolvers. It runs once per call.
accord's own `Depends` has no access to arguments; a question that every call asks is declared as `Annotated[bool,
Elicit("Delete {path}?")]`.
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
"""The parameter for the context, added to a tool with resolvers that has none."""
_OUTCOMES = (Accepted, Declined, Cancelled)


class Resolve:
    """A marker: fill the parameter with the value of `function`, or with the answer to the question that it returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function: Callable[..., Any] = function


def with_resolvers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its `Resolve` parameters filled, or unchanged without any. Raises `DeclarationError`."""
    hints = _hints(function)
    if not any(_resolve_in(hint) for hint in hints.values()):
        return function
    signature = _ResolverSignature(function, hints, ())
    python_signature = inspect.signature(function)
    parameters = [
        parameter for parameter in python_signature.parameters.values() if parameter.name not in signature.wanted
    ]
    if signature.context is None:
        parameters.append(inspect.Parameter(_CONTEXT, inspect.Parameter.KEYWORD_ONLY, annotation=Context))

    async def fill(arguments: dict[str, Any]) -> dict[str, Any]:
        context = arguments[signature.context] if signature.context is not None else arguments.pop(_CONTEXT)
        resolved = _ResolverCall(arguments, context)
        return {**arguments, **{name: await resolved.resolve(*resolver) for name, resolver in signature.wanted.items()}}

    return with_filled_arguments(function, fill, python_signature.replace(parameters=parameters))


class _ResolverSignature:
    """The parameters of a function: those of resolvers by name, the context, and the arguments."""

    def __init__(
        self, function: Callable[..., Any], hints: Mapping[str, Any], callers: tuple[Callable[..., Any], ...]
    ) -> None:
        if function in callers:
            raise DeclarationError(f"{function.__name__}() resolves itself")
        self.function: Callable[..., Any] = function
        self.wanted: dict[str, tuple[Any, _ResolverSignature]] = {}
        self.context: str | None = None
        self.arguments: list[str] = []
        for name in inspect.signature(function).parameters:
            hint = hints.get(name)
            resolve = _resolve_in(hint)
            if resolve is not None:
                inner = _ResolverSignature(resolve.function, _hints(resolve.function), (*callers, function))
                self.wanted[name] = get_args(hint)[0], inner
            elif isinstance(hint, type) and issubclass(hint, Context):
                self.context = name
            else:
                self.arguments.append(name)


class _ResolverCall:
    """The resolvers of one call, and their values."""

    def __init__(self, arguments: Mapping[str, Any], context: Context) -> None:
        self._arguments = arguments
        self._context = context
        self._values: dict[Callable[..., Any], Any] = {}

    async def resolve(self, hint: Any, signature: _ResolverSignature) -> Any:
        """Return the value of a parameter with this hint. Raises `ToolError` when the user declined or cancelled."""
        if signature.function not in self._values:
            self._values[signature.function] = await self._run(signature)
        return _unwrap(hint, self._values[signature.function])

    async def _run(self, signature: _ResolverSignature) -> Any:
        keywords = {name: self._arguments[name] for name in signature.arguments if name in self._arguments}
        if signature.context is not None:
            keywords[signature.context] = self._context
        for name, resolver in signature.wanted.items():
            keywords[name] = await self.resolve(*resolver)
        value = await call(signature.function, **keywords)
        if not isinstance(value, InputQuestion):
            return value
        (answer,) = await self._context.ask(value)
        return ListRootsResult(roots=list(answer)) if isinstance(value, Roots) else answer


def _unwrap(hint: Any, value: Any) -> Any:
    """Return the answer as the parameter's hint requires it: the outcome, or the data of the form."""
    if any(member is one or get_origin(member) is one for member in _union_members(hint) for one in _OUTCOMES):
        return value if isinstance(value, _OUTCOMES) else Accepted(value)
    if isinstance(value, Declined | Cancelled):
        raise ToolError("the person did not answer the question that this call depends on")
    return value.data if isinstance(value, Accepted) else value


def _union_members(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union, flattened."""
    origin = get_origin(hint)
    if origin is None or origin in _OUTCOMES:
        return (hint,)
    return tuple(member for each in get_args(hint) for member in _union_members(each))


def _resolve_in(hint: Any) -> Resolve | None:
    if get_origin(hint) is not Annotated:
        return None
    return next((one for one in get_args(hint)[1:] if isinstance(one, Resolve)), None)


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the type hints of a function, also of a nested one. Raises `DeclarationError` for an unknown resolver."""
    reader = HintReader(getattr(function, "__globals__", {}), enclosing_names(inspect.unwrap(function)))
    hints = {}
    for name, hint in getattr(function, "__annotations__", {}).items():
        try:
            hints[name] = reader.resolve(hint) if isinstance(hint, str) else hint
        except NameError as exc:  # a name that only type checkers import: it cannot contain a resolver
            if Resolve.__name__ in hint:
                raise DeclarationError(f"{function.__name__}: the hint of {name!r} cannot be read: {exc}") from exc
    return hints
