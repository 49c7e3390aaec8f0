"""Authorization servers that are wrong: `AuthServer` with one fault, or one change, and the rule that must catch it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from accord.testing import AuthServer
from accord.testing.auth_server import endpoints, grants
from accord.testing.auth_server.endpoints import Endpoints
from accord.testing.auth_server.faults import ABSENT, Effect, Fault
from accord.testing.auth_server.grants import GRANTS
from accord.testing.auth_server.issuer import TokenIssuer
from accord.testing.auth_server.records import Authorization, AuthServerClient, RecordedRequest, Refusal, Reply

NEW, OLD = "2026-07-28", "2025-06-18"
DOCUMENT = "https://client.example/metadata.json"

Patch = pytest.MonkeyPatch
Grant = Callable[[TokenIssuer, AuthServerClient, Mapping[str, str], str | None], Any]


class ServerMutant(NamedTuple):
    """One wrong server. `make` changes the code of `AuthServer` before it is created, `effects` its responses."""

    name: str
    rule: str
    revision: str = NEW
    faults: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    make: Callable[[Patch], None] | None = None
    documents: bool = True
    refuses: bool = False
    """Whether the user refuses."""


MUTANTS: list[ServerMutant] = []


def by_fault(rule: str, *faults: str, revision: str = NEW) -> None:
    """Wrong servers with one fault of `accord.testing` each."""
    MUTANTS.extend(ServerMutant(fault, rule, revision, (fault,)) for fault in faults)


def by_effect(name: str, rule: str, **effect: Any) -> None:
    """A wrong server whose responses of one endpoint differ."""
    MUTANTS.append(ServerMutant(name, rule, effects=(Effect(**effect),)))


def by_change(rule: str) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """A wrong server whose code differs."""

    def add(make: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS.append(ServerMutant(make.__name__, rule, make=make))
        return make

    return add


def serve(mutant: ServerMutant, monkeypatch: Patch) -> AuthServer:
    """The wrong server."""
    if mutant.make is not None:
        mutant.make(monkeypatch)
    user = (lambda attempt: None) if mutant.refuses else (lambda attempt: "alice")
    server = AuthServer(faults=mutant.faults, user=user)
    if mutant.effects:
        server._faults["of a test"] = Fault("a fault of a test", mutant.effects)
    if mutant.documents:
        server.add_document(DOCUMENT, {"client_id": DOCUMENT, "redirect_uris": ["https://client.example/callback"]})
    return server


# --- metadata --------------------------------------------------------------------------------------------------------

by_fault("auth-server/metadata", "metadata_missing", "metadata_html", "metadata_500", "metadata_array")
by_fault("auth-server/metadata", "metadata_empty", "metadata_deep", "metadata_not_utf8")
by_effect("text", "auth-server/content-type", endpoint="metadata", headers={"content-type": "text/plain"})
by_fault("auth-server/issuer", "issuer_mismatch", "issuer_slash", "issuer_missing", "issuer_null")
by_fault("auth-server/members", "authorization_endpoint_missing", "token_endpoint_missing", "token_endpoint_null")
by_fault("auth-server/members", "token_endpoint_number", "token_endpoint_empty")
by_fault("auth-server/https", "authorization_endpoint_javascript", "authorization_endpoint_http", "token_endpoint_http")
by_fault("auth-server/https", "token_endpoint_user", "token_endpoint_fragment", "registration_endpoint_file")
by_fault("auth-server/s256", "s256_missing", "s256_null", "s256_plain")
by_effect(
    "another_token_endpoint",
    "auth-server/same-documents",
    endpoint="metadata/oidc",
    change={"token_endpoint": "{issuer}/other"},
)
by_effect(
    "states_no_method",
    "auth-server/client-credentials",
    endpoint="metadata",
    change={"token_endpoint_auth_methods_supported": ["none"]},
)
by_effect(
    "states_no_algorithm",
    "auth-server/client-credentials",
    endpoint="metadata",
    change={"token_endpoint_auth_signing_alg_values_supported": ABSENT},
)
MUTANTS.append(ServerMutant("no_documents", "auth-server/metadata-documents", documents=False))
by_fault("auth-server/iss-stated", "iss_unstated")
by_fault("auth-server/registration-offered", "registration_missing", revision=OLD)

# --- registration ----------------------------------------------------------------------------------------------------

by_fault("auth-server/registration", "registration_refused", "registration_forbidden", "registration_500")
by_fault("auth-server/registration", "registration_html", "registration_without_id", "registration_id_null")
by_fault("auth-server/registration", "registration_id_number", "registration_id_empty", "registration_status_200")
by_effect("forgets", "auth-server/registration", endpoint="registration", change={"redirect_uris": ABSENT})
by_effect("takes_all", "auth-server/registration-error", endpoint="registration", status=201, body='{"client_id":"x"}')
by_fault("auth-server/registration-error", "registration_forbidden", "registration_html", "registration_500")


@by_change("auth-server/registered-redirects")
def registers_any_redirect_uri(patch: Patch) -> None:
    patch.setattr(endpoints, "_is_allowed", lambda uri: True)


# --- the authorization endpoint --------------------------------------------------------------------------------------


@by_change("auth-server/unregistered-redirect")
def redirects_anywhere(patch: Patch) -> None:
    patch.setattr(endpoints, "_matches", lambda registered, found: True)


@by_change("auth-server/unregistered-redirect")
def compares_beginnings(patch: Patch) -> None:
    patch.setattr(endpoints, "_matches", lambda registered, found: found.startswith(registered))


@by_change("auth-server/unregistered-redirect")
def compares_hosts(patch: Patch) -> None:
    patch.setattr(endpoints, "_matches", lambda registered, found: found.partition("/c")[0] in registered)


def _knows_everybody(patch: Patch) -> None:
    find = TokenIssuer.find_client

    def find_any(self: TokenIssuer, client_id: str) -> AuthServerClient:
        try:
            return find(self, client_id)
        except Refusal:
            return AuthServerClient(client_id=client_id, redirect_uris=["https://accord-check.invalid/callback"])

    patch.setattr(TokenIssuer, "find_client", find_any)
    patch.setattr(endpoints, "_matches", lambda registered, found: True)


@by_change("auth-server/unknown-client")
def redirects_for_anybody(patch: Patch) -> None:
    _knows_everybody(patch)


@by_change("auth-server/document-url")
def takes_any_url_for_a_client(patch: Patch) -> None:
    _knows_everybody(patch)


MUTANTS.append(ServerMutant("refuses_logins", "auth-server/login", refuses=True))
by_fault("auth-server/login", "code_missing", "code_empty", "login_denied")
by_fault("auth-server/state", "state_changed", "state_missing")
by_fault("auth-server/iss", "iss_missing", "iss_of_another", "iss_slash", "iss_empty")
by_effect(
    "unstated", "auth-server/iss", endpoint="metadata",
    change={"authorization_response_iss_parameter_supported": ABSENT},
)  # fmt: skip


@by_change("auth-server/pkce-required")
def needs_no_pkce(patch: Patch) -> None:
    code = Endpoints._code
    challenge = {"code_challenge": "c" * 43, "code_challenge_method": "S256"}
    patch.setattr(Endpoints, "_code", lambda self, client, uri, asked: code(self, client, uri, asked | challenge))


by_fault("auth-server/error-response", "state_missing", "iss_missing", "iss_slash")

# --- tokens ----------------------------------------------------------------------------------------------------------

_TOKENS = '{"access_token":"x","token_type":"Bearer"}'

by_fault("auth-server/token-error", "token_html", "token_500", "token_error_200", "token_array")
by_effect("serves_anybody", "auth-server/token-unknown-client", endpoint="token", status=200, body=_TOKENS)
by_fault("auth-server/tokens", "access_token_missing", "access_token_empty", "token_type_null", "token_type_unknown")
by_fault("auth-server/tokens", "token_array", "code_refused")
by_effect("cached", "auth-server/no-store", endpoint="token", headers={"cache-control": ""})
by_fault("auth-server/short-lived", "expires_in_missing", "expires_in_null", "expires_in_words", "expires_in_negative")
by_fault("auth-server/short-lived", "expires_in_huge")
by_fault("auth-server/rotation", "refresh_unrotated", "refresh_refused", "refresh_500")


def by_grant(rule: str, grant: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A wrong server that does something before a grant: with the issuer, the client and the form."""

    def add(before: Callable[..., None]) -> Callable[..., None]:
        def make(patch: Patch) -> None:
            issue = GRANTS[grant]

            def changed(issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: Any) -> Any:
                form = dict(form)
                before(issuer, client, form)
                return issue(issuer, client, form, key)

            patch.setitem(GRANTS, grant, changed)

        MUTANTS.append(ServerMutant(before.__name__, rule, make=make))
        return before

    return add


def _authorization(issuer: TokenIssuer, form: Mapping[str, str]) -> Authorization:
    return issuer.codes.get(form.get("code", "")) or Authorization("", "", [])


@by_grant("auth-server/code-replay", "authorization_code")
def redeems_codes_again(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    _authorization(issuer, form).redeemed = False


@by_change("auth-server/replay-revokes")
def does_not_revoke(patch: Patch) -> None:
    redeem = GRANTS["authorization_code"]

    def changed(issuer: TokenIssuer, client: AuthServerClient, form: Mapping[str, str], key: Any) -> Any:
        try:
            return redeem(issuer, client, form, key)
        finally:
            _authorization(issuer, form).revoked = False

    patch.setitem(GRANTS, "authorization_code", changed)


@by_grant("auth-server/verifier", "authorization_code")
def does_not_compare_the_verifier(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    _authorization(issuer, form).challenge = grants.encoded_digest(form.get("code_verifier", ""))


@by_grant("auth-server/verifier", "authorization_code")
def compares_the_verifier_if_there_is_one(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    if not form.get("code_verifier"):
        does_not_compare_the_verifier(issuer, client, form)


@by_grant("auth-server/redirect-match", "authorization_code")
def does_not_compare_the_redirect_uri(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    form.pop("redirect_uri", None)


@by_grant("auth-server/code-client", "authorization_code")
def serves_any_client(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    _authorization(issuer, form).client_id = client.client_id


@by_grant("auth-server/rotation", "refresh_token")
def accepts_used_refresh_tokens(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    if (token := issuer.tokens.get(form["refresh_token"])) is not None:
        token.rotated = False


@by_grant("auth-server/refresh-client", "refresh_token")
def refreshes_for_any_client(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    if (token := issuer.tokens.get(form["refresh_token"])) is not None:
        token.authorization.client_id = client.client_id


@by_grant("auth-server/refresh-scope", "refresh_token")
def grants_what_is_requested(issuer: TokenIssuer, client: AuthServerClient, form: dict[str, str]) -> None:
    if "scope" in form:
        issuer.tokens[form["refresh_token"]].scopes = form["scope"].split()


@by_change("auth-server/audience")
def ignores_the_resource(patch: Patch) -> None:
    issue = TokenIssuer.access_token
    patch.setattr(TokenIssuer, "access_token", lambda self, *of: issue(self, *of, aud="https://other.example"))


@by_change("auth-server/revocation")
def revokes_nothing(patch: Patch) -> None:
    patch.setattr(Endpoints, "_revoke", lambda self, request: Reply())


def _refuses(self: Endpoints, request: RecordedRequest) -> Reply:
    raise Refusal("unsupported_token_type")


@by_change("auth-server/revocation")
def refuses_revocation(patch: Patch) -> None:
    patch.setattr(Endpoints, "_revoke", _refuses)
