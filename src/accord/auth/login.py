"""A login, and what of it is secret."""

from __future__ import annotations

import msgspec

from accord.auth.discovery import Discovery
from accord.auth.registration import ClientRegistration
from accord.auth.tokens import Tokens


class LoginSecrets(msgspec.Struct, frozen=True, omit_defaults=True):
    """The secrets of a login, which its record in the file then does not have."""

    access_token: str = ""
    refresh_token: str | None = None
    client_secret: str | None = None
    dpop_key: str | None = None
    issuer: str = ""
    """The authorization server that they are for."""

    def __repr__(self) -> str:
        return "LoginSecrets(...)"


class Login(msgspec.Struct, frozen=True):
    """A login at one MCP server: its authorization server, the client there, and the tokens."""

    discovery: Discovery
    client: ClientRegistration
    tokens: Tokens
    assume_pkce: bool = False
    """Whether the user has chosen S256 without a statement of the authorization server."""
    chosen_issuer: bool = False
    """Whether the user has chosen the issuer."""
    chosen_resource: bool = False
    """Whether the user has chosen the resource identifier."""
    dpop_key: str | None = None
    """The private key to which the tokens are bound, as PEM."""

    def __repr__(self) -> str:
        return f"Login({self.discovery.resource!r} by {self.client!r})"  # without the key

    @property
    def is_in_keyring(self) -> bool:
        """Whether this is the record of a login whose secrets are in the keyring: they are empty here."""
        return not self.tokens.access_token

    @property
    def secrets(self) -> LoginSecrets:
        """The secrets."""
        tokens = self.tokens
        client = self.client
        return LoginSecrets(
            tokens.access_token, tokens.refresh_token, client.client_secret, self.dpop_key, self.discovery.issuer
        )

    def with_secrets(self, secrets: LoginSecrets) -> Login:
        """Return this login with other secrets."""
        tokens = msgspec.structs.replace(
            self.tokens, access_token=secrets.access_token, refresh_token=secrets.refresh_token
        )
        client = msgspec.structs.replace(self.client, client_secret=secrets.client_secret)
        return msgspec.structs.replace(self, tokens=tokens, client=client, dpop_key=secrets.dpop_key)

    def without_secrets(self) -> Login:
        """Return the record for the file: each secret that exists is empty."""
        found = self.secrets
        refresh_token, client_secret, key = (
            None if each is None else "" for each in (found.refresh_token, found.client_secret, found.dpop_key)
        )
        blank = LoginSecrets("", refresh_token, client_secret, key)
        return self.with_secrets(blank)
