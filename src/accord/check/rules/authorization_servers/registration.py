"""Registration at an authorization server: what it accepts, refuses and returns (RFC 7591)."""

from __future__ import annotations

from accord.check.authorization_servers.probe import AuthServerProbe
from accord.check.engine.rule import CaseVariant
from accord.check.rules.authorization_servers.metadata import auth_server_rule

_DCR = (
    "basic/authorization#dynamic-client-registration",
    "basic/authorization/client-registration#dynamic-client-registration",
)
_COMMUNICATION = (
    "basic/authorization#communication-security",
    "basic/authorization/security-considerations#communication-security",
)


@auth_server_rule(
    "auth-server/registration",
    "should",
    case="a native public client",
    at=_DCR,
    cause="The server knows only clients with a secret, or needs members that are optional.",
)
async def auth_server_registration(probe: AuthServerProbe) -> None:
    """A native public client is registered: 201, with a client ID and its redirect URIs."""
    endpoint = probe.endpoint("registration_endpoint")
    document = probe.client_metadata()
    answer = await probe.request("POST", endpoint, document=document)
    if answer.status != 201 or not answer.is_json:
        raise probe.violation(f"the registration was answered with HTTP {answer.status}, expected 201 with JSON")
    client_id = answer.document.get("client_id")
    if not isinstance(client_id, str) or not client_id:
        raise probe.violation(f"client_id is {client_id!r}")
    if answer.document.get("redirect_uris") != document["redirect_uris"]:
        raise probe.violation(f"redirect_uris is {answer.document.get('redirect_uris')!r}")


@auth_server_rule(
    "auth-server/registration-error",
    "must",
    variants=[
        CaseVariant("no redirect_uris", uris=None),
        CaseVariant("redirect_uris that is a text", uris="http://127.0.0.1/callback"),
    ],
    at=("https://www.rfc-editor.org/rfc/rfc7591#section-3.2.2", *_DCR),
    cause="The metadata is stored as it comes, or the error is HTML.",
)
async def auth_server_registration_error(probe: AuthServerProbe, uris: str | None) -> None:
    """A registration without valid redirect_uris is refused: 400, with an error as JSON."""
    endpoint = probe.endpoint("registration_endpoint")
    answer = await probe.request("POST", endpoint, document=probe.client_metadata(redirect_uris=uris))
    if answer.status != 400 or not answer.error:
        raise probe.violation(f"the registration was answered with HTTP {answer.status} {answer.error or 'no error'}")


@auth_server_rule(
    "auth-server/registered-redirects",
    "must",
    variants=[
        CaseVariant("http at another host", uri="http://client.example/callback"),
        CaseVariant("a javascript: URL", uri="javascript:alert(1)"),
        CaseVariant("a fragment", uri="https://client.example/callback#x"),
    ],
    at=_COMMUNICATION,
    cause="Any URI is registered: codes go over the network in clear, or a script runs in the user's browser.",
)
async def auth_server_registered_redirects(probe: AuthServerProbe, uri: str) -> None:
    """Redirect URIs that are neither https nor on loopback, or have a fragment, are not registered."""
    endpoint = probe.endpoint("registration_endpoint")
    answer = await probe.request("POST", endpoint, document=probe.client_metadata(redirect_uris=[uri]))
    if answer.status < 300 and uri in (answer.document.get("redirect_uris") or [uri]):
        raise probe.violation(f"{uri} was registered")
