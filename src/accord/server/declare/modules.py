"""Registration of the functions of a module, and of the methods of an object, as tools.

    server.add_module(text_tools)            # def slug(title: str) -> str: ...
    server.add_object(Ledger("2026.db"))     # its public methods, bound to this ledger

Inspection runs no code: it reads `__dict__` (of the module, of the classes), so no property is computed and no
`__getattr__` is called. Names that begin with an underscore are never registered. Other functions that cannot be tools
are reported in the returned `Imported` and in the log. If the request itself is invalid, nothing is registered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from functools import partial, partialmethod, singledispatchmethod
from types import BuiltinFunctionType, MethodWrapperType, ModuleType
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from accord.errors import DeclarationError
from accord.messages.revision import LATEST, RULES
from accord.server.declare.declaration import make_tool
from accord.server.declare.imported import Imported

if TYPE_CHECKING:
    from accord.messages.tools import ToolAnnotations
    from accord.server.core.registration import Registration
    from accord.server.core.registry import Registry

log: logging.Logger = logging.getLogger("accord.server")


class FoundFunctions(msgspec.Struct, frozen=True):
    """The functions of a module or an object."""

    place: str
    """The name in messages."""
    functions: dict[str, Callable[..., Any]]
    """Functions that may become tools."""
    left_out: dict[str, str]
    """Names that cannot, with the reason."""


# --- inspection ------------------------------------------------------------------------------------------------


def module_functions(module: ModuleType, include: Collection[str] | None) -> FoundFunctions:
    """Return the functions that a module lists in `__all__`, otherwise those that it defines itself; `include` may name
    other functions in it. Raises `DeclarationError` for a value that is not a module.
    """
    if not isinstance(module, ModuleType):
        raise DeclarationError(f"{module!r} is not a module: import it and pass the module object")
    place, namespace = f"module {module.__name__!r}", vars(module)
    names = include if include is not None else _named(place, namespace)
    if names is None:
        return FoundFunctions(place, {name: value for name, value in _public(namespace) if _is_own(value, module)}, {})
    named = {name: namespace[name] for name in names if name in namespace}
    why = "there is no such name in it; what it loads when asked, ask for first"
    absent = {name: why for name in names if name not in namespace}
    return FoundFunctions(place, {name: value for name, value in _public(named) if _is_function(value)}, absent)


def _named(place: str, namespace: Mapping[str, Any]) -> Collection[str] | None:
    """Return the names in `__all__`, if it exists. Raises `DeclarationError` if it is not a list of names."""
    names = namespace.get("__all__")
    if names is not None and not (_is(names, list, tuple) and all(_is(name, str) for name in names)):
        raise DeclarationError(f"{place}: its `__all__` is not a list of names: use include=[...]")
    return names


def _public(namespace: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in namespace.items() if not name.startswith("_")]


def _is_function(value: Any) -> bool:
    return callable(value) and not _is(value, type)


def _is_own(value: Any, module: ModuleType) -> bool:
    """Return whether a value is a function that the module defines, rather than imports."""
    while _is(value, partial):
        value = value.func
    return _is_routine(value) and getattr(value, "__module__", None) == module.__name__


def _is_routine(value: Any) -> bool:
    """Return whether a value is a function made by `def`, decorated or not, rather than another callable object."""
    kind = type(value)
    bound = hasattr(kind, "__get__") and not hasattr(kind, "__set__")
    return callable(value) and (bound or _is(value, BuiltinFunctionType, MethodWrapperType))


def _is(value: Any, *kinds: type) -> bool:
    """Return `isinstance` without `__class__`: a lazy object would load its target to answer that."""
    return issubclass(type(value), kinds)


def object_methods(thing: Any) -> FoundFunctions:
    """Return the methods of an object, including inherited ones; of a class, its static and class methods.

    Raises `DeclarationError` for a module.
    """
    if _is(thing, ModuleType):
        raise DeclarationError(f"{thing.__name__!r} is a module: use add_module")
    kind = thing if _is(thing, type) else type(thing)
    found = FoundFunctions(f"class {kind.__qualname__}", {}, {})
    for name, written in _public(_class_attributes(kind)):
        if _is(written, singledispatchmethod):
            found.left_out[name] = "which function runs depends on the type of the argument: write one for each type"
        elif not _is_routine(_unwrapped(written)):
            continue
        elif kind is thing and not _is(written, classmethod, staticmethod):
            found.left_out[name] = "it is a method of no object yet: give add_object an instance of the class"
        else:
            found.functions[name] = _bound(thing, name, written)
    return found


def _class_attributes(kind: type) -> dict[str, Any]:
    """Return the attributes of a class and its bases, without binding them; overridden ones once."""
    namespace: dict[str, Any] = {}
    for base in reversed(kind.__mro__[:-1]):  # the last one is `object`
        namespace.update(vars(base))
    return namespace


def _unwrapped(written: Any) -> Any:
    """Return the function inside a class method, static method or partial method."""
    if _is(written, classmethod, staticmethod):
        return written.__func__
    return written.func if _is(written, partialmethod) else written


def _bound(thing: Any, name: str, written: Any) -> Callable[..., Any]:
    """Return a bound method whose parameters can be inspected."""
    if _is(written, partialmethod):  # Python binds it to a function of (*args, **keywords)
        return partial(written.func.__get__(thing, type(thing)), *written.args, **written.keywords)
    return getattr(thing, name)  # type: ignore[no-any-return]


# --- registration ----------------------------------------------------------------------------------------------


class FunctionOptions(TypedDict, total=False):
    """Options of `add_module` and `add_object`."""

    prefix: str | None
    """The prefix of the tool names: `units` for `units_convert`."""
    include: Collection[str] | None
    """Register only these names."""
    exclude: Collection[str]
    """Register all but these names."""
    tags: Collection[str]
    annotations: ToolAnnotations | None


def add_functions(
    registry: Registry,
    found: FoundFunctions,
    prefix: str | None = None,
    include: Collection[str] | None = None,
    exclude: Collection[str] = (),
    tags: Collection[str] = (),
    annotations: ToolAnnotations | None = None,
) -> Imported:
    """Register the functions, or those named by `include`, without those named by `exclude`.

    Raises `DeclarationError` for a duplicate or unknown name, and for one in `include` that cannot be a tool.
    """
    chosen = _chosen(found, include, exclude)
    names = {name: f"{prefix}_{name}" if prefix else name for name in chosen}
    _check_free(registry, found, {names[name]: function for name, function in chosen.items()})
    registrations: dict[str, Registration] = {}
    left_out = {name: why for name, why in found.left_out.items() if include is None and name not in exclude}
    for name, function in chosen.items():
        try:
            registrations[names[name]] = _registration(
                function, names[name], {"tags": tags, "annotations": annotations}
            )
        except DeclarationError as exc:
            left_out[name] = str(exc).removeprefix(f"{getattr(function, '__qualname__', function)}: ")
    if include is not None and left_out:
        raise _cannot_be(found, *next(iter(left_out.items())))
    for name, registration in registrations.items():
        registry.add("tool", name, registration)
    _log_skipped(found, left_out)
    return Imported(tools=list(registrations), left_out=left_out)


def _chosen(
    found: FoundFunctions, include: Collection[str] | None, exclude: Collection[str]
) -> dict[str, Callable[..., Any]]:
    """Return the selected functions. Raises `DeclarationError` for unknown or private names."""
    if not found.functions and not found.left_out:
        raise DeclarationError(f"{found.place} has no public functions of its own to offer")
    for name in include or ():
        if name not in found.functions:
            raise _cannot_be(found, name, found.left_out.get(name, "there is no public function of that name"))
    for name in exclude:
        if name not in found.functions and name not in found.left_out:
            raise DeclarationError(f"{found.place} has no public function {name!r} to exclude")
    wanted = found.functions if include is None else include
    return {name: found.functions[name] for name in wanted if name not in exclude}


def _cannot_be(found: FoundFunctions, name: str, why: str) -> DeclarationError:
    return DeclarationError(f"{found.place}: {name!r} cannot be a tool: {why}")


def _registration(function: Callable[..., Any], name: str, about: dict[str, Any]) -> Registration:
    """Return a function as a tool. Raises `DeclarationError`, also for a hint that only type checkers can resolve: a
    function declared by name may wait for its hints, but for this one they may never exist.
    """
    _, registration = make_tool(function, name=name, **about)
    registration.define(RULES[LATEST])
    return registration


def _check_free(registry: Registry, found: FoundFunctions, wanted: Mapping[str, Callable[..., Any]]) -> None:
    """Raise `DeclarationError` for the name of an existing tool."""
    taken = registry.declared("tool")
    for name, function in wanted.items():
        if name in taken:
            raise DeclarationError(
                f"{found.place}: {_where(function)} cannot be tool {name!r}, which is "
                f"{_where(taken[name].function)} already: give a prefix, or leave it out with `exclude`"
            )


def _where(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}.{named.__qualname__}"


def _log_skipped(found: FoundFunctions, left_out: dict[str, str]) -> None:
    if left_out:
        reasons = "; ".join(f"{name} ({why})" for name, why in left_out.items())
        log.warning("accord: %s: these are no tools: %s", found.place, reasons)
