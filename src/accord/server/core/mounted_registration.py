"""A function of a server that is mounted in another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from accord.server.core.registration import Registration

if TYPE_CHECKING:
    from accord.server.core.context import RunningServer


class MountedRegistration(Registration):
    """A function that was declared on a server which is mounted in another."""

    __slots__ = ("owner",)

    owner: RunningServer

    @classmethod
    def of(cls, offer: Registration, owner: RunningServer, **changes: Any) -> MountedRegistration:
        """A function of this server, offered as something else."""
        made = cls.__new__(cls)
        made.copy_from(offer, changes)
        made.owner = owner
        return made

    @property
    def is_mounted(self) -> bool:
        return True

    def derived(self, **changes: Any) -> Self:
        made = super().derived(**changes)
        made.owner = self.owner
        return made


def owner_of(offer: Registration | None) -> RunningServer | None:
    """The server that a function was declared on, where that is mounted in another."""
    return offer.owner if isinstance(offer, MountedRegistration) else None
