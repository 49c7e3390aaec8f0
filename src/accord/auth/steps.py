"""Requests and responses of OAuth, as values: a part of the flow is a generator that yields one and receives the other.

    def fetch(url: str) -> Steps[Metadata]:
        response = yield OAuthRequest("resource metadata", "GET", url)
        return decode_metadata(response.body, Metadata, "resource metadata")

A driver sends the requests. It raises its own errors into the generator where no response came.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Any, TypeAlias, TypeVar

import msgspec

from accord.errors import AuthorizationError, OAuthError, visible

Outcome = TypeVar("Outcome")


class OAuthRequest(msgspec.Struct, frozen=True):
    """An HTTP request of a step. A GET may be redirected to another safe URL; any other request never is."""

    step: str
    """The step in words, for errors and for `accord auth explain`."""
    method: str
    url: str
    headers: dict[str, str] = {}
    form: dict[str, str] | None = None
    """The body as `application/x-www-form-urlencoded`."""
    json: Any = None
    """The body as JSON, if there is no form."""

    def __repr__(self) -> str:
        return f"OAuthRequest({self.step!r}, {self.method} {self.url.partition('?')[0]})"  # the rest may be secret


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


def response_failure(step: str, response: OAuthResponse, cure: str = "") -> AuthorizationError:
    """Return the error for a response that is no success: the one it describes (RFC 6749, 5.2), or its status."""
    try:
        described = _decode_error(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        media_type = visible(response.headers.get("content-type", "no media type"))[:100]
        return AuthorizationError(step, f"found HTTP {response.status} ({media_type}), expected a JSON document", cure)
    return OAuthError(step, described.error, described.error_description or "", cure)
