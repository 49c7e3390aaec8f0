"""Requests and responses of OAuth, as values: a part of the flow is a generator that yields one and receives the other.

    def fetch(url: str) -> Steps[Metadata]:
        response = yield OAuthRequest("resource metadata", "GET", url)
        return decode_metadata(response.body, Metadata, "resource metadata")

A driver sends the requests. It raises its own errors into the generator where no response came.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar
from urllib.parse import quote, quote_plus, unquote_plus

import msgspec

from accord.errors import AuthorizationError, OAuthError, visible
from accord.redaction import REDACTED

Outcome = TypeVar("Outcome")

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a document of a peer may raise where it is decoded."""

_PUBLIC = frozenset(
    {"actor_token_type", "audience", "client_assertion_type", "client_id", "grant_type", "redirect_uri"}
    | {"requested_token_type", "resource", "scope", "subject_token_type", "token_type_hint"}
)
"""Members of a form that are no secrets."""
_SECRET_CHARACTERS = 4
"""Shorter values are not searched for: they would be found everywhere."""


class OAuthRequest(msgspec.Struct, frozen=True):
    """An HTTP request of a step. A GET may be redirected to another safe URL, unless it forbids that; any other request
    never is.
    """

    step: str
    """The step in words, for errors and for `accord auth explain`."""
    method: str
    url: str
    headers: dict[str, str] = {}
    form: dict[str, str] | None = None
    """The body as `application/x-www-form-urlencoded`."""
    json: Any = None
    """The body as JSON, if there is no form."""
    follow_redirects: bool = True
    """Whether a GET may be redirected."""

    def __repr__(self) -> str:
        return f"OAuthRequest({self.step!r}, {self.method} {self.url.partition('?')[0]})"  # the rest may be secret

    def without_secrets(self, text: str) -> str:
        """Return a text of the server with the secrets of this request redacted: a server may repeat them."""
        for secret in self.secrets():
            if len(secret) >= _SECRET_CHARACTERS:
                text = text.replace(secret, REDACTED)
        return text

    def secrets(self) -> list[str]:
        """Return its secrets, also in the forms of URLs, the longest first."""
        found = [value for name, value in (self.form or {}).items() if name not in _PUBLIC]
        for name, value in self.headers.items():
            if name.lower() in ("authorization", "dpop"):
                scheme, _, credentials = value.rpartition(" ")
                found.append(credentials)
                if scheme.lower() == "basic":
                    found.extend(_passwords(credentials))
        found.extend([quote_plus(each) for each in found] + [quote(each, safe="") for each in found])
        return sorted(set(found), key=len, reverse=True)  # one may be a part of another


def _passwords(credentials: str) -> list[str]:
    """Return the password of a basic authentication, encoded as RFC 6749, 2.3.1, and decoded."""
    try:
        encoded = base64.b64decode(credentials).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return []
    return [encoded, unquote_plus(encoded)]


class OAuthResponse(msgspec.Struct, frozen=True):
    """The response to an `OAuthRequest`. The names of headers are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"OAuthResponse({self.status}, <{len(self.body)} bytes>)"


Steps: TypeAlias = Generator[OAuthRequest, OAuthResponse, Outcome]
"""A part of a flow: it yields requests, receives their responses, and returns its outcome."""


async def run_steps(steps: Steps[Outcome], send: Callable[[OAuthRequest], Awaitable[OAuthResponse]]) -> Outcome:
    """Run a part of a flow with `send`, and return its outcome. Raises `AuthorizationError` and errors of `send`."""
    try:
        request = next(steps)
        while True:
            try:
                response = await send(request)
            except AuthorizationError as exc:
                request = steps.throw(exc)
            else:
                request = steps.send(response)
    except StopIteration as done:
        outcome: Outcome = done.value
        return outcome


class _ErrorResponse(msgspec.Struct):
    error: str
    error_description: str | None = None


_decode_error = msgspec.json.Decoder(_ErrorResponse).decode


def response_failure(
    step: str, response: OAuthResponse, cure: str = "", request: OAuthRequest | None = None
) -> AuthorizationError:
    """Return the error for a response that is no success: the one it describes (RFC 6749, 5.2), or its status.

    The secrets of `request` are redacted in it.
    """
    try:
        described = _decode_error(response.body)
    except DECODE_ERRORS:
        media_type = visible(response.headers.get("content-type", "no media type"))[:100]
        return AuthorizationError(step, f"found HTTP {response.status} ({media_type}), expected a JSON document", cure)
    error, description = described.error, described.error_description or ""
    if request is not None:
        error, description = request.without_secrets(error), request.without_secrets(description)
    return OAuthError(step, error, description, cure)
