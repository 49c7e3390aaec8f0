"""Secrets of requests appear in no log of any level, in no error with its causes, in no response and in no repr."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from accord import APIKeys, Principal
from accord.auth.steps import OAuthRequest
from accord.errors import AccordError
from accord.server.auth import token_verifier
from accord.server.auth.alternatives import Alternatives
from accord.server.auth.introspection import Introspection
from accord.server.auth.jwt import JWT
from accord.server.auth.jwt_claims import parse_jwt, split_jwt
from accord.server.http.options import HTTPOptions
from accord.transport.http.credentials import BearerToken, RefusedRequest

from tests.server.auth.issuer import AUDIENCE, Issuer, Possessor, Sent, issuing
from tests.server.auth.test_dpop import FORGERIES as PROOFS
from tests.server.auth.test_forged_tokens import FORGERIES as TOKENS, Counting
from tests.server.http.http_clients import Modern, site

SECRET = "s3cret-of-the-shop-71ab"
FEWEST = 12
"""Shorter parts of a token are found in other texts by chance."""


@pytest.fixture(autouse=True)
def every_line(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Every refusal is logged, not one a second, and every logger logs everything."""
    monkeypatch.setattr(token_verifier, "_LOG_SECONDS", 0.0)
    with caplog.at_level(logging.NOTSET), caplog.at_level(logging.NOTSET, "accord"):
        yield


def parts_of(*secrets: str) -> set[str]:
    """The secrets, and the parts of tokens: the signature is what makes one."""
    parts = {part for secret in secrets for part in (secret, *secret.split("."))}
    return {part for part in parts if len(part) >= FEWEST}


async def shown(caplog: pytest.LogCaptureFixture, attempt: Awaitable[Any]) -> str:
    """What is to be read after an attempt: the log, the error with its causes, and reprs."""
    texts = []
    try:
        texts.append(repr(await attempt))
    except AccordError as exc:
        texts += ["".join(traceback.format_exception(exc)), repr(exc), repr(vars(exc))]
    formatter = logging.Formatter("%(message)s")
    texts += [formatter.format(record) + repr(record.args) for record in caplog.records]
    return "\n".join(texts)


@pytest.mark.parametrize("name", TOKENS)
async def test_a_refused_token_is_not_shown(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with issuing() as issuer:
        issuer.documents["/introspect"] = {"active": False}
        token = TOKENS[name](issuer)
        for auth in (JWT(issuer.url, AUDIENCE), introspected(issuer), APIKeys({"another-key": "ann"})):
            for each in (auth, Alternatives([auth])):
                text = await shown(caplog, each.authenticate(Sent(token)))
                assert not [part for part in parts_of(token) if part in text], text
        assert "was refused" in caplog.text


@pytest.mark.parametrize("name", PROOFS)
async def test_a_refused_proof_and_its_token_are_not_shown(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer)
        headers = PROOFS[name](holder, "POST")
        scheme, _, token = headers["authorization"].partition(" ")
        sent = Sent(
            token, scheme, **{name.lower(): value for name, value in headers.items() if name != "authorization"}
        )
        text = await shown(caplog, auth.authenticate(sent))
        private = holder.key.as_dict(private=True)["d"]
        assert not [part for part in {*parts_of(token, headers.get("dpop", "")), str(private)} if part in text], text


def introspected(issuer: Issuer) -> Introspection:
    return Introspection(issuer.url, client_id="shop", client_secret=SECRET, endpoint=f"{issuer.url}/introspect")


ECHOES: dict[str, tuple[int, Callable[[str], Any]]] = {
    "the token in a description": (
        400,
        lambda token: {"error": "invalid_request", "error_description": f"bad {token}"},
    ),
    "the token as error": (400, lambda token: {"error": token}),
    "the secret in a description": (401, lambda token: {"error": "invalid_client", "error_description": SECRET}),
    "the whole request": (400, lambda token: {"error": "e", "error_description": f"token={token}&secret={SECRET}"}),
    "the token in place of a document": (200, lambda token: token),
    "the token where a number belongs": (200, lambda token: {"active": True, "sub": "a", "exp": token}),
    "the token as issuer": (200, lambda token: {"active": True, "sub": "a", "iss": token}),
    "the token as audience": (200, lambda token: {"active": True, "sub": "a", "aud": token}),
}


@pytest.mark.parametrize("name", ECHOES)
async def test_what_an_issuer_repeats_is_not_shown(name: str, caplog: pytest.LogCaptureFixture) -> None:
    token = "0paque-token-of-ann-93f1c2d4"
    async with issuing() as issuer:
        issuer.status, document = ECHOES[name][0], ECHOES[name][1](token)
        issuer.documents["/introspect"] = document
        text = await shown(caplog, introspected(issuer).authenticate(Sent(token)))
        assert "accord: " in caplog.text
        assert not [secret for secret in (token, SECRET) if secret in text], text


class Failing:
    """An `auth` that raises an error with the whole header."""

    def __init__(self, make: Callable[[str], BaseException]) -> None:
        self._make = make

    async def authenticate(self, request: Any) -> Principal:
        raise self._make(request.headers[b"authorization"].decode())


@pytest.mark.parametrize("make", [ValueError, KeyError, lambda header: RuntimeError({"sent": header}), ConnectionError])
async def test_an_auth_that_fails_with_the_header_does_not_show_it(
    make: Callable[[str], BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    token = "t0ken-of-ann-5d0c8e7f1a"
    async with site(Counting(Failing(make))) as here:
        answer = await Modern(here.raw, authorization=f"Bearer {token}").call("call")
        text = (await answer.body()).decode() + json.dumps(answer.headers) + caplog.text
    assert answer.status == 500
    assert "failed to authenticate" in caplog.text
    assert token not in text


async def test_a_whole_call_shows_neither_token_nor_proof(caplog: pytest.LogCaptureFixture) -> None:
    async with issuing() as issuer:
        holder = Possessor(issuer)
        auth = [JWT(issuer.url, AUDIENCE), APIKeys({SECRET: "ann"})]
        proof = holder.proof()
        async with site(
            Counting(Alternatives(auth)), options=HTTPOptions(public_url=AUDIENCE, access_log=True)
        ) as here:
            texts = []
            for headers in (
                {"authorization": f"Bearer {SECRET}"},
                {"authorization": f"Bearer {issuer.token()}"},
                {"authorization": f"DPoP {holder.token}", "dpop": proof},
                {"authorization": f"DPoP {holder.token}", "dpop": proof},
            ):
                answer = await Modern(here.raw, **headers).call("call")
                texts.append((await answer.body()).decode() + json.dumps(answer.headers))
        assert not [part for part in parts_of(SECRET, holder.token, proof) if part in caplog.text + "".join(texts)]


async def test_no_repr_shows_a_secret() -> None:
    async with issuing() as issuer:
        holder = Possessor(issuer)
        token, proof = holder.token, holder.proof()
        auth = [JWT(issuer.url, AUDIENCE), introspected(issuer), APIKeys({SECRET: "ann"})]
        principal = await auth[0].authenticate(Sent(token, "DPoP", dpop=proof))
        sent = {"authorization": f"DPoP {token}", "dpop": proof}
        values = [
            *(*auth, Alternatives(auth), principal, principal.claims, BearerToken(SECRET)),
            *(parse_jwt(token.encode()), split_jwt(proof.encode())),
            RefusedRequest("POST", AUDIENCE, 401, [], {"set-cookie": SECRET}, sent, 0),
            OAuthRequest("a", "POST", AUDIENCE, {"authorization": SECRET}, {"token": token}),
        ]
        assert not [part for part in parts_of(SECRET, token, proof) if part in repr(values)]
