"""Refusals of requests that are not authenticated, or not permitted."""

from __future__ import annotations

import re
from typing import ClassVar

from accord.errors import AccordError

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


class Forbidden(AuthRefused):
    """403: the principal is known, and not permitted. `challenge` may name the missing scopes."""

    status = 403


class AuthenticationFailed(AuthRefused):
    """500: authentication failed because of a fault in the `Auth`."""
