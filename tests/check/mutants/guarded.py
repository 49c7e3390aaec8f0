"""Right servers that require authorization: with keys of two principals, and with tokens of the checker."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

from accord import APIKeys, Server
from accord.server.auth.authentication import AuthRequest
from accord.server.auth.jwt import JWT
from accord.server.auth.refusals import Unauthorized
from accord.server.core.principal import Principal

from tests.check.mutants.by_hand import posted, respond
from tests.check.mutants.correct_server import right
from tests.check.mutants.ext_task_server import ExtTaskServer
from tests.check.mutants.task_server import TaskServer

KEYS = ("accord-check-key-of-ann", "accord-check-key-of-ben")
AUDIENCE = "https://shop.example/mcp"
SCOPES = ("read",)


class Wrapped:
    """A server with something before its application."""

    def __init__(self, app: Callable[[Any, Any, Any], Awaitable[None]]) -> None:
        self.app = app


def with_keys() -> Server:
    """A little of everything, for two principals."""
    return right(APIKeys(dict(zip(KEYS, ("ann", "ben"), strict=True))))


def with_login() -> Server:
    """A protected resource, whose authorization server nobody reaches."""
    return right(JWT("https://login.example", AUDIENCE, required_scopes=SCOPES))


Excuse = Callable[[dict[str, Any], dict[str, Any], str], bool]
"""Whether a token is accepted although it was refused: of its header, its claims, and the reason."""


class CarelessJWT(JWT):
    """A verifier that accepts some of the tokens that it should refuse."""

    def __init__(self, issuer: str, excuse: Excuse, **options: Any) -> None:
        super().__init__(issuer, AUDIENCE, required_scopes=SCOPES, **options)
        self._excuse = excuse

    async def verify(self, token: bytes, key: bytes, request: AuthRequest) -> Principal:
        try:
            return await super().verify(token, key, request)
        except Unauthorized as exc:
            header, claims = (_decoded(part) for part in token.decode().split(".")[:2])
            if not self._excuse(header, claims, str(exc)):
                raise
            return Principal(str(claims.get("sub")), frozenset(SCOPES))


def _decoded(part: str) -> dict[str, Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def trusting(issuer: str) -> Server:
    """A protected resource that accepts the tokens of this issuer, and no others."""
    return right(JWT(issuer, AUDIENCE, required_scopes=SCOPES))


def careless(excuse: Excuse) -> Callable[[str], Server]:
    """The same that accepts more."""
    return lambda issuer: right(CarelessJWT(issuer, excuse))


class KeyGuard:
    """One server for each principal, behind keys."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._apps = {f"Bearer {key}".encode(): make().app for key in KEYS}

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        app = self._apps.get(dict(scope["headers"]).get(b"authorization", b""))
        if app is not None:
            await app(scope, receive, send)
            return
        await posted(scope, receive)
        await respond(send, 401, None, {b"www-authenticate": b"Bearer"})


def guarded_tasks() -> KeyGuard:
    """Tasks of 2025-11-25, for two principals."""
    return KeyGuard(TaskServer)


def guarded_ext_tasks() -> KeyGuard:
    """Tasks of the extension, for two principals."""
    return KeyGuard(ExtTaskServer)
