"""The authorization of a scenario: what its MCP server and its authorization server publish, grant and refuse.

A plan without arguments is that of good servers. Texts may have placeholders:

    {origin}   the MCP server           {issuer}, {other}   the first and the second authorization server
    {trap}     another origin           {unsafe}            the same, at an http address that is not loopback
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from accord.auth.urls import OPENID_CONFIGURATION, RESOURCE_METADATA, SERVER_METADATA
from accord.check.clients.run import PATH

ABSENT: Any = msgspec.UNSET
"""In the changes of a document: the member is left out."""

RESOURCE_AT_PATH, RESOURCE_AT_ROOT = RESOURCE_METADATA + PATH, RESOURCE_METADATA
"""Where the metadata of the resource may be, in the order of the specification."""

MetadataPlace: TypeAlias = Literal["oauth", "oidc", "appended"]
"""Where an authorization server publishes its metadata: RFC 8414; OpenID Connect, inserted or appended."""

CHALLENGE = 'Bearer resource_metadata="{origin}' + RESOURCE_AT_PATH + '", scope="read"'


class AuthorizationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The difference between the authorization of a scenario and that of good servers."""

    challenge: str = CHALLENGE
    """`WWW-Authenticate` of a 401."""
    resource_at: Sequence[str] = (RESOURCE_AT_PATH,)
    """The paths of the resource metadata."""
    resource: Mapping[str, Any] = {}
    """Other members of the resource metadata."""
    issuer_path: str = ""
    at_origin: bool = False
    """Whether the MCP server is its own authorization server, as in 2025-03-26."""
    metadata_at: Sequence[MetadataPlace] = ("oauth",)
    metadata: Mapping[str, Any] = {}
    """Other members of the authorization server metadata."""
    callback: Mapping[str, Any] = {}
    """Other parameters of the callback."""
    tokens: Mapping[str, Any] = {}
    """Other members of the token response."""
    redirects: Mapping[str, str] = {}
    """The targets of redirects, by endpoint: `token` or `metadata`."""
    refusals: Mapping[str, str] = {}
    """The OAuth errors of endpoints that refuse every request."""
    short_tokens: int = 0
    """The number of access tokens that expire after `USES` requests; the next is valid for the whole run."""
    scopes: Mapping[str, str] = {}
    """The scopes that methods need: `{"tools/call": "write"}`."""
    scopes_suffice: bool = True
    """Whether a token with such a scope is accepted; if not, every token is refused with 403."""
    client_id: str = ""
    """A client ID that is given to the client in its environment, as ACCORD_CHECK_CLIENT_ID."""
    client_secret: str = ""
    """Its secret, as ACCORD_CHECK_CLIENT_SECRET."""
    successor: AuthorizationPlan | None = None
    """The plan after the first token has expired."""


USES = 3
"""The number of requests for which a short token is valid."""


def metadata_paths(issuer_path: str) -> dict[str, MetadataPlace]:
    """Return the well-known paths of an issuer, in the order of the specification."""
    paths: dict[str, MetadataPlace] = {
        SERVER_METADATA + issuer_path: "oauth",
        OPENID_CONFIGURATION + issuer_path: "oidc",
    }
    if issuer_path:
        paths[issuer_path + OPENID_CONFIGURATION] = "appended"
    return paths


def apply_changes(document: Mapping[str, Any], changes: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return a document with changed members, whose placeholders are replaced."""
    changed = {name: fill(value, texts) for name, value in changes.items()}
    return {name: value for name, value in {**document, **changed}.items() if value is not ABSENT}


def fill(value: Any, texts: Mapping[str, str]) -> Any:
    """Return a value with its placeholders replaced."""
    if isinstance(value, list):
        return [fill(each, texts) for each in value]
    if isinstance(value, str):
        for name, text in texts.items():
            value = value.replace(f"{{{name}}}", text)
    return value
