"""One client whom nobody vouches for cannot use up what others need: quotas by address, and who makes room."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import msgspec
import pytest

from accord import Context, HTTPOptions, Server
from accord.errors import InternalError, InvalidParams
from accord.messages.tools import ToolAnnotations
from accord.server.auth.api_keys import APIKeys
from accord.server.auth.authentication import AuthRequest, sender_of
from accord.server.core.principal import Principal
from accord.server.http import quotas, sessions
from accord.server.http.quotas import account_of, counted_address, is_address, network_of
from accord.server.input import suspended_calls
from accord.session import rate
from accord.session.pending_request import PendingRequest
from accord.transport.asgi.request import ASGIRequest

from tests.server.http.http_clients import Here, Legacy, Modern, Stateful, encode, quick, request, site, text, until
from tests.server.http.raw import BASIC, Direct

ATTACKER, OTHER = "203.0.113.9", "198.51.100.7"


def account(*headers: tuple[str, str], client: Any = ("192.0.2.1", 1), proxied: bool = True) -> str:
    given = [(name.encode(), value.encode()) for name, value in headers]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": given, "client": client}
    return account_of(ASGIRequest(scope, no_connection, no_connection), proxied=proxied).lstrip("\0")


async def no_connection(*_: Any) -> None:
    raise AssertionError("nothing is read or sent")


@pytest.mark.parametrize(
    ("header", "value", "found"),
    [
        ("x-forwarded-for", "198.51.100.7", "198.51.100.7"),
        ("x-forwarded-for", "1.2.3.4, 198.51.100.7", "198.51.100.7"),
        ("x-forwarded-for", "1.2.3.4,198.51.100.7:4711", "198.51.100.7"),
        ("x-forwarded-for", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("x-forwarded-for", "[2001:db8:1:2:3::4]:443", "2001:db8:1:2::/64"),
        ("x-forwarded-for", "::ffff:198.51.100.7", "198.51.100.7"),
        ("x-forwarded-for", "unknown", "192.0.2.1"),
        ("x-forwarded-for", "198.51.100.7, ", "192.0.2.1"),
        ("x-forwarded-for", "9" * 100_000, "192.0.2.1"),
        ("forwarded", "for=1.2.3.4, for=198.51.100.7;proto=https;by=203.0.113.43", "198.51.100.7"),
        ("forwarded", 'proto=https;For="[2001:db8:1:2::4]:47"', "2001:db8:1:2::/64"),
        ("forwarded", "for=_hidden", "192.0.2.1"),
        ("forwarded", "xfor=198.51.100.7", "192.0.2.1"),
    ],
)
def test_behind_a_proxy_the_address_is_the_last_that_was_added(header: str, value: str, found: str) -> None:
    assert account((header, value)) == found
    assert account((header, value), proxied=False) == "192.0.2.1"


def test_lines_of_one_header_are_one_list() -> None:
    assert account(("x-forwarded-for", "1.2.3.4"), ("x-forwarded-for", OTHER)) == OTHER


def test_where_both_headers_differ_one_is_forged_and_neither_is_believed() -> None:
    assert account(("x-forwarded-for", OTHER), ("forwarded", f"for={OTHER}")) == OTHER
    assert account(("x-forwarded-for", OTHER), ("forwarded", "for=1.2.3.4")) == "192.0.2.1"


@pytest.mark.parametrize(("client", "found"), [(None, ""), (("fe80::1%eth0", 1), "fe80::/64"), (("test", 1), "test")])
def test_without_a_proxy_it_is_the_address_of_the_connection(client: Any, found: str) -> None:
    assert account(client=client) == found


@pytest.mark.parametrize(
    ("address", "network"),
    [("2001:db8:1:2:3::4", "2001:db8:1::/48"), (OTHER, OTHER), ("::ffff:192.0.2.1", "192.0.2.1"), ("test", "test")],
)
def test_ipv6_networks_of_one_customer_are_one_network(address: str, network: str) -> None:
    assert network_of(counted_address(address)) == network
    assert network_of("\0" + counted_address(address)).lstrip("\0") == network


def test_a_principal_counts_for_itself_whatever_it_is_called() -> None:
    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "client": (OTHER, 1)}
    request = ASGIRequest(scope, no_connection, no_connection)
    assert is_address(account_of(request, proxied=True))
    request.principal = Principal(OTHER)
    named = account_of(request, proxied=True)
    assert named == OTHER
    assert not is_address(named)


# --- an attacker at one address ----------------------------------------------------------------------------------


class Notes(msgspec.Struct):
    """What a person may say to a question."""

    text: str


def desk(**limits: Any) -> Server:
    server = Server("desk", "1", limits=quick(**limits))

    @server.tool
    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("go on?")).action

    @server.tool
    async def asks_about(ctx: Context, what: str) -> str:
        notes = (await ctx.elicit("what of it?", Notes)).data
        return f"{what} {notes} {(await ctx.elicit('go on?')).action}"

    return server


def add_waiting_tool(server: Server) -> asyncio.Event:
    """Add the tool `waits`, of which all calls wait until the event is set."""
    release = asyncio.Event()

    @server.tool
    async def waits() -> str:
        await release.wait()
        return "done"

    return release


def at(here: Here, address: str) -> Any:
    """The application, as who comes from this address reaches it."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await here.app({**scope, "client": (address, 1)}, receive, send)

    return Direct(app)


async def test_an_attacker_with_many_idle_sessions_takes_its_own_room_and_nobody_elses() -> None:
    async with site(desk(http_sessions=20, http_sessions_per_address=5)) as here:
        honest = [await Stateful(at(here, OTHER)).open() for _ in range(3)]
        flood = [await Stateful(at(here, ATTACKER)).open() for _ in range(50)]
        assert [(await each.ask("ping")).status for each in honest] == [200] * 3
        assert [(await each.ask("ping")).status for each in flood[:-5]] == [404] * 45
        await Stateful(at(here, OTHER)).open()


async def test_an_attacker_with_many_open_streams_does_not_lock_others_out() -> None:
    async with site(desk(http_sessions=10, http_sessions_per_address=5)) as here:
        flood = [await Stateful(at(here, ATTACKER)).open() for _ in range(5)]
        streams = [await each.listen() for each in flood]
        assert (await Stateful(at(here, ATTACKER)).post(flood[0].hello())).status == 503
        honest = [await Stateful(at(here, OTHER)).open() for _ in range(5)]
        assert [(await each.ask("ping")).status for each in honest] == [200] * 5
        for stream in streams:
            await stream.leave()


async def test_one_client_with_many_ipv6_networks_does_not_lock_others_out() -> None:
    async with site(desk(http_sessions=300, http_sessions_per_address=100)) as here:
        for number in range(300):
            await Stateful(at(here, f"2001:db8:1:{number % 100:x}::1")).open()
        for address in (OTHER, "2001:db8:2::1", "2001:db8:2:1::1"):
            await Stateful(at(here, address)).open()
        assert {len(sessions) for sessions in here.endpoint.sessions._by_network.values()} == {297, 1, 2}


async def test_idle_sessions_are_found_behind_many_that_are_in_use() -> None:
    server = desk(http_sessions=400, http_sessions_per_address=200)
    release = add_waiting_tool(server)
    async with site(server) as here:
        for address in (ATTACKER, "203.0.113.10"):
            for _ in range(150):
                await (await Stateful(at(here, address)).open()).begin("POST", CALL)
            for _ in range(50):
                await Stateful(at(here, address)).open()
        await Stateful(at(here, OTHER)).open()
        release.set()


async def test_an_attacker_with_many_sessions_has_no_stored_events_of_others_dropped() -> None:
    server = desk(http_events_bytes=20_000, http_events_total_bytes=60_000)

    @server.tool
    async def large(ctx: Context) -> str:
        ctx.report_progress(1)
        return "x" * 9_000

    async def interrupted(address: str) -> tuple[Stateful, str]:
        """A client that has lost its connection before the answer, and the last event that it has."""
        client = await Stateful(at(here, address)).open()
        call = await client.call("large", progressToken=1)
        last = (await call.event()).id
        await call.end()
        assert last is not None
        return client, last

    async with site(server) as here:
        honest, last = await interrupted(OTHER)
        flood = [await interrupted(ATTACKER) for _ in range(20)]
        rest = await honest.listen(last)
        assert [event.data.get("id") for event in await rest.events()] == [None, 1]
        assert (await flood[0][0].listen(flood[0][1])).status == 410
        assert (await flood[-1][0].listen(flood[-1][1])).status == 200


def requests_held() -> int:
    """How many requests are in memory."""
    gc.collect()
    return sum(isinstance(each, PendingRequest) for each in gc.get_objects())


async def asked(client: Modern, tool: str) -> dict[str, Any]:
    """What a client sends again to answer what this tool has asked it."""
    result = (await (await client.call(tool)).json())["result"]
    answers = {key: {"action": "accept", "content": {}} for key in result["inputRequests"]}
    return {"name": tool, "arguments": {}, "requestState": result["requestState"], "inputResponses": answers}


async def test_an_error_that_is_stored_for_a_retry_holds_no_request() -> None:
    server = desk()

    @server.tool
    async def refuses(ctx: Context) -> str:
        await ctx.elicit("go on?")
        raise InvalidParams("no")

    async with site(server) as here:
        client, before = Modern(here.raw, {"elicitation": {"form": {}}}), requests_held()
        for _ in range(5):
            again = await asked(client, "refuses")
            for _ in range(3):
                error = (await (await client.ask("tools/call", again)).json())["error"]
                assert (error["code"], error["message"]) == (-32602, "no")
        assert requests_held() == before


async def test_calls_that_were_ended_to_make_room_hold_no_request_and_leave_one_timer() -> None:
    async with site(desk(http_parked_per_address=2)) as here:
        client, before = Modern(here.raw, {"elicitation": {"form": {}}}), requests_held()
        calls = [await asked(client, "asks") for _ in range(20)]
        for again in calls[:-2]:
            answer = await (await client.ask("tools/call", again)).json()
            assert "newer calls needed its room" in text(answer)
        assert requests_held() == before + 2, "those that wait"
        timers = [each for each in asyncio.get_running_loop()._scheduled if "_clean_up" in repr(each)]
        assert len(timers) == 1


async def test_an_attacker_has_no_states_and_outcomes_of_others_dropped() -> None:
    server = desk(kept_bytes=100_000, state_bytes=1_000)
    runs = []

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    async def replays(ctx: Context) -> str:
        notes = [await ctx.elicit(f"note {number}", Notes) for number in range(2)]
        return str(len(notes))

    @server.tool
    async def once(ctx: Context) -> str:
        runs.append(1)
        return (await ctx.elicit("go on?")).action + "x" * 4_000

    async def answered(client: Modern, tool: str) -> dict[str, Any]:
        """What a client sends for the second question of `replays`, or again for `once`."""
        params = await asked(client, tool)
        if tool == "replays":
            params["inputResponses"] = {
                key: {"action": "accept", "content": {"text": "x" * 8_000}} for key in params["inputResponses"]
            }
        result = (await (await client.ask("tools/call", params)).json())["result"]
        if tool == "replays":
            answers = {key: {"action": "accept", "content": {"text": ""}} for key in result["inputRequests"]}
            params |= {"requestState": result["requestState"], "inputResponses": answers}
        return params

    async with site(server) as here:
        capable = {"elicitation": {"form": {}}}
        honest, attacker = Modern(at(here, OTHER), capable), Modern(at(here, ATTACKER), capable)
        for tool in ("replays", "once"):
            mine = await answered(honest, tool)
            for _ in range(30):
                await answered(attacker, tool)
            assert "isError" not in (await (await honest.ask("tools/call", mine)).json())["result"]
        assert len(runs) == 31


@pytest.mark.parametrize("bound", ["_MAX_NONCES", "_MAX_NONCES_PER_ACCOUNT"])
async def test_an_attacker_has_no_nonces_of_others_forgotten(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspended_calls, bound, 5)
    async with site(desk()) as here:
        honest, attacker = (Modern(at(here, each), {"elicitation": {"form": {}}}) for each in (OTHER, ATTACKER))
        used, unanswered = [await asked(honest, "asks") for _ in range(2)]
        assert text(await (await honest.ask("tools/call", used)).json()) == "accept"
        for _ in range(20):
            await attacker.ask("tools/call", await asked(attacker, "asks"))
        for mine in (used, unanswered):
            assert text(await (await honest.ask("tools/call", mine)).json()) == "accept"


async def test_many_headers_of_a_call_that_waits_for_an_answer_count() -> None:
    async with site(desk(http_bodies_bytes_per_address=100_000)) as here:
        client = Modern(here.raw, {"elicitation": {"form": {}}}, **{f"x-{number}": "" for number in range(100)})
        calls = [await asked(client, "asks") for _ in range(5)]
        assert "newer calls needed its room" in text(await (await client.ask("tools/call", calls[0])).json())
        assert text(await (await client.ask("tools/call", calls[-1])).json()) == "accept"


async def test_where_all_are_full_the_address_that_has_most_makes_room_once_it_was_idle_for_a_while() -> None:
    async with site(desk(http_sessions=6, http_sessions_per_address=5, http_session_unused_seconds=0)) as here:
        honest = await Stateful(at(here, OTHER)).open()
        flood = [await Stateful(at(here, ATTACKER)).open() for _ in range(5)]
        second = await Stateful(at(here, OTHER)).open()
        assert [(await each.ask("ping")).status for each in (honest, second, flood[0], flood[1])] == [
            200,
            200,
            404,
            200,
        ]


async def test_sessions_in_use_do_not_end_for_those_of_others() -> None:
    async with site(desk(http_sessions=6, http_sessions_per_address=5)) as here:
        kept = [await Stateful(at(here, OTHER)).open() for _ in range(5)]
        await Stateful(at(here, ATTACKER)).open()
        assert (await Stateful(at(here, "192.0.2.2")).post(kept[0].hello())).status == 503
        assert [(await each.ask("ping")).status for each in kept] == [200] * 5


async def test_addresses_over_their_share_make_room_though_their_sessions_are_used_all_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "_FEW", 2)
    async with site(desk(http_sessions=7, http_sessions_per_address=4)) as here:
        honest = await Stateful(at(here, OTHER)).open()
        flood = [await Stateful(at(here, f"203.0.113.{number % 2}")).open() for number in range(6)]
        for each in flood:
            assert (await each.ask("ping")).status == 200
        newcomers = [await Stateful(at(here, "192.0.2.2")).open() for _ in range(2)]
        assert [(await each.ask("ping")).status for each in (honest, *newcomers)] == [200] * 3
        assert sorted([(await each.ask("ping")).status for each in flood]) == [200] * 4 + [404] * 2


@pytest.mark.parametrize("way", ["streamable", "sse"])
async def test_addresses_over_their_share_make_room_though_all_their_sessions_have_open_streams(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_FEW", 1)
    server = desk(http_sessions=6, http_sessions_per_address=3)
    release = add_waiting_tool(server)

    async def connect(address: str) -> Any:
        if way == "sse":
            client = await (await Legacy.connect(at(here, address))).open()
            return client, client.stream
        client = await Stateful(at(here, address)).open()
        return client, await client.listen()

    async with site(server) as here:
        flood = [await connect(address) for address in (ATTACKER, "192.0.2.9") for _ in range(3)]
        calls = [asyncio.create_task(client.post(CALL)) for client, _ in flood[:2]]
        await until(lambda: sum(map(len, here.busy())) == 2)
        honest = [await connect(OTHER) for _ in range(2)]
        assert sum(map(len, here.busy())) == 2
        release.set()
        await asyncio.gather(*calls)
        for _, stream in (*flood, *honest):
            await stream.leave()


async def test_behind_a_proxy_each_forwarded_address_has_a_quota_of_its_own() -> None:
    options = HTTPOptions(public_url="https://localhost/mcp")
    async with site(desk(http_sessions_per_address=2), options=options) as here:
        honest = await Stateful(here.raw, **{"x-forwarded-for": f"1.1.1.1, {OTHER}"}).open()
        for number in range(5):
            await Stateful(here.raw, **{"x-forwarded-for": f"1.1.1.{number}, {ATTACKER}"}).open()
        assert (await honest.ask("ping")).status == 200
        assert len(here.endpoint.sessions) == 3


@pytest.mark.parametrize("bound", ["http_parked", "http_parked_per_address"])
async def test_questions_that_an_attacker_leaves_open_end_and_those_of_others_do_not(bound: str) -> None:
    server = desk(**{bound: 5})
    async with site(server) as here:
        honest, attacker = (Modern(at(here, each), {"elicitation": {}}) for each in (OTHER, ATTACKER))
        mine = (await (await honest.call("asks")).json())["result"]
        for id in range(20):
            assert "inputRequests" in (await (await attacker.call("asks", id=id)).json())["result"]
        answers = {key: {"action": "accept", "content": {}} for key in mine["inputRequests"]}
        params = {"name": "asks", "arguments": {}, "requestState": mine["requestState"], "inputResponses": answers}
        said = (await (await honest.ask("tools/call", params)).json())["result"]
        assert said["content"][0]["text"] == "accept"


@pytest.mark.parametrize("bound", ["http_bodies_bytes", "http_bodies_bytes_per_address"])
@pytest.mark.parametrize("form", ["arguments", "answers"])
async def test_what_handlers_hold_that_wait_for_answers_is_bounded(bound: str, form: str) -> None:
    server, large = desk(**{bound: 200_000}), "x" * 30_000
    async with site(server) as here:
        honest, attacker = (Modern(at(here, each), {"elicitation": {}}) for each in (OTHER, ATTACKER))
        mine = await ask_about(honest, "mine")
        for id in range(20):
            theirs = await ask_about(attacker, large if form == "arguments" else "theirs", id)
            if form == "answers":
                await answer_about(attacker, "theirs", theirs, {"text": large})
        calls = here.app._server.round_trips.suspended_calls
        waiting = sum(len(runs) for account, runs in calls.waiting.items() if account.endswith(ATTACKER))
        assert 1 <= waiting <= 3
        said = await answer_about(honest, "mine", mine, {"text": "kept"})
        assert "inputRequests" in said
        assert "accept" in text({"result": await answer_about(honest, "mine", said, {})})


@pytest.mark.parametrize("ends", ["answered", "cancelled"])
async def test_what_a_handler_holds_counts_while_it_works_after_an_answer(ends: str) -> None:
    server, release, large = desk(http_bodies_bytes_per_address=200_000), asyncio.Event(), "x" * 30_000

    @server.tool
    async def asks_twice(ctx: Context) -> str:
        notes = (await ctx.elicit("what of it?", Notes)).data
        await ctx.elicit("go on?")
        await release.wait()
        return str(notes)

    async def begin(client: Modern, asked: Any, content: dict[str, str]) -> Any:
        answers = {key: {"action": "accept", "content": content} for key in asked["inputRequests"]}
        params = {"name": "asks_twice", "arguments": {}, "requestState": asked["requestState"]}
        return await client.begin(client.request("tools/call", {**params, "inputResponses": answers}))

    async def answer_first(client: Modern) -> Any:
        asked = (await (await client.call("asks_twice")).json())["result"]
        return (await (await (await begin(client, asked, {"text": large})).start()).json())["result"]

    async with site(server) as here:
        honest, attacker = (Modern(at(here, each), {"elicitation": {}}) for each in (OTHER, ATTACKER))
        calls, working = server.round_trips, []
        for _ in range(5):
            asked = await answer_first(attacker)
            if "inputRequests" in asked:
                working.append(await begin(attacker, asked, {}))
                await until(lambda: not calls.suspended_calls.waiting)
            else:
                assert "too many large calls" in text({"result": asked})
        assert 1 <= len(working) <= 3
        assert "inputRequests" in await answer_first(honest)
        for each in working:
            if ends == "answered":
                release.set()
                assert (await each.start()).status == 200
            else:
                await each.leave()
        # A call whose answer was refused still waits for another one.
        held = calls.suspended_calls._memory
        await until(
            lambda: all(size < len(large) for account, size in held.by_account.items() if account.endswith(ATTACKER))
        )


async def test_handlers_that_wait_for_clients_of_http_sse_count_for_their_address_and_in_total() -> None:
    server = desk(http_parked=5, http_parked_per_address=3)
    async with site(server) as here:
        clients = []
        for number in range(8):
            client = await Legacy.connect(at(here, f"203.0.113.{number // 4}"))
            await (await client.open()).post(Modern(here.raw, {"elicitation": {}}).calling("asks"))
            assert "inputRequests" in (await client.stream.message())["result"]
            clients.append(client)
        assert [len(own) for own in server.round_trips.suspended_calls.waiting.values()] == [2, 3]
        for client in clients:
            await client.stream.leave()


async def test_a_handler_that_ends_for_newer_ones_releases_its_arguments() -> None:
    class Held:
        pass

    server, held = desk(http_parked_per_address=2), []

    @server.tool
    async def holds(ctx: Context) -> str:
        mine = Held()
        held.append(weakref.ref(mine))
        return (await ctx.elicit("go on?")).action

    gc.disable()
    try:
        async with site(server) as here:
            client = Modern(here.raw, {"elicitation": {}})
            for id in range(10):
                assert "inputRequests" in (await (await client.call("holds", id=id)).json())["result"]
            await until(lambda: sum(each() is not None for each in held) == 2)
    finally:
        gc.enable()


async def ask_about(client: Modern, what: str, id: int = 1) -> Any:
    """Call the tool that asks twice, and return its first question."""
    asked = (await (await client.call("asks_about", {"what": what}, id=id)).json())["result"]
    assert "inputRequests" in asked
    return asked


async def answer_about(client: Modern, what: str, asked: Any, content: dict[str, str]) -> Any:
    """Answer its question, and return its next one, or its result."""
    answers = {key: {"action": "accept", "content": content} for key in asked["inputRequests"]}
    state = {"requestState": asked["requestState"], "inputResponses": answers}
    params = {"name": "asks_about", "arguments": {"what": what}, **state}
    return (await (await client.ask("tools/call", params)).json())["result"]


async def test_requests_in_flight_of_one_address_leave_room_for_those_of_others() -> None:
    server = desk(http_requests_per_address=2)
    release = add_waiting_tool(server)

    async with site(server) as here:
        attacker, honest = Modern(at(here, ATTACKER)), Modern(at(here, OTHER))
        calls = [asyncio.create_task(attacker.call("waits", id=id)) for id in range(2)]
        await until(lambda: sum(map(len, here.busy())) == 2)
        assert "too many requests" in (await (await attacker.call("waits", id=3)).json())["error"]["message"]
        assert (await (await honest.ask("tools/list")).json())["result"]["tools"]
        release.set()
        await asyncio.gather(*calls)


@pytest.mark.parametrize("way", ["streamable", "sse"])
async def test_requests_in_flight_of_all_sessions_of_one_address_are_bounded_together(way: str) -> None:
    server = desk(http_requests_per_address=3)
    release = add_waiting_tool(server)

    async with site(server) as here:
        if way == "streamable":
            for _ in range(3):
                await (await Stateful(at(here, ATTACKER)).open()).begin("POST", CALL)
            fourth = await Stateful(at(here, ATTACKER)).open()
            await until(lambda: sum(map(len, here.busy())) == 3)
            refused = await (await fourth.call("waits")).json()
            assert (await fourth.ask("ping")).status == 200
        else:
            flood = [await (await Legacy.connect(at(here, ATTACKER))).open() for _ in range(4)]
            for each in flood[:3]:
                await each.post(CALL)
            refused = await flood[3].ask("tools/call", {"name": "waits", "arguments": {}})
        assert "too many requests in flight" in refused["error"]["message"]
        assert "too many" in (await (await Modern(at(here, ATTACKER)).call("waits")).json())["error"]["message"]
        assert (await (await Modern(at(here, OTHER)).ask("tools/list")).json())["result"]["tools"]
        honest = asyncio.create_task((await Stateful(at(here, OTHER)).open()).call("waits"))
        await until(lambda: sum(map(len, here.busy())) == 4)
        release.set()
        assert text(await (await honest).result()) == "done"
        await until(lambda: not here.busy())
        assert text(await (await Modern(at(here, ATTACKER)).call("waits")).json()) == "done"
        if way == "sse":
            for each in flood:
                await each.stream.leave()


async def test_subscriptions_of_all_http_sse_sessions_of_one_address_are_bounded_together() -> None:
    async with site(desk(http_requests_per_address=3)) as here:
        flood = [await (await Legacy.connect(at(here, ATTACKER))).open() for _ in range(2)]
        listen = Modern(here.raw).request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        for id in range(3):
            await flood[0].post({**listen, "id": id})
            assert "acknowledged" in (await flood[0].stream.message())["method"]
        await flood[1].post(listen)
        assert "too many requests in flight" in (await flood[1].stream.message())["error"]["message"]
        other = await (await Legacy.connect(at(here, OTHER))).open()
        await other.post(listen)
        assert "acknowledged" in (await other.stream.message())["method"]
        await flood[0].stream.leave()
        await until(lambda: len(here.endpoint.sse) == 2)
        await flood[1].post(listen)
        assert "acknowledged" in (await flood[1].stream.message())["method"]
        for each in (flood[1], other):
            await each.stream.leave()


async def test_requests_in_flight_of_all_sessions_of_one_principal_are_bounded_together() -> None:
    auth = APIKeys({"key-of-ann": "ann", "key-of-bob": "bob"})
    server = Server("desk", "1", limits=quick(http_requests=1, http_requests_per_address=3), auth=auth)
    release = add_waiting_tool(server)

    async with site(server) as here:
        ann, bob = ({"authorization": f"Bearer key-of-{name}"} for name in ("ann", "bob"))
        for _ in range(3):
            await (await Stateful(here.raw, **ann).open()).begin("POST", CALL)
        await until(lambda: sum(map(len, here.busy())) == 3)
        for client in (await Stateful(here.raw, **ann).open(), Modern(here.raw, **ann)):
            refused = await (await client.call("waits")).json()
            assert refused["error"]["message"] == (
                "too many requests in flight of yours: the limit is 3 (HTTPLimits.requests_per_address)"
            )
        honest = asyncio.create_task((await Stateful(here.raw, **bob).open()).call("waits"))
        await until(lambda: sum(map(len, here.busy())) == 4)
        release.set()
        assert text(await (await honest).result()) == "done"
        await until(lambda: not here.busy())
        assert text(await (await Modern(here.raw, **ann).call("waits")).json()) == "done"


async def test_all_anonymous_requests_in_flight_are_bounded_whatever_their_revision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rate, "MANY", 1)
    server = desk(http_requests=2)
    release = add_waiting_tool(server)

    async with site(server) as here:
        for _ in range(2):
            await (await Stateful(at(here, ATTACKER)).open()).begin("POST", CALL)
        await until(lambda: sum(map(len, here.busy())) == 2)
        refused = await (await Modern(at(here, ATTACKER)).call("waits")).json()
        assert "of all clients together" in refused["error"]["message"]
        assert (await (await Modern(at(here, OTHER)).ask("tools/list")).json())["result"]["tools"]
        release.set()


CALL = encode(request("tools/call", {"name": "waits", "arguments": {}}))


# --- authentication ------------------------------------------------------------------------------------------------


class Slow:
    """An `Auth` that waits until it is released, as for an authorization server."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.senders: list[str] = []

    @property
    def waiting(self) -> int:
        return len(self.senders)

    async def authenticate(self, request: AuthRequest) -> Principal:
        self.senders.append(sender_of(request).lstrip("\0"))
        await self.released.wait()
        return Principal("ann")


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages?session=1"])
async def test_requests_that_wait_for_authentication_are_bounded_although_their_clients_leave(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(quotas, "_FEW_REQUESTS", 2)
    auth = Slow()
    server = Server("desk", "1", auth=auth, limits=quick(http_requests_per_address=3))
    method = "GET" if path == "/sse" else "POST"
    async with site(server) as here:
        answers = [await at(here, ATTACKER).begin(method, path, BASIC) for _ in range(5)]
        await until(lambda: auth.waiting == 5)
        for answer in answers:
            await answer.leave()
        refused = await at(here, ATTACKER).send(method, path, BASIC)
        assert (refused.status, refused.headers["retry-after"]) == (503, "5")
        assert "wait for authentication" in (await refused.json())["error"]["message"]
        honest = asyncio.create_task(at(here, OTHER).send(method, path, BASIC))
        await until(lambda: auth.waiting == 6)
        assert auth.senders == ["", "", *[ATTACKER] * 3, OTHER]
        auth.released.set()
        await (await honest).leave()
        await until(lambda: not here.endpoint.context.pending_authentications.total)
        assert not here.endpoint.context.pending_authentications._of


async def test_where_many_requests_wait_for_authentication_an_address_with_few_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quotas, "_FEW_REQUESTS", 0)
    monkeypatch.setattr(quotas, "MANY", 1)
    auth = Slow()
    server = Server("desk", "1", auth=auth, limits=quick(http_requests=2))
    async with site(server) as here:
        answers = [await at(here, ATTACKER).begin("POST", "/mcp", BASIC) for _ in range(2)]
        await until(lambda: auth.waiting == 2)
        assert (await at(here, ATTACKER).send("POST", "/mcp", BASIC)).status == 503
        answers.append(await at(here, OTHER).begin("POST", "/mcp", BASIC))
        await until(lambda: auth.waiting == 3)
        auth.released.set()
        assert [(await answer.start()).status for answer in answers] == [400] * 3


# --- answers that wait for the rest of their batch -----------------------------------------------------------------


async def test_answers_that_wait_for_the_rest_of_their_batch_are_bounded_by_address_and_given_back() -> None:
    server = desk(http_bodies_bytes_per_address=100_000)
    release = add_waiting_tool(server)

    @server.tool
    def large() -> str:
        return "x" * 30_000

    def batch(client: Stateful) -> list[Any]:
        return [client.calling("waits", id="w"), *(client.calling("large", id=each) for each in range(2))]

    async with site(server) as here:
        flood = [await Stateful(at(here, ATTACKER), "2025-03-26").open() for _ in range(3)]
        honest = await Stateful(at(here, OTHER), "2025-03-26").open()
        posts = [asyncio.create_task(each.post(batch(each))) for each in (*flood, honest)]
        load = here.endpoint.context._load
        await until(lambda: load.running == 4)
        assert 120_000 < load.held_bytes < 170_000
        release.set()
        found = [[text(each) for each in await (await post).json()] for post in posts]
        assert sum(each.startswith("x") for answers in found[:3] for each in answers) == 3
        assert [each for each in found[2] if "ask one by one" in each]
        assert sum(each.startswith("x") for each in found[3]) == 2
        assert load.held_bytes == load.running == 0


def test_where_batches_of_all_together_are_too_large_an_account_with_few_goes_on() -> None:
    whole = rate.RequestLoad(10, 256 << 20)
    large, small = rate.RequestLoad(10, 512 << 20, whole), rate.RequestLoad(10, 4 << 20, whole)
    large.add_batch_bytes(256 << 20)
    with pytest.raises(InternalError, match="of all clients together"):
        large.check_batch_bytes(1)
    small.check_batch_bytes(1 << 20)
    with pytest.raises(InternalError, match="of all clients together"):
        small.check_batch_bytes((1 << 20) + 1)


# --- clients that leave at any moment ------------------------------------------------------------------------------


@pytest.mark.parametrize("turns", range(8))
async def test_a_call_whose_client_leaves_as_it_begins_is_not_stored(turns: int) -> None:
    server = desk()
    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open(capabilities={"elicitation": {}})
        call = Modern(here.raw, {"elicitation": {}}).calling("asks_about", {"what": "x" * 10_000})
        await client.stream.leave()
        for _ in range(turns):
            await asyncio.sleep(0)
        await (await client.raw.begin("POST", client.address, client.headers, encode(call))).end()
        await until(lambda: not len(here.endpoint.sse) and not here.busy())
        await until(lambda: not server.round_trips.suspended_calls._running)


def cancelled(app: Any, method: str, client: Stateful, body: bytes, turns: int) -> asyncio.Task[None]:
    """A request whose task is cancelled after so many iterations of the loop, as some servers and middlewares do."""

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        await asyncio.sleep(0)

    async def cancel() -> None:
        headers = [(name.encode(), value.encode()) for name, value in client.headers.items()]
        scope = {"type": "http", "method": method, "path": "/mcp", "headers": headers, "client": (ATTACKER, 1)}
        task = asyncio.create_task(app(scope, receive, send))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    return asyncio.create_task(cancel())


@pytest.mark.parametrize("turns", range(8))
async def test_a_session_ends_as_a_whole_although_the_request_that_ends_it_is_cancelled(turns: int) -> None:
    async with site(desk()) as here:
        large = {"experimental": {"more": {"text": "x" * 3_000}}}
        client = await Stateful(here.raw, capabilities=large).open()
        context = here.endpoint.context
        assert context.handshake_budget.total > 3_000
        await cancelled(here.app, "DELETE", client, b"", turns)
        if turns:
            await until(lambda: not context.handshake_budget.total)
            assert not len(here.endpoint.sessions)
            assert not context.subscription_index._clients


@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("turns", range(8))
async def test_the_requests_of_a_batch_are_not_in_flight_after_it_is_cancelled(turns: int, stateless: bool) -> None:
    server = desk()
    add_waiting_tool(server)
    async with site(server, options=HTTPOptions(stateless=stateless)) as here:
        client = Stateful(here.raw, "2025-03-26")
        if stateless:
            client.headers["mcp-protocol-version"] = "2025-03-26"
        else:
            await client.open()
        await (await client.ask("tools/list")).end()
        load = here.endpoint.context._load
        await cancelled(here.app, "POST", client, encode([client.calling("waits", id=id) for id in range(3)]), turns)
        await until(lambda: not load.running and not load.held_bytes)


async def test_requests_are_served_while_many_sessions_end_at_once() -> None:
    async with site(desk()) as here:
        for _ in range(100):
            await Stateful(here.raw).open()
        table = here.endpoint.sessions
        for session in table:
            session.last_used_at -= 10_000
        sweeping, ended = asyncio.create_task(table.sweep()), []
        while len(table):
            before = len(table)
            await asyncio.sleep(0)
            ended.append(before - len(table))
        await sweeping
        assert max(ended) <= 20
