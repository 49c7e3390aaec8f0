"""The HTTP endpoints of the proxy. They read requests and write responses; `LoginFlow` and `TokenService` decide.

    /.well-known/oauth-authorization-server    metadata (RFC 8414); as openid-configuration, too, where clients look
                                               for it if the issuer has a path
    /register                                  RFC 7591
    /authorize, /consent, /callback            pages and redirects of the user's browser
    /token, /revoke                            OAuth 2.1, 3.2; RFC 7009

Web pages may use all but the browser's endpoints: these have cookies, and so check where a request comes from.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import msgspec

from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.urls import OPENID_CONFIGURATION, SERVER_METADATA, origin_of
from accord.errors import DeclarationError
from accord.limits import HTTPLimits, Limits
from accord.server.auth.proxy.clients import AUTH_METHODS, GRANT_TYPES
from accord.server.auth.proxy.consent_page import PAGE_HEADERS, consent_page, error_page
from accord.server.auth.proxy.database import digest_of
from accord.server.auth.proxy.endpoint_error import EndpointError
from accord.server.auth.proxy.login_flow import CALLBACK_PATH, LoginFlow, Redirection
from accord.server.auth.proxy.settings import ProviderSettings
from accord.server.auth.proxy.token_service import TokenService
from accord.server.auth.resource_location import ResourceLocation
from accord.server.http.quotas import BodyBudget, BodyCharge, account_of, network_of
from accord.transport.asgi.request import ASGIRequest, RequestRejected, send_json, send_text

BODY_BYTES = 64 << 10
"""Limit of a registration."""
FORM_BYTES = 16 << 10
"""Limit of a form, and of a query."""
_PARAMETERS = 50
_MALFORMED = re.compile(rb"%(?![0-9A-Fa-f]{2})").search
_LIMITS = Limits(http=HTTPLimits(body_bytes=BODY_BYTES, bodies_bytes=64 << 20, bodies_bytes_per_address=8 << 20))
_COOKIE_SECONDS = 600

_NO_STORE = ((b"cache-control", b"no-store"), (b"pragma", b"no-cache"))
_ANY_PAGE = ((b"access-control-allow-origin", b"*"),)
_PREFLIGHT = (
    *_ANY_PAGE,
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type, mcp-protocol-version"),
)

RouteHandler = Callable[[ASGIRequest], Awaitable[None]]


class ProxyEndpoints:
    """The endpoints of one proxy in one application."""

    def __init__(
        self,
        settings: ProviderSettings,
        flow: LoginFlow,
        tokens: TokenService,
        name: str,
        location: ResourceLocation,
    ) -> None:
        self._settings = settings
        self._flow = flow
        self._tokens = tokens
        self._name = name
        self._location = location
        self._budget = BodyBudget(_LIMITS)
        self._account: Callable[[ASGIRequest], str] = partial(_network, proxied=location.public_url is not None)

    def routes(self) -> dict[str, RouteHandler]:
        """Return the handlers by path. Raises `DeclarationError` if the path of MCP is one of them."""
        for_clients: dict[str, tuple[str, RouteHandler]] = {
            "/register": ("POST", self._register),
            "/token": ("POST", self._token),
            "/revoke": ("POST", self._revoke),
        }
        metadata_paths = {*self._location.server_metadata_paths(SERVER_METADATA), OPENID_CONFIGURATION}
        for_clients |= dict.fromkeys(metadata_paths, ("GET", self._metadata))
        for_browsers: dict[str, tuple[str, RouteHandler]] = {
            "/authorize": ("GET", self._authorize),
            "/consent": ("POST", self._consent),
            CALLBACK_PATH: ("GET", self._callback),
        }
        routes: dict[str, RouteHandler] = {}
        for root in {"", self._location.public_root}:
            for path, (method, handler) in for_clients.items():
                routes[root + path] = partial(_answer_client, method, handler)
            for path, (method, handler) in for_browsers.items():
                routes[root + path] = partial(_answer_browser, method, handler)
        if self._location.path in routes:
            raise DeclarationError(f"the path {self._location.path!r} is taken by OAuthProxy: choose another path=")
        return routes

    # --- metadata ----------------------------------------------------------------------------------------------

    async def _metadata(self, request: ASGIRequest) -> None:
        issuer = self._location.issuer(request)
        metadata = AuthorizationServerMetadata(
            issuer=issuer,
            authorization_endpoint=f"{issuer}/authorize",
            token_endpoint=f"{issuer}/token",
            registration_endpoint=f"{issuer}/register",
            revocation_endpoint=f"{issuer}/revoke",
            scopes_supported=list(self._settings.scopes) or None,
            response_types_supported=["code"],
            grant_types_supported=list(GRANT_TYPES),
            token_endpoint_auth_methods_supported=list(AUTH_METHODS),
            revocation_endpoint_auth_methods_supported=list(AUTH_METHODS),
            code_challenge_methods_supported=["S256"],
            authorization_response_iss_parameter_supported=True,
            client_id_metadata_document_supported=True,
        )
        await send_json(request.send, 200, msgspec.json.encode(metadata), _ANY_PAGE)

    # --- clients -----------------------------------------------------------------------------------------------

    async def _register(self, request: ASGIRequest) -> None:
        response = await self._tokens.register(await self._body(request), self._account(request))
        await _send_document(request, 201, response)

    async def _token(self, request: ASGIRequest) -> None:
        form, authorization = await self._form(request), request.headers.get(b"authorization")
        resource = self._location.resource(request)
        await _send_document(request, 200, await self._tokens.exchange(authorization, form, resource))

    async def _revoke(self, request: ASGIRequest) -> None:
        form = await self._form(request)
        await self._tokens.revoke(request.headers.get(b"authorization"), form)
        await _send_document(request, 200, {})

    # --- the browser -------------------------------------------------------------------------------------------

    async def _authorize(self, request: ASGIRequest) -> None:
        check_navigation(request.headers)
        issuer, resource = self._location.issuer(request), self._location.resource(request)
        begun = await self._flow.begin(_query(request), issuer, resource, self._account(request))
        page = consent_page(begun, self._name, urlsplit(self._settings.authorize).netloc, f"{issuer}/consent")
        await _send_page(request, 200, page, _set_cookie(begun.id, begun.cookie, issuer))

    async def _consent(self, request: ASGIRequest) -> None:
        issuer = self._location.issuer(request)
        check_same_origin(request.headers, origin_of(issuer))
        form = await self._form(request)
        id = form.get("pending", "")
        cookie = _cookie(request.headers, id, issuer)
        if form.get("decision") == "allow":
            redirection = await self._flow.consent(id, cookie, self._account(request))
        else:
            redirection = await self._flow.refuse(id, cookie)
        await _redirect(request, redirection, id, issuer)

    async def _callback(self, request: ASGIRequest) -> None:
        issuer, parameters = self._location.issuer(request), _query(request)
        state = parameters.get("state", "")
        cookie = _cookie(request.headers, state, issuer)
        redirection = await self._flow.finish(parameters, cookie, self._account(request))
        await _redirect(request, redirection, state, issuer)

    # --- bodies ------------------------------------------------------------------------------------------------

    async def _body(self, request: ASGIRequest) -> bytes:
        charge = BodyCharge(self._budget, self._account, request)
        try:
            return await request.body(_LIMITS, charge)
        finally:
            charge.release()

    async def _form(self, request: ASGIRequest) -> dict[str, str]:
        media_type = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if media_type != b"application/x-www-form-urlencoded":
            raise EndpointError("invalid_request", "the body must be application/x-www-form-urlencoded")
        body = await self._body(request)
        if len(body) > FORM_BYTES:
            raise EndpointError("invalid_request", f"the form has more than {FORM_BYTES:,} bytes", 413)
        return read_parameters(body)


# --- requests --------------------------------------------------------------------------------------------------------


def read_parameters(text: bytes) -> dict[str, str]:
    """Return the parameters of a query or a form. Raises `EndpointError`.

    "Request and response parameters MUST NOT be included more than once" (OAuth 2.1, 3.1).
    """
    if _MALFORMED(text):  # it would take much longer than any other text
        raise EndpointError("invalid_request", "a percent sign is not followed by two hexadecimal digits")
    try:
        pairs = parse_qsl(text.decode(), keep_blank_values=True, max_num_fields=_PARAMETERS, errors="strict")
    except ValueError:
        raise EndpointError("invalid_request", f"not UTF-8, or more than {_PARAMETERS} parameters") from None
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        raise EndpointError("invalid_request", "a parameter is there twice")
    return {name: value for name, value in parameters.items() if value}  # an empty one counts as omitted (3.1)


def _network(request: ASGIRequest, *, proxied: bool) -> str:
    """Return the network whose quotas a request uses: a customer of a provider has many IPv6 addresses."""
    return network_of(account_of(request, proxied=proxied))


def _query(request: ASGIRequest) -> dict[str, str]:
    query: bytes = request.scope.get("query_string", b"")
    if len(query) > FORM_BYTES:
        raise EndpointError("invalid_request", f"the query has more than {FORM_BYTES:,} bytes")
    return read_parameters(query)


def check_navigation(headers: Mapping[bytes, bytes]) -> None:
    """Raise `EndpointError` for a consent page that a page loads as a frame, an image or a script (Fetch Metadata)."""
    if headers.get(b"sec-fetch-dest", b"document") != b"document":
        raise EndpointError("invalid_request", "open this page in a window of its own", 403)


def check_same_origin(headers: Mapping[bytes, bytes], origin: str) -> None:
    """Raise `EndpointError` unless a form was sent by a page of this server: browsers state that in `Sec-Fetch-Site`,
    older ones in `Origin`.
    """
    site = headers.get(b"sec-fetch-site")
    if site == b"same-origin" or (site is None and headers.get(b"origin") == origin.encode()):
        return
    raise EndpointError("access_denied", "the decision did not come from the page of this server", 403)


# --- cookies ---------------------------------------------------------------------------------------------------------


def cookie_name(secret: str, issuer: str) -> str:
    """Return the name of the cookie of a login. With https no other host can set it (`__Host-`)."""
    prefix = "__Host-" if issuer.startswith("https:") else ""
    return f"{prefix}accord-login-{digest_of(secret).hex()[:16]}"


def _cookie(headers: Mapping[bytes, bytes], secret: str, issuer: str) -> str | None:
    """Return the cookie of a login, or None. One that is there twice counts as none."""
    name = cookie_name(secret, issuer)
    pairs = (each.strip().partition("=") for each in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    found = [value for key, _, value in pairs if key == name]
    return found[0] if len(found) == 1 else None


def _set_cookie(secret: str, value: str, issuer: str, seconds: int = _COOKIE_SECONDS) -> tuple[bytes, bytes]:
    """Return the header that sets a cookie. `Lax` sends it along when the provider leads the browser back."""
    secure = "; Secure" if issuer.startswith("https:") else ""
    cookie = f"{cookie_name(secret, issuer)}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"
    return b"set-cookie", cookie.encode()


# --- responses -------------------------------------------------------------------------------------------------------


async def _answer_client(method: str, handler: RouteHandler, request: ASGIRequest) -> None:
    if request.method == "OPTIONS":
        return await send_text(request.send, 204, "", _PREFLIGHT)
    if request.method != method:
        return await send_text(request.send, 405, f"use {method}\n", ((b"allow", method.encode()), *_ANY_PAGE))
    try:
        await handler(request)
    except EndpointError as exc:
        document = {"error": exc.error, "error_description": exc.description}
        challenge = ((b"www-authenticate", b'Basic realm="token"'),) if exc.status == 401 else ()
        await _send_document(request, exc.status, document, challenge)
    except RequestRejected as exc:
        document = {"error": "invalid_request", "error_description": exc.message}
        await _send_document(request, exc.status, document, tuple(exc.headers))
    return None


async def _answer_browser(method: str, handler: RouteHandler, request: ASGIRequest) -> None:
    if request.method != method:
        return await send_text(request.send, 405, f"use {method}\n", ((b"allow", method.encode()),))
    try:
        await handler(request)
    except EndpointError as exc:
        await _send_page(request, exc.status, error_page(exc.description))
    return None


async def _send_document(
    request: ASGIRequest, status: int, document: Mapping[str, object], headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    await send_json(request.send, status, msgspec.json.encode(document), (*_NO_STORE, *_ANY_PAGE, *headers))


async def _send_page(request: ASGIRequest, status: int, page: str, *headers: tuple[bytes, bytes]) -> None:
    body = page.encode()
    length = (b"content-length", b"%d" % len(body))
    fields = [*PAGE_HEADERS, length, *headers]
    await request.send({"type": "http.response.start", "status": status, "headers": fields})
    await request.send({"type": "http.response.body", "body": body})


async def _redirect(request: ASGIRequest, redirection: Redirection, used: str, issuer: str) -> None:
    """Redirect the browser, with a GET; the cookie of the step that has ended is deleted."""
    headers = [
        (b"location", redirection.url.encode("ascii")),
        (b"referrer-policy", b"no-referrer"),
        *_NO_STORE,
        _set_cookie(used, "", issuer, 0),
    ]
    if redirection.state is not None and redirection.cookie is not None:
        headers.append(_set_cookie(redirection.state, redirection.cookie, issuer))
    await send_text(request.send, 303, "", headers)
