"""Metadata of protected resources (RFC 9728) and of authorization servers (RFC 8414, OpenID Connect Discovery).

Unknown fields are ignored, and null is an absent field. Lists and texts are bounded where they are decoded.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from accord.auth.steps import DECODE_ERRORS
from accord.auth.urls import URL_CHARACTERS
from accord.errors import AuthorizationError

METADATA_BYTES = 256 << 10
"""Limit of a metadata document, in bytes."""

MetadataURL: TypeAlias = Annotated[str, Meta(max_length=URL_CHARACTERS)]
MetadataNames: TypeAlias = Annotated[list[Annotated[str, Meta(max_length=1_024)]], Meta(max_length=1_000)]
ServerURLs: TypeAlias = Annotated[list[MetadataURL], Meta(max_length=100)]

Document = TypeVar("Document")


class ResourceMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of a protected resource, here an MCP server (RFC 9728, 2)."""

    resource: MetadataURL
    """The resource identifier: the value of `resource` in requests for a token."""
    authorization_servers: ServerURLs | None = None
    """The issuers of the authorization servers that the server trusts."""
    scopes_supported: MetadataNames | None = None
    bearer_methods_supported: MetadataNames | None = None
    resource_name: str | None = None
    resource_documentation: MetadataURL | None = None
    dpop_signing_alg_values_supported: MetadataNames | None = None
    dpop_bound_access_tokens_required: bool | None = None


class AuthorizationServerMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """The metadata of an authorization server (RFC 8414, 2)."""

    issuer: MetadataURL
    authorization_endpoint: MetadataURL | None = None
    token_endpoint: MetadataURL | None = None
    registration_endpoint: MetadataURL | None = None
    revocation_endpoint: MetadataURL | None = None
    introspection_endpoint: MetadataURL | None = None
    device_authorization_endpoint: MetadataURL | None = None
    jwks_uri: MetadataURL | None = None
    scopes_supported: MetadataNames | None = None
    response_types_supported: MetadataNames | None = None
    grant_types_supported: MetadataNames | None = None
    token_endpoint_auth_methods_supported: MetadataNames | None = None
    token_endpoint_auth_signing_alg_values_supported: MetadataNames | None = None
    revocation_endpoint_auth_methods_supported: MetadataNames | None = None
    introspection_endpoint_auth_methods_supported: MetadataNames | None = None
    code_challenge_methods_supported: MetadataNames | None = None
    dpop_signing_alg_values_supported: MetadataNames | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    client_id_metadata_document_supported: bool | None = None


def decode_metadata(body: bytes, type: type[Document], what: str) -> Document:
    """Return a metadata document. `what` names it in errors. Raises `AuthorizationError`."""
    if len(body) > METADATA_BYTES:
        raise AuthorizationError(what, f"the document has more than {METADATA_BYTES:,} bytes")
    try:
        return msgspec.json.decode(body, type=type)
    except DECODE_ERRORS as exc:
        raise AuthorizationError(what, f"the document cannot be used: {exc}") from exc
