"""A right client with one change: the messages that it sends, those that it hears, its headers, or what it does.

The client is that of examples/checked_client.py, in this process. A mutant is a row of `MUTANTS`.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from accord import Client
from accord.auth.http import OAuthClient
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.client.connect import CONNECT_METHODS
from accord.client.target import identity, parse
from accord.transport.base import Message, Transport
from accord.transport.http.fetcher import Fetcher
from accord.transport.recording import TranscriptTransport
from accord.wire.transcript import Transcript

from tests.measure import slowness

PATIENCE = 1.6
"""How many times longer a client waits on a busy machine, at most: the checker ends one that says nothing for 3.5 s."""

_EXAMPLE = Path(__file__).parents[3] / "examples" / "checked_client.py"


def _example() -> Any:
    spec = importlib.util.spec_from_file_location("checked_client", _EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXAMPLE = _example()

Said = dict[str, Any]
Sends = Callable[[Said], Any]
"""A message as it is to be sent: itself, another, bytes, a list of messages (each on its own), or None for none."""
Headers = Callable[[str, dict[str, str], Any], tuple[str, dict[str, str]]]
"""Verb and headers of an HTTP request with this body (decoded), as they are to be sent."""


class Change:
    """What is wrong with a client."""

    def __init__(self) -> None:
        self.sent: list[Sends] = []
        self.heard: list[Sends] = []
        self.headers: list[Headers] = []
        self.responses: list[Callable[[str, Any], None]] = []
        """What it makes of a response, by its verb; raises for one that it cannot take."""
        self.patches: list[tuple[Any, str, Any]] = []
        """Parts of the client that are others: object, name, value."""
        self.options: dict[str, Any] = {}
        """Of the client."""
        self.login: dict[str, Any] = {}
        """Other options of its login."""
        self.visited: list[Callable[[str], str]] = []
        """What it makes of the URL for the browser."""
        self.oauth_requests: list[Callable[[OAuthRequest], OAuthRequest]] = []
        self.oauth_responses: list[Callable[[OAuthRequest, Said], Said]] = []
        """What it makes of the JSON documents of an authorization server; raises for one that it cannot take."""
        self.use: Callable[[Client], Awaitable[None]] = EXAMPLE.use
        """What the client does."""
        self.main: Callable[[str], Awaitable[None]] | None = None
        """In place of the client."""

    def sends(self, change: Sends) -> Sends:
        """Change every message that the client sends."""
        self.sent.append(change)
        return change

    def hears(self, change: Sends) -> Sends:
        """Change every message that the client hears."""
        self.heard.append(change)
        return change

    def visits(self, change: Callable[[str], str]) -> Callable[[str], str]:
        """Change every URL that the client has a user open."""
        self.visited.append(change)
        return change

    def oauth(self, change: Callable[[OAuthRequest], OAuthRequest]) -> Callable[[OAuthRequest], OAuthRequest]:
        """Change every request to an authorization server."""
        self.oauth_requests.append(change)
        return change

    def reads(self, change: Callable[[OAuthRequest, Said], Said]) -> Callable[[OAuthRequest, Said], Said]:
        """Change every document of an authorization server."""
        self.oauth_responses.append(change)
        return change

    def http(self, change: Headers) -> Headers:
        """Change every HTTP request."""
        self.headers.append(change)
        return change


class Changed(TranscriptTransport):
    """A transport whose messages are changed."""

    def __init__(self, inner: Transport, change: Change) -> None:
        super().__init__(inner, Transcript(limit=1 << 16))
        self._change = change

    def send(self, message: bytes) -> None:
        for each in _through(self._change.sent, message):
            super().send(each)

    async def receive(self) -> list[Message]:
        while messages := await super().receive():
            found: list[Message] = []
            for message in messages:
                found += _through(self._change.heard, message) if isinstance(message, bytes) else [message]
            if found:
                return found
        return []


def _through(changes: list[Sends], raw: bytes) -> list[bytes]:
    messages: list[Any] = [json.loads(raw)] if changes else [raw]
    for change in changes:
        messages = [made for message in messages for made in _listed(change(message))]
    return [each if isinstance(each, bytes) else json.dumps(each).encode() for each in messages]


def _listed(made: Any) -> list[Any]:
    if made is None:
        return []
    return made if isinstance(made, list) else [made]


def client_of(change: Change, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Awaitable[None]]:
    """The client with that change."""
    send = Fetcher._send

    async def changed(self: Fetcher, verb: str, url: Any, headers: Any, body: Any, what: str) -> Any:
        for each in change.headers:
            verb, headers = each(verb, {**headers}, json.loads(body) if body else None)
        response = await send(self, verb, url, headers, body, what)
        for look in change.responses:
            look(verb, response)
        return response

    ask = OAuthClient.send

    async def asked(self: OAuthClient, request: OAuthRequest) -> OAuthResponse:
        for each in change.oauth_requests:
            request = each(request)
        response = await ask(self, request)
        if change.oauth_responses and response.status in (200, 201):
            document = json.loads(response.body)
            for look in change.oauth_responses:
                document = look(request, document)
            return OAuthResponse(response.status, json.dumps(document).encode(), response.headers)
        return response

    monkeypatch.setattr(Fetcher, "_send", changed)
    monkeypatch.setattr(OAuthClient, "send", asked)
    for where, name, value in change.patches:
        monkeypatch.setattr(where, name, value)

    async def visit(url: str) -> str:
        for each in change.visited:
            url = each(url)
        callback: str = await EXAMPLE.visit(url)
        return callback

    async def client(target: str) -> None:
        CONNECT_METHODS.forget(identity(parse(target)))
        if change.main is not None:
            await change.main(target)
            return
        options: dict[str, Any] = {"timeout": EXAMPLE.TIMEOUT * min(slowness(), PATIENCE)}
        if change.login or change.visited:
            options["auth"] = msgspec.structs.replace(EXAMPLE.login(), **{"authorize": visit} | change.login)
        if change.sent or change.heard:
            options["record"] = lambda inner: Changed(inner, change)
        async with EXAMPLE.client_for(target, **options | change.options) as opened:
            await change.use(opened)

    return client


class Mutant(NamedTuple):
    """One wrong client."""

    name: str
    rule: str
    revision: str
    over: Any
    make: Callable[[Change], None]


MUTANTS: list[Mutant] = []


def mutant(
    rule: str, *, revision: str = "2025-11-25", over: str = "stdio"
) -> Callable[[Callable[[Change], None]], Any]:
    """A wrong client, and the rule that must catch it."""

    def add(make: Callable[[Change], None]) -> Callable[[Change], None]:
        MUTANTS.append(Mutant(make.__name__, rule, revision, over, make))
        return make

    return add
