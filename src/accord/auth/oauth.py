"""`OAuth`: how a user logs in to an MCP server, and the login itself.

    async with Client("https://mcp.example.com/mcp", auth=OAuth()) as client:

The first connection opens the browser if a user is present; the login is stored, and renewed when it expires. Without a
user, `LoginNeeded` says which command to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from accord.auth.credential_store import CredentialStore
from accord.auth.credentials import GrantCredentials
from accord.auth.discovery import DiscoveryOptions
from accord.auth.http import OAuthClient
from accord.auth.registration import ClientIdentity, client_metadata_document
from accord.auth.user_grants import Authorize, CodeGrant, DeviceGrant, GrantSettings, ShowDeviceCode

if TYPE_CHECKING:
    from ssl import SSLContext


class OAuth(msgspec.Struct, frozen=True, kw_only=True):
    """The login of a user: `Client(url, auth=OAuth())`, by the authorization code grant, or with `device` by the device
    authorization grant.

    Raises `AuthorizationError` for an invalid `client_metadata_url`.
    """

    client_id: str | None = None
    """A client ID that you registered with the authorization server. Without one, the client registers itself."""
    client_secret: str | None = None
    client_metadata_url: str | None = None
    """The https URL of a client ID metadata document that you host (`accord auth metadata` writes it)."""
    client_name: str = "accord"
    """The name that the authorization server shows to the user."""
    scopes: Sequence[str] | None = None
    """The scopes to request; by default those that the server asks for."""
    port: int = 0
    """The port of the callback on this machine: the one you registered, or 0 for any."""
    redirect_uri: str | None = None
    """The redirect URI for `authorize`; by default a callback on this machine."""
    authorize: Authorize | None = None
    """The function that visits a URL, instead of the browser of this machine. It returns the URL of the callback."""
    device: bool | ShowDeviceCode = False
    """Whether the user logs in on another device, with a code (RFC 8628). A function shows the page and the code; by
    default they are written to stderr.
    """
    interactive: bool | None = None
    """Whether a user is present to log in; by default, whether the program runs in a terminal."""
    store: CredentialStore | None = None
    """The store of logins; by default the file of the user."""
    issuer: str | None = None
    """The authorization server, also if the MCP server names another: none else receives `client_id` and its secret.
    Relaxes a rule of the specification.
    """
    resource: str | None = None
    """The resource identifier, also if the MCP server publishes another. Relaxes a rule of the specification."""
    assume_pkce: bool = False
    """Whether an authorization server is used that does not state S256. Relaxes a rule of the specification."""

    def __post_init__(self) -> None:
        if self.client_metadata_url is not None:
            client_metadata_document(self.client_metadata_url, self.client_name, [])

    def __repr__(self) -> str:
        return f"OAuth(client_id={self.client_id!r})"  # without the secret

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        """Return the credentials of one client for `server`, the URL of an MCP server."""
        http = OAuthClient(server, ssl=ssl, proxy=proxy)
        grant = DeviceGrant if self.device else CodeGrant
        return GrantCredentials(grant(grant_settings(self), server, http), server, http, self.store)


def grant_settings(login: OAuth) -> GrantSettings:
    """Return the settings of the grant of a login."""
    return GrantSettings(
        identity=ClientIdentity(
            client_id=login.client_id,
            client_secret=login.client_secret,
            metadata_url=login.client_metadata_url,
            name=login.client_name,
        ),
        options=DiscoveryOptions(issuer=login.issuer, resource=login.resource),
        scopes=login.scopes,
        port=login.port,
        redirect_uri=login.redirect_uri,
        authorize=login.authorize,
        show_device_code=login.device if callable(login.device) else None,
        interactive=login.interactive,
        assume_pkce=login.assume_pkce,
    )
