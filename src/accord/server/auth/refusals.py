"""Refusals of requests that are not authenticated, or not permitted."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import ClassVar

from accord.auth.challenge import format_challenge
from accord.errors import AccordError
from accord.server.compose.access import missing_scopes_text

_CHALLENGE = re.compile(r"[ -~]+")


class AuthRefused(AccordError):
    """A refused request: `status` is its HTTP status, `challenge` its `WWW-Authenticate` header, if any.

    The client receives the message, so it must not contain secrets.
    """

    status: ClassVar[int] = 500

    def __init__(self, message: str, *, challenge: str | None = None) -> None:
        super().__init__(message)
        if challenge is not None and not _CHALLENGE.fullmatch(challenge):
            raise ValueError(f"a challenge must be printable ASCII on one line, not {challenge!r}")
        self.challenge: str | None = challenge


class Unauthorized(AuthRefused):
    """401: the principal is unknown. `challenge` states how to authenticate (RFC 9110, 11.6.1: a 401
    always has one).
    """

    status = 401

    def __init__(self, message: str, *, challenge: str = "Bearer") -> None:
        super().__init__(message, challenge=challenge)


class InvalidToken(Unauthorized):
    """401: the access token was refused; `reason` says why, without the token or a claim."""

    def __init__(self, reason: str) -> None:
        # RFC 6750, 3.1: "invalid_token: The access token provided is expired, revoked, malformed, or invalid"
        parameters = {"error": "invalid_token", "error_description": reason}
        super().__init__(f"authentication failed: {reason}", challenge=format_challenge("Bearer", parameters))
        self.reason: str = reason


class InvalidProof(Unauthorized):
    """401: the token is bound to a key, and the request does not prove its possession (RFC 9449, 7.1)."""

    def __init__(self, reason: str, error: str = "invalid_dpop_proof") -> None:
        parameters = {"error": error, "error_description": reason}
        super().__init__(f"authentication failed: {reason}", challenge=format_challenge("DPoP", parameters))
        self.reason: str = reason
        self.error: str = error


class Forbidden(AuthRefused):
    """403: the principal is known, and not permitted. `challenge` may name the missing scopes."""

    status = 403


class InsufficientScope(Forbidden):
    """403: the token lacks scopes. `scopes` are all that the operation needs: "servers SHOULD include all scopes
    required for the current operation in a single challenge" (Authorization, Scope Challenge Handling).
    """

    def __init__(self, scopes: Collection[str]) -> None:
        self.scopes: tuple[str, ...] = tuple(sorted(scopes))
        parameters = {"error": "insufficient_scope", "scope": " ".join(self.scopes)}
        super().__init__(missing_scopes_text(self.scopes), challenge=format_challenge("Bearer", parameters))


class IssuerUnavailable(AuthRefused):
    """503: a token cannot be verified, because its authorization server does not answer."""

    status = 503


class AuthenticationFailed(AuthRefused):
    """500: authentication failed because of a fault in the `Auth`."""
