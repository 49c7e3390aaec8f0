"""A user logs in on another device (RFC 8628)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from accord import AuthorizationError, Client, CredentialStore, LoginNeeded, OAuth
from accord.auth.credentials import GrantCredentials
from accord.auth.device_grant import DEVICE_GRANT, DevicePolling, PendingDevice, request_device_code
from accord.auth.discovery import Discovery
from accord.auth.http import OAuthClient
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.oauth import grant_settings
from accord.auth.steps import OAuthResponse
from accord.auth.user_grants import DeviceGrant
from accord.errors import OAuthError

from tests.auth.flow import answered
from tests.auth.place import Clock, Place, place, stored
from tests.auth.test_tokens import client

ISSUER = "https://login.example"
DISCOVERY = Discovery(
    "https://mcp.example/mcp",
    "https://mcp.example/mcp",
    AuthorizationServerMetadata(
        ISSUER, token_endpoint=f"{ISSUER}/token", device_authorization_endpoint=f"{ISSUER}/device"
    ),
)
BEGUN = {"device_code": "secret", "user_code": "ABCD-EFGH", "verification_uri": f"{ISSUER}/go", "expires_in": 600}


def begin(**changes: Any) -> tuple[Any, PendingDevice]:
    document = {name: value for name, value in {**BEGUN, **changes}.items() if value is not None}
    steps = request_device_code(DISCOVERY, client(), ["read", "write"], 1_000.0)
    [request], pending = answered(steps, OAuthResponse(200, msgspec.json.encode(document)))
    assert isinstance(pending, PendingDevice)
    return request, pending


def test_a_device_authorization_names_client_scopes_and_resource() -> None:
    request, pending = begin(verification_uri_complete=f"{ISSUER}/go?code=ABCD-EFGH")
    assert (request.method, request.url) == ("POST", f"{ISSUER}/device")
    assert request.form == {"client_id": "a:client", "scope": "read write", "resource": DISCOVERY.resource}
    assert (pending.user_code, pending.verification_uri) == ("ABCD-EFGH", f"{ISSUER}/go")
    assert pending.expires_at == 1_600
    assert "secret" not in repr(pending)
    assert "ABCD" not in repr(pending)


@pytest.mark.parametrize(("interval", "waits"), [(None, 5), (7, 7), (0, 1), ("3", 3), (1e9, 600)])
def test_the_interval_is_that_of_the_server(interval: Any, waits: float) -> None:
    _, pending = begin(interval=interval)
    assert DevicePolling(pending).wait(1_000.0) == waits


@pytest.mark.parametrize(
    "changes",
    [{"verification_uri": "javascript:alert(1)"}, {"verification_uri": "http://login.example/go"},
     {"verification_uri_complete": "file:///etc/passwd"}, {"verification_uri": f"{ISSUER}/\x1b[2J"},
     {"user_code": "x" * 101}, {"user_code": ""}, {"device_code": ""}, {"device_code": "a\r\nb"}, {"expires_in": 0},
     {"expires_in": None}, {"interval": -1}, {"user_code": 7_000}],
)  # fmt: skip
def test_a_response_that_is_not_safe_is_refused(changes: Any) -> None:
    with pytest.raises(AuthorizationError) as caught:
        begin(**changes)
    assert str(caught.value).isprintable()


def test_control_characters_of_a_code_are_not_shown() -> None:
    assert begin(user_code="AB\x1b[2JCD\u202e")[1].user_code.isprintable()


def test_a_server_without_the_endpoint_has_a_cure() -> None:
    metadata = AuthorizationServerMetadata(ISSUER, token_endpoint=f"{ISSUER}/token")
    steps = request_device_code(msgspec.structs.replace(DISCOVERY, metadata=metadata), client(), [], 1.0)
    with pytest.raises(AuthorizationError, match=r"has no device_authorization_endpoint; log in with a browser"):
        next(steps)


def test_a_refusal_shows_no_secret() -> None:
    body = {"error": "unauthorized_client", "error_description": "the secret s3cret is wrong"}
    steps = request_device_code(DISCOVERY, client("s3cret", "client_secret_post"), [], 1.0)
    with pytest.raises(OAuthError, match=r"device authorization at .* unauthorized_client: .*; see whether") as caught:
        answered(steps, OAuthResponse(400, msgspec.json.encode(body)))
    assert "s3cret" not in str(caught.value)


def error(code: str) -> OAuthError:
    return OAuthError("login on another device", code)


def test_polling_slows_down_and_ends() -> None:
    _, pending = begin(interval=5)
    polling = DevicePolling(pending)
    waits = []
    for failure in ("authorization_pending", "slow_down", "authorization_pending", "slow_down"):
        polling.fail(error(failure))
        waits.append(polling.wait(1_000.0))
    assert waits == [5, 10, 10, 15], "5 seconds more for this and all later requests"
    assert polling.wait(1_595.0) == 5, "not longer than the code is valid"
    for call in (lambda: polling.wait(1_600.0), lambda: polling.fail(error("expired_token"))):
        with pytest.raises(AuthorizationError, match=r"the code has expired before the user entered it; log in again"):
            call()
    with pytest.raises(OAuthError, match="access_denied; the user has refused; log in again"):
        polling.fail(error("access_denied"))
    with pytest.raises(OAuthError, match="invalid_grant"):
        polling.fail(error("invalid_grant"))


def test_a_network_that_fails_is_asked_less_often_and_not_for_ever() -> None:
    polling = DevicePolling(begin(interval=1)[1])
    waits = []
    for _ in range(5):
        polling.fail(AuthorizationError("login on another device", "did not answer"))
        waits.append(polling.wait(1_000.0))
    assert waits == [2, 4, 8, 16, 32]
    with pytest.raises(AuthorizationError, match="did not answer"):
        polling.fail(AuthorizationError("login on another device", "did not answer"))


class Device:
    """An `auth=` whose user acts while the client waits. `decide(waits)` is called for each wait with their number."""

    def __init__(self, at: Place, store: CredentialStore, decide: Callable[[int], None], clock: Clock) -> None:
        self.at = at
        self.decide = decide
        self.clock = clock
        self.waits: list[float] = []
        self.shown: list[tuple[str, str]] = []
        self.oauth = OAuth(device=lambda page, code: self.shown.append((page, code)), store=store)

    def credentials(self, server: str, **options: Any) -> GrantCredentials:
        http = OAuthClient(server)
        grant = DeviceGrant(grant_settings(self.oauth), server, http, self.clock, self.sleep)
        return GrantCredentials(grant, server, http, self.oauth.store, self.clock)

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.now += seconds
        self.decide(len(self.waits))


@pytest.mark.parametrize("dpop", [None, "required"])
async def test_a_user_approves_and_the_login_is_renewed(dpop: Any, store: CredentialStore) -> None:
    clock = Clock()
    options = {} if dpop is None else {"dpop": dpop, "dpop_nonce": "a nonce"}
    async with place(clock=clock, faults={"device_slow_down"}, **options) as at:
        auth = Device(at, store, lambda waits: waits == 3 and at.issuer.approve_device("CODE-0001"), clock)
        async with Client(at.url, auth=auth) as client:
            assert (await client.call_tool("who")).text == "alice"
            clock.now += 3_601
            assert (await client.call_tool("who")).text == "alice"
        assert auth.shown == [(f"{at.issuer.issuer}/activate?user_code=CODE-0001", "CODE-0001")]
        assert auth.waits == [1, 6, 6], "the server said slow_down once"
        assert at.issuer.counts["authorization"] == 0
        [registered] = [request for request in at.issuer.requests if request.endpoint == "registration"]
        assert registered.parameters["grant_types"] == [DEVICE_GRANT, "refresh_token"]
        assert (registered.parameters["redirect_uris"], registered.parameters["response_types"]) == ([], [])
        assert (await stored(store)).tokens.requested == (
            ["read", "offline_access"] if dpop is None else ["read", "write", "offline_access"]
        )


async def test_a_user_refuses(store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock) as at:
        auth = Device(at, store, lambda waits: at.issuer.approve_device("CODE-0001", None), clock)
        with pytest.raises(AuthorizationError, match="access_denied; the user has refused; log in again"):
            await Client(at.url, auth=auth).connect()


@pytest.mark.parametrize("fault", ["", "device_expired"])
async def test_a_user_does_not_come(fault: str, store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock, faults={fault} if fault else ()) as at:
        auth = Device(at, store, lambda waits: None, clock)
        with pytest.raises(AuthorizationError, match="the code has expired before the user entered it; log in again"):
            await Client(at.url, auth=auth).connect()
        assert sum(auth.waits) <= 600
        assert at.issuer.counts["authorization"] == 0


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("device_uri_javascript", "verification_uri: 'javascript:alert"),
        ("device_500", r"device authorization at .* found HTTP 500"),
    ],
)
async def test_a_faulty_server_ends_the_login(fault: str, text: str, store: CredentialStore) -> None:
    clock = Clock()
    async with place(clock=clock, faults={fault}) as at:
        auth = Device(at, store, lambda waits: None, clock)
        with pytest.raises(AuthorizationError, match=text):
            await Client(at.url, auth=auth).connect()
        assert not auth.shown
        assert not auth.waits


async def test_without_a_user_nothing_is_begun(store: CredentialStore) -> None:
    async with place() as at:
        for settings in ({"interactive": False}, {}):  # the tests run without a terminal
            with pytest.raises(LoginNeeded, match=f"accord login {at.url}"):
                await Client(at.url, auth=OAuth(device=True, store=store, **settings)).connect()
        assert at.issuer.counts["device"] == 0
