"""Logins of programs, without a user: client credentials, enterprise-managed authorization, workload identity.

Each is an extension of the protocol. A program gets a new token instead of refreshing one, and stores none in a file.

`issuer` is the only authorization server that receives the secret or the assertion. Without it, that is the one that
the MCP server names first; a later one is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from accord.auth.client_authentication import (
    AssertionKey,
    ClientAuthentication,
    KeyAuthentication,
    SecretAuthentication,
)
from accord.auth.credential_store import CredentialStore
from accord.auth.credentials import GrantCredentials
from accord.auth.discovery import Discovery, DiscoveryOptions
from accord.auth.dpop import DPoPKey, new_key, with_proof
from accord.auth.http import OAuthClient
from accord.auth.login import Login
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration, select_auth_method
from accord.auth.steps import Steps, run_steps
from accord.auth.tokens import Tokens, request_tokens, tokens_of
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, DeclarationError, visible

if TYPE_CHECKING:
    from ssl import SSLContext

AssertionSource: TypeAlias = str | Callable[[], str]
"""A token, or a function that returns the current one: those of platforms expire."""

_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"


class ProgramLogin(Protocol):
    """A way in which a program gets tokens; see `ProgramGrant`."""

    client_id: str
    scopes: Sequence[str] | None
    issuer: str | None
    """The authorization server to use, also if the MCP server names another."""
    extension: str
    """The name of the extension of the protocol."""

    def request(
        self, discovery: Discovery, scopes: list[str], key: DPoPKey | None, now: Callable[[], float]
    ) -> Steps[Tokens]:
        """Get new tokens, bound to a key if there is one. Raises `AuthorizationError`."""


class ProgramGrant:
    """The grant of a program; see `accord.auth.credentials.Grant`. `now` returns seconds since 1970."""

    is_interactive = False

    def __init__(self, login: ProgramLogin, http: OAuthClient, now: Callable[[], float] = time.time) -> None:
        self._login = login
        self._http = http
        self._now = now

    @property
    def client_id(self) -> str | None:
        """See `Grant.client_id`."""
        return self._login.client_id

    @property
    def port(self) -> int:
        """See `Grant.port`."""
        return 0

    @property
    def extension(self) -> str | None:
        """See `Grant.extension`."""
        return self._login.extension

    @property
    def options(self) -> DiscoveryOptions:
        """See `Grant.options`."""
        return DiscoveryOptions(issuer=self._login.issuer)

    is_possible = True

    async def obtain(self, discovery: Discovery, previous: Login | None, store: CredentialStore) -> Login:
        """Return a new login. Raises `AuthorizationError`."""
        requested = [] if previous is None else previous.tokens.requested
        scopes = discovery.merge_scopes(requested, self._login.scopes)
        key = new_key(discovery)
        tokens = await run_steps(self._login.request(discovery, scopes, key, self._now), self._http.send)
        tokens = msgspec.structs.replace(tokens, refresh_token=None)  # a new token is requested instead
        client = ClientRegistration(discovery.issuer, self._login.client_id, "given")
        return Login(discovery, client, tokens, dpop_key=None if key is None else key.pem)


def _credentials(login: ProgramLogin, server: str, ssl: SSLContext | None, proxy: str | None) -> GrantCredentials:
    http = OAuthClient(server, ssl=ssl, proxy=proxy)
    return GrantCredentials(ProgramGrant(login, http), server, http)


def _secret_authentication(
    metadata: AuthorizationServerMetadata, client_id: str, secret: str | None
) -> SecretAuthentication:
    method = select_auth_method(metadata, has_secret=secret is not None)
    return SecretAuthentication(ClientRegistration(metadata.issuer, client_id, "given", secret, method))


class ClientCredentials:
    """The client credentials grant: `ClientCredentials("robot", key=PEM)`, or `secret=` (extension OAuth Client
    Credentials).

    `key` is a private key as PEM, `algorithm` its algorithm; it needs `accord[auth]`. Only the authorization server
    `issuer` receives the secret; by default the one that the MCP server names first. Raises `DeclarationError` unless
    there is one of `key` and `secret`, and for a key that cannot be used.
    """

    extension = "io.modelcontextprotocol/oauth-client-credentials"

    def __init__(
        self,
        client_id: str,
        *,
        secret: str | None = None,
        key: str | None = None,
        algorithm: str = "ES256",
        scopes: Sequence[str] | None = None,
        issuer: str | None = None,
    ) -> None:
        if (secret is None) == (key is None):
            raise DeclarationError('ClientCredentials needs a key or a secret: ClientCredentials("robot", key=PEM)')
        self.client_id: str = client_id
        self.scopes: Sequence[str] | None = scopes
        self.issuer: str | None = issuer
        self._secret = secret
        self._key = None if key is None else AssertionKey(key, algorithm)

    def __repr__(self) -> str:
        return f"ClientCredentials({self.client_id!r})"

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        """Return the credentials of one client for `server`, the URL of an MCP server."""
        return _credentials(self, server, ssl, proxy)

    def request(
        self, discovery: Discovery, scopes: list[str], key: DPoPKey | None, now: Callable[[], float]
    ) -> Steps[Tokens]:
        """See `ProgramLogin.request`."""
        metadata = discovery.metadata
        authentication: ClientAuthentication
        if self._key is not None:
            authentication = KeyAuthentication(self.client_id, self._key, metadata.issuer, now)
        else:
            authentication = _secret_authentication(metadata, self.client_id, self._secret)
        form = {"grant_type": "client_credentials", "resource": discovery.resource, **_scope(scopes)}
        proven = with_proof(authentication, key, now)
        response = yield from request_tokens(
            metadata, proven, form, step="client credentials", cure=_cure(metadata, self.client_id)
        )
        return tokens_of(response, scopes, now())


class WorkloadIdentity:
    """A token of the platform as authorization (RFC 7523, 2.1): `WorkloadIdentity("robot", read_token)`. `token` is a
    JSON Web Token, or a function that returns the current one. Only the authorization server `issuer` receives it; by
    default the one that the MCP server names first.
    """

    extension = "io.modelcontextprotocol/auth/wif"

    def __init__(
        self,
        client_id: str,
        token: AssertionSource,
        *,
        scopes: Sequence[str] | None = None,
        issuer: str | None = None,
    ) -> None:
        self.client_id: str = client_id
        self.scopes: Sequence[str] | None = scopes
        self.issuer: str | None = issuer
        self._token = token

    def __repr__(self) -> str:
        return f"WorkloadIdentity({self.client_id!r})"

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        """Return the credentials of one client for `server`, the URL of an MCP server."""
        return _credentials(self, server, ssl, proxy)

    def request(
        self, discovery: Discovery, scopes: list[str], key: DPoPKey | None, now: Callable[[], float]
    ) -> Steps[Tokens]:
        """See `ProgramLogin.request`. A refused assertion is not sent again, nor another grant tried."""
        metadata, step = discovery.metadata, "workload identity"
        authentication = with_proof(_secret_authentication(metadata, self.client_id, None), key, now)
        form = {"grant_type": _JWT_BEARER, "assertion": _current(self._token, step), "resource": discovery.resource}
        response = yield from request_tokens(
            metadata, authentication, {**form, **_scope(scopes)}, step=step, cure=_cure(metadata, self.client_id)
        )
        return tokens_of(response, scopes, now())


class EnterpriseManaged:
    """Authorization by the identity provider of an enterprise (extension Enterprise-Managed Authorization): an ID token
    of the user is exchanged there (RFC 8693) for an assertion that the server's authorization server accepts.

    `client_id` and `secret` are those at the authorization server, which is `issuer`; by default the one that the MCP
    server names first. `idp_client_id` and `idp_secret` are those at the identity provider, whose token endpoint is
    `idp_token_endpoint`. `id_token` is the user's, or a function that returns the current one.
    """

    extension = "io.modelcontextprotocol/enterprise-managed-authorization"

    def __init__(
        self,
        client_id: str,
        *,
        secret: str | None = None,
        idp_token_endpoint: str,
        idp_client_id: str,
        idp_secret: str | None = None,
        id_token: AssertionSource,
        scopes: Sequence[str] | None = None,
        issuer: str | None = None,
    ) -> None:
        check_url(idp_token_endpoint, "idp_token_endpoint")
        self.client_id: str = client_id
        self.scopes: Sequence[str] | None = scopes
        self.issuer: str | None = issuer
        self._secret = secret
        self._idp = AuthorizationServerMetadata(idp_token_endpoint, token_endpoint=idp_token_endpoint)
        self._idp_client_id = idp_client_id
        self._idp_secret = idp_secret
        self._id_token = id_token

    def __repr__(self) -> str:
        return f"EnterpriseManaged({self.client_id!r})"

    def credentials(self, server: str, *, ssl: SSLContext | None = None, proxy: str | None = None) -> GrantCredentials:
        """Return the credentials of one client for `server`, the URL of an MCP server."""
        return _credentials(self, server, ssl, proxy)

    def request(
        self, discovery: Discovery, scopes: list[str], key: DPoPKey | None, now: Callable[[], float]
    ) -> Steps[Tokens]:
        """See `ProgramLogin.request`."""
        assertion = yield from self._exchange(discovery, scopes)
        metadata = discovery.metadata
        authentication = with_proof(_secret_authentication(metadata, self.client_id, self._secret), key, now)
        response = yield from request_tokens(
            metadata,
            authentication,
            {"grant_type": _JWT_BEARER, "assertion": assertion},
            step="enterprise-managed authorization",
            cure=f"see that {metadata.issuer} trusts the identity provider, and knows the client {self.client_id}",
        )
        return tokens_of(response, scopes, now())

    def _exchange(self, discovery: Discovery, scopes: list[str]) -> Steps[str]:
        """Exchange the ID token for an assertion. Raises `AuthorizationError`, also for another kind of token: the
        authorization server of the MCP server must not receive it.
        """
        step = "token exchange at the identity provider"
        form = {
            "grant_type": _TOKEN_EXCHANGE,
            "requested_token_type": _ID_JAG,
            "audience": discovery.issuer,
            "resource": discovery.resource,
            "subject_token": _current(self._id_token, step),
            "subject_token_type": _ID_TOKEN,
            **_scope(scopes),
        }
        authentication = _secret_authentication(self._idp, self._idp_client_id, self._idp_secret)
        cure = f"see that the identity provider lets {self._idp_client_id} use {discovery.resource}"
        granted = yield from request_tokens(self._idp, authentication, form, step=step, cure=cure)
        if granted.issued_token_type != _ID_JAG:
            found = visible(str(granted.issued_token_type))
            raise AuthorizationError(step, f"found issued_token_type {found!r}, expected {_ID_JAG!r}", cure)
        return granted.access_token


def _scope(scopes: list[str]) -> Mapping[str, str]:
    return {"scope": " ".join(scopes)} if scopes else {}


def _cure(metadata: AuthorizationServerMetadata, client_id: str) -> str:
    return f"see how the client {client_id} is registered at {metadata.issuer}"


def _current(source: AssertionSource, step: str) -> str:
    """Return the current token. Raises `AuthorizationError` if the function of the program fails."""
    try:
        token = source if isinstance(source, str) else source()
    except Exception as exc:
        raise AuthorizationError(step, f"the function for the token failed: {type(exc).__name__}") from exc
    if not isinstance(token, str) or not token.strip():
        raise AuthorizationError(step, f"the function for the token returned {type(token).__name__}, expected a token")
    return token.strip()  # a file may end with a newline
