"""From middleware to the one function that is called for a request: each around the next, the handler in the middle."""

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
"""Says which scopes a principal must have to see something of that name and with these tags."""

NO_SCOPES: frozenset[str] = frozenset()


class ChainedRequest(Protocol):
    """A request, as a chain passes it on."""

    @property
    def context(self) -> object:
        """The context, for middleware that takes it."""

    def run(self) -> Awaitable[Any]:
        """Call the handler."""


Chain = Callable[[ChainedRequest], Awaitable[Any]]
"""All middleware of a function, and the function in the middle."""

_HOW = "write it as `async def middleware(request, call_next)`, with a third parameter `ctx: Context` if it wants one"


class MiddlewareStep(msgspec.Struct, frozen=True, eq=False):
    """One middleware."""

    function: Callable[..., Awaitable[Any]]
    context: bool = False
    """Whether it takes the context: then the call may ask the client."""
    guard: Guard | None = None
    """What the middleware has as `scopes_of`: it is asked before anything is listed, found or called, about every name
    that it has had, and every spelling of a URI.
    """
    only_guards: bool = False
    """Whether that is all it does, so that a call need not pass through it."""


def middleware_steps(middleware: Iterable[Callable[..., Awaitable[Any]]]) -> tuple[MiddlewareStep, ...]:
    """Read several. Raises `DeclarationError` for what is none, and for one that stands alone."""
    if not isinstance(middleware, Iterable):
        name = getattr(middleware, "__qualname__", None) or f"{type(middleware).__name__}(...)"
        raise DeclarationError(f"middleware= must be a list: write middleware=[{name}]")
    return tuple(middleware_step(each) for each in middleware)


def middleware_step(middleware: Callable[..., Awaitable[Any]]) -> MiddlewareStep:
    """Read a middleware. Raises `DeclarationError` for what is none."""
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
    """How many arguments it has to be given; one that takes any number is given two."""
    parameters = list(inspect.signature(middleware).parameters.values())
    needed = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    if any(one.kind is one.VAR_POSITIONAL for one in needed):
        return max(2, len(needed) - 1)
    if any(one.kind is one.KEYWORD_ONLY for one in needed) or (parameters[:1] and parameters[0].name == "self"):
        return 0
    return len(needed)


def only_guards(call: C) -> C:
    """Mark the `__call__` of a middleware that checks nothing but what its `scopes_of` asks for."""
    call.only_guards = True  # type: ignore[attr-defined]
    return call


def guards_in(steps: Iterable[MiddlewareStep]) -> tuple[Guard, ...]:
    """Return what those of them ask that ask for scopes."""
    return tuple(step.guard for step in steps if step.guard is not None)


def required_scopes(guards: Iterable[Guard], names: Iterable[str], tags: Collection[str]) -> frozenset[str]:
    """Return what guards ask for something with these names, in all spellings, together."""
    readings = {reading: None for name in names for reading in spellings(name)}
    return NO_SCOPES.union(*(guard(reading, tags) for guard in guards for reading in readings))


def build_chain(steps: Sequence[MiddlewareStep]) -> Chain | None:
    """All of them, the first outermost; None for none."""
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
