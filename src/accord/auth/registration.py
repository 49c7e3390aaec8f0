"""Client identification: under which `client_id` a client authorizes with an authorization server.

    given                 a client ID that the user registered there
    metadata document     a URL that the user hosts, where the server supports it (CIMD)
    registered            dynamic registration (RFC 7591), where the server offers it
    asking the user       an error that says what to register

"Clients supporting all options SHOULD use the following priority order" (Client Registration). A registration belongs
to the issuer that made it, and is never sent to another (Authorization Server Binding).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.steps import DECODE_ERRORS, OAuthRequest, Steps, response_failure
from accord.errors import AuthorizationError

STEP = "client registration"
RegistrationSource: TypeAlias = Literal["given", "metadata document", "registered"]
AuthMethod: TypeAlias = Literal["none", "client_secret_basic", "client_secret_post", "private_key_jwt"]
_Text: TypeAlias = Annotated[str, Meta(max_length=4_096)]

_METHODS: tuple[AuthMethod, ...] = ("none", "client_secret_post", "client_secret_basic")
"""The methods that a registration may have, in order of preference: a program on the user's machine cannot keep a
secret, and so is a public client (RFC 8252, 8.4). Servers on the official SDK for Python demand `client_id` in the body
also with `client_secret_basic`.
"""


CODE_GRANTS: Sequence[str] = ("authorization_code", "refresh_token")
"""The grant types of a client with a redirect URI."""


class ClientRegistration(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client, as one authorization server knows it."""

    issuer: str
    client_id: str
    source: RegistrationSource
    client_secret: str | None = None
    auth_method: AuthMethod = "none"
    secret_expires_at: float = 0
    """When the secret expires, in seconds since 1970; 0 for never."""
    redirect_uri: str | None = None
    """The redirect URI that was registered, if the client registered itself."""

    def __repr__(self) -> str:
        return f"ClientRegistration({self.client_id!r} at {self.issuer!r}, {self.source})"  # without the secret

    def is_valid(self, issuer: str, redirect_uri: str | None, now: float) -> bool:
        """Return whether a stored registration can be used with an issuer and a redirect URI.

        Some authorization servers compare also the port of a loopback redirect URI, which may differ: "The
        authorization server MUST allow any port to be specified at the time of the request" (RFC 8252, 7.3).
        """
        expired = 0 < self.secret_expires_at <= now
        return self.issuer == issuer and self.redirect_uri in (None, redirect_uri) and not expired


class ClientIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """The identification of the client that the user wants."""

    client_id: str | None = None
    client_secret: str | None = None
    metadata_url: str | None = None
    """The https URL of a client ID metadata document that the user hosts."""
    name: str = "accord"
    """The name that an authorization server shows to the user."""

    def __repr__(self) -> str:
        return f"ClientIdentity({self.client_id!r}, metadata_url={self.metadata_url!r})"


class _RegistrationResponse(msgspec.Struct):
    client_id: Annotated[_Text, Meta(min_length=1)]
    client_secret: _Text | None = None
    client_secret_expires_at: float | None = None
    token_endpoint_auth_method: AuthMethod | None = None

    def __repr__(self) -> str:
        return f"_RegistrationResponse({self.client_id!r})"  # without the secret


_decode = msgspec.json.Decoder(_RegistrationResponse).decode


def identify_client(
    metadata: AuthorizationServerMetadata,
    identity: ClientIdentity,
    redirect_uri: str | None,
    grant_types: Sequence[str] = CODE_GRANTS,
) -> Steps[ClientRegistration]:
    """Return the client for an authorization server, registered there if necessary. Raises `AuthorizationError`."""
    if identity.client_id is not None:
        method = select_auth_method(metadata, has_secret=identity.client_secret is not None)
        return ClientRegistration(metadata.issuer, identity.client_id, "given", identity.client_secret, method)
    if identity.metadata_url is not None and metadata.client_id_metadata_document_supported:
        return ClientRegistration(metadata.issuer, identity.metadata_url, "metadata document")
    if metadata.registration_endpoint is None:
        raise _no_registration(metadata, identity, redirect_uri)
    return (yield from _register(metadata, metadata.registration_endpoint, identity, redirect_uri, grant_types))


def _no_registration(
    metadata: AuthorizationServerMetadata, identity: ClientIdentity, redirect_uri: str | None
) -> AuthorizationError:
    refused = ", and no metadata documents" if identity.metadata_url is not None else ""
    return AuthorizationError(
        STEP,
        f"{metadata.issuer} registers no clients by itself{refused}",
        f"register {redirect_uri or 'a client'} there, then give the client ID: --client-id",
    )


def _register(
    metadata: AuthorizationServerMetadata,
    endpoint: str,
    identity: ClientIdentity,
    redirect_uri: str | None,
    grant_types: Sequence[str],
) -> Steps[ClientRegistration]:
    """Register the client (RFC 7591, 3.1). "MCP clients MUST specify an appropriate `application_type`"."""
    supported = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]  # the default of RFC 8414
    method: AuthMethod = next((each for each in _METHODS if each in supported), "none")
    document = client_metadata(identity.name, [redirect_uri] if redirect_uri else [], method, grant_types)
    response = yield OAuthRequest(STEP, "POST", endpoint, {"Accept": "application/json"}, json=document)
    if response.status not in (200, 201):
        cure = f"register {redirect_uri or 'a client'} at {metadata.issuer}, then give the client ID: --client-id"
        if response.status == 404:  # the default endpoint of a server that publishes no metadata
            cure = f"choose the authorization server: --issuer; or {cure}"
        raise response_failure(f"{STEP} at {endpoint}", response, cure)
    try:
        answer = _decode(response.body)
    except DECODE_ERRORS as exc:
        raise AuthorizationError(STEP, f"the response of {endpoint} cannot be used: {exc}") from exc
    return ClientRegistration(
        metadata.issuer,
        answer.client_id,
        "registered",
        answer.client_secret,
        _registered_method(answer, method),
        answer.client_secret_expires_at or 0,
        redirect_uri,
    )


def _registered_method(answer: _RegistrationResponse, requested: AuthMethod) -> AuthMethod:
    """Return the method of a new client: the server may choose another than requested (RFC 7591, 3.2.1)."""
    if answer.token_endpoint_auth_method is not None:
        return answer.token_endpoint_auth_method
    if answer.client_secret is not None and requested == "none":
        return "client_secret_post"
    return requested


def client_metadata(
    name: str, redirect_uris: Sequence[str], auth_method: AuthMethod, grant_types: Sequence[str]
) -> dict[str, object]:
    """Return the metadata of a client that runs on the user's machine (RFC 7591, 2)."""
    return {
        "client_name": name,
        "redirect_uris": list(redirect_uris),
        "grant_types": list(grant_types),
        "response_types": ["code"] if "authorization_code" in grant_types else [],
        "token_endpoint_auth_method": auth_method,
        "application_type": "native",
    }


def client_metadata_document(
    url: str, name: str, redirect_uris: Sequence[str], client_uri: str | None = None
) -> dict[str, object]:
    """Return the document to publish at `url`, which then is a client ID (CIMD, 4). `client_uri` is a page about the
    client. Raises `AuthorizationError`.

    "The `client_id` URL MUST use the "https" scheme and contain a path component" (Client ID Metadata Documents).
    """
    parts = urlsplit(url)
    segments = parts.path.split("/")
    if parts.scheme != "https" or not parts.netloc or not parts.path.strip("/") or {".", ".."} & set(segments):
        raise AuthorizationError(
            "client metadata document", f"{url!r} cannot be a client ID", "it must be an https URL with a path"
        )
    if parts.fragment or "@" in parts.netloc:
        raise AuthorizationError("client metadata document", f"{url!r} has a fragment or a user name")
    page = {} if client_uri is None else {"client_uri": client_uri}
    return {"client_id": url, **client_metadata(name, redirect_uris, "none", CODE_GRANTS), **page}


def select_auth_method(metadata: AuthorizationServerMetadata, *, has_secret: bool) -> AuthMethod:
    """Return how a client with or without a secret authenticates at the token endpoint.

    Without a list, `client_secret_basic` is the default (RFC 8414, 2).
    """
    if not has_secret:
        return "none"
    supported = metadata.token_endpoint_auth_methods_supported
    if supported is None or "client_secret_basic" in supported:
        return "client_secret_basic"
    return "client_secret_post"
