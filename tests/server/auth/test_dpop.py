"""Tokens that are bound to a key: only a request with a new proof for it, with that key, is accepted."""

from __future__ import annotations

import json
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from accord import Client
from accord.auth.credential_store import CredentialStore
from accord.auth.oauth import OAuth
from accord.errors import DeclarationError
from accord.server.auth import dpop
from accord.server.auth.alternatives import Alternatives
from accord.server.auth.dpop import DPoPNonces
from accord.server.auth.introspection import Introspection
from accord.server.auth.jwt import JWT
from accord.server.auth.refusals import InsufficientScope, InvalidProof, InvalidToken, Unauthorized
from accord.server.http.options import HTTPOptions
from accord.testing import AuthServer

from tests.server.auth.issuer import (
    AUDIENCE,
    ES256,
    OTHER,
    Issuer,
    Possessor,
    Sent,
    encoded,
    forged,
    issuing,
    public_part,
)
from tests.server.auth.test_forged_tokens import MESSAGES, METHODS, Counting
from tests.server.http.http_clients import Modern, site
from tests.server.http.raw import BASIC, served

Headers = dict[str, str]
Forgery = Callable[[Possessor, str], Headers]
"""Makes the headers of a request with this method to the URL of the possessor."""


def bound(holder: Possessor, proof: str | None) -> Headers:
    return {"authorization": f"DPoP {holder.token}"} | ({} if proof is None else {"dpop": proof})


def proven(header: dict[str, Any] | None = None, **claims: Any) -> Forgery:
    """A proof of the right key, with changes."""
    return lambda holder, method: bound(holder, holder.proof(method, header=header, **claims))


def of_key(key: Any, **header: Any) -> Forgery:
    """A proof of another key, which the proof names."""
    return lambda holder, method: bound(holder, holder.proof(method, header, key))


def signed_by(key: Any) -> Forgery:
    """A proof that names the right key, and is signed with another."""
    return lambda holder, method: bound(holder, holder.proof(method, {"jwk": public_part(holder.key)}, key))


def changed(change: Callable[[str], str]) -> Forgery:
    return lambda holder, method: bound(holder, change(holder.proof(method)))


def whole(header: bytes | None = None, claims: bytes | None = None) -> Forgery:
    """A proof with any header or claims, signed with the right key."""

    def forge(holder: Possessor, method: str) -> Headers:
        head, payload, _ = holder.proof(method).split(".")
        proof = forged(header or _decoded(head), claims or _decoded(payload), holder.key)
        return bound(holder, proof)

    return forge


def _decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def as_bearer(holder: Possessor, method: str) -> Headers:
    return {"authorization": f"Bearer {holder.token}", "dpop": holder.proof(method)}


def two_proofs(holder: Possessor, method: str) -> Headers:
    return {**bound(holder, holder.proof(method)), "DPoP": holder.proof(method)}


def claim_twice(holder: Possessor, method: str) -> Headers:
    head, payload, _ = holder.proof(method).split(".")
    claims = b'{"htm":"GET",' + _decoded(payload)[1:]
    return bound(holder, forged(_decoded(head), claims, holder.key))


def unsigned(holder: Possessor, method: str) -> Headers:
    _, payload, _ = holder.proof(method).split(".")
    head = encoded({"alg": "none", "typ": "dpop+jwt", "jwk": public_part(holder.key)})
    return bound(holder, f"{head}.{payload}.")


def other_method(holder: Possessor, method: str) -> Headers:
    return bound(holder, holder.proof("GET" if method == "POST" else "POST"))


NOW = int(time.time())
RSA = RSAKey.generate_key(2048)
FORGERIES: dict[str, Forgery] = {
    "no proof": lambda holder, method: bound(holder, None),
    "an empty proof": lambda holder, method: bound(holder, ""),
    "as a bearer token": as_bearer,
    "as a bearer token without a proof": lambda holder, method: {"authorization": f"Bearer {holder.token}"},
    "two proofs": two_proofs,
    "two proofs in one header": lambda holder, method: bound(holder, f"{holder.proof(method)}, {holder.proof(method)}"),
    "the token as proof": lambda holder, method: bound(holder, holder.token),
    "no algorithm": unsigned,
    "the type of a token": proven({"typ": "at+jwt"}),
    "the type JWT": proven({"typ": "JWT"}),
    "no type": proven({"typ": None}),
    "a critical header": proven({"crit": ["exp"]}),
    "no key": proven({"jwk": None}),
    "a key that is null": whole(b'{"alg":"ES256","typ":"dpop+jwt","jwk":null}'),
    "a key by its id": proven({"jwk": None, "kid": "ec"}),
    "a key by its URL": proven({"jwk": None, "jku": "http://127.0.0.1:9/jwks"}),
    "the private key": lambda holder, method: bound(
        holder, holder.proof(method, header={"jwk": holder.key.as_dict(private=True)})
    ),
    "another key": of_key(ECKey.generate_key("P-256")),
    "another key on another curve": of_key(ECKey.generate_key("P-384")),
    "another key of another kind": of_key(RSA),
    "a secret": of_key(OctKey.generate_key(256), jwk={"kty": "oct", "k": "c2VjcmV0"}),
    "the key of the issuer": of_key(ES256),
    "the right key, and the signature of another": signed_by(OTHER),
    "the right key with an unknown point": proven({"jwk": {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "AAAA"}}),
    "the right key as one of another curve": lambda holder, method: bound(
        holder, holder.proof(method, header={"jwk": public_part(holder.key) | {"crv": "P-384"}})
    ),
    "the algorithm HS256": proven({"alg": "HS256"}),
    "the algorithm RS256 for a key of ES256": proven({"alg": "RS256"}),
    "another method": other_method,
    "the method in lower case": lambda holder, method: bound(holder, holder.proof(method.lower())),
    "no method": proven(htm=None),
    "another host": proven(htu="https://other.example/mcp"),
    "another path": proven(htu="https://shop.example/other"),
    "a longer path": proven(htu=f"{AUDIENCE}/admin"),
    "a path with dots": proven(htu=f"{AUDIENCE}/../mcp"),
    "another scheme": proven(htu="http://shop.example/mcp"),
    "another port": proven(htu="https://shop.example:8443/mcp"),
    "a port that is no number": proven(htu="https://shop.example:x/mcp"),
    "a user in the URL": proven(htu="https://shop.example@shop.example/mcp"),
    "a path without a host": proven(htu="/mcp"),
    "the path in other case": proven(htu="https://shop.example/MCP"),
    "no URL": proven(htu=None),
    "an empty URL": proven(htu=""),
    "no time": proven(iat=None),
    "a time as text": proven(iat=str(NOW)),
    "a time of the past": proven(iat=NOW - 100),
    "a time of the future": proven(iat=NOW + 10_000),
    "an endless time": whole(claims=b'{"htm":"POST","htu":"https://shop.example/mcp","jti":"a","ath":"b","iat":1e400}'),
    "a time of 400 digits": proven(iat=10**400),
    "no id": proven(jti=None),
    "an empty id": proven(jti=""),
    "a long id": proven(jti="x" * 1_000),
    "an id that is a number": proven(jti=7),
    "no digest of the token": proven(ath=None),
    "the digest of another token": proven(ath=encoded(sha256(b"other").digest())),
    "the digest in hexadecimal": lambda holder, method: bound(
        holder, holder.proof(method, ath=sha256(holder.token.encode()).hexdigest())
    ),
    "truncated": changed(lambda proof: proof[:-4]),
    "an empty signature": changed(lambda proof: proof.rpartition(".")[0] + "."),
    "a signature of zeros": changed(lambda proof: f"{proof.rpartition('.')[0]}.{encoded(bytes(64))}"),
    "other claims": changed(lambda proof: ".".join([proof.split(".")[0], encoded({"htm": "POST"}), "AAAA"])),
    "claims twice": claim_twice,
    "claims that are a list": whole(claims=b"[]"),
    "a header that is a list": whole(header=b"[]"),
    "deep": whole(claims=b'{"a":' + b"[" * 3_000 + b"]" * 3_000 + b"}"),
    "long": proven(extra="x" * 9_000),
    "not ASCII": lambda holder, method: bound(holder, "é"),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_no_forged_proof_reaches_a_handler(name: str) -> None:
    async with issuing() as issuer:
        server, holder = Counting(JWT(issuer.url, AUDIENCE)), Possessor(issuer)
        forge = FORGERIES[name]
        async with site(server, options=HTTPOptions(public_url=AUDIENCE)) as here:
            for message in MESSAGES:
                headers = {**Modern(here.raw).head(message), **forge(holder, "POST")}
                await check_refused(here, holder, "POST", "/mcp", headers, json.dumps(message).encode())
            for path, (url, methods) in PATHS.items():
                holder.url = url
                for method in methods:
                    headers = {**BASIC, "accept": "text/event-stream", **forge(holder, method)}
                    await check_refused(here, holder, method, path, headers)
            assert server.runs == 0
            holder.url = AUDIENCE
            answer = await Modern(here.raw, **bound(holder, holder.proof())).call("call")
            assert (answer.status, server.runs) == (200, 1)
            await answer.body()


PATHS = {
    "/mcp": (AUDIENCE, METHODS),
    "/": (AUDIENCE, METHODS),
    "/sse": ("https://shop.example/sse", ["GET"]),
    "/messages": ("https://shop.example/messages", ["POST"]),
}


async def check_refused(
    here: Any, holder: Possessor, method: str, path: str, headers: Headers, body: bytes = b"{}"
) -> None:
    answer = await (await here.raw.begin(method, path, headers, body)).start()
    text = (await answer.body()).decode()
    assert answer.status == 401, text
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith("DPoP ")
    assert re.search('error="(invalid_dpop_proof|invalid_token|use_dpop_nonce)"', challenge)
    assert 'algs="ES256' in challenge
    assert holder.token not in text + challenge


@pytest.mark.parametrize("path", PATHS)
async def test_a_proof_is_accepted_on_every_route_once(path: str) -> None:
    url, methods = PATHS[path]
    async with issuing() as issuer:
        holder = Possessor(issuer)
        holder.url = url
        async with site(Counting(JWT(issuer.url, AUDIENCE)), options=HTTPOptions(public_url=AUDIENCE)) as here:
            for method in methods:
                headers = {**BASIC, "accept": "application/json", **bound(holder, holder.proof(method))}
                answer = await (await here.raw.begin(method, path, headers, b"{}")).start()
                assert answer.status not in (401, 403)
                await answer.leave()
                await check_refused(here, holder, method, path, headers)
                other = "PUT" if method == "POST" else "POST"
                headers |= {"dpop": holder.proof(method)}
                if path in ("/mcp", "/"):
                    await check_refused(here, holder, other, path, headers)


# --- proofs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [ECKey.generate_key("P-256"), ECKey.generate_key("P-384"), OKPKey.generate_key("Ed25519"), RSA],
    ids=["P-256", "P-384", "Ed25519", "RSA"],
)
async def test_keys_of_clients_of_every_kind_are_accepted(key: Any) -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer, key)
        for _ in range(3):
            principal = await auth.authenticate(holder.sent())
            assert principal.thumbprint == key.thumbprint()


@pytest.mark.parametrize("bits", [1024, 8192])
async def test_keys_that_are_weak_or_slow_are_refused(bits: int) -> None:
    numbers = {"kty": "RSA", "e": "AQAB", "n": encoded(b"\x80" + bytes(bits // 8 - 2) + b"\x01")}
    text = json.dumps(numbers, separators=(",", ":"), sort_keys=True).encode()
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer, RSA)
        holder.token = issuer.token(cnf={"jkt": encoded(sha256(text).digest())})
        with pytest.raises(InvalidProof, match="the key of the proof is not valid"):
            await auth.authenticate(holder.sent(header={"jwk": numbers}))


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/mcp?a=b",
        "https://shop.example/mcp#a",
        "https://shop.example/mcp/",
        "HTTPS://SHOP.example/mcp",
        "https://shop.example:443/mcp",
        "https://shop.example/%6dcp",
    ],
)
async def test_equivalent_urls_are_accepted(url: str) -> None:
    async with issuing() as issuer:
        assert await JWT(issuer.url, AUDIENCE).authenticate(Possessor(issuer).sent(htu=url))


async def test_a_proof_is_accepted_once_and_for_each_token_on_its_own() -> None:
    async with issuing() as issuer:
        auth, key = JWT(issuer.url, AUDIENCE), ECKey.generate_key("P-256")
        first, second = Possessor(issuer, key), Possessor(issuer, key, jti="n-2")
        again = first.sent()
        await auth.authenticate(again)
        with pytest.raises(InvalidProof, match="used before"):
            await auth.authenticate(again)
        with pytest.raises(InvalidProof, match="for another token"):
            await auth.authenticate(Sent(second.token, "DPoP", dpop=first.proof()))
        await auth.authenticate(second.sent())


async def test_each_proof_is_verified_with_the_key_of_its_token() -> None:
    async with issuing() as issuer:
        auth, ann, bob = JWT(issuer.url, AUDIENCE), Possessor(issuer), Possessor(issuer, sub="bob")
        for _ in range(2):
            assert (await auth.authenticate(ann.sent())).id.endswith(" ann")
            assert (await auth.authenticate(bob.sent())).id.endswith(" bob")
            with pytest.raises(InvalidProof, match="signature"):
                await auth.authenticate(bob.sent(signer=ann.key, header={"jwk": public_part(bob.key)}))
            with pytest.raises(InvalidProof, match="another key"):
                await auth.authenticate(bob.sent(signer=ann.key))


async def test_the_signature_is_verified_last_and_only_with_the_key_of_the_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has no valid token, or a token for another key, cannot make the server verify signatures."""
    verified = []
    monkeypatch.setattr(dpop, "is_signed", lambda *parts: verified.append(parts) or False)
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer)
        for sent in (
            Sent(issuer.token(exp=1), "DPoP", dpop=holder.proof()),
            Sent(holder.token, "DPoP", dpop=holder.proof(signer=OTHER)),
            holder.sent(htm="GET"),
            holder.sent(iat=1),
        ):
            with pytest.raises(Unauthorized):
                await auth.authenticate(sent)
        assert not verified
        with pytest.raises(InvalidProof, match="signature"):
            await auth.authenticate(holder.sent())
        assert len(verified) == 1


# --- tokens ------------------------------------------------------------------------------------------------------


async def test_a_token_without_a_key_is_a_bearer_token() -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer)
        holder.token = issuer.token()
        with pytest.raises(InvalidToken, match="not bound to a key"):
            await auth.authenticate(holder.sent())
        assert (await auth.authenticate(Sent(holder.token))).thumbprint is None


@pytest.mark.parametrize(
    "confirmation",
    [{}, {"jkt": "x"}, {"jkt": 7}, {"x5t#S256": "a" * 43}, {"jkt": "a" * 43, "x5t#S256": "b"}, {"jwk": {}}, [], "a", 1],
)
async def test_tokens_that_are_bound_in_other_ways_are_refused(confirmation: Any) -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer)
        holder.token = issuer.token(cnf=confirmation)
        for sent in (holder.sent(), Sent(holder.token)):
            with pytest.raises(InvalidToken, match="in a way that is not supported"):
                await auth.authenticate(sent)


async def test_a_bound_token_is_refused_as_bearer_token_before_and_after_it_was_seen() -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer)
        for _ in range(2):
            with pytest.raises(InvalidProof, match="bound to a key") as caught:
                await auth.authenticate(Sent(holder.token, "Bearer", dpop=holder.proof()))
            assert str(caught.value.challenge).startswith('DPoP error="invalid_token"')
            await auth.authenticate(holder.sent())


async def test_a_server_may_require_proofs() -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE, dpop="required"), Possessor(issuer)
        server = Counting(auth)
        async with site(server, options=HTTPOptions(public_url=AUDIENCE)) as here:
            for authorization in ({}, {"authorization": f"Bearer {issuer.token()}"}):
                answer = await Modern(here.raw, **authorization).call("call")
                challenge = answer.headers["www-authenticate"]
                assert (answer.status, challenge.startswith("DPoP ")) == (401, True)
                assert 'algs="ES256 ' in challenge
                assert "resource_metadata=" in challenge
                assert ("error=" in challenge) == bool(authorization)
                await answer.body()
            answer = await here.raw.send("GET", "/.well-known/oauth-protected-resource/mcp", BASIC)
            metadata = await answer.json()
            assert metadata["dpop_bound_access_tokens_required"] is True
            assert "ES256" in metadata["dpop_signing_alg_values_supported"]
            assert (await Modern(here.raw, **bound(holder, holder.proof())).call("call")).status == 200
            assert server.runs == 1


async def test_a_missing_scope_is_demanded_in_the_scheme_of_the_request() -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE, required_scopes=("write",)), Possessor(issuer)
        with pytest.raises(InsufficientScope):
            await auth.authenticate(holder.sent())
        async with site(Counting(auth), options=HTTPOptions(public_url=AUDIENCE)) as here:
            for headers, scheme in (
                (bound(holder, holder.proof()), "DPoP"),
                ({"authorization": f"Bearer {issuer.token()}"}, "Bearer"),
            ):
                answer = await Modern(here.raw, **headers).call("call")
                assert answer.status == 403
                assert answer.headers["www-authenticate"].startswith(f'{scheme} error="insufficient_scope"')
                await answer.body()


async def test_introspected_tokens_may_be_bound_too() -> None:
    async with issuing() as issuer:
        holder = Possessor(issuer)
        holder.token = "opaque"
        issuer.documents["/introspect"] = {"active": True, "sub": "ann", "cnf": {"jkt": holder.key.thumbprint()}}
        auth = introspected(issuer)
        with pytest.raises(InvalidProof):
            await auth.authenticate(Sent("opaque"))
        assert (await auth.authenticate(holder.sent())).thumbprint == holder.key.thumbprint()


async def test_the_verifier_that_knows_a_token_decides_about_its_proof() -> None:
    async with issuing() as first, issuing() as second:
        holder = Possessor(first)
        holder.token = "opaque"
        first.documents["/introspect"] = {"active": True, "sub": "ann", "cnf": {"jkt": holder.key.thumbprint()}}
        auth = Alternatives([introspected(first), introspected(second)])
        for _ in range(2):
            with pytest.raises(InvalidProof, match="another method"):
                await auth.authenticate(holder.sent(htm="GET"))
        assert not second.counts
        assert (await auth.authenticate(holder.sent())).issuer == first.url


def introspected(issuer: Issuer, **options: Any) -> Introspection:
    endpoint = f"{issuer.url}/introspect"
    return Introspection(issuer.url, client_id="a", client_secret="b", endpoint=endpoint, **options)


async def test_without_joserfc_bearer_tokens_are_accepted_and_bound_ones_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dpop, "find_spec", lambda name: None)
    async with issuing() as issuer:
        auth, holder = introspected(issuer), Possessor(issuer)
        issuer.documents["/introspect"] = {"active": True, "sub": "ann"}
        assert await auth.authenticate(Sent("bearer"))
        issuer.documents["/introspect"]["cnf"] = {"jkt": holder.key.thumbprint()}
        holder.token = "bound"
        for sent in (holder.sent(), Sent("bound")):
            with pytest.raises(InvalidToken, match="only bearer tokens"):
                await auth.authenticate(sent)
        assert not auth.proof_algorithms
        with pytest.raises(DeclarationError, match=r"accord\[auth\]"):
            introspected(issuer, dpop="required")


@pytest.mark.parametrize("options", [{"dpop": "on"}, {"dpop": True}, {"dpop_nonces": "short"}])
def test_options_are_checked_at_declaration(options: Any) -> None:
    with pytest.raises(DeclarationError, match="dpop"):
        JWT("https://login.example", AUDIENCE, **options)


# --- nonces ------------------------------------------------------------------------------------------------------


async def test_a_nonce_is_demanded_and_the_next_one_comes_with_a_success() -> None:
    async with issuing() as issuer:
        holder, clock = Possessor(issuer), Clock()
        auth = JWT(issuer.url, AUDIENCE, dpop_nonces=True)
        auth._proofs._nonces = DPoPNonces(clock=clock)  # type: ignore[union-attr]
        server = Counting(auth)
        async with site(server, options=HTTPOptions(public_url=AUDIENCE)) as here:

            async def call(nonce: str | None) -> tuple[int, str | None, str | None]:
                answer = await Modern(here.raw, **bound(holder, holder.proof(nonce=nonce))).call("call")
                await answer.body()
                return answer.status, answer.headers.get("dpop-nonce"), answer.headers.get("www-authenticate")

            status, first, challenge = await call(None)
            assert status == 401
            assert str(challenge).startswith('DPoP error="use_dpop_nonce"')
            assert await call(first) == (200, None, None)
            clock.now += 60
            status, second, _ = await call(first)
            assert (status, second != first) == (200, True)
            clock.now += 60
            status, third, _ = await call(first)
            assert (status, third != second) == (401, True)
            assert (await call(second))[0] == 200
            assert (await call("x" * 24))[0] == 401
            assert server.runs == 3


@pytest.mark.parametrize("wrong", [-3_600, 3_600])
async def test_a_client_whose_clock_is_wrong_gets_a_nonce(wrong: int) -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE), Possessor(issuer)
        for _ in range(2):
            sent = holder.sent(iat=NOW + wrong, nonce="of another server")
            with pytest.raises(InvalidProof) as caught:
                await auth.authenticate(sent)
            assert str(caught.value.challenge).startswith('DPoP error="use_dpop_nonce"')
            ((name, nonce),) = sent.response_headers
            assert name == b"dpop-nonce"
            again = holder.sent(iat=NOW + wrong, nonce=nonce.decode())
            assert await auth.authenticate(again)
            with pytest.raises(InvalidProof, match="used before"):
                await auth.authenticate(again)


async def test_with_nonces_the_clock_of_the_client_does_not_matter() -> None:
    async with issuing() as issuer:
        auth, holder = JWT(issuer.url, AUDIENCE, dpop_nonces="a secret of the servers"), Possessor(issuer)
        nonce = DPoPNonces(b"a secret of the servers").current()
        assert await auth.authenticate(holder.sent(nonce=nonce, iat=1))
        with pytest.raises(InvalidProof, match="nonce"):
            await auth.authenticate(holder.sent())
        proof = holder.sent(nonce=nonce, iat=2)
        await auth.authenticate(proof)
        with pytest.raises(InvalidProof, match="used before"):
            await auth.authenticate(proof)


def test_nonces_of_another_secret_are_not_accepted() -> None:
    clock = Clock()
    nonces, same, other = (DPoPNonces(key, clock) for key in (b"a", b"a", None))
    assert nonces.accepts(same.current())
    assert not nonces.accepts(other.current())
    assert not nonces.accepts(None)
    assert not nonces.accepts("")


class Clock:
    now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


# --- together with a client --------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("nonces", [False, True])
async def test_a_client_logs_in_and_its_copied_token_is_of_no_use(revision: str, nonces: bool, tmp_path: Path) -> None:
    async with AuthServer() as login, served(Later()) as socket:  # type: ignore[arg-type]
        url = f"http://127.0.0.1:{socket.port}/mcp"
        server = Counting(JWT(login.issuer, url, dpop="required", dpop_nonces=nonces))
        Later.app = server.asgi()

        async def authorize(page: str) -> str:
            return login.callback(page)

        oauth = OAuth(authorize=authorize, store=CredentialStore(tmp_path / "credentials.db"))
        async with Client(url, auth=oauth, revisions=[revision]) as client:
            assert (await client.call_tool("call")).text == "secret of the shop"
            assert [(await client.call_tool("call")).text for _ in range(3)]
        (token,) = {token.value for token in login._tokens.tokens.values() if token.kind == "access_token"}
        for scheme in ("Bearer", "DPoP"):
            raw = await Modern(socket, authorization=f"{scheme} {token}").call("call")
            assert raw.status == 401
            await raw.body()
        assert server.runs == 4
        await server.app.drain(1)


async def test_a_client_takes_over_the_next_nonce_without_a_refusal(tmp_path: Path) -> None:
    clock, refusals = Clock(), []
    async with AuthServer() as login, served(Later()) as socket:  # type: ignore[arg-type]
        url = f"http://127.0.0.1:{socket.port}/mcp"
        auth = JWT(login.issuer, url, dpop="required", dpop_nonces=True)
        auth._proofs._nonces = DPoPNonces(clock=clock)  # type: ignore[union-attr]
        check = auth.authenticate

        async def counted(request: Any) -> Any:
            try:
                return await check(request)
            except Unauthorized as exc:
                refusals.append(exc)
                raise

        auth.authenticate = counted  # type: ignore[method-assign]
        Later.app = Counting(auth).asgi()

        async def authorize(page: str) -> str:
            return login.callback(page)

        oauth = OAuth(authorize=authorize, store=CredentialStore(tmp_path / "credentials.db"))
        async with Client(url, auth=oauth) as client:
            await client.call_tool("call")
            before = len(refusals)
            for _ in range(5):
                clock.now += 60
                assert (await client.call_tool("call")).text == "secret of the shop"
    assert len(refusals) == before


class Later:
    """An application that is made once its port is known."""

    app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    async def drain(self, seconds: float) -> bool:
        return bool(await self.app.drain(seconds))

    async def close(self) -> None:
        await self.app.close()
