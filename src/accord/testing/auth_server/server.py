"""`AuthServer`: an authorization server for tests of clients and servers, in the event loop of the test.

    async with AuthServer() as login:
        callback_url = login.callback(url)      # what the browser of a user who consents would open
        login.counts["token"], login.requests, login.secrets

It is public: it accepts any redirect URI and any user that a test wants, and so is for tests only.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from accord.limits import Limits
from accord.messages.base import JSONObject
from accord.server.http.serving.address import bind, bound_address, parse_address
from accord.server.http.serving.asgi_server import ASGIServer
from accord.testing.auth_server.endpoints import AuthorizationAttempt, DPoPSupport, Endpoints, UserHook
from accord.testing.auth_server.faults import ABSENT, Effect, select_faults
from accord.testing.auth_server.issuer import TokenIssuer
from accord.testing.auth_server.records import (
    Authorization,
    AuthServerClient,
    RecordedRequest,
    Refusal,
    Reply,
)
from accord.transport.asgi.request import Receive, Scope, Send

_CLOSE_SECONDS = 5.0
_CHUNK = 64 << 10


def _consent(attempt: AuthorizationAttempt) -> str:
    return "alice"


class AuthServer:
    """An authorization server on a free port of loopback, and a resource `/mcp` that it protects.

    It has metadata of both kinds, registration, client ID metadata documents (those of `add_document`), codes with
    PKCE, `iss` in responses, resource indicators, refresh tokens that rotate and reveal reuse, revocation,
    introspection, device codes, client credentials by secret and key, token exchange for ID-JAGs, assertions of trusted
    issuers, and DPoP.

    `faults` are names in `accord.testing.auth_server.faults`. `user` decides about consent; without it, `alice`
    consents. `path` is that of the issuer. `lifetime` is that of access tokens, in seconds, which are JSON Web Tokens
    (these need `accord[auth]`), or opaque if `jwt` is false. `dpop` is whether the resource supports or requires proofs
    of possession, and `dpop_nonce` the nonce that proofs need. `clock` returns seconds since 1970. `port` 0 is a free
    one. Raises `ValueError` for an unknown fault.
    """

    def __init__(
        self,
        *,
        faults: Iterable[str] = (),
        user: UserHook = _consent,
        path: str = "",
        scopes: Sequence[str] = ("read", "write", "openid", "offline_access"),
        lifetime: float = 3600,
        jwt: bool = True,
        dpop: DPoPSupport = None,
        dpop_nonce: str | None = None,
        clock: Callable[[], float] = time.time,
        port: int = 0,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        """Every request, in order."""
        self.counts: Counter[str] = Counter()
        """The number of requests at each endpoint: `token`, `registration`, `metadata/oauth` and so on."""
        self.other: str = "https://other.example"
        """The origin that faults name in place of this one."""
        self._path = path
        self._port = port
        self._tokens = TokenIssuer(clock, lifetime, jwt)
        self._tokens.dpop_nonce = dpop_nonce
        self._endpoints = Endpoints(self._tokens, scopes, user)
        self._endpoints.dpop = dpop
        self._faults = select_faults(faults)
        self._affected: Counter[int] = Counter()
        self._asgi_server: ASGIServer | None = None
        self.locate("http://127.0.0.1")

    def __repr__(self) -> str:
        return f"<AuthServer {self.issuer} {' '.join(self._faults)}".rstrip() + ">"

    # --- serving --------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> AuthServer:
        address = parse_address(f"127.0.0.1:{self._port}")
        sockets = bind(address)
        self.locate(f"http://{bound_address(address, sockets)}")
        self._asgi_server = ASGIServer(self, Limits())
        await self._asgi_server.start(sockets)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asgi_server is not None:
            await self._asgi_server.finish(_CLOSE_SECONDS)

    def locate(self, origin: str) -> None:
        """Set the origin, for a server that is not served here: an ASGI server can serve this object."""
        self._endpoints.locate(origin, self._path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reply one request of an ASGI server."""
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        query = scope["query_string"].decode("latin-1")
        answer, effects = self.answer(scope["method"], scope["path"], query, headers, body)
        await _send(send, answer, effects)

    # --- what a test reads ----------------------------------------------------------------------------------------

    @property
    def issuer(self) -> str:
        """The issuer identifier."""
        return self._tokens.issuer

    @property
    def resource(self) -> str:
        """The URL of the protected resource."""
        return self._endpoints.resource

    @property
    def keys(self) -> JSONObject:
        """The JWK set that verifies tokens of this server."""
        return self._tokens.key.public_keys()

    @property
    def secrets(self) -> set[str]:
        """Every secret that the server issued or received: none may be in a log or an error."""
        return self._tokens.issued.union(*(request.secrets for request in self.requests))

    # --- what a test does -----------------------------------------------------------------------------------------

    def set_faults(self, *names: str) -> None:
        """Replace the faults. Raises `ValueError` for an unknown name."""
        self._faults = select_faults(names)
        self._affected.clear()

    def add_client(
        self,
        client_id: str,
        secret: str | None = None,
        *,
        redirect_uris: Sequence[str] = ("http://127.0.0.1/callback",),
        keys: JSONObject | None = None,
    ) -> None:
        """Add a client: public, with a secret, or with a JWK set for `private_key_jwt`."""
        self._tokens.clients[client_id] = AuthServerClient(
            client_id=client_id, secret=secret, redirect_uris=list(redirect_uris), keys=keys
        )

    def add_document(self, url: str, document: JSONObject) -> None:
        """Publish a client ID metadata document at `url`, as far as this server sees."""
        self._tokens.documents[url] = document

    def trust(self, issuer: AuthServer | str, keys: JSONObject | None = None) -> None:
        """Accept assertions of another issuer: an `AuthServer`, or a URL with its JWK set."""
        if isinstance(issuer, AuthServer):
            self._tokens.trusted[issuer.issuer] = issuer.keys
        else:
            self._tokens.trusted[issuer] = keys or {"keys": []}

    def callback(self, url: str) -> str:
        """Return the callback URL to which the authorization endpoint redirects the browser of the user.

        Raises `ValueError` if it shows an error page.
        """
        parts = urlsplit(url)
        answer, _ = self.answer("GET", parts.path, parts.query, {}, b"")
        if answer.status != 302:
            raise ValueError(f"the authorization endpoint does not redirect: {answer.status} {answer.body!r}")
        return answer.headers["location"]

    def access_token(self, subject: str = "alice", scopes: Sequence[str] = ("read",), **claims: Any) -> str:
        """Return a new access token for the resource. `claims` replace those of a JSON Web Token."""
        authorization = Authorization("test", subject, list(scopes), str(claims.get("aud", self.resource)))
        return self._tokens.access_token(authorization, list(scopes), None, **claims)

    def id_token(self, subject: str, client_id: str) -> str:
        """Return a new ID token for a client."""
        return self._tokens.id_token(subject, client_id)

    def sign(self, claims: JSONObject, type: str = "at+jwt") -> str:
        """Return a token with exactly these claims, signed with the key of this server."""
        return self._tokens.key.sign(claims, type)

    def rotate_key(self) -> None:
        """Replace the key that signs tokens: only the new one is published."""
        self._tokens.rotate_key()

    def expire_access_tokens(self) -> None:
        """Let every access token expire, as far as this server and its resource are asked."""
        for token in self._tokens.tokens.values():
            if token.kind == "access_token":
                token.expires_at = 0

    def revoke_all(self) -> None:
        """Revoke every authorization."""
        for token in self._tokens.tokens.values():
            token.authorization.revoked = True

    def approve_device(self, user_code: str, subject: str | None = "alice") -> None:
        """Let a user approve a device code, or refuse it if `subject` is None. Raises `KeyError`."""
        device = {each.user_code: each for each in self._tokens.devices.values()}[user_code]
        device.approved = subject is not None
        device.authorization.subject = subject or ""

    # --- answers --------------------------------------------------------------------------------------------------

    def answer(
        self, method: str, path: str, query: str, headers: dict[str, str], body: bytes
    ) -> tuple[Reply, list[Effect]]:
        """Return the answer to a request, its document encoded, with the effects of faults on it."""
        endpoint = self._endpoints.endpoint(path)
        try:
            parameters = _parameters(query, headers, body)
            refused = None
        except Refusal as exc:
            parameters, refused = {}, exc.answer
        request = RecordedRequest(endpoint, method, path, headers, parameters)
        self.requests.append(request)
        self.counts[endpoint] += 1
        effects = self._effects(endpoint, parameters.get("grant_type"))
        is_processed = not any(effect.replaces_response for effect in effects)
        answer = refused or (self._endpoints.answer(request) if is_processed else Reply())
        if endpoint == "authorization" and "location" in answer.headers:
            effects += self._effects("callback", None)
        texts = {name: str(value) for name, value in parameters.items()}
        texts |= {"issuer": self.issuer, "origin": self._endpoints.origin, "other": self.other}
        for effect in effects:
            _apply(effect, answer, texts)
        _encode(answer, "".join(_filled(effect.append, texts) for effect in effects))
        for effect in effects:
            if effect.body is not None:
                body_text = _filled(effect.body, texts)
                answer.body = body_text if isinstance(body_text, bytes) else body_text.encode()
        return answer, effects

    def _effects(self, endpoint: str, grant: str | None) -> list[Effect]:
        """Return the effects of faults on a response."""
        found = []
        for effect in (effect for fault in self._faults.values() for effect in fault.effects):
            if effect.affects(endpoint, grant) and (effect.times is None or self._affected[id(effect)] < effect.times):
                self._affected[id(effect)] += 1
                found.append(effect)
        return found


def _parameters(query: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
    """Return the parameters of a request. Raises `Refusal` for one that is there twice."""
    if "json" in headers.get("content-type", ""):
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError as exc:
            raise Refusal("invalid_client_metadata", str(exc)) from exc
    form = body.decode("latin-1") if "form" in headers.get("content-type", "") else ""
    pairs = parse_qsl("&".join(filter(None, (query, form))), keep_blank_values=True)
    if len(dict(pairs)) < len(pairs):
        raise Refusal("invalid_request", "a parameter is there twice")
    return dict(pairs)


def _apply(effect: Effect, answer: Reply, texts: dict[str, str]) -> None:
    if effect.status is not None:
        answer.status = effect.status
    if answer.document is not None and effect.change and answer.status < 400:
        changed = {name: _filled(value, texts) for name, value in effect.change.items()}
        merged = answer.document | changed
        answer.document = {name: value for name, value in merged.items() if value is not ABSENT}
    for name, value in effect.headers.items():
        answer.headers[name] = _filled(value, texts)


def _filled(value: Any, texts: dict[str, str]) -> Any:
    """Return a value of a fault with its placeholders replaced."""
    if isinstance(value, list):
        return [_filled(each, texts) for each in value]
    if isinstance(value, str) and "{" in value:
        for name, text in texts.items():
            value = value.replace(f"{{{name}}}", text)
    return value


def _encode(answer: Reply, append: str) -> None:
    """Put the document of an answer into its body, or into the URL of a redirect to a client."""
    if answer.document is None:
        return
    if answer.status == 302 and "location" in answer.headers:
        target = answer.headers["location"]
        separator = "&" if urlsplit(target).query else "?"
        query = urlencode({name: value for name, value in answer.document.items() if value is not None})
        answer.headers["location"] = f"{target}{separator}{query}{append}"
    else:
        answer.headers.setdefault("content-type", "application/json")
        answer.headers.setdefault("cache-control", "no-store")
        answer.body = msgspec.json.encode(answer.document)


async def _send(send: Send, answer: Reply, effects: list[Effect]) -> None:
    """Send an answer with ASGI: late, with padding, or only a part of it, as effects say."""
    await asyncio.sleep(max((effect.delay for effect in effects), default=0))
    padding = sum(effect.padding for effect in effects)
    broken = any(effect.broken for effect in effects)
    length = len(answer.body) + padding + broken
    headers = {"content-length": str(length), **{name: value for name, value in answer.headers.items() if value}}
    encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": answer.body, "more_body": bool(padding or broken)})
    while padding > 0:
        part = min(padding, _CHUNK)
        padding -= part
        await send({"type": "http.response.body", "body": b" " * part, "more_body": bool(padding or broken)})
