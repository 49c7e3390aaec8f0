"""Metadata of an authorization server: where it is, what it must have, and that its URLs are safe."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

from accord.auth.urls import is_loopback
from accord.check.authorization_servers.probe import AuthServerProbe
from accord.check.engine.rule import HTTP, NotApplicable, RuleFamily, rule

_RFC8414 = "https://www.rfc-editor.org/rfc/rfc8414"
_OVERVIEW = ("basic/authorization#overview", "basic/authorization/index#overview")
_COMMUNICATION = (
    "basic/authorization#communication-security",
    "basic/authorization/security-considerations#communication-security",
)
_CODE_PROTECTION = (
    "basic/authorization#authorization-code-protection",
    "basic/authorization/security-considerations#authorization-code-protection",
)
_ENDPOINTS = (
    *("authorization_endpoint", "token_endpoint", "registration_endpoint", "revocation_endpoint"),
    *("introspection_endpoint", "device_authorization_endpoint", "jwks_uri"),
)
_COMPARED = ("issuer", "authorization_endpoint", "token_endpoint", "registration_endpoint", "jwks_uri")


auth_server_rule: RuleFamily = partial(rule, role="authorization server", over=HTTP, since="2025-03-26")
"""`rule` for an async function of a probe of an authorization server."""


@auth_server_rule(
    "auth-server/metadata",
    "must",
    case="the well-known URIs",
    at=_OVERVIEW,
    cause="The path of the issuer stands at the wrong place, or the metadata is at a URL of its own.",
)
async def auth_server_metadata(probe: AuthServerProbe) -> None:
    """An authorization server publishes its metadata at one of the well-known URIs, as a JSON object."""
    await probe.discover()
    if not any(answer.document for answer in probe.documents.values()):
        raise probe.violation("there is no metadata at the well-known URIs")


@auth_server_rule(
    "auth-server/content-type",
    "must",
    case="all metadata documents",
    at=(f"{_RFC8414}#section-3.2", *_OVERVIEW),
    cause="The document is served as a file, with the type of the web server.",
)
async def auth_server_content_type(probe: AuthServerProbe) -> None:
    """Metadata has the media type application/json."""
    await probe.discover()
    for url, answer in probe.documents.items():
        if answer.document and not answer.is_json:
            raise probe.violation(f"{url} has the type {answer.headers.get('content-type')!r}")


@auth_server_rule(
    "auth-server/issuer",
    "must",
    case="all metadata documents",
    at=(f"{_RFC8414}#section-3.3", *_OVERVIEW),
    cause="The issuer has a slash more, another host, or http behind a proxy: clients refuse it.",
)
async def auth_server_issuer(probe: AuthServerProbe) -> None:
    """The issuer of the metadata is the one of its URL, byte for byte."""
    await probe.discover()
    for url, answer in probe.documents.items():
        if answer.document and answer.document.get("issuer") != probe.issuer:
            raise probe.violation(f"{url} has the issuer {answer.document.get('issuer')!r}, expected {probe.issuer!r}")


@auth_server_rule(
    "auth-server/members",
    "must",
    case="the metadata",
    at=(f"{_RFC8414}#section-2", *_OVERVIEW),
    cause="Members are left out because clients know them.",
)
async def auth_server_members(probe: AuthServerProbe) -> None:
    """Metadata has authorization_endpoint, token_endpoint, and response_types_supported with code."""
    metadata = probe.metadata
    for name in ("authorization_endpoint", "token_endpoint"):
        if not isinstance(metadata.get(name), str) or not metadata[name]:
            raise probe.violation(f"{name} is {metadata.get(name)!r}")
    types = metadata.get("response_types_supported")
    if not isinstance(types, list) or "code" not in types:
        raise probe.violation(f"response_types_supported is {types!r}")


@auth_server_rule(
    "auth-server/https",
    "must",
    case="all endpoints",
    at=_COMMUNICATION,
    cause="The server stands behind a proxy, and does not know its public scheme.",
)
async def auth_server_https(probe: AuthServerProbe) -> None:
    """All endpoints are https; on this machine, they may be http."""
    for name, value in probe.metadata.items():
        if name not in _ENDPOINTS or value is None:
            continue
        parts = urlsplit(value) if isinstance(value, str) else None
        is_safe = parts is not None and bool(parts.hostname) and not parts.fragment and "@" not in parts.netloc
        local = parts is not None and parts.scheme == "http" and is_loopback(parts.hostname or "")
        if parts is None or not is_safe or not (parts.scheme == "https" or local):
            raise probe.violation(f"{name} is {value!r}")


@auth_server_rule(
    "auth-server/s256",
    "must",
    case="code_challenge_methods_supported",
    at=_CODE_PROTECTION,
    since="2025-11-25",
    cause="PKCE is supported, but not stated: clients refuse the server.",
)
async def auth_server_s256(probe: AuthServerProbe) -> None:
    """Metadata has code_challenge_methods_supported with S256, in each document."""
    await probe.discover()
    for url, answer in probe.documents.items():
        methods = answer.document.get("code_challenge_methods_supported")
        if answer.document and (not isinstance(methods, list) or "S256" not in methods):
            raise probe.violation(f"code_challenge_methods_supported is {methods!r} at {url}")


@auth_server_rule(
    "auth-server/same-documents",
    "should",
    case="metadata at several URIs",
    at=_OVERVIEW,
    cause="The documents are written by two parts of the server.",
)
async def auth_server_same_documents(probe: AuthServerProbe) -> None:
    """The documents of OAuth and of OpenID Connect have the same endpoints."""
    await probe.discover()
    documents = {url: answer.document for url, answer in probe.documents.items() if answer.document}
    if len(documents) < 2:
        raise NotApplicable("there is one metadata document")
    for name in _COMPARED:
        found = {url: document[name] for url, document in documents.items() if name in document}
        if len(set(map(str, found.values()))) > 1:
            raise probe.violation(f"{name} differs: {found}")


@auth_server_rule(
    "auth-server/metadata-documents",
    "should",
    case="client_id_metadata_document_supported",
    at=(
        "basic/authorization#client-id-metadata-documents",
        "basic/authorization/client-registration#client-id-metadata-documents",
    ),
    since="2025-11-25",
    cause="Clients have to be registered, by a person or by themselves.",
)
async def auth_server_metadata_documents(probe: AuthServerProbe) -> None:
    """An authorization server supports client ID metadata documents, and states so."""
    if probe.metadata.get("client_id_metadata_document_supported") is not True:
        raise probe.violation("client_id_metadata_document_supported is not true")


@auth_server_rule(
    "auth-server/iss-stated",
    "should",
    case="authorization_response_iss_parameter_supported",
    at="basic/authorization/index#authorization-response-validation",
    since="2026-07-28",
    cause="Responses have no iss: clients cannot tell which server sent them (RFC 9207).",
)
async def auth_server_iss_stated(probe: AuthServerProbe) -> None:
    """An authorization server sends iss in responses, and states so."""
    if probe.metadata.get("authorization_response_iss_parameter_supported") is not True:
        raise probe.violation("authorization_response_iss_parameter_supported is not true")


@auth_server_rule(
    "auth-server/registration-offered",
    "should",
    case="registration_endpoint",
    at="basic/authorization#dynamic-client-registration",
    until="2025-11-25",
    cause="Clients have to be registered by a person.",
)
async def auth_server_registration_offered(probe: AuthServerProbe) -> None:
    """An authorization server registers clients by itself."""
    if not isinstance(probe.metadata.get("registration_endpoint"), str):
        raise probe.violation("there is no registration_endpoint")


@auth_server_rule(
    "auth-server/client-credentials",
    "must",
    case="a server with the grant type client_credentials",
    at="https://github.com/modelcontextprotocol/ext-auth",
    since="2026-07-28",
    cause="The server leaves the ways of client authentication to its documentation.",
)
async def auth_server_client_credentials(probe: AuthServerProbe) -> None:
    """A server with client credentials states private_key_jwt, with its algorithms, or client_secret_basic."""
    metadata = probe.metadata
    grants = metadata.get("grant_types_supported")
    if not isinstance(grants, list) or "client_credentials" not in grants:
        raise NotApplicable("the server states no client credentials")
    methods = metadata.get("token_endpoint_auth_methods_supported")
    stated = {"private_key_jwt", "client_secret_basic"} & set(methods if isinstance(methods, list) else ())
    if not stated:
        raise probe.violation(f"token_endpoint_auth_methods_supported is {methods!r}")
    if "private_key_jwt" in stated and not metadata.get("token_endpoint_auth_signing_alg_values_supported"):
        raise probe.violation("token_endpoint_auth_signing_alg_values_supported is missing")
