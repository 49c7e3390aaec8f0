"""Protocols of a server for the modules below it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.core.registry import Registry

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any] | AsyncIterator[Any]]
"""Takes the server; the value that it yields is `ctx.lifespan`."""


class LivingServer(Protocol):
    """A server as its lifetime uses it."""

    limits: Limits
    registry: Registry
    lifespan: Lifespan | None
    """The argument of `Server(lifespan=...)`."""
    lifespans: tuple[Lifespan, ...]
    """The lifespans added with `add_lifespan` and by composed parts."""

    @property
    def name(self) -> str:
        """The name that clients receive."""
