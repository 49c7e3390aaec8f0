"""The endpoints of `AuthServer`, without HTTP: each receives a recorded request and returns an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias
from urllib.parse import urlencode, urlsplit

import msgspec

from accord.auth.challenge import format_challenge
from accord.auth.urls import OPENID_CONFIGURATION, RESOURCE_METADATA, SERVER_METADATA, is_loopback
from accord.testing.auth_server.grants import GRANTS, answer_token_request
from accord.testing.auth_server.issuer import TokenIssuer
from accord.testing.auth_server.records import (
    Authorization,
    AuthServerClient,
    DeviceCode,
    RecordedRequest,
    Refusal,
    Reply,
)

_CODE_METHODS = ["client_secret_basic", "client_secret_post", "none", "private_key_jwt"]
_DEVICE_SECONDS = 600


class AuthorizationAttempt(msgspec.Struct, frozen=True):
    """The question to the user: a client requests scopes for a resource."""

    client_id: str
    scopes: list[str]
    resource: str | None
    redirect_uri: str


UserHook = Callable[[AuthorizationAttempt], str | None]
"""Returns the name of the user who consents, or None if the user refuses."""


DPoPSupport: TypeAlias = Literal["supported", "required"] | None
"""Whether the resource states that it accepts proofs of possession, and demands them."""


class Endpoints:
    """The endpoints of one issuer, and of one resource that it protects."""

    def __init__(self, tokens: TokenIssuer, scopes: Sequence[str], user: UserHook) -> None:
        self.tokens = tokens
        self.scopes: list[str] = list(scopes)
        self.user = user
        self.dpop: DPoPSupport = None
        self.origin: str = ""
        self._by_path: dict[str, tuple[str, Callable[[RecordedRequest], Reply]]] = {}

    def locate(self, origin: str, path: str) -> None:
        """Set the origin, and the path of the issuer."""
        self.origin = origin
        self.tokens.issuer = origin + path
        self.tokens.token_endpoint = f"{origin}{path}/token"
        self._by_path = {
            f"{RESOURCE_METADATA}/mcp": ("resource", self._resource_metadata),
            RESOURCE_METADATA: ("resource/root", self._resource_metadata),
            "/mcp": ("challenge", self._resource),
            SERVER_METADATA + path: ("metadata/oauth", self._metadata),
            path + OPENID_CONFIGURATION: ("metadata/appended", self._metadata),
            OPENID_CONFIGURATION + path: ("metadata/oidc", self._metadata),
            f"{path}/authorize": ("authorization", self._authorize),
            f"{path}/token": (
                "token",
                lambda request: Reply(document=answer_token_request(self.tokens, request)),
            ),
            f"{path}/register": ("registration", self._register),
            f"{path}/revoke": ("revocation", self._revoke),
            f"{path}/introspect": ("introspection", self._introspect),
            f"{path}/device": ("device", self._authorize_device),
            f"{path}/activate": ("activation", self._activate),
            f"{path}/jwks": ("jwks", lambda request: Reply(document=self.tokens.key.public_keys())),
        }

    @property
    def resource(self) -> str:
        return f"{self.origin}/mcp"

    def endpoint(self, path: str) -> str:
        """Return the name of the endpoint at a path, or ""."""
        return self._by_path.get(path, ("",))[0]

    def answer(self, request: RecordedRequest) -> Reply:
        """Return the answer to a request."""
        if not request.endpoint:
            return Reply(404, {"error": "not_found"})
        try:
            return self._by_path[request.path][1](request)
        except Refusal as exc:
            return exc.answer

    # --- metadata -------------------------------------------------------------------------------------------------

    def _resource_metadata(self, request: RecordedRequest) -> Reply:
        document: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": [self.tokens.issuer],
            "scopes_supported": [scope for scope in self.scopes if scope not in ("openid", "offline_access")],
            "bearer_methods_supported": ["header"],
        }
        if self.dpop is not None:
            document["dpop_signing_alg_values_supported"] = ["ES256"]
            document["dpop_bound_access_tokens_required"] = self.dpop == "required"
        return Reply(document=document)

    def _metadata(self, request: RecordedRequest) -> Reply:
        issuer = self.tokens.issuer
        document = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/register",
            "revocation_endpoint": f"{issuer}/revoke",
            "introspection_endpoint": f"{issuer}/introspect",
            "device_authorization_endpoint": f"{issuer}/device",
            "jwks_uri": f"{issuer}/jwks",
            "scopes_supported": self.scopes,
            "response_types_supported": ["code"],
            "grant_types_supported": list(GRANTS),
            "token_endpoint_auth_methods_supported": _CODE_METHODS,
            "token_endpoint_auth_signing_alg_values_supported": ["ES256", "RS256"],
            "code_challenge_methods_supported": ["S256"],
            "dpop_signing_alg_values_supported": ["ES256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": bool(self.tokens.documents),
            "authorization_grant_profiles_supported": ["urn:ietf:params:oauth:grant-profile:id-jag"],
        }
        if request.endpoint != "metadata/oauth":
            document |= {"subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["ES256"]}
        return Reply(document=document)

    # --- the protected resource -----------------------------------------------------------------------------------

    def _resource(self, request: RecordedRequest) -> Reply:
        """Reply a request with a token for this resource, and challenge any other."""
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        token = self.tokens.tokens.get(value)
        parameters = {"resource_metadata": f"{self.origin}{RESOURCE_METADATA}/mcp"}
        try:
            key = self.tokens.proven_key(request, self.resource)
        except Refusal as exc:
            error = str((exc.answer.document or {})["error"])
            challenge = format_challenge("DPoP", {"error": error, **parameters})
            return Reply(401, {"error": error}, {"www-authenticate": challenge, **exc.answer.headers})
        if (
            token is not None
            and token.kind == "access_token"
            and token.is_active(self.tokens.clock())
            and token.authorization.audience == self.resource
            and token.thumbprint == key
            and scheme.lower() == ("bearer" if key is None else "dpop")
            and (key is not None or self.dpop != "required")
        ):
            return Reply(document={"subject": token.authorization.subject, "scopes": token.scopes})
        if value:
            parameters |= {"error": "invalid_token"}
        demanded = "DPoP" if self.dpop == "required" else "Bearer"
        return Reply(401, {"error": "unauthorized"}, {"www-authenticate": format_challenge(demanded, parameters)})

    # --- authorization --------------------------------------------------------------------------------------------

    def _register(self, request: RecordedRequest) -> Reply:
        """Register a client (RFC 7591, 3)."""
        uris = request.parameters.get("redirect_uris")
        if not isinstance(uris, list) or not all(isinstance(uri, str) and _is_allowed(uri) for uri in uris):
            raise Refusal("invalid_redirect_uri")
        method = request.parameters.get("token_endpoint_auth_method", "client_secret_basic")
        if method not in _CODE_METHODS:
            raise Refusal("invalid_client_metadata", f"{method} is not supported")
        client = AuthServerClient(client_id=f"client-{len(self.tokens.clients) + 1}", redirect_uris=uris)
        client.keys = request.parameters.get("jwks") if method == "private_key_jwt" else None
        self.tokens.clients[client.client_id] = client
        document = {
            **request.parameters,
            "client_id": client.client_id,
            "client_id_issued_at": int(self.tokens.clock()),
            "token_endpoint_auth_method": method,
        }
        if method.startswith("client_secret"):
            client.secret = self.tokens.secret()
            document |= {"client_secret": client.secret, "client_secret_expires_at": 0}
        return Reply(201, document)

    def _authorize(self, request: RecordedRequest) -> Reply:
        """Redirect the browser with a code, or with an error."""
        asked = {name: str(value) for name, value in request.parameters.items()}
        client = self.tokens.find_client(asked.get("client_id", ""))
        redirect_uri = asked.get("redirect_uri", "")
        if not any(_matches(uri, redirect_uri) for uri in client.redirect_uris):
            raise Refusal("invalid_request", "redirect_uri is not registered")
        parameters = {"state": asked["state"]} if "state" in asked else {}
        parameters["iss"] = self.tokens.issuer
        try:
            parameters["code"] = self._code(client, redirect_uri, asked)
        except Refusal as exc:
            parameters |= exc.answer.document or {}
        return Reply(302, parameters, {"location": redirect_uri})

    def _code(self, client: AuthServerClient, redirect_uri: str, asked: dict[str, str]) -> str:
        """Return a code, if the user consents. Raises `Refusal`."""
        if asked.get("response_type") != "code":
            raise Refusal("unsupported_response_type")
        if asked.get("code_challenge_method") != "S256" or len(asked.get("code_challenge", "")) != 43:
            raise Refusal("invalid_request", "code_challenge with S256 is required")
        scopes = self._scopes(asked)
        attempt = AuthorizationAttempt(client.client_id, scopes, asked.get("resource"), redirect_uri)
        subject = self.user(attempt)
        if subject is None:
            raise Refusal("access_denied", "the user refuses")
        code = self.tokens.secret()
        self.tokens.codes[code] = Authorization(
            client.client_id, subject, scopes, asked.get("resource"), redirect_uri, asked["code_challenge"]
        )
        return code

    def _scopes(self, asked: dict[str, str]) -> list[str]:
        scopes = asked.get("scope", "").split()
        if not set(scopes) <= set(self.scopes):
            raise Refusal("invalid_scope", f"{sorted(set(scopes) - set(self.scopes))}")
        return scopes

    def _authorize_device(self, request: RecordedRequest) -> Reply:
        """Begin a device authorization (RFC 8628, 3.1)."""
        client = self.tokens.authenticate(request)
        asked = {name: str(value) for name, value in request.parameters.items()}
        authorization = Authorization(client.client_id, "", self._scopes(asked), asked.get("resource"))
        code, user_code = self.tokens.secret(), f"CODE-{len(self.tokens.devices) + 1:04}"
        self.tokens.devices[code] = DeviceCode(user_code, authorization, self.tokens.clock() + _DEVICE_SECONDS)
        page = f"{self.tokens.issuer}/activate"
        return Reply(
            document={
                "device_code": code,
                "user_code": user_code,
                "verification_uri": page,
                "verification_uri_complete": f"{page}?{urlencode({'user_code': user_code})}",
                "expires_in": _DEVICE_SECONDS,
                "interval": 1,
            }
        )

    def _activate(self, request: RecordedRequest) -> Reply:
        """Ask the user about a device, on the page that has its code (RFC 8628, 3.3)."""
        user_code = request.parameters.get("user_code")
        device = next((each for each in self.tokens.devices.values() if each.user_code == user_code), None)
        if device is None:
            raise Refusal("invalid_request", "user_code is unknown: visit the page with the code that the client shows")
        asked = device.authorization
        subject = self.user(AuthorizationAttempt(asked.client_id, asked.scopes, asked.audience, ""))
        device.approved, device.authorization.subject = subject is not None, subject or ""
        return Reply(document={"login": "refused" if subject is None else f"{subject} is logged in on the device"})

    # --- tokens ---------------------------------------------------------------------------------------------------

    def _revoke(self, request: RecordedRequest) -> Reply:
        """Revoke a token, and with a refresh token all of its authorization (RFC 7009, 2.1)."""
        client = self.tokens.authenticate(request)
        token = self.tokens.tokens.get(str(request.parameters.get("token", "")))
        if token is not None and token.authorization.client_id == client.client_id:
            token.expires_at = 0
            token.authorization.revoked |= token.kind == "refresh_token"
        return Reply()

    def _introspect(self, request: RecordedRequest) -> Reply:
        """Describe a token (RFC 7662, 2)."""
        if self.tokens.authenticate(request).is_public:
            raise Refusal("invalid_client", "introspection needs a confidential client", 401)
        token = self.tokens.tokens.get(str(request.parameters.get("token", "")))
        if token is None or not token.is_active(self.tokens.clock()):
            return Reply(document={"active": False})
        document: dict[str, Any] = {
            "active": True,
            "iss": self.tokens.issuer,
            "sub": token.authorization.subject,
            "aud": token.authorization.audience or self.tokens.issuer,
            "client_id": token.authorization.client_id,
            "scope": " ".join(token.scopes),
            "exp": int(token.expires_at),
            "token_type": "Bearer" if token.thumbprint is None else "DPoP",
        }
        if token.thumbprint is not None:
            document["cnf"] = {"jkt": token.thumbprint}
        return Reply(document=document)


def _matches(registered: str, found: str) -> bool:
    """Return whether a redirect URI is a registered one; the port of a loopback address may differ (RFC 8252, 7.3)."""
    host = urlsplit(found).hostname
    same = _without_port(found) == _without_port(registered)
    return found == registered or bool(host and is_loopback(host) and same)


def _without_port(url: str) -> tuple[str | None, ...]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.path, parts.query, parts.username


def _is_allowed(uri: str) -> bool:
    """Return whether a redirect URI may be registered: "All redirect URIs MUST be either `localhost` or use HTTPS"."""
    parts = urlsplit(uri)
    is_local = parts.scheme == "http" and is_loopback(parts.hostname or "")
    return (parts.scheme == "https" or is_local) and not parts.fragment
