"""From a URL to a server of whatever era; what is remembered of it; sessions and servers that end, and come back."""

from __future__ import annotations

import asyncio
import ssl

import pytest

from accord import Cache, Client, ClientLimits, HTTPSettings, Limits, Missed, Reconnect, ResourceUpdated
from accord.auth.oauth import OAuth
from accord.client import connect
from accord.client.client import _identity as shared_results_key
from accord.client.connect import CONNECT_METHODS, ConnectMethod, ConnectMethodCache
from accord.client.target import Remote, identity, parse
from accord.errors import ConnectError, ConnectionLost, HTTPError, NotExecuted, OutcomeUnknown, TargetError

from tests.transport.http.site import INFO, OFFERS, Site, Visit, modern, older, quiet, site
from tests.transport.http.test_sse import Old

QUICKLY = Reconnect(attempts=4, first_seconds=0.01, most_seconds=0.05)


def verbs(server: Site) -> list[str]:
    return [visit.verb for visit in server.visits]


# --- targets ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["http://", "http://a b/", "http://[::1", "https://x:port/", "http://x:99999/", "http://x\n/"]
)
def test_an_invalid_url_is_an_error(text: str) -> None:
    with pytest.raises(TargetError, match="is not the URL of a server"):
        parse(text)


def test_a_url_is_shown_without_what_may_be_secret() -> None:
    assert str(parse("https://ada:pw@example.com:8443/mcp?key=1#x")) == "https://example.com:8443/mcp"


def test_an_entry_of_a_configuration_may_have_headers_and_say_its_type() -> None:
    assert parse({"url": "https://x/sse", "type": "sse", "headers": {"X-Key": "1"}}) == Remote(
        "https://x/sse", {"x-key": "1"}, True
    )


# --- eras ------------------------------------------------------------------------------------------------------


async def test_a_server_of_2026_is_met_by_one_request() -> None:
    async with site(modern(quiet)) as server, Client(server.url) as client:
        assert client.revision == "2026-07-28"
        assert verbs(server) == ["server/discover"]


@pytest.mark.parametrize("status", [400, 404, 405, 406, 415])
@pytest.mark.parametrize("with_json", [False, True])
async def test_an_older_server_refuses_the_probe_in_many_ways_and_is_opened_by_the_handshake(
    status: int, with_json: bool
) -> None:
    async def play(visit: Visit) -> None:
        if visit.verb != "server/discover":
            await older(quiet)(visit)
        elif with_json:
            error = {"code": -32000, "message": "Bad Request: Server not initialized"}
            await visit.json({"jsonrpc": "2.0", "id": None, "error": error}, status)
        else:
            await visit.respond(status, b"<html>", "text/html")

    async with site(play) as server:
        async with Client(server.url) as client:
            assert client.revision == "2025-11-25"
            assert (await client.call_tool("echo")).text == "done"
        async with Client(server.url):
            assert verbs(server).count("server/discover") == 1  # it is known by now
        assert verbs(server).count("initialize") == 2


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize("with_json", [False, True])
async def test_a_server_of_http_and_sse_is_found_at_the_same_url(status: int, with_json: bool) -> None:
    old = Old()

    async def play(visit: Visit) -> None:
        if visit.method == "POST" and visit.path == "/mcp":
            await (visit.error(-32600, "open the stream with GET", status) if with_json else visit.respond(status))
        else:
            await old(visit)

    async with site(play) as server:
        async with Client(server.url) as client:
            assert client.revision == "2024-11-05"
            assert (await client.call_tool("echo", {})).text == "{}"
        before = len(server.visits)
        async with Client(server.url):
            assert server.visits[before].method == "GET"


async def test_the_way_that_is_known_heals_when_the_server_is_another() -> None:
    now = older(quiet)

    async def play(visit: Visit) -> None:
        await now(visit)

    async def refuse(visit: Visit) -> None:
        await visit.respond(404)

    async with site(play) as server:
        async with Client(server.url) as client:
            assert client.revision == "2025-11-25"
        assert CONNECT_METHODS.get(server.url) is ConnectMethod.HANDSHAKE

        async def only_2026(visit: Visit) -> None:
            await (refuse(visit) if visit.verb == "initialize" else modern(quiet)(visit))

        now = only_2026
        async with Client(server.url) as client:
            assert client.revision == "2026-07-28"
        assert CONNECT_METHODS.get(server.url) is None


async def test_a_client_of_older_revisions_learns_nothing_for_others() -> None:
    async def play(visit: Visit) -> None:
        await (older(quiet) if visit.verb == "initialize" else modern(quiet))(visit)

    async with site(play) as server:
        async with Client(server.url, revisions=["2025-11-25"]) as client:
            assert client.revision == "2025-11-25"
        async with Client(server.url) as client:
            assert client.revision == "2026-07-28"
        async with Client(server.url, revisions=["2025-11-25"]) as client:
            assert client.revision == "2025-11-25"


async def test_a_server_that_is_away_is_not_tried_over_every_transport() -> None:
    async with site(older(quiet)) as server, Client(server.url):
        pass
    with pytest.raises(ConnectError, match="TCP") as caught:
        await Client(server.url).connect()
    assert str(caught.value).startswith("initialize to http://127.0.0.1:")
    assert str(caught.value).count("TCP") == 1
    assert CONNECT_METHODS.get(server.url) is None


async def test_a_slow_server_is_knocked_at_twice_and_opened_by_whichever_answers() -> None:
    async def play(visit: Visit) -> None:
        if visit.verb == "server/discover":
            await visit.gone.wait()
        else:
            await older(quiet)(visit)

    limits = Limits(client=ClientLimits(probe_seconds=0.1))
    async with site(play) as server, Client(server.url, limits=limits) as client:
        assert client.revision == "2025-11-25"


async def test_a_server_of_both_eras_that_was_slow_once_is_not_taken_for_an_older_one() -> None:
    slow = asyncio.Event()

    async def play(visit: Visit) -> None:
        if visit.verb == "server/discover":
            await slow.wait()
            await modern(quiet)(visit)
        else:
            await (modern if "mcp-method" in visit.headers else older)(quiet)(visit)

    async with site(play) as server:
        async with Client(server.url, limits=Limits(client=ClientLimits(probe_seconds=0.1))) as client:
            assert client.revision == "2025-11-25"
        slow.set()
        async with Client(server.url) as client:
            assert client.revision == "2026-07-28"


async def test_a_way_on_which_the_connection_was_lost_is_forgotten() -> None:
    async def play(visit: Visit) -> None:
        if visit.method == "GET":
            await visit.stream()
            await visit.chunk(b"event: endpoint\ndata: /m\n\n")
            await server.seen("initialize")
            await visit.end()
        elif visit.path == "/m":
            await visit.respond(202)
        else:
            await modern(quiet)(visit)

    async with site(play) as server:
        CONNECT_METHODS.set(server.url, ConnectMethod.SSE)
        with pytest.raises(ConnectionLost):
            await Client(server.url).connect()
        async with Client(server.url) as client:
            assert client.revision == "2026-07-28"


@pytest.mark.parametrize(("status", "text"), [(404, "no such site"), (500, "database is down")])
async def test_the_refusal_of_the_probe_is_reported_where_there_is_no_other_transport(status: int, text: str) -> None:
    async def page(visit: Visit) -> None:
        await visit.respond(status, text.encode())

    async with site(page) as server:
        with pytest.raises(ConnectError, match=f"HTTP {status} .*{text}"):
            await Client(server.url, revisions=["2026-07-28"]).connect()


@pytest.mark.parametrize("body", ["no such site", '{"jsonrpc":"2.0","error":{"code":-32600,"message":"no such site"}}'])
async def test_a_refusal_of_every_transport_with_the_same_words_is_reported_once(body: str) -> None:
    async def page(visit: Visit) -> None:
        await visit.respond(404, body.encode(), "application/json" if body.startswith("{") else "text/plain")

    async with site(page) as server:
        with pytest.raises(ConnectError) as raised:
            await Client(server.url).connect()
    assert str(raised.value).count("no such site") == 1
    assert "jsonrpc" not in str(raised.value)


async def test_a_refusal_shows_the_message_of_a_json_rpc_error_and_not_its_json() -> None:
    async def page(visit: Visit) -> None:
        await visit.respond(
            401, b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"send a key"}}', "application/json"
        )

    async with site(page) as server:
        with pytest.raises(ConnectError, match=r"HTTP 401 Unauthorized; it says send a key$"):
            await Client(server.url).connect()


async def test_a_json_rpc_error_to_the_probe_is_reported_where_there_is_no_other_transport() -> None:
    async def play(visit: Visit) -> None:
        await visit.error(-32603, "database is down")

    async with site(play) as server:
        with pytest.raises(ConnectError, match=r"refused server/discover: .*database is down.* only 2026-07-28"):
            await Client(server.url, revisions=["2026-07-28"]).connect()


async def test_what_a_server_sends_to_one_client_is_not_cached_for_another() -> None:
    async def play(visit: Visit) -> None:
        tool = {"name": f"of-{visit.headers['x-tenant']}", "inputSchema": {"type": "object"}}
        await visit.result(tools=[tool], ttlMs=60_000, cacheScope="public")

    kept = Cache()
    async with site(modern(play)) as server:
        for tenant in "aba":
            target = {"url": server.url, "headers": {"X-Tenant": tenant}}
            async with Client(target, cache=kept) as client:
                assert [tool.name for tool in await client.list_tools()] == [f"of-{tenant}"]
        assert len(server.of("tools/list")) == 2


def test_the_state_depends_on_the_principal_and_cannot_be_read() -> None:
    def renewed() -> dict[str, str]:
        return {}

    remote = Remote("http://x/")
    asks = [None, HTTPSettings(headers=renewed)]
    tls = ssl.create_default_context()
    asks += [HTTPSettings(ssl=tls), HTTPSettings(proxy=""), HTTPSettings(proxy="http://user:secret@proxy/")]
    asks.append(HTTPSettings(headers={"X-Key": "secret-1"}))
    identities = [identity(remote, each) for each in asks]
    assert len(set(identities)) == len(asks)
    assert identities == [identity(Remote("http://x/"), each) for each in asks]
    assert identity(Remote("http://x/", {"x-key": "secret-1"})) == identities[-1]
    assert "secret" not in repr(identities)


def test_clients_with_other_tokens_or_logins_share_no_results() -> None:
    remote = Remote("http://x/")
    keys = [
        shared_results_key(remote, None, auth, None) for auth in (None, "one-secret", "two-secret", OAuth(), OAuth())
    ]
    assert len(set(keys)) == len(keys)
    assert shared_results_key(remote, None, "one-secret", None) == keys[1]
    assert "secret" not in repr(keys)


def test_what_is_known_is_bounded_and_grows_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    known = ConnectMethodCache()
    monkeypatch.setattr(connect, "_MAX_SERVERS", 3)
    for n in range(5):
        known.set(f"http://x/{n}", ConnectMethod.HANDSHAKE)
    assert [known.get(f"http://x/{n}") for n in range(5)] == [None, None, *[ConnectMethod.HANDSHAKE] * 3]
    later = connect.time.monotonic() + 4_000
    monkeypatch.setattr(connect.time, "monotonic", lambda: later)
    assert known.get("http://x/4") is None


# --- sessions that end -----------------------------------------------------------------------------------------


class Sessions:
    """A server with a handshake that forgets its sessions when told to."""

    def __init__(self) -> None:
        self.opened = 0
        self.living: set[str] = set()
        self.subscribed: list[str] = []
        self.streams: list[Visit] = []
        self.hangs = asyncio.Event()
        self.listened = asyncio.Event()

    async def __call__(self, visit: Visit) -> None:
        session = visit.headers.get("mcp-session-id")
        if visit.verb == "initialize":
            self.opened += 1
            self.living.add(f"s{self.opened}")
            said = {"protocolVersion": "2025-11-25", "capabilities": {**OFFERS, "resources": {"subscribe": True}}}
            await visit.result({"Mcp_Session_Id": f"s{self.opened}"}, **said, serverInfo=INFO)
        elif visit.verb == "server/discover":
            await visit.respond(400)
        elif session not in self.living:
            await visit.json({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "no session"}}, 404)
        elif visit.verb == "GET":
            self.streams.append(visit)
            await visit.stream()
            self.listened.set()
            await visit.gone.wait()
        elif visit.verb == "resources/subscribe":
            self.subscribed.append(session)
            await visit.result()
        elif visit.verb == "tools/call" and visit.message["params"]["name"] == "hang":
            await visit.stream()
            self.hangs.set()
            await visit.gone.wait()
        else:
            await quiet(visit)


async def test_a_session_that_has_ended_is_opened_again_and_the_refused_call_repeated() -> None:
    sessions = Sessions()
    async with site(sessions) as server, Client(server.url) as client:
        assert (await client.call_tool("echo")).text == "done"
        sessions.living.clear()
        assert (await client.call_tool("echo")).text == "done"
        assert sessions.opened == 2
        calls = server.of("tools/call")
        assert [visit.headers["mcp-session-id"] for visit in calls] == ["s1", "s1", "s2"]


async def test_many_calls_refused_at_once_open_one_session() -> None:
    sessions = Sessions()
    async with site(sessions) as server, Client(server.url) as client:
        await client.call_tool("echo")
        sessions.living.clear()
        results = await asyncio.gather(*(client.call_tool("echo") for _ in range(20)))
        assert {result.text for result in results} == {"done"}
        assert sessions.opened == 2


async def test_what_was_being_answered_when_the_session_ended_is_not_repeated() -> None:
    sessions = Sessions()
    async with site(sessions) as server, Client(server.url) as client:
        hanging = asyncio.create_task(client.call_tool("hang"))
        await sessions.hangs.wait()
        sessions.living.clear()
        assert (await client.call_tool("echo")).text == "done"
        with pytest.raises(ConnectionLost, match="the session ended before the answer") as caught:
            await hanging
        assert not isinstance(caught.value, NotExecuted)
        assert len(server.of("tools/call")) == 3


async def test_subscriptions_come_back_in_the_next_session() -> None:
    sessions = Sessions()
    async with site(sessions) as server, Client(server.url) as client, client.subscribe("a://b") as changes:
        sessions.living.clear()
        await client.call_tool("echo")
        assert isinstance(await anext(changes), Missed)
        assert sessions.subscribed == ["s1", "s2"]
        await server.seen("GET", 2)
        told = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a://b"}}
        await sessions.streams[-1].event(told)
        assert await anext(changes) == ResourceUpdated("a://b")


async def test_a_server_that_forgets_every_session_at_once_is_reported_and_not_flooded() -> None:
    sessions = Sessions()

    async def play(visit: Visit) -> None:
        if visit.verb == "tools/call":
            sessions.living.clear()
        await sessions(visit)

    async with site(play) as server, Client(server.url) as client:
        with pytest.raises(ConnectionLost, match="session"):
            await client.call_tool("echo")
        assert sessions.opened == 2 or sessions.opened == 3
        assert len(server.of("tools/call")) == 2


async def test_a_stream_of_a_session_that_has_ended_opens_the_next() -> None:
    sessions = Sessions()
    async with site(sessions) as server, Client(server.url) as client:
        await sessions.listened.wait()
        sessions.living.clear()
        sessions.streams[0].close()
        await server.seen("initialize", 2)
        assert (await client.call_tool("echo")).text == "done"
        assert len(server.of("tools/call")) == 1


async def test_the_session_that_ended_is_not_ended_again() -> None:
    sessions = Sessions()
    async with site(sessions) as server:
        async with Client(server.url) as client:
            await client.call_tool("echo")
            sessions.living.clear()
            await client.call_tool("echo")
        assert [visit.headers["mcp-session-id"] for visit in server.of("DELETE")] == ["s2"]


# --- servers that go and come ----------------------------------------------------------------------------------


async def test_a_call_that_did_not_get_there_may_be_made_again_and_says_so() -> None:
    async with site(modern(quiet)) as server:
        client = await Client(server.url).connect()
        await client.call_tool("echo")
    with pytest.raises(NotExecuted, match="TCP"):
        await client.call_tool("echo")
    await client.close()


async def test_with_reconnect_a_call_that_did_not_get_there_is_made_again() -> None:
    patient = Reconnect(attempts=50, first_seconds=0.01, most_seconds=0.1)
    async with site(modern(quiet)) as server, Client(server.url, reconnect=patient) as client:
        await server.stop()
        call = asyncio.create_task(client.call_tool("echo"))
        await asyncio.sleep(0.05)
        assert not call.done()
        await server.start()
        assert (await asyncio.wait_for(call, 100)).text == "done"


async def test_with_reconnect_a_call_whose_answer_was_lost_is_not_made_again() -> None:
    async def play(visit: Visit) -> None:
        visit.reset()

    async with site(modern(play)) as server, Client(server.url, reconnect=QUICKLY) as client:
        with pytest.raises(OutcomeUnknown):
            await client.call_tool("pay")
        assert len(server.of("tools/call")) == 1


async def test_with_reconnect_a_list_whose_answer_was_lost_is_requested_again() -> None:
    async def play(visit: Visit) -> None:
        if len(server.of("tools/list")) < 3:
            visit.reset()
        else:
            await visit.result(tools=[], ttlMs=0, cacheScope="private")

    async with site(modern(play)) as server, Client(server.url, reconnect=QUICKLY) as client:
        assert await client.list_tools() == []
        assert len(server.of("tools/list")) == 3


async def test_with_reconnect_a_stream_of_http_and_sse_that_ended_is_opened_again() -> None:
    old = Old()
    async with site(old, path="/sse") as server:
        target = {"url": server.url, "type": "sse"}
        async with Client(target, reconnect=QUICKLY) as client:
            await client.call_tool("echo", {"n": 1})
            assert old.stream is not None
            old.stream.reset()
            await server.seen("GET", 2)
            assert (await client.call_tool("echo", {"n": 2})).text == str({"n": 2})


async def test_an_http_error_leaves_the_client_usable() -> None:
    async def play(visit: Visit) -> None:
        if visit.message["params"]["name"] == "bad":
            await visit.respond(503, b"later")
        else:
            await visit.done()

    async with site(modern(play)) as server, Client(server.url) as client:
        with pytest.raises(HTTPError, match="HTTP 503 Service Unavailable; it says later"):
            await client.call_tool("bad")
        assert (await client.call_tool("good")).text == "done"


async def test_a_subscription_whose_stream_broke_is_made_anew() -> None:
    async def play(visit: Visit) -> None:
        meta = {"io.modelcontextprotocol/subscriptionId": visit.message["id"]}
        granted = {"notifications": {"resourceSubscriptions": ["a://b"]}, "_meta": meta}
        await visit.stream()
        await visit.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": granted})
        if len(server.of("subscriptions/listen")) == 1:
            visit.reset()
            return
        told = {"uri": "a://b", "_meta": meta}
        await visit.event({"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": told})
        await visit.gone.wait()

    async with site(modern(play)) as server, Client(server.url) as client, client.subscribe("a://b") as changes:
        async with asyncio.timeout(100):
            assert isinstance(await anext(changes), Missed)
            assert await anext(changes) == ResourceUpdated("a://b")
