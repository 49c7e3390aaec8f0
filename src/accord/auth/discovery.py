"""Discovery of the authorization server of an MCP server, from the URL of the server and its challenge.

    resource metadata (RFC 9728)      the challenge's `resource_metadata`, else at the well-known URI of the path, else
                                      at that of the root
    authorization server metadata     RFC 8414, OpenID Connect with the path inserted, then appended
    without resource metadata         as in 2025-03-26: metadata at the origin of the server, else `/authorize`,
                                      `/token` and `/register` there

A 4xx leads to the next URL; any other failure ends discovery with an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from accord.auth.challenge import SCOPES_CHARACTERS, Challenge
from accord.auth.metadata import AuthorizationServerMetadata, ResourceMetadata, decode_metadata
from accord.auth.steps import OAuthRequest, OAuthResponse, Steps, response_failure
from accord.auth.urls import (
    canonical_resource,
    check_url,
    covers,
    origin_of,
    resource_metadata_urls,
    server_metadata_urls,
)
from accord.errors import AuthorizationError, visible

RESOURCE_STEP = "resource metadata"
SERVER_STEP = "authorization server metadata"


class DiscoveryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of the user for one server. `issuer` and `resource` relax rules of the specification."""

    issuer: str | None = None
    """The authorization server, also if the MCP server names another, or none."""
    resource: str | None = None
    """The resource identifier, also if the MCP server publishes another."""
    preferred_issuers: Sequence[str] = ()
    """Issuers with which a client is registered: one of them is selected if the MCP server names several."""


_NO_HEADERS: Mapping[str, str] = {}
_VERSION_HEADER = {"MCP-Protocol-Version": "2025-03-26"}
"""Of that revision, "during Server Metadata Discovery" (2025-03-26, Server Metadata Discovery Headers)."""

_ISSUER_CURE = (
    "name the issuer exactly as its metadata does; a client that trusts the found one can choose it: --issuer"
)

DEFAULT_OPTIONS = DiscoveryOptions()


class Discovery(msgspec.Struct, frozen=True):
    """The authorization server of an MCP server."""

    server: str
    """The URL of the MCP server."""
    resource: str
    """The resource identifier, byte for byte as published: the value of `resource` in requests."""
    metadata: AuthorizationServerMetadata
    scopes: list[str] | None = None
    """The scopes of the challenge, else those of the resource metadata, else None."""
    dpop_required: bool = False
    """Whether the MCP server accepts tokens only with a proof of possession (RFC 9449)."""
    dpop_supported: bool = False
    """Whether both servers support such proofs."""

    @property
    def issuer(self) -> str:
        return self.metadata.issuer

    def merge_scopes(self, requested: Iterable[str], chosen: Iterable[str] | None) -> list[str]:
        """Return the scopes to request: those requested before, with those that the user chose, or else those that the
        server names. Raises `AuthorizationError` for too many: a server can name others with each refusal.
        """
        scopes = list(dict.fromkeys([*requested, *((self.scopes or ()) if chosen is None else chosen)]))
        if sum(map(len, scopes)) + len(scopes) > SCOPES_CHARACTERS:
            reason = f"{self.server} demands more than {SCOPES_CHARACTERS:,} characters of scopes"
            raise AuthorizationError("scopes", reason, "choose some: --scope, or scopes= in a program")
        return scopes


class DiscoveredResource(msgspec.Struct, frozen=True):
    """An MCP server as a protected resource: where its authorization server is."""

    server: str
    """The URL of the MCP server."""
    resource: str
    """The resource identifier, byte for byte as published."""
    issuer: str | None
    """The issuer to use; None for a server that is its own authorization server, as in 2025-03-26."""
    metadata: ResourceMetadata | None = None
    """What it publishes."""
    challenge: Challenge | None = None


def discover(
    server: str, challenge: Challenge | None = None, options: DiscoveryOptions = DEFAULT_OPTIONS
) -> Steps[Discovery]:
    """Find the authorization server of `server`, the URL of an MCP server, and check its metadata.

    Raises `AuthorizationError`.
    """
    return (yield from discover_issuer((yield from discover_resource(server, challenge, options))))


def discover_resource(
    server: str, challenge: Challenge | None = None, options: DiscoveryOptions = DEFAULT_OPTIONS
) -> Steps[DiscoveredResource]:
    """Return the resource identifier of a server, and its issuer: the first part of `discover`. Raises
    `AuthorizationError`.
    """
    check_url(server, "URL of the MCP server")
    found = yield from _find_resource(server, challenge)
    resource = _check_resource(found, server, options)
    issuer = None if found is None and options.issuer is None else _select_issuer(found, options)
    return DiscoveredResource(server, resource, issuer, found, challenge)


def discover_issuer(found: DiscoveredResource) -> Steps[Discovery]:
    """Return the authorization server of a resource: the second part of `discover`. Raises `AuthorizationError`."""
    if found.issuer is None:
        metadata = yield from _metadata_at_origin(found.server)
    else:
        metadata = yield from fetch_server_metadata(found.issuer)
    _check_endpoints(metadata)
    document, challenge = found.metadata, found.challenge
    scopes = None if challenge is None else challenge.scopes
    if scopes is None and document is not None:
        scopes = document.scopes_supported
    required = document is not None and bool(document.dpop_bound_access_tokens_required)
    supported = _supports_dpop(document, challenge, metadata)
    return Discovery(found.server, found.resource, metadata, scopes, required, supported)


def _supports_dpop(
    found: ResourceMetadata | None, challenge: Challenge | None, metadata: AuthorizationServerMetadata
) -> bool:
    """Return whether both servers support proofs with ES256: the MCP server by its metadata or its challenge."""
    listed = None if found is None else found.dpop_signing_alg_values_supported
    asked = challenge is not None and challenge.scheme == "dpop"
    return "ES256" in (metadata.dpop_signing_alg_values_supported or ()) and (asked or "ES256" in (listed or ()))


def _find_resource(server: str, challenge: Challenge | None) -> Steps[ResourceMetadata | None]:
    """Return the metadata of the resource, or None if the server publishes none."""
    urls = resource_metadata_urls(server)
    named = None if challenge is None else challenge.parameters.get("resource_metadata")
    if named is not None:
        check_url(named, "resource_metadata of the challenge")
        urls = [named, *(url for url in urls if url != named)]
    response = yield from _first_found(RESOURCE_STEP, urls)
    return None if response is None else decode_metadata(response.body, ResourceMetadata, RESOURCE_STEP)


def _first_found(
    step: str, urls: Sequence[str], headers: Mapping[str, str] = _NO_HEADERS
) -> Steps[OAuthResponse | None]:
    """Return the first response that is not 4xx, or None if all are. Raises `AuthorizationError` unless it is a 200."""
    for url in urls:
        response = yield OAuthRequest(step, "GET", url, {"Accept": "application/json", **headers})
        if response.status == 200:
            return response
        if not 400 <= response.status < 500:
            raise response_failure(f"{step} at {url}", response)
    return None


def _check_resource(found: ResourceMetadata | None, server: str, options: DiscoveryOptions) -> str:
    """Return the resource identifier. Raises `AuthorizationError` if it is not that of the server.

    "The `resource` value returned MUST be identical to the protected resource's resource identifier value into which
    the well-known URI path suffix was inserted" (RFC 9728, 3.3). A path above that of the server is accepted, because
    one identifier may stand for several servers.
    """
    if options.resource is not None:
        return options.resource
    if found is None:
        return canonical_resource(server)
    check_url(found.resource, "resource of the resource metadata")
    if not covers(found.resource, server):
        raise AuthorizationError(
            RESOURCE_STEP,
            f"found resource {found.resource!r}, expected {canonical_resource(server)!r} or a parent of its path",
            "have the server publish its own URL, or choose it: --resource",
        )
    return found.resource


def _select_issuer(found: ResourceMetadata | None, options: DiscoveryOptions) -> str:
    """Return the issuer to use: "The responsibility for selecting which authorization server to use lies with the MCP
    client" (Authorization Server Location).
    """
    if options.issuer is not None:
        return options.issuer
    listed = found.authorization_servers if found is not None else None
    if not listed:
        raise AuthorizationError(
            RESOURCE_STEP, "it lists no authorization_servers", "have the server list one, or choose it: --issuer"
        )
    return next((issuer for issuer in listed if issuer in options.preferred_issuers), listed[0])


def fetch_server_metadata(issuer: str) -> Steps[AuthorizationServerMetadata]:
    """Return the metadata of an issuer. Raises `AuthorizationError` if there is none, or if it is another issuer's.

    "the `issuer` value in the document MUST be identical to the issuer identifier used to construct the well-known URL.
    If they differ, the client MUST NOT use the metadata" (Authorization Server Metadata Discovery).
    """
    check_url(issuer, "issuer")
    urls = server_metadata_urls(issuer)
    response = yield from _first_found(SERVER_STEP, urls)
    if response is None:
        places = ", ".join(urls)
        raise AuthorizationError(
            SERVER_STEP, f"{issuer} publishes none: a 4xx came from {places}", "another issuer can be chosen: --issuer"
        )
    metadata = decode_metadata(response.body, AuthorizationServerMetadata, SERVER_STEP)
    if metadata.issuer != issuer:
        raise AuthorizationError(
            SERVER_STEP,
            f"found issuer {visible(metadata.issuer)!r}, expected {issuer!r}",
            _ISSUER_CURE,
        )
    return metadata


def _metadata_at_origin(server: str) -> Steps[AuthorizationServerMetadata]:
    """Return the metadata of the server as its own authorization server, published or made of the default paths
    (2025-03-26, Authorization Base URL).
    """
    origin = origin_of(server)
    response = yield from _first_found(SERVER_STEP, server_metadata_urls(origin)[:1], _VERSION_HEADER)
    if response is None:
        return AuthorizationServerMetadata(
            issuer=origin,
            authorization_endpoint=f"{origin}/authorize",
            token_endpoint=f"{origin}/token",
            registration_endpoint=f"{origin}/register",
            code_challenge_methods_supported=["S256"],  # "PKCE is REQUIRED for all clients" (2025-03-26)
        )
    metadata = decode_metadata(response.body, AuthorizationServerMetadata, SERVER_STEP)
    if metadata.issuer not in (origin, f"{origin}/"):  # 2025-03-26 names no issuer, only the origin
        raise AuthorizationError(
            SERVER_STEP,
            f"found issuer {visible(metadata.issuer)!r}, expected {origin!r}",
            _ISSUER_CURE,
        )
    return metadata


_ENDPOINTS = (
    *("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"),
    *("introspection_endpoint", "device_authorization_endpoint", "jwks_uri"),
)


def _check_endpoints(metadata: AuthorizationServerMetadata) -> None:
    """Raise `AuthorizationError` for endpoints that are not safe, and for a server without a token endpoint."""
    for name in _ENDPOINTS:
        if (url := getattr(metadata, name)) is not None:
            check_url(url, f"{name} of {metadata.issuer}")
    if metadata.token_endpoint is None:
        raise AuthorizationError(SERVER_STEP, f"{metadata.issuer} has no token_endpoint")
