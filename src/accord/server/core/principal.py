"""`Principal`: the authenticated sender of a request."""

from __future__ import annotations

import msgspec

from accord.errors import DeclarationError


class Principal(msgspec.Struct, frozen=True):
    """An authenticated user or program. Sessions, subscriptions, request states and limits belong to `id`: one user or
    program, never a group.

    Where many users share one OAuth client, `id` is the user's (`sub`), not the client's. Raises `DeclarationError` for
    an empty id, and for scopes that are not a frozenset.
    """

    id: str
    scopes: frozenset[str] = frozenset()
    """The scopes that the authorization server granted."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise DeclarationError(f"the id of a principal must be a non-empty string, not {self.id!r}")
        if not isinstance(self.scopes, frozenset):
            raise DeclarationError(f"scopes must be a frozenset: Principal({self.id!r}, frozenset({{'read'}}))")


def id_of(principal: Principal | None) -> str:
    """Return the id of a principal; an empty string without authentication."""
    return "" if principal is None else principal.id
