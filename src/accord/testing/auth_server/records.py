"""The records of `AuthServer`: requests, clients, codes and tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from accord.messages.base import JSONObject

SECRETS = frozenset(
    {"access_token", "actor_token", "assertion", "client_assertion", "client_secret", "code", "code_verifier"}
    | {"device_code", "id_token", "refresh_token", "subject_token", "token"}
)
"""Parameters whose values are secret."""


class RecordedRequest(msgspec.Struct, frozen=True):
    """A request to the server. Its `repr` shows no secret."""

    endpoint: str
    """`metadata/oauth`, `authorization`, `token` and so on; "" for a path that is none."""
    method: str
    path: str
    headers: Mapping[str, str]
    """The headers, by their names in lower case."""
    parameters: Mapping[str, Any]
    """The query, the form or the JSON document."""

    def __repr__(self) -> str:
        shown = (f"{name}={'…' if name in SECRETS else value}" for name, value in self.parameters.items())
        return f"<{self.method} {self.path} {' '.join(shown)}>".replace(" >", ">")

    @property
    def secrets(self) -> set[str]:
        """The secrets in the request."""
        found = {str(value) for name, value in self.parameters.items() if name in SECRETS and value}
        if authorization := self.headers.get("authorization"):
            found.add(authorization.partition(" ")[2])
        return found


class Reply(msgspec.Struct):
    """A response, before faults change it: a document is sent as JSON."""

    status: int = 200
    document: JSONObject | None = None
    headers: dict[str, str] = {}
    body: bytes = b""


class Refusal(Exception):
    """A request that is refused with an OAuth error (RFC 6749, 5.2)."""

    def __init__(self, error: str, description: str = "", status: int = 400, headers: dict[str, str] | None = None):
        super().__init__(error)
        document = {"error": error, "error_description": description} if description else {"error": error}
        self.answer: Reply = Reply(status, document, headers or {})


class AuthServerClient(msgspec.Struct, kw_only=True):
    """A client of the server."""

    client_id: str
    secret: str | None = None
    redirect_uris: list[str] = []
    keys: JSONObject | None = None
    """The JWK set of a client that authenticates with `private_key_jwt`."""

    @property
    def is_public(self) -> bool:
        return self.secret is None and self.keys is None


class Authorization(msgspec.Struct):
    """The authorization by a user, or by a client itself: a code, a device code and tokens belong to one."""

    client_id: str
    subject: str
    scopes: list[str]
    audience: str | None = None
    redirect_uri: str | None = None
    challenge: str | None = None
    nonce: str | None = None
    revoked: bool = False
    redeemed: bool = False


class AuthServerToken(msgspec.Struct):
    """An access token or a refresh token that the server has issued."""

    value: str
    kind: str
    authorization: Authorization
    scopes: list[str]
    expires_at: float
    thumbprint: str | None = None
    """Of the key that it is bound to (RFC 9449)."""
    rotated: bool = False

    def is_active(self, now: float) -> bool:
        """Return whether the token is valid."""
        return not self.authorization.revoked and not self.rotated and now < self.expires_at


class DeviceCode(msgspec.Struct):
    """A device authorization: the user has approved it, or refused it, or not answered yet."""

    user_code: str
    authorization: Authorization
    expires_at: float
    approved: bool | None = None
