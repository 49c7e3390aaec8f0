"""Registrations of functions that were declared on a mounted server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from accord.server.core.registration import Registration

if TYPE_CHECKING:
    from accord.server.core.context import RunningServer


class MountedRegistration(Registration):
    """A registration of a function that was declared on a mounted server, its `owner`."""

    __slots__ = ("owner",)

    owner: RunningServer

    @classmethod
    def of(cls, registration: Registration, owner: RunningServer, **changes: Any) -> MountedRegistration:
        """Return a registration of `owner` with these attributes changed."""
        made = cls.__new__(cls)
        made.copy_from(registration, changes)
        made.owner = owner
        return made

    @property
    def is_mounted(self) -> bool:
        return True

    def derived(self, **changes: Any) -> Self:
        made = super().derived(**changes)
        made.owner = self.owner
        return made


def owner_of(registration: Registration | None) -> RunningServer | None:
    """Return the mounted server that declares a function; None if the function belongs to the server itself."""
    return registration.owner if isinstance(registration, MountedRegistration) else None
