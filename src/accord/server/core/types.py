"""What a server is to the modules below it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from accord.limits import Limits
    from accord.server.core.registry import Registry

Lifespan = Callable[[Any], AbstractAsyncContextManager[Any] | AsyncIterator[Any]]
"""Takes the server; what is yielded is `ctx.lifespan`."""


class LivingServer(Protocol):
    """A server, as its lifetime uses it."""

    limits: Limits
    registry: Registry
    lifespan: Lifespan | None
    """What `Server(lifespan=...)` was given."""
    lifespans: tuple[Lifespan, ...]
    """Those of what was added to it."""

    @property
    def name(self) -> str:
        """The name that clients are told."""
