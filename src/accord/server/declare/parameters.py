"""The parameters of a callable, as they are declared.

Functions and methods are read from their code object, forty times faster than with `inspect.signature`; all other
callables (partials, callable objects, wrapped functions) use it.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType, MethodType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from accord.errors import DeclarationError
from accord.messages.bounds import NAME_LENGTH
from accord.schema.records import MISSING

M = TypeVar("M")

_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ITERABLE, _ASYNC_GENERATOR = (
    0x04,
    0x08,
    0x20,
    0x80,
    0x100,
    0x200,
)


class Parameter(msgspec.Struct, eq=False):
    """One parameter; `hint` is the unresolved annotation until `signature` resolves it."""

    name: str
    hint: Any
    default: Any = MISSING
    keyword_only: bool = False


class CallableSpec(msgspec.Struct, eq=False):
    """The parameters and the return annotation of a callable."""

    function: Any
    """The function inside methods, partials and wrappers; its globals are the scope of the annotations."""
    parameters: list[Parameter]
    rest: Any = None
    """The hint of `**kwargs` (MISSING if it has none), or None."""
    returns: Any = MISSING
    is_async: bool = False


def inspect_callable(function: Callable[..., Any]) -> CallableSpec:
    """Return the parameters of a callable. Raises DeclarationError for `*args`, positional-only parameters and
    generators.
    """
    if type(function) is FunctionType and _as_written(function):
        return _from_code(function, 0)
    if type(function) is MethodType and type(function.__func__) is FunctionType and _as_written(function.__func__):
        return _from_code(function.__func__, 1)
    if isinstance(function, classmethod):
        raise DeclarationError(
            "the decorator is inside a class body: register the method after the class, server.tool(Thing.method)"
        )
    return _from_inspect(function)


def _as_written(function: FunctionType) -> bool:
    """Return whether a function neither wraps another function nor has a signature of its own."""
    return not function.__dict__ or not ({"__wrapped__", "__signature__"} & function.__dict__.keys())


def _from_code(function: FunctionType, skip: int) -> CallableSpec:
    code = function.__code__
    count, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames
    if code.co_flags & (_VARARGS | _GENERATOR | _ASYNC_GENERATOR) or code.co_posonlyargcount > skip:
        _refuse(code.co_flags, names, total, code.co_posonlyargcount)
    hints = function.__annotations__
    defaults = function.__defaults__ or ()
    by_name = dict(zip(names[count - len(defaults) : count], defaults, strict=True)) | (function.__kwdefaults__ or {})
    parameters = [
        Parameter(name, hints.get(name, MISSING), by_name.get(name, MISSING), index >= count)
        for index, name in enumerate(names[skip:total], skip)
    ]
    if not skip and parameters and parameters[0].name in ("self", "cls") and parameters[0].hint is MISSING:
        raise DeclarationError(
            f"{function.__qualname__} is an unbound method: register the bound method, "
            "server.tool(thing.method), or all of them, server.add_object(thing)"
        )
    rest = hints.get(names[total], MISSING) if code.co_flags & _VARKEYWORDS else None
    returns = hints.get("return", MISSING)
    return CallableSpec(function, parameters, rest, returns, bool(code.co_flags & (_COROUTINE | _ITERABLE)))


def _refuse(flags: int, names: tuple[str, ...], total: int, positional_only: int) -> None:
    if flags & (_GENERATOR | _ASYNC_GENERATOR):
        raise DeclarationError("it is a generator: a tool returns its result once, so return a list")
    if positional_only:
        raise DeclarationError(f"{names[0]!r} is positional-only, but arguments have names: leave out the `/`")
    raise DeclarationError(f"*{names[total]} has no names for its arguments: write {names[total]}: list[...] instead")


def _from_inspect(function: Any) -> CallableSpec:
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError) as exc:
        raise DeclarationError(f"its signature cannot be read: {exc}; wrap it in a function") from exc
    called = unwrap_callable(function)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        _refuse(_GENERATOR, (), 0, 0)
    parameters, rest = [], None
    for parameter in found.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = _or_missing(parameter.annotation)
        elif parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            _refuse(0, (parameter.name,), 0, parameter.kind is parameter.POSITIONAL_ONLY)
        else:
            parameters.append(
                Parameter(
                    parameter.name,
                    _or_missing(parameter.annotation),
                    _or_missing(parameter.default),
                    parameter.kind is parameter.KEYWORD_ONLY,
                )
            )
    written = inspect.unwrap(function if hasattr(function, "__wrapped__") else called)
    return CallableSpec(
        written, parameters, rest, _or_missing(found.return_annotation), inspect.iscoroutinefunction(called)
    )


def unwrap_callable(function: Any) -> Any:
    """Return the function that a call runs: inside partials, or the `__call__` of an object."""
    while hasattr(function, "func") and type(function).__name__ == "partial":
        function = function.func
    if isinstance(function, (FunctionType, MethodType, type)):
        return function
    return type(function).__call__


def location(function: Any) -> str:
    """Return the location of a function, as `shop.py:14`; its name if it has no source."""
    code = getattr(inspect.unwrap(unwrap_callable(function)), "__code__", None)
    if code is None:
        return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
    return f"{relative_path(code.co_filename)}:{code.co_firstlineno}"


def calling_place() -> str:
    """Return the location in the program that called accord, as `shop.py:14`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("accord."):
        frame = frame.f_back
    return f"{relative_path(frame.f_code.co_filename)}:{frame.f_lineno}"


def relative_path(filename: str) -> str:
    """Return a path relative to the working directory if it is inside it."""
    try:
        here = os.path.join(os.getcwd(), "")
    except OSError:  # the directory was deleted
        return filename
    return filename.removeprefix(here)


def find_marker(hint: Any, kind: type[M]) -> M | None:
    """Return the marker of a type in a parameter's annotation. Raises `DeclarationError` for a marker inside another
    type, such as a union: it would have no effect, and a model could set what a dependency or the user provides.
    """
    if get_origin(hint) is Annotated:
        for extra in hint.__metadata__:
            if isinstance(extra, kind):
                return extra
    if _contains_marker(hint, kind):
        raise DeclarationError(f"the marker in {hint} is nested inside the type: write Annotated[X | None, mark]")
    return None


def _contains_marker(hint: Any, kind: type[Any]) -> bool:
    inside = () if get_origin(hint) is Literal else get_args(hint)
    return any(isinstance(each, kind) or _contains_marker(each, kind) for each in inside)


def _or_missing(value: Any) -> Any:
    return MISSING if isinstance(value, type) and value.__name__ == "_empty" else value


def enclosing_names(function: Any) -> Mapping[str, Any]:
    """Return the names in scope around a nested function: its closure, and the local variables of the calling
    frames.
    """
    names: dict[str, Any] = {}
    scope = getattr(function, "__globals__", {})
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_globals is scope and frame.f_locals is not scope:
            names = {**frame.f_locals, **names}
        frame = frame.f_back  # type: ignore[assignment]
    return names | dict(_closed_over(function))


def named_type(hint: str, types: tuple[type, ...]) -> type | None:
    """Return the one of the types that an annotation names: a context is often imported for type checkers only, and the
    annotation may have quotes of its own.
    """
    name = hint.strip("'\"").split("[")[0].split("|")[0].strip().rpartition(".")[2]
    return next((each for each in types if each.__name__ == name), None)


def _closed_over(function: Any) -> Iterator[tuple[str, Any]]:
    for cell, name in zip(getattr(function, "__closure__", None) or (), function.__code__.co_freevars, strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


_LAMBDA = "<lambda>"


def check_name(kind: str, name: Any, function: Callable[..., Any] | None = None) -> None:
    """Raise `DeclarationError` for a name that clients cannot use. `function` is the named function."""
    problem = _problem(name)
    if problem is None:
        return
    where = "" if function is None else f" ({location(function)})"
    raise DeclarationError(f'the {kind}{where} {problem}: give it one, as in name="total"')


def _problem(name: Any) -> str | None:
    if not isinstance(name, str):
        return f"has the name {name!r:.100}, which is no string"
    if not name:
        return "has an empty name"
    if name == _LAMBDA:
        return "is a lambda, which has no name of its own"
    if len(name) > NAME_LENGTH:
        return f"has a name of {len(name):,} characters, which is longer than {NAME_LENGTH:,}"
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"has the name {name!a:.100}, which is not valid Unicode"
    return None
