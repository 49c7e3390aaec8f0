"""The device authorization grant (RFC 8628): the user opens a page on any device, and enters a code there.

device authorization    the authorization server returns the page, the code, and how often to ask for the result
polling                 the token endpoint answers `authorization_pending` until the user has decided
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from accord.auth.client_authentication import ClientAuthentication
from accord.auth.discovery import Discovery
from accord.auth.steps import DECODE_ERRORS, OAuthRequest, Steps, response_failure
from accord.auth.tokens import Tokens, request_tokens, tokens_of
from accord.auth.urls import check_url
from accord.errors import AuthorizationError, OAuthError, visible

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
STEP = "device authorization"
POLL_STEP = "login on another device"

_DEFAULT_INTERVAL = 5.0
"""RFC 8628, 3.2: "If no value is provided, clients MUST use 5 as the default"."""
_MIN_INTERVAL = 1.0
_SLOW_DOWN_SECONDS = 5.0
"""RFC 8628, 3.5: "the interval MUST be increased by 5 seconds for this and all subsequent requests"."""
_MAX_EXPIRY_SECONDS = 3_600.0
_MAX_FAILURES = 5

_URL = Annotated[str, Meta(max_length=2_048)]


class _DeviceResponse(msgspec.Struct):
    device_code: Annotated[str, Meta(min_length=1, max_length=4_096, pattern=r"^[\x20-\x7e]+\Z")]
    user_code: Annotated[str, Meta(min_length=1, max_length=100)]
    verification_uri: _URL
    expires_in: Annotated[float, Meta(gt=0)]
    verification_uri_complete: _URL | None = None
    interval: Annotated[float, Meta(ge=0)] | None = None


_decode = msgspec.json.Decoder(_DeviceResponse, strict=False).decode


class PendingDevice(msgspec.Struct, frozen=True):
    """A device authorization that waits for its user."""

    discovery: Discovery
    device_code: str
    user_code: str
    """The code that the user enters."""
    verification_uri: str
    """The page for it, which is safe to open."""
    verification_uri_complete: str | None
    """The page with the code filled in."""
    expires_at: float
    """In seconds since 1970."""
    interval: float
    """The seconds between two requests for the result."""
    scopes: list[str]

    def __repr__(self) -> str:
        return f"PendingDevice(at {self.discovery.issuer!r})"  # the codes are secret


def device_authorization_endpoint(discovery: Discovery) -> str:
    """Return the endpoint. Raises `AuthorizationError` for a server without one."""
    metadata = discovery.metadata
    if metadata.device_authorization_endpoint is None:
        raise AuthorizationError(
            STEP, f"{metadata.issuer} has no device_authorization_endpoint", "log in with a browser, without --device"
        )
    return metadata.device_authorization_endpoint


def request_device_code(
    discovery: Discovery, authentication: ClientAuthentication, scopes: list[str], now: float
) -> Steps[PendingDevice]:
    """Begin a device authorization (RFC 8628, 3.1). Raises `AuthorizationError`, also for a page that is not safe."""
    endpoint = device_authorization_endpoint(discovery)
    headers, form = {"Accept": "application/json"}, {"resource": discovery.resource}
    if scopes:
        form["scope"] = " ".join(scopes)
    authentication.authenticate(endpoint, headers, form)
    request = OAuthRequest(STEP, "POST", endpoint, headers, form=form)
    response = yield request
    if response.status != 200:
        cure = "see whether the client may use the device grant, or log in with a browser, without --device"
        raise response_failure(f"{STEP} at {endpoint}", response, cure, request)
    try:
        begun = _decode(response.body)
    except DECODE_ERRORS as exc:
        raise AuthorizationError(f"{STEP} at {endpoint}", f"the response cannot be used: {exc}") from exc
    check_url(begun.verification_uri, "verification_uri")
    if begun.verification_uri_complete is not None:
        check_url(begun.verification_uri_complete, "verification_uri_complete")
    return PendingDevice(
        discovery,
        begun.device_code,
        visible(begun.user_code),
        begun.verification_uri,
        begun.verification_uri_complete,
        now + min(begun.expires_in, _MAX_EXPIRY_SECONDS),
        _DEFAULT_INTERVAL if begun.interval is None else max(begun.interval, _MIN_INTERVAL),
        scopes,
    )


def request_device_tokens(pending: PendingDevice, authentication: ClientAuthentication, now: float) -> Steps[Tokens]:
    """Request the tokens of a device authorization (RFC 8628, 3.4). Raises `OAuthError`, see `DevicePolling`."""
    form = {
        "grant_type": DEVICE_GRANT,
        "device_code": pending.device_code,
        "resource": pending.discovery.resource,
    }
    response = yield from request_tokens(pending.discovery.metadata, authentication, form, step=POLL_STEP)
    return tokens_of(response, pending.scopes, now)


class DevicePolling:
    """The time to wait before each request for the result of a device authorization."""

    def __init__(self, pending: PendingDevice) -> None:
        self._pending = pending
        self._interval = pending.interval
        self._failures = 0

    def wait(self, now: float) -> float:
        """Return the seconds until the next request. Raises `AuthorizationError` when the code has expired."""
        left = self._pending.expires_at - now
        if left <= 0:
            raise _expired()
        return min(self._interval, left)

    def fail(self, error: AuthorizationError) -> None:
        """Go on after a failed request, or raise its error: RFC 8628, 3.5.

        "On encountering a connection timeout, clients MUST unilaterally reduce their polling frequency".
        """
        if not isinstance(error, OAuthError):
            self._failures += 1
            if self._failures > _MAX_FAILURES:
                raise error
            self._interval *= 2
            return
        self._failures = 0
        if error.error == "slow_down":
            self._interval += _SLOW_DOWN_SECONDS
        elif error.error == "expired_token":
            raise _expired() from error
        elif error.error == "access_denied":
            raise OAuthError(POLL_STEP, error.error, error.description, "the user has refused; log in again") from error
        elif error.error != "authorization_pending":
            raise error


def _expired() -> AuthorizationError:
    return AuthorizationError(POLL_STEP, "the code has expired before the user entered it", "log in again")
