"""Clients that log in wrongly, each a single change of a right one, and the rule that must catch it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

import msgspec
from yarl import URL

from accord import ClientCredentials
from accord.auth import code_grant, credentials, discovery, http, user_grants
from accord.auth.challenge import parse_challenges
from accord.auth.code_grant import begin_authorization, redeem_code, select_scopes
from accord.auth.credential_store import CredentialStore
from accord.auth.credentials import GrantCredentials
from accord.auth.metadata import AuthorizationServerMetadata
from accord.auth.registration import ClientRegistration, identify_client
from accord.auth.steps import OAuthRequest
from accord.auth.tokens import refresh_tokens
from accord.auth.urls import origin_of, resource_metadata_urls, server_metadata_urls
from accord.client import authorization
from accord.errors import AuthorizationError
from accord.transport.http.fetcher import Fetcher

from tests.check.clients.mutants import NEW, on
from tests.check.clients.wrong import EXAMPLE, Change, Said, mutant

OLD = "2025-03-26"
_SEND = Fetcher._send
_FIND_RESOURCE = discovery._find_resource


def with_parameters(url: str, **changes: str | None) -> str:
    """A URL with other parameters; those that are None are left out."""
    parts = urlsplit(url)
    changed = {**dict(parse_qsl(parts.query)), **changes}
    return parts._replace(query=urlencode({name: value for name, value in changed.items() if value})).geturl()


def asks_for(**changes: str | None) -> Callable[[Change], None]:
    """A change of the authorization request."""
    return lambda change: change.visited.append(lambda url: with_parameters(url, **changes))


def begins_with(change: Change, choose: Callable[[Callable[[], str]], list[str]]) -> None:
    """Choose other values for the state and the verifier."""

    def begin(found: Any, client: Any, uri: str, scopes: list[str], random_text: Any, **options: Any) -> Any:
        texts = iter(choose(random_text))
        return begin_authorization(found, client, uri, scopes, lambda: next(texts), **options)

    change.patches.append((user_grants, "begin_authorization", begin))


def in_form(request: OAuthRequest, **changes: str | None) -> OAuthRequest:
    """A request with other members in its form, if it has one."""
    if request.form is None:
        return request
    form = {name: value for name, value in {**request.form, **changes}.items() if value is not None}
    return msgspec.structs.replace(request, form=form)


def registers(**changes: Any) -> Callable[[Change], None]:
    """A change of the metadata that the client registers."""

    def changed(request: OAuthRequest) -> OAuthRequest:
        if request.json is None:
            return request
        document = {name: value for name, value in {**request.json, **changes}.items() if value is not None}
        return msgspec.structs.replace(request, json=document)

    return lambda change: change.oauth_requests.append(changed)


# --- requests --------------------------------------------------------------------------------------------------------


@mutant("client-auth/login", over="http")
def forgets_its_token(change: Change) -> None:
    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        return verb, {name: value for name, value in headers.items() if name.lower() != "authorization"}


@mutant("client-auth/response-type", over="http")
def wants_the_token_at_once(change: Change) -> None:
    asks_for(response_type="token")(change)


@mutant("client-auth/pkce", over="http")
def sends_no_challenge(change: Change) -> None:
    asks_for(code_challenge=None, code_challenge_method=None)(change)


@mutant("client-auth/pkce", over="http")
def keeps_its_verifier(change: Change) -> None:
    change.oauth(lambda request: in_form(request, code_verifier=None))


@mutant("client-auth/fresh-pkce", over="http")
def has_one_verifier_for_ever(change: Change) -> None:
    begins_with(change, lambda random_text: [random_text(), "v" * 43])


@mutant("client-auth/state", over="http")
def sends_no_state(change: Change) -> None:
    asks_for(state=None)(change)


@mutant("client-auth/state", over="http")
def has_one_state_for_ever(change: Change) -> None:
    begins_with(change, lambda random_text: ["s" * 43, random_text()])


@mutant("client-auth/resource", over="http")
def names_no_resource_to_the_token_endpoint(change: Change) -> None:
    change.oauth(lambda request: in_form(request, resource=None))


@mutant("client-auth/resource", over="http", revision=NEW)
def names_no_resource_to_the_user(change: Change) -> None:
    asks_for(resource=None)(change)


@mutant("client-auth/resource-value", over="http")
def names_another_resource(change: Change) -> None:
    asks_for(resource="https://other.example/mcp")(change)


@mutant("client-auth/specific-resource", over="http")
def names_the_resource_with_a_slash_more(change: Change) -> None:
    change.oauth(lambda request: in_form(request, resource=f"{request.form['resource']}/" if request.form else None))


@mutant("client-auth/redirect-uri", over="http")
def has_a_redirect_uri_at_http(change: Change) -> None:
    change.login["redirect_uri"] = "http://client.example/callback"


@mutant("client-auth/redirect-uri", over="http")
def registers_another_redirect_uri(change: Change) -> None:
    registers(redirect_uris=["http://127.0.0.1/other"])(change)


@mutant("client-auth/token-request", over="http")
def sends_token_requests_as_json(change: Change) -> None:
    @change.oauth
    def _(request: OAuthRequest) -> OAuthRequest:
        return request if request.form is None else msgspec.structs.replace(request, form=None, json=request.form)


@mutant("client-auth/code-once", over="http")
def redeems_a_code_twice(change: Change) -> None:
    def twice(*arguments: Any) -> Any:
        yield from redeem_code(*arguments)
        return (yield from redeem_code(*arguments))

    change.patches.append((user_grants, "redeem_code", twice))


@mutant("client-auth/bearer", over="http")
def forgets_its_token_once(change: Change) -> None:
    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        if body and on("prompts/list", body):
            headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
        return verb, headers


@mutant("client-auth/token-in-url", over="http")
def puts_its_token_into_the_url(change: Change) -> None:
    async def send(self: Fetcher, verb: str, url: URL, headers: Mapping[str, str], body: Any, what: str) -> Any:
        _, _, token = headers.get("authorization", "").partition(" ")
        if token:
            url = url.with_query(access_token=token)
        return await _SEND(self, verb, url, headers, body, what)

    change.patches.append((Fetcher, "_send", send))


def _redirected(self: Fetcher, response: Any, *_: Any) -> URL:
    return URL(response.headers["Location"])


@mutant("client-auth/token-elsewhere", over="http")
def takes_its_token_along(change: Change) -> None:
    change.patches.append((Fetcher, "_redirect_target", _redirected))


@mutant("client-auth/server-redirect", over="http")
def follows_its_server_with_its_token(change: Change) -> None:
    change.patches.append((Fetcher, "_redirect_target", _redirected))


@mutant("client-auth/issuer-tokens", over="http")
def sends_a_token_of_its_own(change: Change) -> None:
    @change.http
    def _(verb: str, headers: dict[str, str], body: Any) -> tuple[str, dict[str, str]]:
        return verb, {**headers, "authorization": "Bearer own"} if body and on("prompts/list", body) else headers


# --- discovery -------------------------------------------------------------------------------------------------------


@mutant("client-auth/well-known-path", over="http")
def asks_at_the_root_only(change: Change) -> None:
    change.patches.append((discovery, "resource_metadata_urls", lambda server: resource_metadata_urls(server)[1:]))


@mutant("client-auth/well-known-root", over="http")
def asks_at_the_root_first(change: Change) -> None:
    change.patches.append((discovery, "resource_metadata_urls", lambda server: resource_metadata_urls(server)[::-1]))


@mutant("client-auth/named-metadata", over="http")
def ignores_the_url_of_the_challenge(change: Change) -> None:
    change.patches.append((discovery, "_find_resource", lambda server, challenge: _FIND_RESOURCE(server, None)))


@mutant("client-auth/challenges", over="http")
def knows_one_challenge_only(change: Change) -> None:
    def parse(values: Any) -> Any:
        return parse_challenges([each for each in values if each.startswith("Bearer")])

    change.patches.append((credentials, "parse_challenges", parse))


def asks_at(choose: Callable[[list[str]], list[str]]) -> Callable[[Change], None]:
    """A change of the well-known URIs of an issuer."""
    return lambda change: change.patches.append(
        (discovery, "server_metadata_urls", lambda issuer: choose(server_metadata_urls(issuer)))
    )


@mutant("client-auth/issuer-path", over="http")
def drops_the_path_of_the_issuer(change: Change) -> None:
    asks_at(lambda urls: [each.removesuffix("/tenant1") for each in urls])(change)


@mutant("client-auth/oidc", over="http")
def knows_no_openid(change: Change) -> None:
    asks_at(lambda urls: urls[:1])(change)


@mutant("client-auth/oidc-inserted", over="http")
def appends_openid_only(change: Change) -> None:
    asks_at(lambda urls: [urls[0], urls[-1]])(change)


@mutant("client-auth/oidc-appended", over="http")
def inserts_openid_only(change: Change) -> None:
    asks_at(lambda urls: urls[:2])(change)


@mutant("client-auth/oidc-appended", over="http", revision=NEW)
def asks_in_another_order(change: Change) -> None:
    asks_at(lambda urls: urls[::-1])(change)


@mutant("client-auth/metadata-at-origin", over="http", revision=OLD)
def needs_metadata_of_a_resource(change: Change) -> None:
    def refuse(server: str) -> Any:
        raise AuthorizationError("discovery", "there is no resource metadata")

    change.patches.append((discovery, "_metadata_at_origin", refuse))


@mutant("client-auth/metadata-version", over="http", revision=OLD)
def asks_for_metadata_without_a_version(change: Change) -> None:
    change.oauth(lambda request: msgspec.structs.replace(request, headers={}) if request.method == "GET" else request)


@mutant("client-auth/default-paths", over="http", revision=OLD)
def takes_the_default_paths_at_once(change: Change) -> None:
    def guess(server: str) -> Any:
        yield from ()
        at = origin_of(server)
        return AuthorizationServerMetadata(
            issuer=at,
            authorization_endpoint=f"{at}/authorize",
            token_endpoint=f"{at}/token",
            registration_endpoint=f"{at}/register",
            code_challenge_methods_supported=["S256"],
        )

    change.patches.append((discovery, "_metadata_at_origin", guess))


# --- metadata --------------------------------------------------------------------------------------------------------


@mutant("client-auth/pkce-stated", over="http")
def takes_pkce_for_supported(change: Change) -> None:
    change.login["assume_pkce"] = True


@mutant("client-auth/no-plain", over="http")
def takes_the_method_that_is_stated(change: Change) -> None:
    def begin(found: Any, *arguments: Any, **options: Any) -> Any:
        pending = begin_authorization(found, *arguments, **options | {"assume_pkce": True})
        (method, *_) = found.metadata.code_challenge_methods_supported or ["S256"]
        return msgspec.structs.replace(pending, url=with_parameters(pending.url, code_challenge_method=method))

    change.patches.append((user_grants, "begin_authorization", begin))


@mutant("client-auth/metadata-issuer", over="http")
def does_not_look_at_the_issuer(change: Change) -> None:
    @change.reads
    def _(request: OAuthRequest, document: Said) -> Said:
        return {**document, "issuer": origin_of(request.url)} if "issuer" in document else document


@mutant("client-auth/exact-issuer", over="http", revision=NEW)
def normalizes_issuers(change: Change) -> None:
    @change.reads
    def _(request: OAuthRequest, document: Said) -> Said:
        return {**document, "issuer": document["issuer"].rstrip("/")} if "issuer" in document else document


@mutant("client-auth/metadata-resource", over="http")
def takes_any_resource(change: Change) -> None:
    change.patches.append((discovery, "covers", lambda resource, server: True))


def goes_anywhere(change: Change) -> None:
    """Use URLs without a look at their scheme and address."""
    change.patches.append((discovery, "check_url", lambda url, what: urlsplit(url)))
    change.patches.append((http.OAuthClient, "_check_destination", lambda self, url, step: None))


@mutant("client-auth/https-endpoints", over="http")
def sends_secrets_over_http(change: Change) -> None:
    goes_anywhere(change)


@mutant("client-auth/safe-metadata", over="http")
def fetches_from_anywhere(change: Change) -> None:
    goes_anywhere(change)


@mutant("client-auth/token-redirect", over="http")
def follows_the_token_endpoint(change: Change) -> None:
    change.patches.append(
        (http, "_redirect_target", lambda request, response, url: urljoin(url, response.headers["Location"]))
    )


# --- registration ----------------------------------------------------------------------------------------------------


@mutant("client-auth/registration", over="http")
def registers_without_redirect_uris(change: Change) -> None:
    registers(redirect_uris=None)(change)


@mutant("client-auth/application-type", over="http", revision=NEW)
def registers_without_a_type(change: Change) -> None:
    registers(application_type=None)(change)


@mutant("client-auth/native", over="http", revision=NEW)
def registers_as_a_web_application(change: Change) -> None:
    registers(application_type="web")(change)


@mutant("client-auth/refresh-grant", over="http", revision=NEW)
def registers_without_refresh(change: Change) -> None:
    registers(grant_types=["authorization_code"])(change)


@mutant("client-auth/client-id", over="http")
def makes_up_a_client_id(change: Change) -> None:
    change.login["client_id"] = "made-up"


@mutant("client-auth/given-client-id", over="http")
def makes_up_a_client_id_where_it_cannot_register(change: Change) -> None:
    change.login["client_id"] = "made-up"


@mutant("client-auth/document-url", over="http")
def has_a_document_at_http(change: Change) -> None:
    change.login["client_id"] = "http://client.example/metadata.json"


@mutant("client-auth/document-stated", over="http")
def uses_its_document_everywhere(change: Change) -> None:
    change.login["client_id"] = "https://client.example/metadata.json"


@mutant("client-auth/document-first", over="http")
def registers_although_it_has_a_document(change: Change) -> None:
    change.login["client_metadata_url"] = "https://client.example/metadata.json"

    def identify(metadata: Any, identity: Any, *more: Any) -> Any:
        yield from identify_client(metadata, msgspec.structs.replace(identity, metadata_url=None), *more)
        return (yield from identify_client(metadata, identity, *more))

    change.patches.append((user_grants, "identify_client", identify))


@mutant("client-auth/client-credentials", over="http", revision=NEW)
def sends_no_secret(change: Change) -> None:
    async def main(target: str) -> None:
        async with EXAMPLE.client_for(target, auth=ClientCredentials("accord-check-client", secret="secret")) as opened:
            await opened.list_tools()

    change.main = main
    change.oauth(lambda request: msgspec.structs.replace(request, headers={}))


@mutant("client-auth/registration-refused", over="http", revision=NEW)
def goes_on_without_registration(change: Change) -> None:
    def identify(metadata: Any, identity: Any, *more: Any) -> Any:
        try:
            return (yield from identify_client(metadata, identity, *more))
        except AuthorizationError:
            return ClientRegistration(metadata.issuer, "accord", "given")

    change.patches.append((user_grants, "identify_client", identify))


@mutant("client-auth/credentials-by-issuer", over="http", revision=NEW)
def has_one_client_id_for_all_issuers(change: Change) -> None:
    load, save = CredentialStore.load_registration, CredentialStore.save_registration

    async def load_any(self: CredentialStore, issuer: str, name: str) -> Any:
        return await load(self, "any", name)

    async def save_any(self: CredentialStore, name: str, client: ClientRegistration) -> None:
        await save(self, name, msgspec.structs.replace(client, issuer="any"))

    change.patches.append((CredentialStore, "load_registration", load_any))
    change.patches.append((CredentialStore, "save_registration", save_any))
    change.patches.append((ClientRegistration, "is_valid", lambda self, *_: True))


# --- scopes ----------------------------------------------------------------------------------------------------------


@mutant("client-auth/challenge-scopes", over="http")
def requests_no_scope(change: Change) -> None:
    asks_for(scope=None)(change)


@mutant("client-auth/least-scopes", over="http")
def requests_all_scopes(change: Change) -> None:
    asks_for(scope="read write admin")(change)


@mutant("client-auth/metadata-scopes", over="http")
def requests_one_scope(change: Change) -> None:
    asks_for(scope="read")(change)


@mutant("client-auth/no-scopes", over="http")
def requests_a_scope_of_its_own(change: Change) -> None:
    asks_for(scope="mcp")(change)


@mutant("client-auth/step-up", over="http")
def gives_up_after_403(change: Change) -> None:
    change.patches.append((GrantCredentials, "_needs_login", lambda self, refusal: refusal.status == 401))


@mutant("client-auth/scope-union", over="http", revision=NEW)
def drops_what_it_had(change: Change) -> None:
    def select(found: Any, previous: list[str], chosen: Any) -> list[str]:
        return select_scopes(found, [], chosen)

    change.patches.append((user_grants, "select_scopes", select))


@mutant("client-auth/step-up-limit", over="http")
def steps_up_for_ever(change: Change) -> None:
    change.patches.append((GrantCredentials, "_needs_login", lambda self, refusal: True))
    change.patches.append((authorization, "_MAX_LOGINS", 20))
    change.patches.append((credentials, "_LOGIN_PERIOD_SECONDS", 0))


# --- responses -------------------------------------------------------------------------------------------------------


@mutant("client-auth/state-verified", over="http")
def does_not_compare_the_state(change: Change) -> None:
    change.patches.append((code_grant, "compare_digest", lambda one, other: True))


def checks_iss(check: Callable[[str, str | None, bool], bool]) -> Callable[[Change], None]:
    """A change of the comparison: it gets the issuer, the iss of the callback, and whether iss is stated."""

    def compare(pending: Any, found: str | None) -> None:
        metadata = pending.discovery.metadata
        if not check(metadata.issuer, found, bool(metadata.authorization_response_iss_parameter_supported)):
            raise AuthorizationError("authorization", "iss is another one")

    return lambda change: change.patches.append((code_grant, "_check_issuer", compare))


@mutant("client-auth/iss", over="http", revision=NEW)
def does_not_read_iss(change: Change) -> None:
    checks_iss(lambda issuer, found, stated: True)(change)


@mutant("client-auth/iss", over="http", revision=NEW)
def reads_iss_where_it_is_stated(change: Change) -> None:
    checks_iss(lambda issuer, found, stated: found == issuer or not stated)(change)


@mutant("client-auth/exact-iss", over="http", revision=NEW)
def normalizes_iss(change: Change) -> None:
    checks_iss(lambda issuer, found, stated: (found or "").rstrip("/") == issuer)(change)


@mutant("client-auth/iss-missing", over="http", revision=NEW)
def reads_iss_where_it_is_there(change: Change) -> None:
    checks_iss(lambda issuer, found, stated: found in (None, issuer))(change)


@mutant("client-auth/iss-optional", over="http", revision=NEW)
def requires_iss_of_everybody(change: Change) -> None:
    checks_iss(lambda issuer, found, stated: found == issuer)(change)


@mutant("client-auth/iss-of-errors", over="http", revision=NEW)
def shows_what_an_attacker_writes(change: Change) -> None:
    checks_iss(lambda issuer, found, stated: True)(change)


@mutant("client-auth/mix-up", over="http", revision=NEW)
def sends_codes_to_whom_it_began_with(change: Change) -> None:
    checks_iss(lambda issuer, found, stated: True)(change)


@mutant("client-auth/denied", over="http")
def waits_for_a_code(change: Change) -> None:
    async def visit(url: str) -> str:
        callback: str = await EXAMPLE.visit(url)
        while "error=" in callback:
            await asyncio.sleep(1)
        return callback

    change.login["authorize"] = visit


# --- tokens ----------------------------------------------------------------------------------------------------------


async def _gives_up(self: GrantCredentials, refusal: Any) -> bool:
    return False


@mutant("client-auth/expired", over="http")
def gives_up_when_its_token_expires(change: Change) -> None:
    change.patches.append((GrantCredentials, "retry", _gives_up))
    change.patches.append((GrantCredentials, "_needs_login", lambda self, refusal: self._login is None))


@mutant("client-auth/refresh", over="http")
def asks_the_user_again(change: Change) -> None:
    change.patches.append((GrantCredentials, "retry", _gives_up))


@mutant("client-auth/rotated-token", over="http")
def does_not_store_the_new_refresh_token(change: Change) -> None:
    def refresh(metadata: Any, authentication: Any, tokens: Any, *arguments: Any) -> Any:
        renewed = yield from refresh_tokens(metadata, authentication, tokens, *arguments)
        return msgspec.structs.replace(renewed, refresh_token=tokens.refresh_token)

    change.patches.append((credentials, "refresh_tokens", refresh))


@mutant("client-auth/rotation", over="http")
def refreshes_once(change: Change) -> None:
    seen: set[str] = set()

    def refresh(metadata: Any, *arguments: Any) -> Any:
        if metadata.issuer in seen:
            raise AuthorizationError("refresh", "it was refreshed already")
        seen.add(metadata.issuer)
        return (yield from refresh_tokens(metadata, *arguments))

    change.patches.append((credentials, "refresh_tokens", refresh))


@mutant("client-auth/no-refresh-token", over="http", revision=NEW)
def needs_a_refresh_token(change: Change) -> None:
    @change.reads
    def _(request: OAuthRequest, document: Said) -> Said:
        if "access_token" in document and "refresh_token" not in document:
            raise AuthorizationError("token response", "there is no refresh token")
        return document


@mutant("client-auth/concurrent", over="http")
def sends_one_request_after_the_other(change: Change) -> None:
    locks: dict[int, asyncio.Lock] = {}

    async def send(self: Fetcher, *arguments: Any) -> Any:
        async with locks.setdefault(id(self), asyncio.Lock()):
            return await _SEND(self, *arguments)

    change.patches.append((Fetcher, "_send", send))
