"""`Principal`: who sends a request, as authentication found out."""

from __future__ import annotations

import msgspec

from accord.errors import DeclarationError


class Principal(msgspec.Struct, frozen=True):
    """Who asks. Sessions, subscriptions, states and limits belong to `id`: one person or program, never a group.

    Where many people come through one OAuth client, `id` is the person's (`sub`), not the client's. Raises
    `DeclarationError` for an empty id, which would be nobody's, and for scopes that are no frozenset.
    """

    id: str
    scopes: frozenset[str] = frozenset()
    """What it may do, in the words of whoever let it in."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise DeclarationError(f"the id of a principal must be a non-empty string, not {self.id!r}")
        if not isinstance(self.scopes, frozenset):
            raise DeclarationError(f"scopes must be a frozenset: Principal({self.id!r}, frozenset({{'read'}}))")


def id_of(who: Principal | None) -> str:
    """What belongs to whom: the id of a principal, or an empty one for all whom nobody vouches for."""
    return "" if who is None else who.id
