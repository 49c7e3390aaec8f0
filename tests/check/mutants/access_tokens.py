"""Servers that accept tokens that they should refuse: each leaves one check out."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from accord import Server

from tests.check.mutants.change import Change, HTTPReply
from tests.check.mutants.guarded import AUDIENCE, careless, trusting
from tests.check.mutants.table import mutant

Part = dict[str, Any]


def _mutant(rule: str, server: Callable[[str], Server]) -> Callable[[Callable[[Change], None]], Any]:
    return mutant(rule, over="http", server=server, trusts_checker=True)


def _is_unverified(header: Part, claims: Part, reason: str) -> bool:
    return "the signature" in reason and header.get("kid") == "accord-check" and "jwk" not in header


@_mutant("tokens/signature", careless(_is_unverified))
def it_decodes_tokens_without_verifying_them(change: Change) -> None:
    pass


@_mutant("tokens/unsigned", careless(lambda header, claims, reason: header.get("alg") in ("None", "NONE")))
def only_alg_none_in_small_letters_is_refused(change: Change) -> None:
    pass


@_mutant("tokens/algorithm", careless(lambda header, claims, reason: header.get("alg") == "HS256"))
def a_public_key_is_a_secret(change: Change) -> None:
    pass


@_mutant("tokens/supplied-key", careless(lambda header, claims, reason: "jwk" in header))
def the_key_in_the_token_is_as_good_as_any(change: Change) -> None:
    pass


@_mutant("tokens/unknown-key", careless(lambda header, claims, reason: "the key" in reason))
def with_an_unknown_key_nothing_is_verified(change: Change) -> None:
    pass


@_mutant("tokens/issuer", careless(lambda header, claims, reason: "issuer" in reason and "iss" in claims))
def every_issuer_will_do(change: Change) -> None:
    pass


def _has_no_audience(header: Part, claims: Part, reason: str) -> bool:
    return "aud" not in claims and "exp" in claims


@_mutant("tokens/audience", careless(_has_no_audience))
def a_token_without_an_audience_is_for_everybody(change: Change) -> None:
    pass


def _begins_right(header: Part, claims: Part, reason: str) -> bool:
    return str(claims.get("aud")).startswith(AUDIENCE) and claims.get("aud") != AUDIENCE


@_mutant("tokens/audience", careless(_begins_right))
def an_audience_that_begins_right_is_right(change: Change) -> None:
    pass


@_mutant("tokens/expired", careless(lambda header, claims, reason: _number(claims, "exp") < time.time()))
def tokens_never_expire(change: Change) -> None:
    pass


def _number(claims: Part, name: str) -> float:
    found = claims.get(name)
    return found if isinstance(found, int | float) else float("inf")


@_mutant("tokens/no-expiry", careless(lambda header, claims, reason: "exp" not in claims and "sub" in claims))
def a_token_need_not_expire(change: Change) -> None:
    pass


@_mutant("tokens/not-yet-valid", careless(lambda header, claims, reason: "nbf" in claims))
def the_beginning_of_a_token_is_not_read(change: Change) -> None:
    pass


@_mutant("tokens/kind", careless(lambda header, claims, reason: "at_hash" in claims))
def an_id_token_is_an_access_token(change: Change) -> None:
    pass


@_mutant("tokens/critical", careless(lambda header, claims, reason: "crit" in header))
def critical_headers_are_ignored(change: Change) -> None:
    pass


@_mutant("tokens/malformed", careless(lambda header, claims, reason: not claims))
def without_claims_somebody_is_logged_in(change: Change) -> None:
    pass


_insufficient = partial(mutant, "authorization/insufficient-scope", over="http", server=trusting, trusts_checker=True)


def _reword(reply: HTTPReply, old: str, new: str) -> None:
    reply.headers["www-authenticate"] = reply.headers["www-authenticate"].replace(old, new)


@_insufficient()
def too_few_scopes_are_an_invalid_token(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 403:
            reply.status = 401
            reply.headers["www-authenticate"] = reply.headers["www-authenticate"].replace(
                "insufficient_scope", "invalid_token"
            )


@_insufficient()
def it_does_not_say_which_scopes_are_missing(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 403:
            _reword(reply, 'scope="read"', 'need="read"')


@_insufficient()
def it_names_one_missing_scope_after_the_other(change: Change) -> None:
    @change.reply
    def _(reply: HTTPReply) -> None:
        if reply.status == 403:
            _reword(reply, 'scope="read"', 'scope="basic"')
