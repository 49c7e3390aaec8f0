"""The options of a login, which `accord login` and `accord auth explain` share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
import msgspec

from accord.auth.oauth import OAuth
from accord.cli.settings import Decorator, options_as
from accord.client.target import Remote, parse
from accord.errors import TargetError
from accord.transport.http.settings import validated_headers


@dataclass(frozen=True)
class LoginOptions:
    """The identification of the client, the scopes that it requests, and the rules that are relaxed."""

    client_id: str | None = None
    client_secret: str | None = None
    client_metadata_url: str | None = None
    scopes: tuple[str, ...] = ()
    port: int = 0
    issuer: str | None = None
    resource: str | None = None
    assume_pkce: bool = False

    def __repr__(self) -> str:
        return f"LoginOptions({self.client_id!r})"  # without the secret

    def oauth(self, configured: OAuth | None = None, **settings: Any) -> OAuth:
        """Return the login: that of the configuration, with these options. Raises `AuthorizationError` for an invalid
        URL of a metadata document.
        """
        given = {name: value for name, value in vars(self).items() if value}
        return msgspec.structs.replace(configured or OAuth(), **given, **settings)

    def arguments(self) -> list[str]:
        """Return the options as they are written for `accord login`, without the secret."""
        values = {
            "--client-id": self.client_id,
            "--client-metadata": self.client_metadata_url,
            "--port": str(self.port) if self.port else None,
            "--issuer": self.issuer,
            "--resource": self.resource,
        }
        written = [part for name, value in values.items() if value is not None for part in (name, value)]
        for scope in self.scopes:
            written += ["--scope", scope]
        return [*written, "--assume-pkce"] if self.assume_pkce else written


def login_target(text: str, options: LoginOptions, **settings: Any) -> tuple[Remote, OAuth]:
    """Return a server at a URL, or in a configuration, with the login of a user there. Raises `TargetError`."""
    target = parse(text)
    if not isinstance(target, Remote):
        raise TargetError(f"{text!r} is no URL: only servers at a URL have logins")
    if target.auth is not None and not isinstance(target.auth, OAuth):
        raise TargetError(f"{text!r} has the login of a program, which gets its tokens without a user")
    if "authorization" in validated_headers(target.headers or {}):
        raise TargetError(f"{text!r} already has a token; leave it out of the configuration to log in")
    return target, options.oauth(target.auth, **settings)


_OPTIONS = (
    click.option("--client-id", help="The client ID that you registered with the authorization server."),
    click.option(
        "--client-secret", envvar="ACCORD_CLIENT_SECRET", metavar="TEXT",
        help="Its secret. Better: set ACCORD_CLIENT_SECRET.",
    ),
    click.option(
        "--client-metadata", "client_metadata_url", metavar="URL", help="A client ID metadata document you host."
    ),
    click.option("--scope", "scopes", multiple=True, metavar="NAME", help="Request this scope; repeat it for several."),
    click.option("--port", type=click.IntRange(0, 65_535), default=0, help="The port of the redirect URI http://127.0.0.1:PORT/callback."),
    click.option("--issuer", metavar="URL", help="The authorization server, if the server names a wrong one, or none."),
    click.option("--resource", metavar="URL", help="The resource identifier, if the server publishes a wrong one."),
    click.option("--assume-pkce", is_flag=True, help="Accept an authorization server that does not state S256."),
)  # fmt: skip

login_options: Decorator = options_as("login", LoginOptions, _OPTIONS)
"""Add the options of `LoginOptions` to a command, as the argument `login`."""
