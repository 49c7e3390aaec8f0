"""`Principal`: the authenticated sender of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec

from accord.errors import DeclarationError

LEEWAY_SECONDS = 60.0
"""How far the clocks of an authorization server and of this server may differ."""


class Claims(Mapping[str, Any]):
    """The claims of a token, read-only. They stay JSON until they are read, since a server caches many tokens."""

    __slots__ = ("_json",)

    def __init__(self, json: bytes = b"{}") -> None:
        self._json = json

    def _decode(self) -> dict[str, Any]:
        return msgspec.json.decode(self._json, type=dict[str, Any])

    def __getitem__(self, name: str) -> Any:
        return self._decode()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decode())

    def __len__(self) -> int:
        return len(self._decode())

    def __hash__(self) -> int:
        return hash(self._json)

    def __repr__(self) -> str:
        return f"Claims({', '.join(self)})"  # without the values, which may be personal data


NO_CLAIMS = Claims()


class Upstream(Protocol):
    """The access of a user at the provider where they logged in, for handlers: `ctx.upstream`."""

    async def token(self) -> str:
        """Return an access token of the provider that is valid for a while, renewed if necessary.

        Raises `AuthorizationError` if the user's login there has ended, or the provider does not answer.
        """
        ...


class Principal(msgspec.Struct, frozen=True):
    """An authenticated user or program. Sessions, subscriptions, request states and limits belong to `id`: one user or
    program, never a group.

    Where many users share one OAuth client, `id` is the user's, not the client's. For a token it consists of issuer and
    subject, since two issuers may use one subject for different users. Raises `DeclarationError` for an empty id, and
    for scopes that are not a frozenset.
    """

    id: str
    scopes: frozenset[str] = frozenset()
    """The scopes that the authorization server granted, with those that they imply."""
    issuer: str | None = None
    """The authorization server that issued the token (`iss`)."""
    client: str | None = None
    """The OAuth client that sent the request (`client_id`)."""
    claims: Mapping[str, Any] = NO_CLAIMS
    """The claims of the token."""
    expires_at: float | None = None
    """The time at which the token expires (`exp`), in seconds since 1970."""
    thumbprint: str | None = None
    """The thumbprint of the key to which the token is bound (RFC 9449, `cnf.jkt`); None for a bearer token."""
    upstream: Upstream | None = None
    """The user's access at the provider, with `OAuthProxy`."""

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise DeclarationError(f"the id of a principal must be a non-empty string, not {self.id!r}")
        if not isinstance(self.scopes, frozenset):
            raise DeclarationError(f"scopes must be a frozenset: Principal({self.id!r}, frozenset({{'read'}}))")
        if not isinstance(self.claims, Claims):
            msgspec.structs.force_setattr(self, "claims", Claims(msgspec.json.encode(self.claims)))

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds for which the token is accepted, at the time `now`; None if it does not expire.

        A token that has expired is accepted for a while, since clocks differ.
        """
        if self.expires_at is None:
            return None
        left = self.expires_at - now
        return left if left > 0 else left + LEEWAY_SECONDS


def id_of(principal: Principal | None) -> str:
    """Return the id of a principal; an empty string without authentication."""
    return "" if principal is None else principal.id
