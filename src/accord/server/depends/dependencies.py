"""The dependencies of a registered function: created before it runs, closed after it.

The order and the kind of each dependency are computed once, before the first call that needs it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, contextmanager
from enum import Enum
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, isgeneratorfunction, signature
from typing import Any

import msgspec

from accord.errors import DeclarationError
from accord.schema.hints import HintReader
from accord.server.core.exit_stack import FastExitStack
from accord.server.declare.parameters import enclosing_names, named_type, unwrap_callable
from accord.server.depends.markers import Dependency, HandleMarker, dependency_in

Overrides = Mapping[Callable[..., Any], Callable[..., Any]]
"""Replacements by the function that they replace."""

MakeLasting = Callable[["DependencyStep", dict[str, Any]], Awaitable[Any]]
"""Returns a dependency that lasts as long as the server."""

_CONTEXT = -1


class DependencyKind(Enum):
    """The way in which a dependency's function provides its value."""

    PLAIN = "called"
    AWAITED = "called and awaited"
    ENTERED = "called and entered"
    ENTERED_ASYNC = "called and entered with `async with`"


class DependencyStep(msgspec.Struct, frozen=True, eq=False):
    """One dependency."""

    make: Callable[..., Any]
    key: Callable[..., Any]
    """The key of its stored value: the declared function, even if another overrides it."""
    kind: DependencyKind
    inputs: tuple[tuple[str, int], ...]
    """Its parameters, and the step that provides each; `_CONTEXT` for the context."""
    is_lifespan: bool
    """Whether it lasts as long as the server."""

    async def open(self, entered: FastExitStack, given: dict[str, Any]) -> Any:
        """Return its value, and add what must be closed to `entered`. Raises what the program raises."""
        made = self.make(**given)
        if self.kind is DependencyKind.AWAITED:
            return await made
        if self.kind is DependencyKind.ENTERED:
            return entered.enter(made)
        if self.kind is DependencyKind.ENTERED_ASYNC:
            return await entered.enter_async(made)
        return made


class DependencyPlan:
    """The dependencies of one function, in the order of their creation. Raises `DeclarationError`.

    `contexts` are the types that mark a context parameter.
    """

    def __init__(self, wanted: Mapping[str, Dependency], overrides: Overrides, contexts: tuple[type, ...]) -> None:
        self._contexts = contexts
        self.steps: list[DependencyStep] = []
        self._overrides = overrides
        self._step_index: dict[tuple[Callable[..., Any], str], int] = {}
        self.outputs: dict[str, int] = {name: self._step_for(one, ()) for name, one in wanted.items()}
        self.context: bool = any(place == _CONTEXT for step in self.steps for _, place in step.inputs)
        """Whether one of them takes the context."""
        self.plain: bool = all(step.kind is DependencyKind.PLAIN and not step.is_lifespan for step in self.steps)
        """Whether none of them is awaited or closed."""
        self.simple: list[tuple[str, Callable[..., Any]]] | None = self._simple()
        """The parameters, and the function for each, if the functions take no parameters; otherwise None."""

    def _simple(self) -> list[tuple[str, Callable[..., Any]]] | None:
        if not self.plain or any(step.inputs for step in self.steps) or len(self.steps) != len(self.outputs):
            return None
        return [(name, self.steps[place].make) for name, place in self.outputs.items()]

    def fill_plain(self, context: object) -> dict[str, Any]:
        """Return the values by parameter, for a `plain` plan."""
        values: list[Any] = []
        for step in self.steps:
            values.append(step.make(**_given(step, values, context)) if step.inputs else step.make())
        return {name: values[place] for name, place in self.outputs.items()}

    async def fill(self, entered: FastExitStack, context: object, lasting: MakeLasting) -> dict[str, Any]:
        """Return the values by parameter, for any plan, and add what must be closed after the call to `entered`."""
        values: list[Any] = []
        for step in self.steps:
            given = _given(step, values, context) if step.inputs else {}
            values.append(await (lasting(step, given) if step.is_lifespan else step.open(entered, given)))
        return {name: values[place] for name, place in self.outputs.items()}

    def _step_for(self, wanted: Dependency, above: tuple[Dependency, ...]) -> int:
        """Return the index of a dependency's step, adding it if it is missing."""
        known = self._step_index.get((wanted.make, wanted.scope)) if wanted.cached else None
        if known is not None:
            return known
        if any(wanted.make is one.make for one in above):
            circle = " → ".join(_name(one.make) for one in (*above, wanted))
            raise DeclarationError(f"dependencies form a cycle: {circle}")
        is_lifespan = wanted.scope == "lifespan"
        make, kind = _opened(self._overrides.get(wanted.make, wanted.make))
        inputs = tuple(
            (name, _CONTEXT if of is None else self._step_for(of, (*above, wanted)))
            for name, of in _inputs(make, self._contexts)
        )
        self._check_scope(wanted, inputs)
        self.steps.append(DependencyStep(make, wanted.make, kind, inputs, is_lifespan))
        place = self._step_index[wanted.make, wanted.scope] = len(self.steps) - 1
        return place

    def _check_scope(self, wanted: Dependency, inputs: tuple[tuple[str, int], ...]) -> None:
        """Raise `DeclarationError` for a dependency of the lifespan that depends on one of a call."""
        if wanted.scope != "lifespan":
            return
        for name, place in inputs:
            if place == _CONTEXT or not self.steps[place].is_lifespan:
                raise DeclarationError(
                    f'{_name(wanted.make)} has scope "lifespan", but its {name!r} has scope "call": '
                    'use Depends(..., scope="lifespan") there too'
                )


def _given(step: DependencyStep, values: list[Any], context: object) -> dict[str, Any]:
    return {name: context if place == _CONTEXT else values[place] for name, place in step.inputs}


def _opened(make: Callable[..., Any]) -> tuple[Callable[..., Any], DependencyKind]:
    """Return the function to call, and the kind of its result."""
    if isinstance(make, type):
        if hasattr(make, "__aenter__"):
            return make, DependencyKind.ENTERED_ASYNC
        return make, DependencyKind.ENTERED if hasattr(make, "__enter__") else DependencyKind.PLAIN
    if not callable(make):
        raise DeclarationError(f"{make!r} cannot be called: Depends takes a function or a class")
    called = unwrap_callable(make)
    if isasyncgenfunction(called):
        return asynccontextmanager(make), DependencyKind.ENTERED_ASYNC
    if isgeneratorfunction(called):
        return contextmanager(make), DependencyKind.ENTERED
    inner = getattr(called, "__wrapped__", None)  # under `contextmanager` and `asynccontextmanager`
    if isasyncgenfunction(inner) and not iscoroutinefunction(called):
        return make, DependencyKind.ENTERED_ASYNC
    if isgeneratorfunction(inner) and not iscoroutinefunction(called):
        return make, DependencyKind.ENTERED
    return make, DependencyKind.AWAITED if iscoroutinefunction(called) else DependencyKind.PLAIN


def _inputs(make: Callable[..., Any], contexts: tuple[type, ...]) -> list[tuple[str, Dependency | None]]:
    """Return the parameters to fill: from another dependency, or None for the context."""
    try:
        parameters = signature(make).parameters.values()
    except (TypeError, ValueError):  # a class written in C: it is called without arguments
        return []
    found: list[tuple[str, Dependency | None]] = []
    for one in parameters:
        hint = _hint(make, one.annotation, contexts)
        dependency = dependency_in(hint, one.default)
        if dependency is not None or (isinstance(hint, type) and issubclass(hint, contexts)):
            found.append((one.name, dependency))
        elif one.default is Parameter.empty and one.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD):
            raise DeclarationError(
                f"{_name(make)} is a dependency, and its parameter {one.name!r} has no value: give it a default, "
                "a Context, or Depends"
            )
    return found


def _hint(make: Callable[..., Any], hint: Any, contexts: tuple[type, ...]) -> Any:
    """Return a resolved annotation, also in a module with `from __future__ import annotations`."""
    if not isinstance(hint, str):
        return hint
    written = getattr(make, "__wrapped__", make)
    written = written.__init__ if isinstance(written, type) else written  # type: ignore[misc]  # which is a class
    try:
        return HintReader(getattr(written, "__globals__", {}), enclosing_names(written)).resolve(hint)
    except NameError:
        return named_type(hint, contexts)


def _name(make: Callable[..., Any]) -> str:
    return str(getattr(make, "__qualname__", None) or type(make).__qualname__)


class Dependencies:
    """The dependencies of one function, by parameter. Raises `DeclarationError` for a parameter that cannot be filled.
    `contexts` is as for `DependencyPlan`.
    """

    def __init__(
        self,
        name: str,
        wanted: Mapping[str, Dependency],
        handles: Mapping[str, HandleMarker],
        contexts: tuple[type, ...],
    ) -> None:
        self.name: str = name
        """The name of the function."""
        self.handles: Mapping[str, HandleMarker] = handles
        """The parameters whose arguments are handles."""
        self._wanted = wanted
        self._contexts = contexts
        self._plan = DependencyPlan(wanted, {}, contexts)
        self._overridden: tuple[Overrides, DependencyPlan] | None = None

    @property
    def context(self) -> bool:
        """Whether one of them takes the context."""
        return self._plan.context or bool(self.handles)

    def plan(self, overrides: Overrides) -> DependencyPlan:
        """Return the plan with these overrides."""
        return self._overridden_plan(overrides) if overrides else self._plan

    def _overridden_plan(self, overrides: Overrides) -> DependencyPlan:
        """Return the plan with these overrides, cached."""
        known = self._overridden
        if known is None or known[0] != overrides:
            known = self._overridden = overrides, DependencyPlan(self._wanted, overrides, self._contexts)
        return known[1]
