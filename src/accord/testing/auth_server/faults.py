"""The faults of `AuthServer`, by name: what is wrong, at which endpoint, and whether a client has to refuse it.

A fault is one row. Texts in it may have `{issuer}`, `{origin}`, `{other}` (another origin), and the parameters of the
request, such as `{code}`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

ABSENT: Any = msgspec.UNSET
"""In `Effect.change`: the member is left out."""

_HTML = "<html><body>Sign in</body></html>"
_HUGE = 8 << 20
_FOREVER = 86_400.0


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a fault in the responses of one endpoint."""

    endpoint: str
    """An endpoint, or a group of them: `metadata` is also `metadata/oidc`."""
    change: Mapping[str, Any] = {}
    """Members of the JSON document, or parameters of the callback, that get other values."""
    status: int | None = None
    body: str | bytes | None = None
    headers: Mapping[str, str] = {}
    append: str = ""
    """Text behind the query of the callback."""
    padding: int = 0
    """Bytes behind the body."""
    delay: float = 0
    """Seconds before the response."""
    broken: bool = False
    """Whether the connection ends before the body does."""
    grants: tuple[str, ...] = ()
    """The grant types that are affected; all if there are none."""
    times: int | None = None
    """The number of responses that are affected; all if it is None."""

    @property
    def replaces_response(self) -> bool:
        """Whether the request does not reach the endpoint: it uses up no code and no token."""
        return self.body is not None or (self.status is not None and self.status >= 300)

    def affects(self, endpoint: str, grant: str | None) -> bool:
        """Return whether the responses of an endpoint are affected."""
        matches = endpoint == self.endpoint or endpoint.startswith(f"{self.endpoint}/")
        return matches and (not self.grants or grant in self.grants)


class Fault(msgspec.Struct, frozen=True):
    """One fault: what is wrong, where, and whether a client that reaches it has to refuse."""

    description: str
    effects: tuple[Effect, ...]
    refused: bool = True


def _fault(description: str, endpoint: str, refused: bool = True, **effect: Any) -> Fault:
    return Fault(description, (Effect(endpoint=endpoint, **effect),), refused)


def _error(error: str, status: int = 400, description: str = "") -> dict[str, Any]:
    body = {"error": error, "error_description": description} if description else {"error": error}
    return {"status": status, "body": msgspec.json.encode(body).decode()}


_CODE = ("authorization_code",)
_REFRESH = ("refresh_token",)
_CREDENTIALS = ("client_credentials",)
_ASSERTION = ("urn:ietf:params:oauth:grant-type:jwt-bearer",)
_EXCHANGE = ("urn:ietf:params:oauth:grant-type:token-exchange",)
_DEVICE = ("urn:ietf:params:oauth:grant-type:device_code",)
_TO_PRIVATE: dict[str, Any] = {"status": 302, "headers": {"location": "http://169.254.169.254/latest/meta-data/"}}
_TO_OTHER: dict[str, Any] = {"status": 307, "headers": {"location": "{other}/token"}}
_HTML_PAGE: dict[str, Any] = {"status": 200, "body": _HTML, "headers": {"content-type": "text/html"}}
_FAILURE: dict[str, Any] = {"status": 500, "body": "Internal Server Error", "headers": {"content-type": "text/plain"}}
_METHODS = "code_challenge_methods_supported"
_ISS_STATED = "authorization_response_iss_parameter_supported"

_RESOURCE: dict[str, Fault] = {
    "challenge_without_metadata": _fault("the challenge names no resource_metadata", "challenge", False,
        headers={"www-authenticate": "Bearer"}),
    "challenge_missing": _fault("the 401 has no WWW-Authenticate", "challenge", False,
        headers={"www-authenticate": ""}),
    "challenge_javascript": _fault("resource_metadata is a javascript: URL", "challenge",
        headers={"www-authenticate": 'Bearer resource_metadata="javascript:alert(1)"'}),
    "challenge_link_local": _fault("resource_metadata is at a link-local address", "challenge",
        headers={"www-authenticate": 'Bearer resource_metadata="https://169.254.169.254/x"'}),
    "resource_missing": _fault("there is no resource metadata, as in 2025-03-26", "resource", False,
        **_error("not_found", 404)),
    "resource_html": _fault("the resource metadata is HTML", "resource", **_HTML_PAGE),
    "resource_500": _fault("the resource metadata fails", "resource", **_FAILURE),
    "resource_of_another": _fault("the resource is another server's", "resource", change={"resource": "{other}/mcp"}),
    "resource_sibling": _fault("the resource is a sibling path", "resource", change={"resource": "{origin}/mc"}),
    "resource_null": _fault("the resource is null", "resource", change={"resource": None}),
    "resource_huge": _fault("the resource metadata has 8 MiB", "resource", padding=_HUGE),
    "resource_redirect_private": _fault("the resource metadata redirects to a link-local address", "resource",
        **_TO_PRIVATE),
    "servers_missing": _fault("authorization_servers is absent", "resource", change={"authorization_servers": ABSENT}),
    "servers_empty": _fault("authorization_servers is empty", "resource", change={"authorization_servers": []}),
    "servers_text": _fault("authorization_servers is a text", "resource",
        change={"authorization_servers": "{issuer}"}),
    "servers_javascript": _fault("the issuer is a javascript: URL", "resource",
        change={"authorization_servers": ["javascript:alert(1)"]}),
    "servers_private": _fault("the issuer is at a link-local address", "resource",
        change={"authorization_servers": ["https://169.254.169.254"]}),
    "resource_scopes_null": _fault("scopes_supported of the resource is null", "resource", False,
        change={"scopes_supported": None}),
}  # fmt: skip

_METADATA: dict[str, Fault] = {
    "issuer_mismatch": _fault("the issuer is another one", "metadata", change={"issuer": "{other}"}),
    "issuer_slash": _fault("the issuer has a slash more", "metadata", change={"issuer": "{issuer}/"}),
    "issuer_missing": _fault("the issuer is absent", "metadata", change={"issuer": ABSENT}),
    "issuer_null": _fault("the issuer is null", "metadata", change={"issuer": None}),
    "metadata_missing": _fault("there is no metadata", "metadata", **_error("not_found", 404)),
    "metadata_html": _fault("the metadata is HTML", "metadata", **_HTML_PAGE),
    "metadata_500": _fault("the metadata fails", "metadata", **_FAILURE),
    "metadata_array": _fault("the metadata is an array", "metadata", body="[]"),
    "metadata_empty": _fault("the metadata is empty", "metadata", body=""),
    "metadata_deep": _fault("the metadata is nested 100,000 times", "metadata", body='{"x":' + "[" * 100_000),
    "metadata_not_utf8": _fault("the metadata is not UTF-8", "metadata", body=b'{"issuer": "\xff"}'),
    "metadata_huge": _fault("the metadata has 8 MiB", "metadata", padding=_HUGE),
    "metadata_slow": _fault("the metadata takes a day", "metadata", delay=_FOREVER),
    "metadata_broken": _fault("the connection ends within the metadata", "metadata", broken=True),
    "metadata_redirect_loop": _fault("the metadata redirects to itself", "metadata",
        status=302, headers={"location": "{issuer}/.well-known/openid-configuration"}),
    "metadata_redirect_private": _fault("the metadata redirects to a link-local address", "metadata", **_TO_PRIVATE),
    "metadata_redirect_javascript": _fault("the metadata redirects to a javascript: URL", "metadata",
        status=302, headers={"location": "javascript:alert(1)"}),
    "metadata_nulls": _fault("optional members are null", "metadata", False,
        change=dict.fromkeys(("scopes_supported", "grant_types_supported", "response_types_supported",
                              "revocation_endpoint", "introspection_endpoint", "jwks_uri"))),
    "metadata_unknown_members": _fault("members are unknown", "metadata", False,
        change={"mtls_endpoint_aliases": {"token_endpoint": 7}, "": None}),
    "oauth_metadata_missing": _fault("there is only OpenID configuration", "metadata/oauth", False,
        **_error("not_found", 404)),
    "oidc_appended_only": Fault("there is only OpenID configuration behind the path", tuple(
        Effect(endpoint=f"metadata/{each}", **_error("not_found", 404)) for each in ("oauth", "oidc")), False),
    "s256_missing": _fault(f"{_METHODS} is absent", "metadata", change={_METHODS: ABSENT}),
    "s256_null": _fault(f"{_METHODS} is null", "metadata", change={_METHODS: None}),
    "s256_plain": _fault("only the method plain is stated", "metadata", change={_METHODS: ["plain"]}),
    "authorization_endpoint_missing": _fault("authorization_endpoint is absent", "metadata",
        change={"authorization_endpoint": ABSENT}),
    "authorization_endpoint_javascript": _fault("authorization_endpoint is a javascript: URL", "metadata",
        change={"authorization_endpoint": "javascript:alert(1)"}),
    "authorization_endpoint_http": _fault("authorization_endpoint is http", "metadata",
        change={"authorization_endpoint": "http://login.example/authorize"}),
    "authorization_endpoint_command": _fault("authorization_endpoint has a shell command", "metadata",
        change={"authorization_endpoint": "https://login.example/$(calc.exe)`id`;&|"}),
    "token_endpoint_missing": _fault("token_endpoint is absent", "metadata", change={"token_endpoint": ABSENT}),
    "token_endpoint_null": _fault("token_endpoint is null", "metadata", change={"token_endpoint": None}),
    "token_endpoint_number": _fault("token_endpoint is a number", "metadata", change={"token_endpoint": 7}),
    "token_endpoint_empty": _fault("token_endpoint is empty", "metadata", change={"token_endpoint": ""}),
    "token_endpoint_http": _fault("token_endpoint is http", "metadata",
        change={"token_endpoint": "http://login.example/token"}),
    "token_endpoint_link_local": _fault("token_endpoint is at a link-local address", "metadata",
        change={"token_endpoint": "https://169.254.169.254/token"}),
    "token_endpoint_user": _fault("token_endpoint has a user name", "metadata",
        change={"token_endpoint": "https://login.example@169.254.169.254/token"}),
    "token_endpoint_fragment": _fault("token_endpoint has a fragment", "metadata",
        change={"token_endpoint": "https://login.example/token#x"}),
    "registration_endpoint_file": _fault("registration_endpoint is a file: URL", "metadata",
        change={"registration_endpoint": "file:///etc/passwd"}),
    "revocation_endpoint_missing": _fault("revocation_endpoint is absent", "metadata", False,
        change={"revocation_endpoint": ABSENT}),
}  # fmt: skip

_REGISTRATION: dict[str, Fault] = {
    "device_endpoint_missing": _fault("device_authorization_endpoint is absent", "metadata", False,
        change={"device_authorization_endpoint": ABSENT}),
    "registration_missing": _fault("registration_endpoint is absent", "metadata",
        change={"registration_endpoint": ABSENT}),
    "registration_refused": _fault("registration is refused", "registration",
        **_error("invalid_client_metadata", 400, "clients are registered by an administrator")),
    "registration_forbidden": _fault("registration is forbidden, with HTML", "registration",
        status=403, body=_HTML, headers={"content-type": "text/html"}),
    "registration_500": _fault("registration fails", "registration", **_FAILURE),
    "registration_html": _fault("the registration is HTML", "registration", **_HTML_PAGE),
    "registration_redirect": _fault("registration redirects to another origin", "registration", **_TO_OTHER),
    "registration_without_id": _fault("the registration has no client_id", "registration",
        change={"client_id": ABSENT}),
    "registration_id_null": _fault("the client_id is null", "registration", change={"client_id": None}),
    "registration_id_number": _fault("the client_id is a number", "registration", change={"client_id": 7}),
    "registration_id_empty": _fault("the client_id is empty", "registration", change={"client_id": ""}),
    "registration_id_huge": _fault("the client_id has 100,000 characters", "registration",
        change={"client_id": "x" * 100_000}),
    "registration_unknown_method": _fault("the client is to authenticate with TLS", "registration",
        change={"token_endpoint_auth_method": "tls_client_auth"}),
    "registration_status_200": _fault("the status is 200, expected 201", "registration", False, status=200),
    "registration_secret_expires": _fault("the secret expires in 1970", "registration", False,
        change={"client_secret_expires_at": 1}),
    "registration_nulls": _fault("optional members are null", "registration", False,
        change={"client_secret_expires_at": None, "client_secret": None, "token_endpoint_auth_method": None}),
}  # fmt: skip

_CALLBACK: dict[str, Fault] = {
    "iss_missing": _fault("iss is absent, though stated", "callback", change={"iss": ABSENT}),
    "iss_of_another": _fault("iss is another issuer's", "callback", change={"iss": "{other}"}),
    "iss_slash": _fault("iss has a slash more", "callback", change={"iss": "{issuer}/"}),
    "iss_empty": _fault("iss is empty", "callback", change={"iss": ""}),
    "iss_unstated": Fault("iss is neither stated nor sent", (
        Effect(endpoint="metadata", change={_ISS_STATED: ABSENT}),
        Effect(endpoint="callback", change={"iss": ABSENT})), False),
    "state_changed": _fault("state has another value", "callback", change={"state": "changed"}),
    "state_missing": _fault("state is absent", "callback", change={"state": ABSENT}),
    "state_twice": _fault("state is there twice", "callback", append="&state={state}"),
    "code_missing": _fault("code is absent", "callback", change={"code": ABSENT}),
    "code_empty": _fault("code is empty", "callback", change={"code": ""}),
    "code_twice": _fault("code is there twice", "callback", append="&code=other"),
    "callback_long": _fault("the callback has 100,000 characters", "callback", append="&x=" + "x" * 100_000),
    "login_denied": _fault("the user refuses", "callback", change={"code": ABSENT, "error": "access_denied"}),
    "login_denied_by_another": _fault("an error comes with the iss of another", "callback",
        change={"code": ABSENT, "error": "access_denied", "error_description": "go to {other}", "iss": "{other}"}),
    "login_denied_without_iss": _fault("an error comes without iss", "callback",
        change={"code": ABSENT, "error": "access_denied", "iss": ABSENT}),
    "login_error_script": _fault("the error has a script and control characters", "callback",
        change={"code": ABSENT, "error": "<script>alert(1)</script>", "error_description": "\x1b[2J\u202e"}),
    "login_error_and_code": _fault("there are a code and an error", "callback", change={"error": "server_error"}),
}  # fmt: skip

_TOKEN: dict[str, Fault] = {
    "token_html": _fault("the token response is HTML", "token", **_HTML_PAGE),
    "token_500": _fault("the token endpoint fails", "token", **_FAILURE),
    "token_redirect": _fault("the token endpoint redirects to another origin", "token", **_TO_OTHER),
    "token_redirect_same": _fault("the token endpoint redirects to itself", "token",
        status=308, headers={"location": "{issuer}/token"}),
    "token_huge": _fault("the token response has 8 MiB", "token", padding=_HUGE),
    "token_slow": _fault("the token response takes a day", "token", delay=_FOREVER),
    "token_broken": _fault("the connection ends within the token response", "token", broken=True),
    "token_array": _fault("the token response is an array", "token", body="[]"),
    "token_deep": _fault("the token response is nested 100,000 times", "token", body='{"x":' + "[" * 100_000),
    "token_error_200": _fault("an error has the status 200", "token", **_error("invalid_grant", 200)),
    "token_type_unknown": _fault("token_type is mac", "token", change={"token_type": "mac"}),
    "token_type_dpop": _fault("token_type is DPoP, without a proof", "token", change={"token_type": "DPoP"}),
    "token_type_null": _fault("token_type is null", "token", change={"token_type": None}),
    "access_token_missing": _fault("access_token is absent", "token", change={"access_token": ABSENT}),
    "access_token_empty": _fault("access_token is empty", "token", change={"access_token": ""}),
    "access_token_header": _fault("access_token has a header in it", "token",
        change={"access_token": "a\r\nHost: x"}),
    "access_token_huge": _fault("access_token has 100,000 characters", "token",
        change={"access_token": "x" * 100_000}),
    "refresh_token_number": _fault("refresh_token is a number", "token", change={"refresh_token": 7}),
    "expires_in_missing": _fault("expires_in is absent", "token", False, change={"expires_in": ABSENT}),
    "expires_in_null": _fault("expires_in is null", "token", False, change={"expires_in": None}),
    "expires_in_text": _fault("expires_in is a text", "token", False, change={"expires_in": "3600"}),
    "expires_in_words": _fault("expires_in is no number", "token", False, change={"expires_in": "soon"}),
    "expires_in_negative": _fault("expires_in is negative", "token", False, change={"expires_in": -1}),
    "expires_in_zero": _fault("expires_in is 0", "token", False, change={"expires_in": 0}),
    "expires_in_huge": _fault("expires_in is 1e300", "token", False, change={"expires_in": 1e300}),
    "scope_null": _fault("scope is null", "token", False, change={"scope": None}),
    "scope_narrowed": _fault("fewer scopes are granted", "token", False, change={"scope": "read"}),
    "no_refresh_token": _fault("there is no refresh token", "token", False, change={"refresh_token": ABSENT}),
    "code_refused": _fault("the code is refused", "token", grants=_CODE, **_error("invalid_grant")),
    "client_unknown": _fault("the client is unknown", "token", **_error("invalid_client", 401)),
    "token_echo": _fault("an error repeats code and verifier", "token", grants=_CODE,
        **_error("invalid_grant", 400, "code {code} with {code_verifier}")),
    "refresh_refused": _fault("the refresh token is refused", "token", grants=_REFRESH, **_error("invalid_grant")),
    "refresh_echo": _fault("an error repeats the refresh token", "token", grants=_REFRESH,
        **_error("invalid_grant", 400, "found {refresh_token}")),
    "refresh_500": _fault("the refresh fails", "token", grants=_REFRESH, **_FAILURE),
    "refresh_500_once": _fault("the first refresh fails", "token", grants=_REFRESH, times=1, **_FAILURE),
    "refresh_html": _fault("the refresh is HTML", "token", grants=_REFRESH, **_HTML_PAGE),
    "refresh_redirect": _fault("the refresh redirects to another origin", "token", grants=_REFRESH, **_TO_OTHER),
    "refresh_late": _fault("the refresh takes 0.3 s", "token", False, grants=_REFRESH, delay=0.3),
    "refresh_unrotated": _fault("a refresh returns no refresh token", "token", False, grants=_REFRESH,
        change={"refresh_token": ABSENT}),
}  # fmt: skip

_OTHER: dict[str, Fault] = {
    "device_slow_down": _fault("polling is too fast, once", "token", False, times=1,
        grants=_DEVICE, **_error("slow_down")),
    "device_expired": _fault("the device code has expired", "token",
        grants=_DEVICE, **_error("expired_token")),
    "device_uri_javascript": _fault("verification_uri is a javascript: URL", "device",
        change={"verification_uri": "javascript:alert(1)", "verification_uri_complete": "javascript:alert(1)"}),
    "device_500": _fault("the device authorization endpoint fails", "device", **_FAILURE),
    "revocation_500": _fault("revocation fails", "revocation", False, **_FAILURE),
    "jwks_500": _fault("the keys fail", "jwks", **_FAILURE),
    "jwks_html": _fault("the keys are HTML", "jwks", **_HTML_PAGE),
    "jwks_empty": _fault("there are no keys", "jwks", change={"keys": []}),
    "jwks_null": _fault("keys is null", "jwks", change={"keys": None}),
    "jwks_huge": _fault("the keys have 8 MiB", "jwks", padding=_HUGE),
    "jwks_slow": _fault("the keys take a day", "jwks", delay=_FOREVER),
    "introspection_500": _fault("introspection fails", "introspection", **_FAILURE),
    "introspection_html": _fault("the introspection is HTML", "introspection", **_HTML_PAGE),
    "introspection_text": _fault("active is a text", "introspection", change={"active": "true"}),
    "introspection_slow": _fault("introspection takes a day", "introspection", delay=_FOREVER),
}  # fmt: skip

_PROGRAM: dict[str, Fault] = {
    "program_scope_refused": _fault("the scope is refused", "token", grants=(*_CREDENTIALS, *_ASSERTION),
        **_error("invalid_scope", 400, "this program may only read")),
    "program_redirect": _fault("the token endpoint redirects a program", "token", grants=(*_CREDENTIALS, *_ASSERTION),
        **_TO_OTHER),
    "program_html": _fault("the token response for a program is HTML", "token", grants=(*_CREDENTIALS, *_ASSERTION),
        **_HTML_PAGE),
    "credentials_unauthorized": _fault("the client may not use its credentials", "token", grants=_CREDENTIALS,
        **_error("unauthorized_client")),
    "credentials_echo": _fault("an error repeats secret and assertion", "token", grants=_CREDENTIALS,
        **_error("invalid_client", 401, "found {client_secret} {client_assertion}")),
    "assertion_refused": _fault("the assertion is refused", "token", grants=_ASSERTION,
        **_error("invalid_grant", 400, "the assertion {assertion} is not accepted")),
    "exchange_refused": _fault("the ID token is not exchanged", "token", grants=_EXCHANGE,
        **_error("access_denied", 403, "the policy refuses {subject_token}")),
    "exchange_of_another_type": _fault("an access token is issued in place of an ID-JAG", "token", grants=_EXCHANGE,
        change={"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}),
    "exchange_without_type": _fault("issued_token_type is absent", "token", grants=_EXCHANGE,
        change={"issued_token_type": ABSENT}),
    "exchange_html": _fault("the exchange is HTML", "token", grants=_EXCHANGE, **_HTML_PAGE),
}  # fmt: skip

_PROOF: dict[str, Fault] = {
    "token_nonce_endless": _fault("the token endpoint demands ever new nonces", "token",
        **_error("use_dpop_nonce"), headers={"dpop-nonce": "next"}),
    "token_nonce_missing": _fault("the token endpoint demands a nonce, and names none", "token",
        **_error("use_dpop_nonce")),
    "resource_nonce_endless": _fault("the resource demands ever new nonces", "challenge",
        **_error("use_dpop_nonce", 401),
        headers={"dpop-nonce": "next", "www-authenticate": 'DPoP error="use_dpop_nonce"'}),
    "proof_refused": _fault("the proof is refused", "token", **_error("invalid_dpop_proof")),
    "proof_ignored": _fault("the token is not bound to the key", "token", False, change={"token_type": "Bearer"}),
}  # fmt: skip

FAULTS: dict[str, Fault] = {
    **_RESOURCE,
    **_METADATA,
    **_REGISTRATION,
    **_CALLBACK,
    **_TOKEN,
    **_OTHER,
    **_PROGRAM,
    **_PROOF,
}
"""Every fault, by name."""


def select_faults(names: Iterable[str]) -> dict[str, Fault]:
    """Return faults by their names. Raises `ValueError` for an unknown name."""
    unknown = sorted(set(names) - FAULTS.keys())
    if unknown:
        raise ValueError(f"unknown faults {unknown}; there are {', '.join(FAULTS)}")
    return {name: fault for name, fault in FAULTS.items() if name in set(names)}
