"""Composition of middleware: each wraps the next, around the handler."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from accord.errors import DeclarationError
from accord.server.compose.uri_spelling import spellings
from accord.server.declare.parameters import unwrap_callable

C = TypeVar("C", bound=Callable[..., Any])

Guard = Callable[[str, Collection[str]], frozenset[str]]
"""Returns the scopes that a principal needs for a registration of this name with these tags."""

NO_SCOPES: frozenset[str] = frozenset()


class ChainedRequest(Protocol):
    """A request as a chain passes it on."""

    @property
    def context(self) -> object:
        """The context, for middleware that takes one."""

    def run(self) -> Awaitable[Any]:
        """Call the handler."""


Chain = Callable[[ChainedRequest], Awaitable[Any]]
"""A function inside all of its middleware."""

_HOW = "write it as `async def middleware(request, call_next)`, with a third parameter `ctx: Context` if it wants one"


class MiddlewareStep(msgspec.Struct, frozen=True, eq=False):
    """One middleware, and its requirements."""

    function: Callable[..., Awaitable[Any]]
    context: bool = False
    """Whether it takes the context: then the call may request input from the client."""
    guard: Guard | None = None
    """The `scopes_of` of the middleware: called before a registration is listed, resolved or called, with all of its
    current and former names, and every spelling of a URI.
    """
    only_guards: bool = False
    """Whether it does nothing else, so that calls can skip it."""


def middleware_steps(middleware: Iterable[Callable[..., Awaitable[Any]]]) -> tuple[MiddlewareStep, ...]:
    """Return the steps of several middleware. Raises `DeclarationError` for an invalid one, and for a value that is not
    a list.
    """
    if not isinstance(middleware, Iterable):
        name = getattr(middleware, "__qualname__", None) or f"{type(middleware).__name__}(...)"
        raise DeclarationError(f"middleware= must be a list: write middleware=[{name}]")
    return tuple(middleware_step(each) for each in middleware)


def middleware_step(middleware: Callable[..., Awaitable[Any]]) -> MiddlewareStep:
    """Return the step of a middleware. Raises `DeclarationError` for an invalid one."""
    name = getattr(middleware, "__qualname__", None) or type(middleware).__name__
    if not callable(middleware) or isinstance(middleware, type):
        raise DeclarationError(f"{name} is not a middleware: {_HOW}")
    if not inspect.iscoroutinefunction(unwrap_callable(middleware)):
        raise DeclarationError(f"the middleware {name} is not async: {_HOW}")
    wanted = _required_arguments(middleware)
    if wanted not in (2, 3):
        raise DeclarationError(f"the middleware {name} takes {wanted} arguments: {_HOW}")
    only_guards = getattr(type(middleware).__call__, "only_guards", False)
    return MiddlewareStep(middleware, wanted == 3, getattr(middleware, "scopes_of", None), only_guards)


def _required_arguments(middleware: Callable[..., Awaitable[Any]]) -> int:
    """Return the number of required arguments; two for a function of any number."""
    parameters = list(inspect.signature(middleware).parameters.values())
    needed = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    if any(one.kind is one.VAR_POSITIONAL for one in needed):
        return max(2, len(needed) - 1)
    if any(one.kind is one.KEYWORD_ONLY for one in needed) or (parameters[:1] and parameters[0].name == "self"):
        return 0
    return len(needed)


def only_guards(call: C) -> C:
    """Mark the `__call__` of a middleware that checks only what its `scopes_of` requires."""
    call.only_guards = True  # type: ignore[attr-defined]
    return call


def guards_in(steps: Iterable[MiddlewareStep]) -> tuple[Guard, ...]:
    """Return the guards of the steps."""
    return tuple(step.guard for step in steps if step.guard is not None)


def required_scopes(guards: Iterable[Guard], names: Iterable[str], tags: Collection[str]) -> frozenset[str]:
    """Return all scopes that guards require for these names, in all spellings."""
    readings = {reading: None for name in names for reading in spellings(name)}
    return NO_SCOPES.union(*(guard(reading, tags) for guard in guards for reading in readings))


def build_chain(steps: Sequence[MiddlewareStep]) -> Chain | None:
    """Return the composition of the steps, the first outermost; None without steps."""
    steps = [step for step in steps if not step.only_guards]
    if not steps:
        return None
    following: Chain = _run
    for step in reversed(steps):
        following = _wrap(step, following)
    return following


def _run(request: ChainedRequest) -> Awaitable[Any]:
    return request.run()


def _wrap(step: MiddlewareStep, following: Chain) -> Chain:
    function = step.function
    if step.context:
        return lambda request: function(request, following, request.context)
    return lambda request: function(request, following)
