"""A scripted authorization server: it lets every user in at once, and differs from a good one as its plan says."""

from __future__ import annotations

import secrets
import time
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from accord.auth.code_grant import code_challenge
from accord.check.clients.authorization_plan import USES, AuthorizationPlan, apply_changes, fill, metadata_paths
from accord.check.clients.http_listener import ClientExchange, HTTPListener, ScriptedResponse
from accord.check.clients.login_log import IssuedToken, LoginLog, LoginRequest, parse_parameters
from accord.check.probes.message_log import MemoryBudget
from accord.messages.base import JSONObject

_JSON = "application/json"
_ENDPOINTS = {"/authorize": "authorization", "/token": "token", "/register": "registration"}
_LIFETIME = 3_600


class AuthorizationState(Protocol):
    """The state that the authorization servers of a run share."""

    log: LoginLog
    plan: AuthorizationPlan

    def texts(self) -> dict[str, str]:
        """Return the texts of placeholders."""

    def record(self, request: LoginRequest) -> None:
        """Record a request."""


class ScriptedAuthServer:
    """One authorization server. `plan` is that of the state, or with `is_good` that of a good server."""

    def __init__(self, name: str, state: AuthorizationState, memory: MemoryBudget, *, is_good: bool = False) -> None:
        self.name: str = name
        self._state = state
        self._plan = AuthorizationPlan() if is_good else None
        self.listener: HTTPListener = HTTPListener(self.answer, memory)
        self.origin: str = ""

    @property
    def plan(self) -> AuthorizationPlan:
        """The difference between this server and a good one."""
        return self._plan or self._state.plan

    @property
    def issuer(self) -> str:
        """The issuer identifier."""
        return self.origin + self.plan.issuer_path

    def endpoint(self, path: str) -> str:
        """Return the name of the endpoint at a path, or ""."""
        if path in metadata_paths(self.plan.issuer_path):
            return "metadata"
        return _ENDPOINTS.get(path.removeprefix(self.plan.issuer_path), "")

    async def answer(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        """Answer a request, and record it."""
        parameters, repeated = parse_parameters(exchange)
        endpoint = self.endpoint(exchange.path)
        request = LoginRequest(
            server=self.name, endpoint=endpoint, parameters=parameters, repeated=repeated, exchange=exchange
        )
        self._state.record(request)
        if endpoint in self.plan.redirects:
            target = fill(self.plan.redirects[endpoint], self._state.texts())
            await response.send(302 if exchange.verb == "GET" else 307, location=target)
        elif endpoint in self.plan.refusals:
            await _send_error(response, self.plan.refusals[endpoint])
        elif endpoint == "metadata":
            await self._send_metadata(exchange, response)
        elif endpoint == "authorization" and exchange.verb in ("GET", "POST"):
            await self._authorize(request, response)
        elif endpoint == "token" and exchange.verb == "POST":
            await self._answer_token_request(request, response)
        elif endpoint == "registration" and exchange.verb == "POST":
            await self._register(request, response)
        else:
            await response.send(404 if not endpoint else 405)

    async def _send_metadata(self, exchange: ClientExchange, response: ScriptedResponse) -> None:
        place = metadata_paths(self.plan.issuer_path)[exchange.path]
        if place not in self.plan.metadata_at:
            await _send_error(response, "not_found", 404)
            return
        issuer = self.issuer
        document: JSONObject = {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/authorize",
            "token_endpoint": f"{issuer}/token",
            "registration_endpoint": f"{issuer}/register",
            "scopes_supported": ["read", "write", "admin", "offline_access"],
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        if place != "oauth":
            document |= {"subject_types_supported": ["public"], "id_token_signing_alg_values_supported": ["RS256"]}
            document["jwks_uri"] = f"{issuer}/jwks"
        await _send_json(response, apply_changes(document, self.plan.metadata, self._state.texts()))

    async def _register(self, request: LoginRequest, response: ScriptedResponse) -> None:
        """Register a client (RFC 7591, 3)."""
        client_id = f"client-{secrets.token_hex(6)}"
        self._state.log.clients[client_id] = (self.name, request.parameters)
        method = request.parameters.get("token_endpoint_auth_method", "client_secret_basic")
        document = {**request.parameters, "client_id": client_id, "token_endpoint_auth_method": method}
        if method != "none":
            document |= {"client_secret": secrets.token_hex(16), "client_secret_expires_at": 0}
        await _send_json(response, document, 201)

    async def _authorize(self, request: LoginRequest, response: ScriptedResponse) -> None:
        """Redirect the browser with a code, as for a user who consents."""
        target = request.text("redirect_uri")
        if not urlsplit(target).scheme:
            await _send_error(response, "invalid_request")
            return
        code = secrets.token_urlsafe(16)
        self._state.log.codes[code] = request
        parameters = {"code": code, "iss": self.issuer}
        if "state" in request.parameters:
            parameters["state"] = request.text("state")
        query = urlencode(apply_changes(parameters, self.plan.callback, self._state.texts()))
        await response.send(302, location=f"{target}{'&' if urlsplit(target).query else '?'}{query}")

    async def _answer_token_request(self, request: LoginRequest, response: ScriptedResponse) -> None:
        log = self._state.log
        if request.text("grant_type") == "refresh_token":
            token = log.tokens.get(request.text("refresh_token"))
            if token is None or not token.is_active or token.server != self.name:
                await _send_error(response, "invalid_grant")
                return
            token.is_active = False
            scopes, resource = token.scopes, token.resource
        elif request.text("grant_type") == "client_credentials":
            scopes, resource = frozenset(request.text("scope").split()), request.text("resource")
        else:
            begun = log.codes.get(request.text("code"))
            if begun is None or not _is_valid(request, begun):
                await _send_error(response, "invalid_grant")
                return
            scopes, resource = frozenset(begun.text("scope").split()), begun.text("resource")
        document = self._issue(scopes, resource)
        await _send_json(response, apply_changes(document, self.plan.tokens, self._state.texts()))

    def _issue(self, scopes: frozenset[str], resource: str) -> JSONObject:
        log = self._state.log
        issued = sum(each.kind == "access_token" for each in log.tokens.values())
        document: JSONObject = {"token_type": "Bearer", "expires_in": _LIFETIME, "scope": " ".join(sorted(scopes))}
        for kind in ("access_token", "refresh_token"):
            value = document[kind] = f"{kind}-{secrets.token_hex(16)}"
            log.tokens[value] = IssuedToken(
                value=value, kind=kind, server=self.name, scopes=scopes, resource=resource, at=time.monotonic()
            )
        if issued < self.plan.short_tokens:
            log.tokens[document["access_token"]].uses = USES
        return document


def _is_valid(request: LoginRequest, begun: LoginRequest) -> bool:
    """Return whether a token request has the verifier of its authorization request, and is the first with its code."""
    challenge = begun.text("code_challenge")
    if begun.text("code_challenge_method") == "S256":
        return code_challenge(request.text("code_verifier")) == challenge
    return request.text("code_verifier") == challenge


async def _send_json(response: ScriptedResponse, document: Any, status: int = 200) -> None:
    await response.send(status, msgspec.json.encode(document), content_type=_JSON, cache_control="no-store")


async def _send_error(response: ScriptedResponse, error: str, status: int = 400) -> None:
    await _send_json(response, {"error": error, "error_description": f"the checker answers {error}"}, status)
