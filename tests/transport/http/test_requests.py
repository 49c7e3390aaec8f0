"""Requests over Streamable HTTP: what they carry, what comes back, and that none disturbs another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st
from yarl import URL

from accord import Client, Limits
from accord.errors import (
    AccordError,
    ConnectionLost,
    HTTPError,
    InvalidParams,
    NotConnected,
    RemoteProtocolError,
    TargetError,
)
from accord.messages.bounds import RESULT_NODES
from accord.transport.http.fetcher import proxy_for
from accord.transport.http.messages import negotiated_revision, parse_received, parse_sent
from accord.transport.http.session_state import ClientSessionState
from accord.transport.http.settings import HTTPSettings

from .site import VERSION, Play, Visit, modern, older, quiet, runs_out_of_time, site
from tests.waiting import turns


async def test_a_request_of_2026_says_in_headers_what_its_body_says() -> None:
    async with site(modern(quiet)) as server, Client(server.url) as client:
        await client.call_tool("echo", {"text": "hi"})
        visit = server.of("tools/call")[0]
    assert visit.headers["mcp-protocol-version"] == visit.message["params"]["_meta"][VERSION] == "2026-07-28"
    assert visit.headers["mcp-method"] == "tools/call"
    assert visit.headers["mcp-name"] == "echo"
    assert "mcp-session-id" not in visit.headers
    assert visit.headers["accept"] == "application/json, text/event-stream"
    assert visit.headers["content-type"] == "application/json"


async def test_a_name_that_no_header_can_have_is_wrapped() -> None:
    async with site(modern(quiet)) as server, Client(server.url) as client:
        await client.call_tool("gruß\n", {})
        assert server.of("tools/call")[0].headers["mcp-name"] == "=?base64?Z3J1w58K?="


async def test_after_a_handshake_session_and_version_go_with_everything() -> None:
    async with site(older(quiet, revision="2025-06-18")) as server:
        async with Client(server.url) as client:
            await client.call_tool("echo")
            await server.seen("GET")
        later = [visit for visit in server.visits if visit.verb not in ("server/discover", "initialize")]
    assert {visit.verb for visit in later} == {"notifications/initialized", "tools/call", "GET", "DELETE"}
    assert {visit.headers.get("mcp-session-id") for visit in later} == {"session-1"}
    assert {visit.headers.get("mcp-protocol-version") for visit in later} == {"2025-06-18"}
    assert "mcp-session-id" not in server.of("initialize")[0].headers
    assert "mcp-method" not in server.of("tools/call")[0].headers


async def test_a_server_without_sessions_gets_no_delete() -> None:
    async with site(older(quiet, session=None)) as server:
        async with Client(server.url) as client:
            await client.call_tool("echo")
        assert not server.of("DELETE")


async def test_no_request_is_sent_before_the_server_has_received_initialized() -> None:
    take, taken = asyncio.Event(), asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "notifications/initialized":
            await take.wait()
            taken.set()
            await visit.respond(202)
        else:
            assert taken.is_set() or visit.verb in ("initialize", "server/discover")
            await older(quiet)(visit)

    async with site(play) as server, Client(server.url) as client:
        call = asyncio.create_task(client.call_tool("echo"))
        await server.seen("notifications/initialized")
        await turns(100)  # in which the call would come
        take.set()
        assert (await call).text == "done"


async def test_connections_are_used_again() -> None:
    async with site(modern(quiet)) as server, Client(server.url) as client:
        for _ in range(20):
            await client.call_tool("echo")
        assert server.connections == 1


async def test_no_more_requests_than_connections_are_in_flight_and_none_is_forgotten() -> None:
    running = most = 0

    async def play(visit: Visit) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        await visit.done(str(visit.message["params"]["arguments"]["n"]))

    async with site(modern(play)) as server, Client(server.url, http=HTTPSettings(connections=3)) as client:
        calls = [asyncio.create_task(client.call_tool("echo", {"n": n})) for n in range(30)]
        await asyncio.sleep(0)
        for call in calls[::3]:
            call.cancel()  # some that wait, and some that have not begun
        results = await asyncio.gather(*calls, return_exceptions=True)
        texts = [getattr(result, "text", None) for result in results]
        assert texts == [None if n % 3 == 0 else str(n) for n in range(30)]
        assert 3 <= most <= 4  # a server goes on for a moment with the one that was given up in the middle
        assert (await client.call_tool("echo", {"n": 99})).text == "99"


async def test_a_request_that_fails_fails_alone() -> None:
    failed = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.message["params"]["name"] == "bad":
            visit.reset()
        else:
            await failed.wait()
            await visit.done()

    async with site(modern(play)) as server, Client(server.url) as client:
        good = asyncio.create_task(client.call_tool("good"))
        await server.seen("tools/call")
        with pytest.raises(ConnectionLost):
            await client.call_tool("bad")
        failed.set()
        assert (await good).text == "done"
        assert (await client.call_tool("good")).text == "done"


async def test_an_error_in_a_400_is_the_answer() -> None:
    async def play(visit: Visit) -> None:
        await visit.error(-32602, "no such tool", 400)

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(InvalidParams, match="no such tool"):
            await client.call_tool("echo")


@pytest.mark.parametrize("id", [None, "server-error", 4711])
async def test_an_error_that_names_another_request_ends_the_one_it_came_for(id: object) -> None:
    async def play(visit: Visit) -> None:
        await visit.json({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "cannot read that"}}, 400)

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(InvalidParams, match="cannot read that"):
            await client.call_tool("echo")


async def test_a_result_for_another_request_is_no_answer() -> None:
    async def play(visit: Visit) -> None:
        await visit.json({"jsonrpc": "2.0", "id": 4711, "result": {}})

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(HTTPError, match="instead of a response"):
            await client.call_tool("echo")


@pytest.mark.parametrize("streams", [False, True])
async def test_giving_up_closes_the_response_and_says_nothing_in_2026(streams: bool) -> None:
    async def play(visit: Visit) -> None:
        if streams:
            await visit.stream()
        async with asyncio.timeout(100):
            await visit.gone.wait()

    async with site(modern(play)) as server, Client(server.url) as client:
        await runs_out_of_time(client, "slow", server.seen("tools/call"))
        visit = server.of("tools/call")[0]
        await asyncio.wait_for(visit.gone.wait(), 100)
        assert not server.of("notifications/cancelled")


async def test_giving_up_is_notified_through_2025_and_the_response_closed_as_well() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            await visit.stream()
            await visit.gone.wait()
        else:
            await quiet(visit)

    async with site(older(play)) as server, Client(server.url) as client:
        await runs_out_of_time(client, "slow", server.seen("tools/call"))
        told = await server.seen("notifications/cancelled")
        visit = server.of("tools/call")[0]
        assert told.message["params"]["requestId"] == visit.message["id"]
        await asyncio.wait_for(visit.gone.wait(), 100)


async def test_queued_messages_go_out_before_the_end() -> None:
    async with site(older(quiet)) as server:
        client = await Client(server.url, roots=["/tmp"]).connect()
        await client.notify("notifications/roots/list_changed")
        await client.close()
        assert [visit.verb for visit in server.visits[-2:]] == ["notifications/roots/list_changed", "DELETE"]


async def test_a_client_can_be_closed_while_everything_hangs() -> None:
    async def play(visit: Visit) -> None:
        await asyncio.sleep(30)

    async with site(older(play)) as server:
        client = await Client(server.url, limits=Limits(close_seconds=0.2)).connect()
        call = asyncio.create_task(client.call_tool("echo"))
        await server.seen("GET")
        await server.seen("tools/call")
        async with asyncio.timeout(100):
            await client.close()
        assert isinstance((await asyncio.gather(call, return_exceptions=True))[0], Exception)


async def test_headers_are_sent_and_may_change_from_request_to_request() -> None:
    tokens = iter(range(100))

    async def headers() -> dict[str, str]:
        return {"Authorization": f"Bearer token-{next(tokens)}"}

    async with site(modern(quiet)) as server:
        async with Client(server.url, http=HTTPSettings(headers=headers)) as client:
            await client.call_tool("echo")
        ignored = {"accept": "text/html", "mcp-session-id": "x", "MCP-Protocol-Version": "1"}
        async with Client(server.url, auth="abc", http=HTTPSettings(headers={"X-Key": "k", **ignored})) as client:
            await client.call_tool("echo")
    assert [visit.headers["authorization"] for visit in server.visits] == [
        "Bearer token-0",
        "Bearer token-1",
        "Bearer abc",
        "Bearer abc",
    ]
    last = server.visits[-1].headers
    assert last["x-key"] == "k"
    assert last["accept"] == "application/json, text/event-stream"
    assert last["mcp-protocol-version"] == "2026-07-28"
    assert "mcp-session-id" not in last


async def test_a_function_for_headers_that_fails_fails_the_request_by_name() -> None:
    def headers() -> dict[str, str]:
        raise KeyError("TOKEN")

    async with site(modern(quiet)) as server:
        with pytest.raises(Exception, match=r"the function for headers failed: KeyError\('TOKEN'\)"):
            await Client(server.url, http=HTTPSettings(headers=headers)).connect()
        assert not server.visits


@pytest.mark.parametrize("headers", [{"X": "a\r\nY: b"}, {"X Y": "a"}, {"X": 1}])
def test_headers_that_cannot_be_sent_are_refused_without_their_value(headers: dict[str, str]) -> None:
    with pytest.raises(TargetError) as caught:
        HTTPSettings(headers=headers)
    assert "Y: b" not in str(caught.value)


def test_settings_do_not_show_what_may_be_secret() -> None:
    assert "secret" not in repr(HTTPSettings(headers={"X-Key": "secret"}, proxy="http://u:secret@p"))


async def test_a_name_and_a_password_in_the_url_are_sent_and_not_printed() -> None:
    async def play(visit: Visit) -> None:
        await visit.respond(401, b"no")

    async with site(play) as server:
        url = server.url.replace("//", "//ada:lovelace@")
        with pytest.raises(Exception, match="401") as caught:
            await Client(url + "?key=hidden").connect()
        assert "lovelace" not in str(caught.value)
        assert "hidden" not in str(caught.value)
        assert server.visits[0].headers["authorization"] == "Basic YWRhOmxvdmVsYWNl"
        assert server.visits[0].path == "/mcp?key=hidden"


async def test_a_large_request_passes_whole() -> None:
    async def play(visit: Visit) -> None:
        await visit.done(str(len(visit.message["params"]["arguments"]["text"])))

    async with site(modern(play)) as server, Client(server.url) as client:
        assert (await client.call_tool("size", {"text": "x" * (3 << 20)})).text == str(3 << 20)


@pytest.mark.parametrize("declared", [True, False])
async def test_an_answer_over_the_limit_fails_its_request(declared: bool) -> None:
    async def play(visit: Visit) -> None:
        if visit.message["params"]["name"] == "small":
            return await visit.done()
        if declared:
            return await visit.done("x" * 200_000)
        await visit.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await visit.chunk(b" " * 10_000)

    async with site(modern(play)) as server, Client(server.url, limits=Limits(line_bytes=100_000)) as client:
        with pytest.raises(RemoteProtocolError, match=r"larger than 100,000 bytes"):
            await client.call_tool("large")
        assert (await client.call_tool("small")).text == "done"


# --- lifetimes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("era", [modern, older])
async def test_nothing_is_left_running_after_the_end(era: Callable[[Play], Play]) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "GET" or (visit.verb == "tools/call" and visit.message["params"]["name"] == "hang"):
            await visit.stream()
            await visit.gone.wait()
        else:
            await quiet(visit)

    async with site(era(play)) as server:
        client = await Client(server.url).connect()
        hanging = asyncio.create_task(client.call_tool("hang"))
        await client.call_tool("echo")
        await server.seen("tools/call", 2)
        await client.close()
        with pytest.raises(NotConnected):
            await hanging
        await server.stop()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_client_is_opened_used_and_closed_from_three_tasks() -> None:
    async with site(older(quiet)) as server:
        client = Client(server.url)
        await asyncio.create_task(client.connect())
        assert (await asyncio.create_task(client.call_tool("echo"))).text == "done"
        await asyncio.create_task(client.close())
        assert server.of("DELETE")


async def test_a_client_that_is_still_connecting_can_be_closed() -> None:
    async def play(visit: Visit) -> None:
        await visit.gone.wait()

    async with site(play) as server:
        client = Client(server.url)
        opening = asyncio.create_task(client.connect())
        await server.seen("server/discover")
        await client.close()
        with pytest.raises(NotConnected, match="closed while it was connecting"):
            await opening


async def test_cookies_keep_a_client_with_its_server() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "server/discover":
            said = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0}
            await visit.result({"Set_Cookie": "backend=7; Path=/"}, **said, cacheScope="private")
        else:
            await quiet(visit)

    async with site(play) as server:
        named = server.url.replace("127.0.0.1", "localhost")
        async with Client(named) as client:
            await client.call_tool("echo")
        assert server.of("tools/call")[0].headers["cookie"] == "backend=7"


# --- reading ---------------------------------------------------------------------------------------------------


@given(
    st.binary(max_size=200) | st.from_regex(rb'\{"(id|method|result|error)":.{0,40}\}', fullmatch=True), st.integers()
)
def test_whatever_a_server_sends_is_an_answer_an_error_or_neither(data: bytes, id: int) -> None:
    found = parse_received(data)
    assert found.is_answer_to(id) in (True, False)
    assert found.error is None or isinstance(found.error, AccordError)
    assert isinstance(negotiated_revision(data), str)


MANY = b"[" + b"[]," * RESULT_NODES + b"0]"


def test_a_message_with_too_much_structure_is_not_decoded() -> None:
    assert parse_received(b'{"jsonrpc":"2.0","id":7,"result":{},"more":%b}' % MANY).is_answer_to(7)
    assert parse_received(b'{"jsonrpc":"2.0","id":%b,"result":{}}' % MANY).is_orphan
    assert parse_received(b'{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x","data":%b}}' % MANY).error is None


@pytest.mark.parametrize("id", [b"2", b"null"])
async def test_an_error_body_with_too_much_structure_is_an_error(id: bytes) -> None:
    body = b'{"jsonrpc":"2.0","id":%b,"error":{"code":1,"message":"it is full","data":%b}}' % (id, MANY)

    async def play(visit: Visit) -> None:
        await visit.respond(500, body, "application/json")

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises((RemoteProtocolError, HTTPError), match=r"more than 1,000,000 arrays|it is full"):
            await client.call_tool("echo")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers(1, 2**31), st.sampled_from(["tools/call", "resources/read", "x/y"]), json_values)
def test_params_of_any_shape_can_be_sent(id: int, method: str, params: object) -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
    out = parse_sent(message)
    assert (out.id, out.method) == (id, method)
    headers = ClientSessionState().message_headers(out)
    assert all(value.isascii() and value.isprintable() for value in headers.values())


@pytest.mark.parametrize(
    ("variables", "url", "expected"),
    [
        ({"https_proxy": "http://proxy:3128"}, "https://example.com/mcp", "http://proxy:3128"),
        ({"https_proxy": "http://proxy:3128"}, "http://example.com/mcp", None),
        ({"http_proxy": "http://proxy:3128"}, "http://localhost:8000/mcp", None),
        ({"http_proxy": "http://proxy:3128"}, "http://[::1]:8000/mcp", None),
        ({"http_proxy": "http://proxy:3128", "no_proxy": "example.com"}, "http://example.com/mcp", None),
    ],
)
def test_the_proxy_of_the_environment_is_used_but_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str, expected: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(URL(url), None).url == expected
    assert proxy_for(URL(url), "").url is None
    assert proxy_for(URL(url), "http://other:1").url == "http://other:1"


async def test_a_request_given_up_before_it_was_sent_is_neither_sent_nor_cancelled_at_the_peer() -> None:
    may_go_on = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "notifications/initialized":
            await may_go_on.wait()
        await older(quiet)(visit)

    async with site(play) as server, Client(server.url) as client:
        await runs_out_of_time(client, "first", server.seen("notifications/initialized"))
        may_go_on.set()
        assert (await client.call_tool("second")).text == "done"
        assert [visit.message["params"]["name"] for visit in server.of("tools/call")] == ["second"]
        assert not server.of("notifications/cancelled")
