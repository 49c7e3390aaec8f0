"""What peers without authentication can create in an `OAuthProxy`: few, small, and for a short time."""

from __future__ import annotations

import asyncio
import json
import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from accord import Server
from accord.auth.http import OAuthClient
from accord.auth.steps import OAuthRequest, OAuthResponse
from accord.errors import DeclarationError
from accord.http import HTTPOptions
from accord.server.auth.proxy import clients, database, grants, pending, sealing
from accord.server.auth.proxy.authorization import ClientRequest, PendingConsent
from accord.server.auth.proxy.endpoint_error import EndpointError
from accord.server.auth.proxy.endpoints import BODY_BYTES, FORM_BYTES, read_parameters

from tests.server.auth.proxy.proxying import FORM, ISSUER, REDIRECT_URI, Proxied, proxied, send
from tests.waiting import until


async def count(shop: Proxied, table: str) -> int:
    found: int = await shop.auth._database.run(lambda db, _: db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])
    return found


async def from_address(shop: Proxied, address: str, url: str, body: bytes = b"", method: str = "POST") -> Any:
    return await send(shop.app, method, url, body, {"x-forwarded-for": address})


async def test_registrations_of_one_address_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CLIENTS_PER_ADDRESS", 3)
    body = json.dumps({"redirect_uris": [REDIRECT_URI]}).encode()
    async with proxied() as shop:
        honest = (await from_address(shop, "192.0.2.9", f"{ISSUER}/register", body)).json()["client_id"]
        for _ in range(10):
            assert (await from_address(shop, "192.0.2.8", f"{ISSUER}/register", body)).status == 201
        assert await count(shop, "clients") == 4
        assert (await shop.browser().open(shop.login(honest).url)).status == 200


async def test_all_registrations_are_bounded_at_the_cost_of_the_largest_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clients, "CLIENTS", 5)
    body = json.dumps({"redirect_uris": [REDIRECT_URI]}).encode()
    async with proxied() as shop:
        used = (await shop.tokens())["client_id"]
        honest = (await from_address(shop, "192.0.2.9", f"{ISSUER}/register", body)).json()["client_id"]
        for _ in range(10):
            await from_address(shop, "192.0.2.8", f"{ISSUER}/register", body)
        assert await count(shop, "clients") == 5
        for client in (used, honest):
            assert (await shop.browser().open(shop.login(client).url)).status == 200


async def test_one_user_cannot_use_up_the_registrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has an account at the provider may authorize any number of clients, but has few logins at a time."""
    monkeypatch.setattr(clients, "CLIENTS", 6)
    monkeypatch.setattr(grants, "GRANTS", 2)
    async with proxied(monkeypatch=monkeypatch) as shop:
        for _ in range(6):
            shop.clock.ahead += 1
            await shop.tokens()
        assert await count(shop, "clients WHERE used") == 6
        for _ in range(3):
            client = (await shop.register())["client_id"]
            for _ in range(2):
                await from_address(shop, "192.0.2.8", f"{ISSUER}/register", b'{"redirect_uris":["https://a.example/"]}')
            tokens = await shop.tokens(client)
            assert tokens["access_token"]
        assert await count(shop, "clients") == 6


async def test_registrations_with_logins_are_not_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CLIENTS", 2)
    async with proxied() as shop:
        live = [await shop.tokens() for _ in range(2)]
        reply = await from_address(shop, "192.0.2.8", f"{ISSUER}/register", b'{"redirect_uris":["https://a.example/"]}')
        assert (reply.status, reply.json()["error"]) == (503, "temporarily_unavailable")
        for each in live:
            assert (await shop.refresh(each)).status == 200


async def test_an_unused_registration_is_forgotten_after_a_day_and_a_used_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        unused = (await shop.register())["client_id"]
        used = (await shop.tokens())["client_id"]
        shop.clock.ahead += clients.UNUSED_SECONDS + 1
        assert (await shop.browser().open(shop.login(unused).url)).status == 400
        assert (await shop.browser().open(shop.login(used).url)).status == 200
        kept = await shop.auth._database.run(
            lambda db, _: db.execute("SELECT account FROM clients WHERE used").fetchall()
        )
        assert kept == [("",)], "without the address of the client"


async def test_logins_in_progress_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "PENDING_PER_ADDRESS", 3)
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        browser = shop.browser()
        page = await browser.open(shop.login(client).url)
        for _ in range(10):
            await from_address(shop, "192.0.2.8", shop.login(client).url, method="GET")
        assert await count(shop, "pending") == 4
        assert (await browser.decide(page)).status == 303


async def test_all_logins_in_progress_are_bounded_at_the_cost_of_the_largest_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pending, "PENDING", 5)
    async with proxied() as shop:
        client = (await shop.register())["client_id"]
        browser = shop.browser()
        page = await browser.open(shop.login(client).url)
        for _ in range(10):
            await from_address(shop, "192.0.2.8", shop.login(client).url, method="GET")
        assert await count(shop, "pending") == 5
        assert (await browser.decide(page)).status == 303


def steps_of_200(work: Callable[[sqlite3.Connection], None], *rows: tuple[str, list[tuple[Any, ...]]]) -> int:
    """Return about how many steps SQLite takes for 200 works in a database with these rows, in hundreds."""
    steps = 0

    def count_steps() -> int:
        nonlocal steps
        steps += 1
        return 0

    with closing(sqlite3.connect(":memory:")) as db:
        for statement in database._TABLES:
            db.execute(statement)
        for table, values in rows:
            db.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
        db.set_progress_handler(count_steps, 100)
        for _ in range(200):
            work(db)
    return steps


def test_a_full_table_of_registrations_delays_nobody() -> None:
    """All tokens are verified in the thread of the database."""

    def register(db: sqlite3.Connection) -> None:
        client = clients.ProxyClient(secrets.token_hex(16), "x", [REDIRECT_URI])
        assert clients.save_client(db, client, "of all", 0)

    unused = [(f"{each}", b"", f"address {each}", 0, 10.0 + each) for each in range(clients.CLIENTS)]
    used = [(f"{each}", b"", "", 1, 10.0 + each) for each in range(clients.CLIENTS)]
    half = [*unused[: clients.CLIENTS // 2], *used[clients.CLIENTS // 2 :]]
    logins = [(each[0].encode(), each[0], "ann", b"", b"", 0, 10.0) for each in half]
    few = steps_of_200(register)
    assert steps_of_200(register, ("clients", unused)) < 100 * few, (few,)
    assert steps_of_200(register, ("clients", used)) < 100 * few, (few,)
    assert steps_of_200(register, ("clients", half), ("grants", logins)) < 100 * few, (few,)


def test_a_full_table_of_logins_in_progress_delays_nobody() -> None:
    sealer = sealing.Sealer([b"x" * 16])
    consent = PendingConsent(ClientRequest("c", REDIRECT_URI, None, "", [], ISSUER, ISSUER), b"")

    def begin(db: sqlite3.Connection) -> None:
        pending.save_pending(db, sealer, secrets.token_hex(16), consent, "of all", 0)

    rows = [(f"{each}".encode(), b"", f"address {each}", 10.0 + each) for each in range(pending.PENDING)]
    few = steps_of_200(begin)
    assert steps_of_200(begin, ("pending", rows)) < 100 * few, (few,)


def test_many_expired_rows_are_deleted_bit_by_bit() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in database._TABLES:
            db.execute(statement)
        rows = [(f"{each}", b"", f"address {each}", 0, 1.0) for each in range(5_000)]
        db.executemany("INSERT INTO clients VALUES (?, ?, ?, ?, ?)", rows)
        left = []
        for each in range(60):
            clients.save_client(db, clients.ProxyClient(f"new {each}", "x", [REDIRECT_URI]), "of all", 2.0)
            left.append(db.execute("SELECT COUNT(*) FROM clients WHERE expires = 1").fetchone()[0])
        assert (left[0], left[-1]) == (4_900, 0)


async def test_logins_in_progress_and_grants_without_tokens_are_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        client = (await shop.register())["client_id"]
        await shop.browser().open(shop.login(client).url)
        await shop.authorize(client)
        assert (await count(shop, "grants"), await count(shop, "codes")) == (1, 1)
        shop.clock.ahead += 601
        await shop.authorize(client)
        left = (await count(shop, "pending"), await count(shop, "grants"), await count(shop, "codes"))
        assert left == (1, 1, 1), "those of the last login, with its page, which may be sent twice"


async def test_requests_to_the_provider_take_turns_by_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody may finish a login with a code that the provider takes long to refuse."""
    sent: list[str] = []
    gate = asyncio.Event()

    async def hold(self: OAuthClient, request: OAuthRequest) -> OAuthResponse:
        sent.append((request.form or {})["code"])
        await gate.wait()
        return OAuthResponse(400, b'{"error":"invalid_grant"}', {})

    async with proxied() as shop:
        client = (await shop.register())["client_id"]

        async def finish(code: str, address: str) -> int:
            browser = shop.browser()
            state = (await shop.consent(browser, shop.login(client))).parameters["state"]
            url = f"{ISSUER}/callback?code={code}&state={state}"
            return (await browser.open(url, x_forwarded_for=address)).status

        monkeypatch.setattr(OAuthClient, "send", hold)
        logins = [asyncio.create_task(finish(f"{each}", "192.0.2.8")) for each in range(80)]
        await until(lambda: len(sent) == 64 and next(iter(shop.auth._flow._provider._slots.values()))._waiting)
        logins.append(asyncio.create_task(finish("honest", "192.0.2.9")))
        await until(lambda: len(next(iter(shop.auth._flow._provider._slots.values()))._waiting) == 2)
        gate.set()
        assert set(await asyncio.gather(*logins)) == {303}
        assert sent.index("honest") <= 65


async def test_grants_of_one_user_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "GRANTS", 2)
    async with proxied(monkeypatch=monkeypatch) as shop:
        client = (await shop.register())["client_id"]
        found = []
        for _ in range(3):
            shop.clock.ahead += 1
            found.append(await shop.tokens(client))
        assert await count(shop, "grants") == 2
        assert [(await shop.call(each["access_token"])).status for each in found] == [401, 200, 200]


async def test_tokens_of_one_grant_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "_TOKENS", 3)
    async with proxied(monkeypatch=monkeypatch) as shop:
        tokens = await shop.tokens()
        for _ in range(10):
            shop.clock.ahead += 1
            reply = await shop.refresh(tokens)
            assert reply.status == 200
            tokens |= reply.json()
        assert await count(shop, "tokens") == 6
        assert (await shop.call(tokens["access_token"])).status == 200


@pytest.mark.parametrize("path", ["/register", "/token", "/revoke", "/consent"])
async def test_a_large_body_is_refused(path: str) -> None:
    async with proxied() as shop:
        headers = {**FORM, "sec-fetch-site": "same-origin"}
        for size in (BODY_BYTES + 1, *(() if path == "/register" else (FORM_BYTES + 1,))):
            reply = await send(shop.app, "POST", f"{ISSUER}{path}", b"x" * size, headers)
            assert reply.status == 413


@pytest.mark.parametrize(
    "changes",
    [
        {"redirect_uris": [f"https://a.example/{each}" for each in range(21)]},
        {"redirect_uris": [f"https://a.example/{each}{'x' * 1_500}" for each in range(3)]},
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": [7]},
        {"client_name": "x" * 201},
        {"client_name": 7},
        {"grant_types": ["client_credentials"]},
        {"grant_types": ["x"] * 21},
        {"response_types": ["token"]},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "tls_client_auth"},
    ],
)
async def test_an_invalid_registration_is_refused(changes: dict[str, Any]) -> None:
    async with proxied() as shop:
        body = json.dumps({"redirect_uris": [REDIRECT_URI], **changes}).encode()
        reply = await send(shop.app, "POST", f"{ISSUER}/register", body)
        assert (reply.status, reply.json()["error"]) == (400, "invalid_client_metadata")
        assert await count(shop, "clients") == 0


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b"[" * 60_000])
async def test_what_is_no_registration_is_refused(body: bytes) -> None:
    async with proxied() as shop:
        reply = await send(shop.app, "POST", f"{ISSUER}/register", body)
        assert (reply.status, reply.json()["error"]) == (400, "invalid_client_metadata")


async def test_a_query_or_form_with_many_parameters_is_refused() -> None:
    async with proxied() as shop:
        many = "&".join(f"p{each}=1" for each in range(51))
        assert (await shop.browser().open(f"{ISSUER}/authorize?{many}")).status == 400
        assert (await shop.browser().open(f"{ISSUER}/authorize?x={'y' * 20_000}")).status == 400
        assert (await send(shop.app, "POST", f"{ISSUER}/token", many.encode(), FORM)).status == 400
        assert (await send(shop.app, "POST", f"{ISSUER}/token", b"a=%ff", FORM)).status == 400


def test_no_form_costs_much_more_than_an_honest_one() -> None:
    def seconds(text: bytes) -> float:
        def once() -> float:
            start = time.thread_time()
            with suppress(EndpointError):
                read_parameters(text)
            return time.thread_time() - start

        return min(once() for _ in range(20))

    honest = seconds(b"a=" + b"%41" * (FORM_BYTES // 3))
    for part in (b"%", b"%4", "é%".encode(), "é%41".encode(), b"%c3%a9", b"%zz", b"+", b"&", b"=", b"a=&"):
        assert seconds(b"a=" + part * (FORM_BYTES // len(part))) < 10 * honest, part


async def test_a_form_with_a_malformed_percent_sign_is_refused() -> None:
    async with proxied() as shop:
        for form in (b"client_id=%", b"client_id=%4", b"client_id=%zz", b"client_id=%%41"):
            reply = await send(shop.app, "POST", f"{ISSUER}/token", form, FORM)
            assert (reply.status, reply.json()["error"]) == (400, "invalid_request")
            assert (await shop.browser().open(f"{ISSUER}/authorize?{form.decode()}")).status == 400


async def test_endpoints_take_one_method_each() -> None:
    async with proxied() as shop:
        for path, method in [
            ("/register", "GET"),
            ("/token", "GET"),
            ("/revoke", "GET"),
            ("/authorize", "POST"),
            ("/consent", "GET"),
            ("/callback", "POST"),
        ]:
            reply = await send(shop.app, method, f"{ISSUER}{path}")
            assert (reply.status, "allow" in reply.headers) == (405, True), path
        preflight = await send(shop.app, "OPTIONS", f"{ISSUER}/token", headers={"origin": "https://page.example"})
        assert (preflight.status, preflight.headers["access-control-allow-origin"]) == (204, "*")
        assert (await send(shop.app, "OPTIONS", f"{ISSUER}/authorize")).status == 405


async def test_addresses_of_one_ipv6_network_count_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "CLIENTS_PER_ADDRESS", 3)
    body = json.dumps({"redirect_uris": [REDIRECT_URI]}).encode()
    async with proxied() as shop:
        for each in range(10):
            await from_address(shop, f"2001:db8:1:{each}::1", f"{ISSUER}/register", body)
        assert await count(shop, "clients") == 3


async def test_where_all_addresses_have_one_the_oldest_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "PENDING", 5)
    async with proxied(monkeypatch=monkeypatch) as shop:
        client = (await shop.register())["client_id"]
        for each in range(10):
            shop.clock.ahead += 1
            await from_address(shop, f"198.51.100.{each}", shop.login(client).url, method="GET")
        browser = shop.browser()
        shop.clock.ahead += 1
        page = await browser.open(shop.login(client).url)
        for each in range(4):
            shop.clock.ahead += 1
            await from_address(shop, f"203.0.113.{each}", shop.login(client).url, method="GET")
        assert (await browser.decide(page)).status == 303


async def test_keys_of_tokens_that_are_cached_no_more_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxied(monkeypatch=monkeypatch) as shop:
        tokens = await shop.tokens()
        for _ in range(130):
            shop.clock.ahead += 1
            tokens |= (await shop.refresh(tokens)).json()
            assert (await shop.call(tokens["access_token"])).status == 200
        (keys,) = shop.auth._cached_of.values()
        assert len(keys) < 130
        await shop.post("/revoke", {"token": tokens["access_token"], "client_id": tokens["client_id"]})
        assert len(shop.auth._cache) == 0 or (await shop.call(tokens["access_token"])).status == 401
        assert not shop.auth._cached_of


@pytest.mark.parametrize("path", ["/authorize", "/token", "/callback"])
async def test_the_path_of_mcp_is_not_one_of_the_proxy(path: str) -> None:
    async with proxied() as shop:
        with pytest.raises(DeclarationError, match="is taken by OAuthProxy"):
            Server("other", auth=shop.auth).asgi(HTTPOptions(path=path))
