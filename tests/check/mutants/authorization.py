"""Servers that refuse requests without a valid token in a wrong way, or not at all, and publish wrong metadata."""

from __future__ import annotations

import itertools
from typing import Any
from urllib.parse import parse_qs

from tests.check.mutants.by_hand import posted, respond
from tests.check.mutants.change import Change, HTTPReply
from tests.check.mutants.guarded import KEYS, Wrapped, with_keys, with_login
from tests.check.mutants.table import mutant

LAST, OLD, OLDEST = "2025-11-25", "2025-06-18", "2025-03-26"
CHALLENGE = "www-authenticate"


def _challenge(change: Change, old: str, new: str) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if CHALLENGE in reply.headers:
            reply.headers[CHALLENGE] = reply.headers[CHALLENGE].replace(old, new)


def _metadata(change: Change, **changes: Any) -> None:
    def edit(message: Any) -> Any:
        return {**message, **changes} if isinstance(message, dict) and "resource" in message else message

    change.every(edit)


@mutant("authorization/unauthorized", over="http", server=with_login)
def it_forbids_instead_of_asking_for_a_token(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        reply.status = 403 if reply.status == 401 and "authorization" not in reply.sent else reply.status


@mutant("authorization/every-request", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def lists_need_no_token(change: Change) -> None:
    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        if isinstance(message, dict) and message.get("method") == "tools/list":
            headers.setdefault("authorization", f"Bearer {KEYS[0]}")


@mutant("authorization/every-request", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def only_posts_need_a_token(change: Change) -> None:
    @change.request_headers_by_body
    def _(headers: dict[str, str], message: Any) -> None:
        if message is None:
            headers.setdefault("authorization", f"Bearer {KEYS[0]}")


@mutant("authorization/every-request", revision=LAST, over="http", server=with_keys, tokens=KEYS)
def a_session_is_as_good_as_a_token(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if "mcp-session-id" in headers:
            headers.setdefault("authorization", f"Bearer {KEYS[0]}")


@mutant("authorization/invalid-token", over="http", server=with_keys, tokens=KEYS)
def any_token_will_do(change: Change) -> None:
    @change.request_headers
    def _(headers: dict[str, str]) -> None:
        if headers.get("authorization", "").startswith("Bearer "):
            headers["authorization"] = f"Bearer {KEYS[0]}"


@mutant("authorization/invalid-token", over="http", server=with_login)
def an_invalid_token_is_a_fault_of_the_server(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        reply.status = 500 if "authorization" in reply.sent and reply.status == 401 else reply.status


@mutant("authorization/challenge", over="http", server=with_login)
def its_401_has_no_challenge(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        reply.headers.pop(CHALLENGE, None)


@mutant("authorization/challenge", revision=OLDEST, over="http", server=with_login)
def its_challenge_is_a_sentence(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if CHALLENGE in reply.headers:
            reply.headers[CHALLENGE] = '"please log in"'


@mutant("authorization/error-code", over="http", server=with_login)
def no_token_is_an_invalid_token(change: Change) -> None:
    _challenge(change, "Bearer resource", 'Bearer error="invalid_token", resource')


@mutant("authorization/error-code", over="http", server=with_login)
def an_invalid_token_has_no_error_code(change: Change) -> None:
    _challenge(change, 'error="invalid_token"', 'problem="invalid_token"')


def _reads_the_query() -> Wrapped:
    inner = with_keys().app

    async def app(scope: Any, receive: Any, send: Any) -> None:
        token = parse_qs(scope.get("query_string", b"").decode()).get("access_token")
        extra = [(b"authorization", f"Bearer {token[0]}".encode())] if token else []
        await inner({**scope, "headers": [*scope["headers"], *extra]}, receive, send)

    return Wrapped(app)


@mutant("authorization/query-token", over="http", server=_reads_the_query, tokens=KEYS)
def a_token_may_be_in_the_query(change: Change) -> None:
    pass


@mutant("authorization/token-leak", over="http", server=with_keys, tokens=KEYS)
def it_repeats_the_headers_of_a_request(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        reply.headers["x-sent"] = reply.sent.get("authorization", "")


@mutant("authorization/scope", over="http", server=with_login)
def its_challenge_names_no_scope(change: Change) -> None:
    _challenge(change, ', scope="read"', "")


@mutant("authorization/consistent-scopes", over="http", server=with_login)
def its_challenge_names_other_scopes_each_time(change: Change) -> None:
    numbers = itertools.count()

    @change.reply
    def _(reply: HTTPReply) -> None:
        if CHALLENGE in reply.headers:
            reply.headers[CHALLENGE] = reply.headers[CHALLENGE].replace('scope="read', f'scope="read s{next(numbers)}')


@mutant("authorization/offline-access", over="http", server=with_login)
def its_challenge_wants_a_refresh_token(change: Change) -> None:
    _challenge(change, 'scope="read"', 'scope="read offline_access"')


@mutant("authorization/offline-access", over="http", server=with_login)
def its_metadata_wants_a_refresh_token(change: Change) -> None:
    _metadata(change, scopes_supported=["read", "offline_access"])


@mutant("authorization/conforms", over="http", server=with_keys, tokens=KEYS)
def it_has_keys_of_its_own_kind(change: Change) -> None:
    pass


@mutant("authorization/metadata", over="http", server=with_login)
def the_url_of_its_metadata_is_wrong(change: Change) -> None:
    _challenge(change, "oauth-protected-resource", "oauth-protected-resources")


@mutant("authorization/metadata", over="http", server=with_login)
def its_metadata_names_no_resource(change: Change) -> None:
    _metadata(change, resource=None)


@mutant("authorization/metadata-url", revision=OLD, over="http", server=with_login)
def its_challenge_names_no_metadata(change: Change) -> None:
    _challenge(change, "resource_metadata", "metadata")


@mutant("authorization/resource", over="http", server=with_login)
def its_metadata_is_about_another_server(change: Change) -> None:
    _metadata(change, resource="http://127.0.0.1:9/another-server")


@mutant("authorization/resource-form", over="http", server=with_login)
def its_resource_ends_with_a_slash(change: Change) -> None:
    def edit(message: Any) -> Any:
        mine = isinstance(message, dict) and "resource" in message
        return {**message, "resource": f"http://127.0.0.1:{change.port}/"} if mine else message

    change.every(edit)


@mutant("authorization/servers", over="http", server=with_login)
def its_metadata_names_no_authorization_server(change: Change) -> None:
    _metadata(change, authorization_servers=[])


@mutant("authorization/servers", over="http", server=with_login)
def its_authorization_server_is_a_name(change: Change) -> None:
    _metadata(change, authorization_servers=["login"])


@mutant("authorization/issuers-https", over="http", server=with_login)
def its_authorization_server_is_http(change: Change) -> None:
    _metadata(change, authorization_servers=["http://login.example"])


def _with_token_endpoint_only() -> Wrapped:
    inner = with_keys().app

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/token":
            await posted(scope, receive)
            await respond(send, 400, {"error": "invalid_request"})
        else:
            await inner(scope, receive, send)

    return Wrapped(app)


@mutant("authorization/default-endpoints", revision=OLDEST, over="http", server=_with_token_endpoint_only, tokens=KEYS)
def it_has_neither_metadata_nor_an_authorization_endpoint(change: Change) -> None:
    pass


@mutant("authorization/server-metadata", revision=OLDEST, over="http", server=with_keys, tokens=KEYS)
def its_origin_has_no_metadata(change: Change) -> None:
    pass
