"""Who asks: keys, and a seam that lets nobody in by accident."""

from __future__ import annotations

import asyncio
import logging
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import APIKeys, Context, Principal, Server, Unauthorized
from accord.errors import DeclarationError
from accord.messages.revision import REVISIONS
from accord.server.auth.authentication import Auth, AuthRequest, identify
from accord.server.auth.refusals import AuthenticationFailed, AuthRefused, Forbidden
from accord.server.http.options import HTTPOptions

from tests.server.http.http_clients import Legacy, Modern, Stateful, encode, quick, site, text
from tests.server.raw import raw_peer

KEY = "key-of-ann-5f2c9e"


@dataclass
class Sent:
    """A request, as much of it as an `Auth` may look at."""

    headers: Mapping[bytes, bytes] = field(default_factory=dict)
    method: str = "POST"
    path: str = "/mcp"
    url: str = "https://shop.example/mcp"
    response_headers: tuple[tuple[bytes, bytes], ...] = ()


def with_header(value: bytes) -> Sent:
    return Sent({b"authorization": value})


def keys() -> APIKeys:
    return APIKeys({KEY: "ann", "key-of-bob": Principal("bob", frozenset({"read"})), "older-key-of-ann": "ann"})


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["Bearer %s", "bearer %s", "BEARER %s", "Bearer   %s"])
async def test_a_key_identifies_its_principal(form: str) -> None:
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
    with pytest.raises(DeclarationError, match="a non-empty mapping"):
        APIKeys(table)


@pytest.mark.parametrize("key", ["", " ", "a b", "a\n", "schlüssel", None, b"bytes", 7])
def test_a_key_that_no_header_can_bring_is_refused_without_being_shown(key: Any) -> None:
    with pytest.raises(DeclarationError, match="the key of 'ann'") as caught:
        APIKeys({key: "ann"})
    assert not str(key).strip() or repr(key) not in str(caught.value)


# --- principals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["", None, 7, b"ann"])
def test_a_principal_has_an_id(id: Any) -> None:
    with pytest.raises(DeclarationError, match="a non-empty string"):
        Principal(id)
    with pytest.raises(DeclarationError, match="a non-empty string"):
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

    async def authenticate(self, request: AuthRequest) -> Principal:
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what  # type: ignore[no-any-return]


async def test_identify_returns_the_principal() -> None:
    auth: Auth = keys()
    assert await identify(auth, with_header(b"Bearer key-of-bob")) == Principal("bob", frozenset({"read"}))


@pytest.mark.parametrize(
    "refused", [Unauthorized("who?"), Forbidden("not you", challenge='Bearer error="insufficient_scope"')]
)
async def test_a_refusal_comes_as_it_is(refused: AuthRefused) -> None:
    with pytest.raises(AuthRefused) as caught:
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
async def test_a_fault_of_an_auth_refuses_every_request(fault: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "accord"), pytest.raises(AuthenticationFailed) as caught:
        await identify(Does(fault), Sent())
    assert caught.value.status == 500
    assert "down" not in str(caught.value)
    (record,) = caplog.records
    assert "Does failed to authenticate a request" in record.getMessage()
    assert type(fault).__name__ in record.getMessage()


async def test_an_auth_without_a_result_refuses_every_request() -> None:
    class Silent:
        async def authenticate(self, request: AuthRequest) -> Principal:
            await asyncio.Event().wait()
            return Principal("ann")

    with pytest.raises(AuthenticationFailed):
        await identify(Silent(), Sent(), 0.01)


async def test_a_cancel_of_the_request_stays_one() -> None:
    entered = asyncio.Event()

    class Waits:
        async def authenticate(self, request: AuthRequest) -> Principal:
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
        async def authenticate(self, request: AuthRequest) -> Principal:
            try:
                raise ValueError(f"cannot decode {secret!r}, password=correct-horse")
            except ValueError as exc:
                raise RuntimeError(f"bad header: Bearer {secret}") from exc

    with caplog.at_level(logging.DEBUG), pytest.raises(AuthenticationFailed) as caught:
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


BOTH = APIKeys({"key-admin": Principal("ann", frozenset({"admin"})), "key-read": Principal("ann", frozenset({"read"}))})
FORMS = ["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28"]


class Who(Server):
    """A server whose tool says who asks, before it has waited and after."""

    def __init__(self, auth: Auth | None = BOTH) -> None:
        super().__init__("test", "1", limits=quick(), auth=auth)
        self.waiting: asyncio.Queue[asyncio.Event] = asyncio.Queue()

        @self.tool
        async def who(ctx: Context, wait: bool = False) -> str:
            seen = said(ctx.principal)
            if wait:
                go_on = asyncio.Event()
                self.waiting.put_nowait(go_on)
                await go_on.wait()
            return f"{seen}, {said(ctx.principal)}"

        @self.tool
        async def who_answers(ctx: Context) -> str:
            seen = said(ctx.principal)
            await ctx.elicit("go on?")
            return f"{seen}, {said(ctx.principal)}"


def said(who: Principal | None) -> str:
    return "nobody was asked" if who is None else f"{who.id} may {', '.join(who.scopes)}"


async def asked_who(client: Any) -> str:
    """What the tool says, whichever client calls it."""
    if isinstance(client, Legacy):
        answer = await client.ask("tools/call", {"name": "who", "arguments": {}})
    else:
        answer = await (await client.call("who")).result()
    return text(answer)


async def client_of(raw: Any, revision: str, key: str) -> Any:
    """A client of this revision, with its handshake behind it."""
    bearer = f"Bearer {key}"
    if revision == "2026-07-28":
        return Modern(raw, {"elicitation": {}}, authorization=bearer)
    if revision == "2024-11-05":
        return await (await Legacy.connect(raw, authorization=bearer)).open()
    return await Stateful(raw, revision, authorization=bearer).open()


async def leave(client: Any) -> None:
    if isinstance(client, Legacy):
        await client.stream.leave()


@pytest.mark.parametrize("revision", FORMS)
async def test_a_handler_receives_the_principal(revision: str) -> None:
    async with site(Who()) as here:
        client = await client_of(here.raw, revision, "key-read")
        assert await asked_who(client) == "ann may read, ann may read"
        await leave(client)


@pytest.mark.parametrize("revision", FORMS)
async def test_each_request_has_what_its_own_key_may_though_the_session_began_with_another(revision: str) -> None:
    async with site(Who()) as here:
        client = await client_of(here.raw, revision, "key-admin")
        client.headers["authorization"] = "Bearer key-read"
        assert await asked_who(client) == "ann may read, ann may read"
        client.headers["authorization"] = "Bearer key-admin"
        assert await asked_who(client) == "ann may admin, ann may admin"
        await leave(client)


async def test_each_request_of_a_batch_has_what_its_key_may() -> None:
    async with site(Who()) as here:
        client = await client_of(here.raw, "2025-03-26", "key-admin")
        client.headers["authorization"] = "Bearer key-read"
        answers = await (await client.post([client.calling("who", id=id) for id in (1, 2)])).json()
        assert [text(each) for each in answers] == ["ann may read, ann may read"] * 2


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_what_one_request_may_is_not_seen_by_another_that_runs(revision: str) -> None:
    server = Who()
    async with site(server) as here:
        client = await client_of(here.raw, revision, "key-read")
        first = await client.begin(*begun(client, client.calling("who", {"wait": True})))
        go_on = await server.waiting.get()
        client.headers["authorization"] = "Bearer key-admin"
        answer = await (await client.call("who", id=2)).result()
        assert text(answer) == "ann may admin, ann may admin"
        go_on.set()
        assert text(await (await first.start()).result()) == "ann may read, ann may read"


def begun(client: Any, message: Any) -> tuple[Any, ...]:
    return (message,) if isinstance(client, Modern) else ("POST", encode(message))


async def test_a_handler_that_has_waited_for_an_answer_has_what_the_key_of_the_answer_may() -> None:
    async with site(Who()) as here:
        client = await client_of(here.raw, "2026-07-28", "key-admin")
        asked = (await (await client.call("who_answers")).json())["result"]
        answers = {key: {"action": "accept", "content": {}} for key in asked["inputRequests"]}
        params = {"requestState": asked["requestState"], "inputResponses": answers}
        client.headers["authorization"] = "Bearer key-read"
        again = await client.ask("tools/call", {"name": "who_answers", "arguments": {}, **params}, id=2)
        assert text(await again.json()) == "ann may admin, ann may read"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_handler_learns_that_no_input_was_requested(revision: str) -> None:
    async with raw_peer(Who(None), revision) as peer:
        assert text({"result": await peer.call("who")}) == "nobody was asked, nobody was asked"


def test_the_claims_of_a_principal_are_read_only_and_do_not_show() -> None:
    ann = Principal("ann", claims={"email": "ann@example.org", "groups": ["a"]})
    assert ann.claims["email"] == "ann@example.org"
    assert ann.claims == {"email": "ann@example.org", "groups": ["a"]}
    assert "ann@example.org" not in repr(ann)
    assert {ann: 1}[ann] == 1
    with pytest.raises(TypeError):
        ann.claims["email"] = "bob@example.org"  # type: ignore[index]


def test_an_expired_token_is_accepted_within_the_leeway_only() -> None:
    assert Principal("ann").seconds_left(0) is None
    token = Principal("ann", expires_at=1000)
    assert token.seconds_left(900) == 100
    assert token.seconds_left(1030) == 30
    assert token.seconds_left(1061) == -1


@pytest.mark.parametrize(
    ("options", "root", "path", "url"),
    [
        ({}, "", "/mcp", "http://localhost:8000/mcp"),
        ({}, "/api", "/api/mcp", "http://localhost:8000/api/mcp"),
        ({}, "", "/sse", "http://localhost:8000/sse"),
        ({"public_url": "https://a.example/mcp"}, "", "/mcp", "https://a.example/mcp"),
        ({"public_url": "https://a.example/mcp"}, "", "/mcp/", "https://a.example/mcp"),
        ({"public_url": "https://a.example/mcp"}, "", "/", "https://a.example/mcp"),
        ({"public_url": "https://a.example/mcp"}, "", "/sse", "https://a.example/sse"),
        ({"public_url": "https://a.example/api/mcp"}, "", "/mcp", "https://a.example/api/mcp"),
        ({"public_url": "https://a.example/api/mcp"}, "", "/api/mcp", "https://a.example/api/mcp"),
        ({"public_url": "https://a.example/api/mcp"}, "", "/api/sse", "https://a.example/api/sse"),
        ({"public_url": "https://a.example/api/mcp"}, "/api", "/api/sse", "https://a.example/api/sse"),
        ({"public_url": "https://a.example/tools"}, "", "/mcp", "https://a.example/tools"),
    ],
)
async def test_an_auth_reads_the_url_that_the_client_requested(
    options: dict[str, Any], root: str, path: str, url: str
) -> None:
    found = []

    class Noting:
        async def authenticate(self, request: AuthRequest) -> Principal:
            found.append(request.url)
            request.response_headers += ((b"x-seen", b"yes"),)
            raise Unauthorized("no")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    app = Server("a", "1", auth=Noting()).asgi(HTTPOptions(**options))
    method = "GET" if path.endswith("sse") else "POST"
    head = {"type": "http", "method": method, "path": path, "root_path": root, "query_string": b"a=b", "scheme": "http"}
    await app({**head, "headers": [(b"host", b"localhost:8000")]}, receive, send)
    await app.drain(1)
    await app.close()
    assert found == [url]
    assert sent[0]["status"] == 401
    assert (b"x-seen", b"yes") in sent[0]["headers"]
