"""`Depends`: the marker of a parameter that a function of the program provides.

    @server.tool
    async def order(item: str, db: Annotated[Database, Depends(get_db)]) -> str: ...

The parameter is not part of the tool's schema, and a model cannot set it.
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
    """The marker that `Depends` returns."""

    make: Callable[..., Any]
    scope: Scope = "call"
    cached: bool = True


def Depends(make: Callable[..., Any], *, scope: Scope = "call", cached: bool = True) -> Any:
    """Fill a parameter with the value of `make`: `db: Annotated[Database, Depends(get_db)]`, or `= Depends(get_db)`.

    `make` is a function, plain (then it runs on the event loop, and must not block) or `async`; a generator, whose part
    after `yield` runs after the call, and receives the exception that the call raised; a function under
    `contextmanager` or `asynccontextmanager`; or a class, which is entered if it is a context manager. It may have
    dependencies of its own, and a `Context`.

    `scope="call"` creates the value for each call, once per call however often it is used (unless not `cached`);
    `scope="lifespan"` creates it once, on first use, and closes it with the server. Raises `DeclarationError` for
    another scope.
    """
    if scope not in get_args(Scope):
        raise DeclarationError(f"scope= must be 'call' or 'lifespan', not {scope!r}")
    return Dependency(make, scope, cached)


def dependency_in(hint: Any, default: Any) -> Dependency | None:
    """Return the marker of a parameter, from its default or its annotation. Raises `DeclarationError`, as
    `find_marker`.
    """
    return default if isinstance(default, Dependency) else find_marker(hint, Dependency)


class HandleMarker(ABC):
    """Marker of a parameter whose argument is a handle, and that the function receives as the handle's object."""

    @property
    @abstractmethod
    def described(self) -> str:
        """The description of the parameter for the model."""

    @abstractmethod
    def resolve(self, text: str, principal: Principal | None) -> Any:
        """Return the object of a handle for the calling principal. Raises `ToolError`."""


def handle_in(hint: Any) -> HandleMarker | None:
    """Return the marker in a parameter's annotation. Raises `DeclarationError`, as `find_marker`."""
    return find_marker(hint, HandleMarker)  # type: ignore[type-abstract]  # which is looked for, not made


def is_dependency(hint: Any, default: Any) -> bool:
    """Return whether a dependency fills a parameter."""
    return dependency_in(hint, default) is not None
