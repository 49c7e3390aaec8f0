"""The metadata of a protected server (RFC 9728), and the challenges that lead clients to it.

    /.well-known/oauth-protected-resource/mcp      also without the path: clients try both
    /.well-known/oauth-authorization-server        for clients of 2025-03-26, if the server opts in

Metadata is public, so it is served without authentication, and to any web page. An application that is mounted under a
path, or whose proxy forwards only one path, does not receive requests for the well-known URIs at the root of the
origin. The challenge therefore names a URL below that path, which clients prefer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from accord.auth.discovery import fetch_server_metadata
from accord.auth.metadata import AuthorizationServerMetadata, ResourceMetadata
from accord.auth.urls import SERVER_METADATA, check_url
from accord.errors import AuthorizationError, DeclarationError
from accord.server.auth.authentication import access_token
from accord.server.auth.refusals import AuthRefused, Forbidden, Unauthorized
from accord.server.auth.resource_location import ResourceLocation, RouteHandler
from accord.server.auth.single_flight import SingleFlight
from accord.server.auth.token_verifier import TokenVerifier
from accord.server.http.options import HTTPOptions
from accord.transport.asgi.request import ASGIRequest, send_json, send_text

PUBLIC_URL_NEEDED = (
    "public_url= is needed where auth= verifies tokens and other machines connect: clients request tokens for that "
    'URL: HTTPOptions(public_url="https://tools.example.com/mcp")'
)
_ANY_PAGE = ((b"access-control-allow-origin", b"*"),)
_PREFLIGHT = (
    *_ANY_PAGE,
    (b"access-control-allow-methods", b"GET"),
    (b"access-control-allow-headers", b"mcp-protocol-version"),
)
_FRESH_SECONDS = 3_600.0


class ProtectedResource:
    """A server whose clients need tokens. Raises `DeclarationError` without a public URL, except on loopback."""

    def __init__(self, verifiers: Sequence[TokenVerifier], name: str, options: HTTPOptions) -> None:
        self._location = ResourceLocation(options)
        if options.hosts:
            self.check_public_url()
        if options.public_url is not None:
            try:
                check_url(options.public_url, "public_url")
            except AuthorizationError as exc:
                raise DeclarationError(str(exc)) from exc
        self._verifiers = verifiers
        self._name = name
        self._scopes = sorted(frozenset[str]().union(*(each.required_scopes for each in verifiers)))
        self._requires_proofs = all(each.requires_proofs for each in verifiers)
        self._proof_algorithms = list(dict.fromkeys(name for each in verifiers for name in each.proof_algorithms))
        self._fetches = SingleFlight[AuthorizationServerMetadata]()
        self._server_metadata: tuple[float, bytes] | None = None
        self.routes: dict[str, RouteHandler] = self._make_routes(options.authorization_server_metadata)
        """The handlers of the paths without authentication: metadata, and what authorization servers here serve."""

    def _make_routes(self, with_server_metadata: bool) -> dict[str, RouteHandler]:
        routes: dict[str, RouteHandler] = dict.fromkeys(self._location.resource_metadata_paths(), self._send_metadata)
        if with_server_metadata:
            for root in {"", self._location.public_root}:
                routes[root + SERVER_METADATA] = self._send_server_metadata
        for verifier in self._verifiers:
            routes |= verifier.public_routes(self._name, self._location)
        return routes

    async def close(self) -> None:
        """Close what the verifiers have opened on this event loop."""
        for verifier in self._verifiers:
            await verifier.close()

    def identifier(self, request: ASGIRequest) -> str:
        """Return the resource identifier of the server, for a client that sent `request`."""
        return self._location.resource(request)

    def check_public_url(self) -> None:
        """Raise `DeclarationError` without a public URL."""
        if self._location.public_url is None:
            raise DeclarationError(PUBLIC_URL_NEEDED)

    # --- challenges --------------------------------------------------------------------------------------------

    def challenge(self, refused: AuthRefused, request: ASGIRequest) -> str | None:
        """Return the challenge of a refused request, with the URL of the metadata; None if it has none.

        "If the request lacks any authentication information [...] the resource server SHOULD NOT include an error code"
        (RFC 6750, 3.1).
        """
        if refused.challenge is None or not isinstance(refused, Unauthorized | Forbidden):
            return refused.challenge
        challenge = refused.challenge
        parameters = f'resource_metadata="{self._location.metadata_url(request)}"'
        if self._scopes and "scope=" not in challenge:
            parameters += f', scope="{" ".join(self._scopes)}"'
        if challenge.startswith("Bearer") and self._demands_proof(request):
            challenge = f"DPoP{challenge.removeprefix('Bearer')}"
        if challenge.startswith("DPoP") and self._proof_algorithms:  # RFC 9449, 7.1
            parameters += f', algs="{" ".join(self._proof_algorithms)}"'
        return f"{challenge}{', ' if '=' in challenge else ' '}{parameters}"

    def _demands_proof(self, request: ASGIRequest) -> bool:
        sent = access_token(request)
        return self._requires_proofs or (sent is not None and sent[1])

    # --- metadata ----------------------------------------------------------------------------------------------

    async def _send_metadata(self, request: ASGIRequest) -> None:
        if not await _is_get(request):
            return
        metadata = ResourceMetadata(
            resource=self._location.resource(request),
            authorization_servers=list(
                dict.fromkeys(each.issuer_for_clients(self._location, request) for each in self._verifiers)
            ),
            scopes_supported=self._scopes or None,
            bearer_methods_supported=["header"],
            resource_name=self._name or None,
            dpop_signing_alg_values_supported=self._proof_algorithms or None,
            dpop_bound_access_tokens_required=self._requires_proofs or None,
        )
        await send_json(request.send, 200, msgspec.json.encode(metadata), _ANY_PAGE)

    async def _send_server_metadata(self, request: ASGIRequest) -> None:
        """Send the metadata of the first authorization server, where clients of 2025-03-26 look for it."""
        if not await _is_get(request):
            return
        try:
            body = await self._load_server_metadata()
        except AuthorizationError as exc:
            raise self._verifiers[0].unavailable(exc) from None
        await send_json(request.send, 200, body, _ANY_PAGE)

    async def _load_server_metadata(self) -> bytes:
        now = time.monotonic()
        if self._server_metadata is None or now - self._server_metadata[0] > _FRESH_SECONDS:
            verifier = self._verifiers[0]
            found = await self._fetches.run(None, lambda: verifier.request(fetch_server_metadata(verifier.issuer)))
            self._server_metadata = now, msgspec.json.encode(found)
        return self._server_metadata[1]


async def _is_get(request: ASGIRequest) -> bool:
    """Return whether a request is a GET; answer it otherwise."""
    if request.method == "GET":
        return True
    if request.method == "OPTIONS":
        await send_text(request.send, 204, "", _PREFLIGHT)
    else:
        await send_text(request.send, 405, "metadata is read with GET\n", ((b"allow", b"GET"), *_ANY_PAGE))
    return False


def protected_resource(auth: object, name: str, options: HTTPOptions) -> ProtectedResource | None:
    """Return the protected resource of a server; None if its `auth` verifies no tokens. Raises `DeclarationError`."""
    verifiers: Sequence[TokenVerifier] = getattr(auth, "verifiers", ())
    return ProtectedResource(verifiers, name, options) if verifiers else None
