"""The record of a login: the requests to authorization servers and to resource metadata, and the tokens issued."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from accord.check.clients.http_listener import ClientExchange
from accord.check.probes.message_log import decode_json

RESOURCE, FIRST, SECOND = "MCP server", "authorization server", "other authorization server"
"""The names of the servers in a record."""

_EVIDENCE = 12
_SHOWN = 1_500


class LoginRequest(msgspec.Struct, kw_only=True, eq=False):
    """A request of a login. `endpoint` is `metadata`, `resource`, `registration`, `authorization`, `token` or ""."""

    server: str
    endpoint: str
    parameters: Mapping[str, Any]
    """The query and the form, or the JSON document."""
    repeated: tuple[str, ...] = ()
    """The names of parameters that are there more than once."""
    exchange: ClientExchange

    @property
    def at(self) -> float:
        return self.exchange.at

    def text(self, name: str) -> str:
        """Return a parameter as text, empty if it is absent."""
        value = self.parameters.get(name, "")
        return value if isinstance(value, str) else ""

    @property
    def client_id(self) -> str:
        """The client ID, which may be in the Authorization header."""
        scheme, _, pair = self.exchange.headers.get("authorization", "").partition(" ")
        if "client_id" in self.parameters or scheme.lower() != "basic":
            return self.text("client_id")
        try:
            return base64.b64decode(pair).decode().partition(":")[0]
        except (binascii.Error, UnicodeDecodeError):
            return ""

    def line(self) -> str:
        """Return it as a remark in a transcript."""
        shown = f"# {self.exchange.verb} {self.exchange.target} at the {self.server}"
        body = f", {self.exchange.body.decode(errors='replace')}" if self.exchange.body else ""
        return f"{shown}{body} -> HTTP {self.exchange.status or 'nothing'}"[:_SHOWN]


class IssuedToken(msgspec.Struct, kw_only=True):
    """A token that was issued: `access_token` or `refresh_token`, and by whom."""

    value: str
    kind: str
    server: str
    scopes: frozenset[str]
    resource: str
    at: float
    uses: int | None = None
    """The number of requests for which it is still valid; None for the whole run."""
    is_active: bool = True


class LoginLog:
    """The record of the logins in one run."""

    def __init__(self) -> None:
        self.requests: list[LoginRequest] = []
        self.tokens: dict[str, IssuedToken] = {}
        """All tokens, by value."""
        self.codes: dict[str, LoginRequest] = {}
        """The authorization request of each code."""
        self.clients: dict[str, tuple[str, Mapping[str, Any]]] = {}
        """The server and the metadata of each registered client, by its ID."""
        self.issuers: dict[str, str] = {}
        """The issuer of each server, by its name."""
        self.resource: str = ""
        """The canonical URI of the MCP server."""
        self.challenges: list[ClientExchange] = []
        """The refused requests to the MCP server."""
        self.authorized: list[ClientExchange] = []
        """The requests to the MCP server with a valid token."""

    def at(self, endpoint: str, server: str | None = None) -> list[LoginRequest]:
        """Return the requests to an endpoint, of one server or of both."""
        return [each for each in self.requests if each.endpoint == endpoint and server in (None, each.server)]

    def grants(self, grant_type: str, server: str | None = None) -> list[LoginRequest]:
        """Return the token requests with a grant type."""
        return [each for each in self.at("token", server) if each.text("grant_type") == grant_type]

    def lines(self, about: Iterable[LoginRequest] = ()) -> list[str]:
        """Return requests as lines of a transcript: the given ones, or the last."""
        return [each.line() for each in (list(about) or self.requests)[-_EVIDENCE:]]


def parse_parameters(exchange: ClientExchange) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the parameters of a request, and the names of those that are repeated."""
    if "json" in exchange.headers.get("content-type", ""):
        document = decode_json(exchange.body)
        return (document if isinstance(document, dict) else {}), ()
    texts = (exchange.target.partition("?")[2], exchange.body.decode("utf-8", "replace"))
    pairs = [pair for text in texts for pair in parse_qsl(text, keep_blank_values=True)]
    names = [name for name, _ in pairs]
    return dict(pairs), tuple(sorted({name for name in names if names.count(name) > 1}))
