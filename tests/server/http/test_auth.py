"""Who asks: keys, and a seam that lets nobody in by accident."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import APIKeys, Context, Principal, Server, Unauthorized
from accord.errors import DeclarationError
from accord.messages.revision import REVISIONS
from accord.server import run
from accord.server.http.auth import Auth, AuthFailed, Forbidden, Refused, Request, identify
from accord.server.peer import Peer

from tests.server.raw import raw_peer

KEY = "key-of-ann-5f2c9e"


@dataclass
class Sent:
    """A request, as much of it as an `Auth` may look at."""

    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    method: str = "POST"
    path: str = "/mcp"


def with_header(value: bytes) -> Sent:
    return Sent({b"authorization": value})


def keys() -> APIKeys:
    return APIKeys({KEY: "ann", "key-of-bob": Principal("bob", frozenset({"read"})), "older-key-of-ann": "ann"})


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["Bearer %s", "bearer %s", "BEARER %s", "Bearer   %s"])
async def test_a_key_tells_whose_it_is(form: str) -> None:
    assert await keys().authenticate(with_header((form % KEY).encode())) == Principal("ann")
    assert await keys().authenticate(with_header((form % "key-of-bob").encode())) == Principal(
        "bob", frozenset({"read"})
    )


async def test_two_keys_may_be_one_persons() -> None:
    assert await keys().authenticate(with_header(b"Bearer older-key-of-ann")) == Principal("ann")


WRONG = [
    b"",
    b"Bearer",
    b"Bearer ",
    KEY.encode(),
    b"Bearer" + KEY.encode(),
    b"Bearer\t" + KEY.encode(),
    b" Bearer " + KEY.encode(),
    b"Bearer " + KEY.encode() + b" ",
    b"Bearer " + KEY.encode() + b"\n",
    b"Bearer " + KEY.encode() + b"\x00",
    b"Bearer " + KEY.encode()[:-1],
    b"Bearer " + KEY.encode() + b"x",
    b"Bearer " + KEY.upper().encode(),
    b'Bearer "' + KEY.encode() + b'"',
    b"Bearer " + KEY.encode() + b", Bearer " + KEY.encode(),
    b"Bearer Bearer " + KEY.encode(),
    b"Basic " + KEY.encode(),
    b"Token " + KEY.encode(),
    b"Bearer ann",
    b"Bearer null",
    b"Bearer *",
    b"Bearer \xff\xfe",
    b"Bearer " + KEY.replace("a", "\u0430").encode(),
    b"Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.",
    b"Bearer ../../" + KEY.encode(),
    b"Bearer " + b"x" * 1_000_000,
]


@pytest.mark.parametrize("header", WRONG)
async def test_whatever_is_no_key_is_unauthorized(header: bytes) -> None:
    with pytest.raises(Unauthorized) as caught:
        await keys().authenticate(with_header(header))
    assert caught.value.status == 401
    assert caught.value.challenge == 'Bearer error="invalid_token"'
    assert KEY not in str(caught.value)


async def test_without_a_key_the_challenge_says_how_to_send_one_and_no_error() -> None:
    # RFC 6750, 3.1: without authentication information, "the resource server SHOULD NOT include an error code"
    with pytest.raises(Unauthorized, match="Authorization: Bearer KEY") as caught:
        await keys().authenticate(Sent())
    assert caught.value.challenge == "Bearer"


@pytest.mark.parametrize("name", [b"x-api-key", b"proxy-authorization", b"cookie", b"Authorization"])
async def test_a_key_in_another_place_does_not_count(name: bytes) -> None:
    with pytest.raises(Unauthorized):
        await keys().authenticate(Sent({name: b"Bearer " + KEY.encode()}, path=f"/mcp?key={KEY}"))


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1), st.binary())
def test_a_key_opens_and_nothing_else_does(key: str, other: bytes) -> None:
    table = APIKeys({key: "ann"})

    async def whose(sent: bytes) -> str | None:
        try:
            return (await table.authenticate(with_header(b"Bearer " + sent))).id
        except Unauthorized:
            return None

    assert asyncio.run(whose(key.encode())) == "ann"
    if other.lstrip(b" ") != key.encode():
        assert asyncio.run(whose(other)) is None


def test_keys_do_not_show() -> None:
    table = keys()
    assert repr(table) == str(table) == "APIKeys(<3 keys>)"
    held = [getattr(table, name) for name in table.__slots__]
    assert KEY not in repr(held)
    assert KEY.encode() not in b"".join(table._principals)
    with pytest.raises(TypeError):
        pickle.dumps(table)


def test_digests_of_one_key_differ_from_process_to_process() -> None:
    first, second = APIKeys({KEY: "ann"}), APIKeys({KEY: "ann"})
    assert first._principals.keys() != second._principals.keys()


@pytest.mark.parametrize("table", [{}, None, [], "key", {"key"}, [("key", "ann")]])
def test_what_is_no_table_of_keys_is_refused_when_declared(table: Any) -> None:
    with pytest.raises(DeclarationError, match="a table that is not empty"):
        APIKeys(table)


@pytest.mark.parametrize("key", ["", " ", "a b", "a\n", "schlüssel", None, b"bytes", 7])
def test_a_key_that_no_header_can_bring_is_refused_without_being_shown(key: Any) -> None:
    with pytest.raises(DeclarationError, match="the key of 'ann'") as caught:
        APIKeys({key: "ann"})
    assert not str(key).strip() or repr(key) not in str(caught.value)


# --- principals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["", None, 7, b"ann"])
def test_a_principal_is_somebody(id: Any) -> None:
    with pytest.raises(DeclarationError, match="not empty"):
        Principal(id)
    with pytest.raises(DeclarationError, match="not empty"):
        APIKeys({"key": id})


@pytest.mark.parametrize("scopes", ["read", {"read"}, ["read"], None])
def test_scopes_are_a_frozenset(scopes: Any) -> None:
    with pytest.raises(DeclarationError, match="frozenset"):
        Principal("ann", scopes)


def test_principals_are_values() -> None:
    assert {Principal("ann"): 1}[Principal("ann")] == 1
    assert Principal("ann") != Principal("ann", frozenset({"read"}))
    with pytest.raises(AttributeError):
        Principal("ann").id = "bob"  # type: ignore[misc]


# --- the seam -----------------------------------------------------------------------------------------------------


class Does:
    """An `Auth` that does what it is told: returns it, or raises it."""

    def __init__(self, what: Any) -> None:
        self.what = what

    async def authenticate(self, request: Request) -> Principal:
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what  # type: ignore[no-any-return]


async def test_identify_says_who_asks() -> None:
    auth: Auth = keys()
    assert await identify(auth, with_header(b"Bearer key-of-bob")) == Principal("bob", frozenset({"read"}))


@pytest.mark.parametrize(
    "refused", [Unauthorized("who?"), Forbidden("not you", challenge='Bearer error="insufficient_scope"')]
)
async def test_a_refusal_comes_as_it_is(refused: Refused) -> None:
    with pytest.raises(Refused) as caught:
        await identify(Does(refused), Sent())
    assert caught.value is refused


FAULTS = [
    RuntimeError("down"),
    KeyError("sub"),
    TimeoutError(),
    SystemExit(0),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    BaseExceptionGroup("many", [ValueError("a"), SystemExit(1)]),
    DeclarationError("an empty id"),
]


@pytest.mark.parametrize("fault", [*FAULTS, None, "", "ann", True, {"id": "ann"}, Principal], ids=repr)
async def test_a_fault_of_an_auth_lets_nobody_in(fault: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "accord"), pytest.raises(AuthFailed) as caught:
        await identify(Does(fault), Sent())
    assert caught.value.status == 500
    assert "down" not in str(caught.value)
    (record,) = caplog.records
    assert "Does could not tell who asks" in record.getMessage()
    assert type(fault).__name__ in record.getMessage()


async def test_an_auth_that_is_silent_lets_nobody_in() -> None:
    class Silent:
        async def authenticate(self, request: Request) -> Principal:
            await asyncio.Event().wait()
            return Principal("ann")

    with pytest.raises(AuthFailed):
        await identify(Silent(), Sent(), 0.01)


async def test_a_cancel_of_the_request_stays_one() -> None:
    entered = asyncio.Event()

    class Waits:
        async def authenticate(self, request: Request) -> Principal:
            entered.set()
            await asyncio.Event().wait()
            return Principal("ann")

    task = asyncio.create_task(identify(Waits(), Sent(), 30))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


SECRETS = [KEY, "a.b.c-d_e+f/g==", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl", "hunter2hunter2"]


@pytest.mark.parametrize("secret", SECRETS)
async def test_the_log_of_a_fault_does_not_hold_what_was_sent(secret: str, caplog: pytest.LogCaptureFixture) -> None:
    class Quotes:
        async def authenticate(self, request: Request) -> Principal:
            try:
                raise ValueError(f"cannot decode {secret!r}, password=correct-horse")
            except ValueError as exc:
                raise RuntimeError(f"bad header: Bearer {secret}") from exc

    with caplog.at_level(logging.DEBUG), pytest.raises(AuthFailed) as caught:
        await identify(Quotes(), with_header(f"Bearer {secret}".encode()))
    assert secret not in caplog.text
    assert "correct-horse" not in caplog.text
    assert "bad header" in caplog.text  # the rest is there, to find the fault by
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("challenge", ["", "Bearer\r\nset-cookie: a=b", "Bearer é", "Bearer \x00"])
def test_a_challenge_is_one_line_of_ascii(challenge: str) -> None:
    with pytest.raises(ValueError, match="on one line"):
        Unauthorized("no", challenge=challenge)


# --- what a handler learns ----------------------------------------------------------------------------------------


def who_asks() -> Server:
    server = Server("test", "1")

    @server.tool
    async def who(ctx: Context) -> str:
        return ctx.principal.id if ctx.principal is not None else "nobody was asked"

    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_handler_learns_who_asks(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "Peer", partial(Peer, who=Principal("ann")))
    async with raw_peer(who_asks(), revision) as peer:
        assert (await peer.call("who"))["content"][0]["text"] == "ann"


async def test_where_nobody_was_asked_a_handler_learns_that() -> None:
    async with raw_peer(who_asks()) as peer:
        assert (await peer.call("who"))["content"][0]["text"] == "nobody was asked"
