"""The authorization of one run: the MCP server demands tokens, and names the authorization servers that issue them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from accord.check.clients.authorization_plan import AuthorizationPlan, apply_changes, fill
from accord.check.clients.http_listener import ClientExchange, HTTPListener, ScriptedResponse
from accord.check.clients.login_log import FIRST, RESOURCE, SECOND, IssuedToken, LoginLog, LoginRequest
from accord.check.clients.run import PATH
from accord.check.clients.scripted_auth_server import ScriptedAuthServer
from accord.check.probes.message_log import MemoryBudget, decode_json, message_objects
from accord.messages.base import JSONObject

_WELL_KNOWN = "/.well-known/"


class AuthorizedServer(Protocol):
    """The MCP server, as its authorization uses it."""

    memory: MemoryBudget
    trap_listener: HTTPListener

    def mark_message(self, message: JSONObject) -> None:
        """Record that the client is active."""

    def mark_intervention(self) -> None:
        """Record the first intervention of the scenario."""


class ScriptedAuthorization:
    """The authorization of one run. `plan` may change during the run."""

    def __init__(self, plan: AuthorizationPlan, server: AuthorizedServer) -> None:
        self.plan: AuthorizationPlan = plan
        self.log: LoginLog = LoginLog()
        self._server = server
        self._origin = ""
        self.first: ScriptedAuthServer = ScriptedAuthServer(FIRST, self, server.memory)
        self.second: ScriptedAuthServer = ScriptedAuthServer(SECOND, self, server.memory, is_good=True)

    async def open(self, origin: str) -> None:
        """Open both authorization servers; `origin` is that of the MCP server."""
        self._origin = origin
        self.log.resource = origin + PATH
        for server in (self.first, self.second):
            await server.listener.open()
            server.origin = server.listener.url
        if self.plan.at_origin:
            self.first.origin = origin
        self.log.issuers = {server.name: server.issuer for server in (self.first, self.second)}

    async def close(self) -> None:
        """Close the authorization servers."""
        await self.first.listener.close()
        await self.second.listener.close()

    def texts(self) -> dict[str, str]:
        """Return the texts of placeholders."""
        trap = self._server.trap_listener
        return {
            "origin": self._origin,
            "issuer": self.first.issuer,
            "other": self.second.issuer,
            "trap": trap.url,
            "unsafe": trap.url.replace("127.0.0.1", "0.0.0.0"),
        }

    def record(self, request: LoginRequest) -> None:
        """Record a request of a login, which shows that the client is active."""
        self.log.requests.append(request)
        self._server.mark_message({})
        self._server.mark_intervention()

    async def answer(self, exchange: ClientExchange, response: ScriptedResponse) -> bool:
        """Answer a request to the MCP server that belongs to a login, or has no valid token; return whether it did."""
        if exchange.path == PATH:
            return await self._refuse(exchange, response)
        if self.plan.at_origin and self.first.endpoint(exchange.path):
            await self.first.answer(exchange, response)
            return True
        if exchange.path not in self.plan.resource_at and not exchange.path.startswith(_WELL_KNOWN):
            return False
        self.record(LoginRequest(server=RESOURCE, endpoint="resource", parameters={}, exchange=exchange))
        if exchange.path not in self.plan.resource_at:
            await response.send(404)
            return True
        document = {
            "resource": self.log.resource,
            "authorization_servers": [self.first.issuer],
            "scopes_supported": ["read", "write"],
            "bearer_methods_supported": ["header"],
        }
        changed = apply_changes(document, self.plan.resource, self.texts())
        await response.send(200, msgspec.json.encode(changed), content_type="application/json")
        return True

    async def _refuse(self, exchange: ClientExchange, response: ScriptedResponse) -> bool:
        """Refuse a request without a token that suffices; return whether it was refused."""
        token = self._token(exchange)
        if token is None:
            error = {"error": "invalid_token"} if "authorization" in exchange.headers else {}
            await self._challenge(exchange, response, 401, **error)
            return True
        needed = self._missing_scope(exchange, token)
        if needed:
            await self._challenge(exchange, response, 403, error="insufficient_scope", scope=needed)
            return True
        self.log.authorized.append(exchange)
        return False

    async def _challenge(
        self, exchange: ClientExchange, response: ScriptedResponse, status: int, **parameters: str
    ) -> None:
        self.log.challenges.append(exchange)
        self._server.mark_message({})
        self._server.mark_intervention()
        text = self.plan.challenge.partition(", scope=")[0] if "scope" in parameters else self.plan.challenge
        for name, value in parameters.items():
            text += f'{"," if "=" in text else ""} {name}="{value}"'
        await response.send(status, www_authenticate=fill(text, self.texts()))

    def _token(self, exchange: ClientExchange) -> IssuedToken | None:
        """Return the valid token of a request; it is used up by one request more."""
        scheme, _, value = exchange.headers.get("authorization", "").partition(" ")
        token = self.log.tokens.get(value.strip())
        if token is None or scheme.lower() != "bearer" or token.kind != "access_token" or not token.is_active:
            return None
        if token.uses is not None:
            token.uses -= 1
            if token.uses < 0:
                token.is_active = False
                self.plan = self.plan.successor or self.plan
                return None
        return token

    def _missing_scope(self, exchange: ClientExchange, token: IssuedToken) -> str:
        """Return the scope that a request needs and its token does not have, or ""."""
        for message in message_objects(decode_json(exchange.body)):
            needed = self.plan.scopes.get(str(message.get("method")), "")
            if needed and (needed not in token.scopes or not self.plan.scopes_suffice):
                return needed
        return ""
