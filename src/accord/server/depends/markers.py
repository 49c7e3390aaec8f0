"""`Depends`: the mark of a parameter that a function of the program fills.

    @server.tool
    async def order(item: str, db: Annotated[Database, Depends(get_db)]) -> str: ...

The parameter is no part of what a model sees or may give.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from accord.errors import DeclarationError
from accord.server.declare.parameters import find_marker

if TYPE_CHECKING:
    from accord.server.core.principal import Principal

Scope = Literal["call", "lifespan"]


class Dependency(msgspec.Struct, frozen=True):
    """What `Depends` gives."""

    make: Callable[..., Any]
    scope: Scope = "call"
    cached: bool = True


def Depends(make: Callable[..., Any], *, scope: Scope = "call", cached: bool = True) -> Any:
    """Fill a parameter with what `make` gives: `db: Annotated[Database, Depends(get_db)]`, or `= Depends(get_db)`.

    `make` is a function, plain (then it runs on the event loop, and must not block) or `async`; a generator, whose part
    after `yield` runs when the call is over, and sees what the call raised; a function under `contextmanager` or
    `asynccontextmanager`; or a class, which is entered if it is a context manager. It may take dependencies of its own,
    and a `Context`.

    `scope="call"` makes it anew for each call, once in a call however often it is asked for (unless not `cached`);
    `scope="lifespan"` makes it once, when it is first needed, and closes it with the server. Raises `DeclarationError`
    for another scope.
    """
    if scope not in get_args(Scope):
        raise DeclarationError(f"scope= must be 'call' or 'lifespan', not {scope!r}")
    return Dependency(make, scope, cached)


def dependency_in(hint: Any, default: Any) -> Dependency | None:
    """The mark that a parameter has, as its default or in its annotation. Raises `DeclarationError`, as
    `find_marker`."""
    return default if isinstance(default, Dependency) else find_marker(hint, Dependency)


class HandleMarker(ABC):
    """Mark of a parameter that a client gives as a text, and that the function gets as what the text stands for."""

    @property
    @abstractmethod
    def described(self) -> str:
        """What a model is told of the text."""

    @abstractmethod
    def resolve(self, text: str, principal: Principal | None) -> Any:
        """What it stands for, for whoever calls. Raises `ToolError`."""


def handle_in(hint: Any) -> HandleMarker | None:
    """The mark that a parameter has in its annotation. Raises `DeclarationError`, as `find_marker`."""
    return find_marker(hint, HandleMarker)  # type: ignore[type-abstract]  # which is looked for, not made


def is_dependency(hint: Any, default: Any) -> bool:
    """Whether a parameter is filled so."""
    return dependency_in(hint, default) is not None
