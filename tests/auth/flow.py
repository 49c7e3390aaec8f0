"""A whole login with the parts of `accord.auth` alone, in the order of a client."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from accord.auth.challenge import Challenge
from accord.auth.client_authentication import ClientAuthentication, SecretAuthentication
from accord.auth.code_grant import begin_authorization, parse_callback, read_callback, redeem_code, select_scopes
from accord.auth.discovery import DEFAULT_OPTIONS, Discovery, DiscoveryOptions, discover
from accord.auth.http import OAuthClient
from accord.auth.registration import ClientIdentity, ClientRegistration, identify_client
from accord.auth.steps import OAuthRequest, OAuthResponse, Steps, run_steps
from accord.auth.tokens import Tokens, refresh_tokens, revoke_token

REDIRECT_URI = "http://127.0.0.1:33418/callback"

Browse = Callable[[str], str | Awaitable[str]]
"""Opens the URL for the browser, and returns the URL of the callback."""


class Login(NamedTuple):
    """What a client stores."""

    discovery: Discovery
    client: ClientRegistration
    tokens: Tokens

    @property
    def authentication(self) -> ClientAuthentication:
        return SecretAuthentication(self.client)

    async def refresh(self, http: OAuthClient) -> Login:
        steps = refresh_tokens(
            self.discovery.metadata,
            self.authentication,
            self.tokens,
            self.discovery.resource,
            time.time(),
        )
        return self._replace(tokens=await run_steps(steps, http.send))

    async def revoke(self, http: OAuthClient) -> bool:
        token = self.tokens.refresh_token or self.tokens.access_token
        steps = revoke_token(self.discovery.metadata, self.authentication, token, "refresh_token")
        return await run_steps(steps, http.send)


async def log_in(
    server: str,
    http: OAuthClient,
    browse: Browse,
    *,
    challenge: Challenge | None = None,
    identity: ClientIdentity | None = None,
    options: DiscoveryOptions = DEFAULT_OPTIONS,
    previous: Sequence[str] = (),
    scopes: list[str] | None = None,
) -> Login:
    """Log a user in to the MCP server at a URL."""
    discovery = await run_steps(discover(server, challenge, options), http.send)
    client = await run_steps(identify_client(discovery.metadata, identity or ClientIdentity(), REDIRECT_URI), http.send)
    chosen = select_scopes(discovery, list(previous), scopes)
    pending = begin_authorization(discovery, client, REDIRECT_URI, chosen, lambda: secrets.token_urlsafe(32))
    callback = browse(pending.url)
    code = read_callback(pending, parse_callback(callback if isinstance(callback, str) else await callback))
    tokens = await run_steps(redeem_code(pending, code, SecretAuthentication(client), time.time()), http.send)
    return Login(discovery, client, tokens)


def answered(steps: Steps[object], *responses: OAuthResponse) -> tuple[list[OAuthRequest], object]:
    """Run steps on these responses; return their requests and their outcome."""
    requests = []
    try:
        request = next(steps)
        for response in responses:
            requests.append(request)
            request = steps.send(response)
    except StopIteration as done:
        assert len(requests) == len(responses), f"{len(responses) - len(requests)} responses were not needed"
        return requests, done.value
    raise AssertionError(f"one more request: {request!r}")
