"""The steps of a login, and the sentences of the specification that each obeys, with their sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from accord.auth import device_grant
from accord.auth.discovery import RESOURCE_STEP, SERVER_STEP
from accord.auth.registration import STEP as CLIENT_STEP
from accord.auth.tokens import REFRESH_STEP

CHALLENGE: Final = "challenge"
AUTHORIZATION_REQUEST: Final = "authorization request"
CALLBACK: Final = "callback"
DEVICE_AUTHORIZATION: Final = device_grant.STEP
DEVICE_LOGIN: Final = device_grant.POLL_STEP
TOKEN_REQUEST: Final = "token request"
AUTHORIZED_REQUEST: Final = "authorized MCP request"
REVOCATION: Final = "token revocation"

STEPS = (
    CHALLENGE,
    RESOURCE_STEP,
    SERVER_STEP,
    CLIENT_STEP,
    AUTHORIZATION_REQUEST,
    CALLBACK,
    TOKEN_REQUEST,
    AUTHORIZED_REQUEST,
)
"""The steps of a login in the browser, in order."""

GrantName: TypeAlias = Literal["code", "device", "program"]
"""How the client gets its tokens: by a login in the browser, by one on another device, or without a user."""

GRANT_STEPS: Mapping[GrantName, tuple[str, ...]] = {
    "code": STEPS,
    "device": (*STEPS[:4], DEVICE_AUTHORIZATION, DEVICE_LOGIN, AUTHORIZED_REQUEST),
    "program": (*STEPS[:3], TOKEN_REQUEST, AUTHORIZED_REQUEST),
}
"""The steps of each grant, in order."""

ACTIONS = (REFRESH_STEP, REVOCATION)
"""What the user can do with tokens; it leaves evidence, as the steps do."""

_SITE = "https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization"
_RFC = "https://www.rfc-editor.org/rfc"


class SpecificationSentence(msgspec.Struct, frozen=True):
    """A sentence, word by word, and where it stands."""

    text: str
    source: str
    url: str


def _mcp(page: str, section: str, text: str) -> SpecificationSentence:
    anchor = section.lower().replace(" ", "-")
    return SpecificationSentence(text, f"MCP 2026-07-28, {section}", f"{_SITE}{page}#{anchor}")


_DISCOVERY = "/authorization-server-discovery"
_REGISTRATION = "/client-registration"
_SECURITY = "/security-considerations"

SENTENCES: dict[str, tuple[SpecificationSentence, ...]] = {
    CHALLENGE: (
        _mcp(
            _DISCOVERY,
            "Protected Resource Metadata Discovery Requirements",
            "MCP clients MUST be able to parse `WWW-Authenticate` headers and respond appropriately to `HTTP 401 "
            "Unauthorized` responses from the MCP server.",
        ),
        _mcp(
            "",
            "Scope Selection Strategy",
            "MCP servers SHOULD include a `scope` parameter in the `WWW-Authenticate` header as defined in RFC 6750 "
            "Section 3 to indicate the scopes required for accessing the resource.",
        ),
    ),
    RESOURCE_STEP: (
        SpecificationSentence(
            "The `resource` value returned MUST be identical to the protected resource's resource identifier value "
            "into which the well-known URI path suffix was inserted",
            "RFC 9728, 3.3",
            f"{_RFC}/rfc9728#section-3.3",
        ),
        _mcp(
            _DISCOVERY,
            "Authorization Server Location",
            "The Protected Resource Metadata document returned by the MCP server MUST include the "
            "`authorization_servers` field containing at least one authorization server.",
        ),
    ),
    SERVER_STEP: (
        _mcp(
            _DISCOVERY,
            "Authorization Server Metadata Discovery",
            "the `issuer` value in the document MUST be identical to the issuer identifier used to construct the "
            "well-known URL. If they differ, the client MUST NOT use the metadata.",
        ),
        _mcp(
            _SECURITY,
            "Communication Security",
            "All authorization server endpoints MUST be served over HTTPS.",
        ),
    ),
    CLIENT_STEP: (
        _mcp(
            "",
            "Client Registration",
            "Before initiating the authorization flow, MCP clients MUST obtain a client ID through one of three "
            "registration mechanisms: Client ID Metadata Documents, pre-registration, or Dynamic Client Registration",
        ),
        _mcp(
            _REGISTRATION,
            "Authorization Server Binding",
            "When the authorization server changes (detected via updated protected resource metadata), clients MUST "
            "NOT reuse client credentials from a different authorization server and MUST re-register with the new "
            "authorization server.",
        ),
    ),
    AUTHORIZATION_REQUEST: (
        _mcp(
            _SECURITY,
            "Authorization Code Protection",
            "OAuth 2.0 Authorization Server Metadata: If `code_challenge_methods_supported` is absent, the "
            "authorization server does not support PKCE and MCP clients MUST refuse to proceed.",
        ),
        _mcp(
            _SECURITY,
            "Token Audience Binding and Validation",
            "MCP clients MUST include the `resource` parameter in authorization and token requests as specified in "
            "the Resource Parameter Implementation section",
        ),
    ),
    CALLBACK: (
        _mcp(
            _SECURITY,
            "Open Redirection",
            "MCP clients SHOULD use and verify state parameters in the authorization code flow and discard any "
            "results that do not include or have a mismatch with the original state.",
        ),
        _mcp(
            "",
            "Authorization Response Validation",
            "On receiving the authorization response, MCP clients MUST apply the validation in RFC9207 Section 2.4 "
            "before transmitting the authorization code to any token endpoint",
        ),
    ),
    DEVICE_AUTHORIZATION: (
        SpecificationSentence(
            "If no value is provided, clients MUST use 5 as the default",
            "RFC 8628, 3.2",
            f"{_RFC}/rfc8628#section-3.2",
        ),
    ),
    DEVICE_LOGIN: (
        SpecificationSentence(
            "the interval MUST be increased by 5 seconds for this and all subsequent requests",
            "RFC 8628, 3.5",
            f"{_RFC}/rfc8628#section-3.5",
        ),
    ),
    TOKEN_REQUEST: (
        SpecificationSentence(
            "The client MUST NOT use an access token if it does not understand the token type",
            "OAuth 2.1, 1.4",
            "https://datatracker.ietf.org/doc/html/draft-ietf-oauth-v2-1#section-1.4",
        ),
        _mcp("", "Refresh Tokens", "MUST NOT assume refresh tokens will be issued; the AS retains discretion"),
    ),
    AUTHORIZED_REQUEST: (
        _mcp(
            "",
            "Token Handling",
            "MCP servers MUST validate that access tokens were issued specifically for them as the intended "
            "audience, according to RFC 8707 Section 2.",
        ),
        _mcp("", "Token Handling", "Invalid or expired tokens MUST receive a HTTP 401 response."),
    ),
    REFRESH_STEP: (
        _mcp(
            _SECURITY,
            "Token Theft",
            "For public clients, authorization servers MUST rotate refresh tokens as described in OAuth 2.1 Section "
            '4.3.1 "Token Endpoint Extension".',
        ),
    ),
    REVOCATION: (
        SpecificationSentence(
            "The authorization server responds with HTTP status code 200 if the token has been revoked successfully "
            "or if the client submitted an invalid token.",
            "RFC 7009, 2.2",
            f"{_RFC}/rfc7009#section-2.2",
        ),
    ),
}
"""By step, those that its comparisons check first."""
