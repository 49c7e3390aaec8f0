"""A client that reconnects: real servers that die and are started again, and what becomes of the calls in flight."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from accord import Client, Server, Tool
from accord.client.retry import Backoff, Reconnect
from accord.client.subscription import Missed
from accord.errors import ConnectError, ConnectionLost, NotConnected, OutcomeUnknown, RequestTimeout, TargetError
from accord.limits import ClientLimits, Limits
from accord.messages.capabilities import ServerCapabilities
from accord.messages.revision import REVISIONS
from accord.session.peer_info import PeerInfo
from accord.session.session import Session
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.connection import Connection

from tests.clock import Clock
from tests.waiting import turns, until

S26 = "2026-07-28"
ERAS = pytest.mark.parametrize("revision", ["2025-11-25", S26])
SOON = Reconnect(attempts=4, first_seconds=0.01, most_seconds=0.05)
ENDLESSLY = Reconnect(attempts=100_000, first_seconds=0.01, most_seconds=0.05)


class Mortal:
    """A server that dies as planned, and clients of it."""

    def __init__(self, folder: Path, revision: str = S26, **plan: Any) -> None:
        self.folder = folder
        self.revision = revision
        (folder / "plan.json").write_text(json.dumps(plan))

    def client(self, reconnect: Reconnect | None = SOON, **options: Any) -> Client:
        script = str(Path(__file__).with_name("crashing_server.py"))
        command = [sys.executable, "-S", "-E", script, str(self.folder), self.revision]
        options = {"limits": Limits(close_seconds=0.5), "revisions": [self.revision], **options}
        return Client(command, reconnect=reconnect, **options)

    @property
    def processes(self) -> list[int]:
        starts = self.folder / "starts"
        return [int(pid) for pid in starts.read_text().split()] if starts.exists() else []

    def asked(self, method: str) -> list[int]:
        """Which starts were asked for a method."""
        lines = [line.split() for line in (self.folder / "asked").read_text().splitlines()]
        return [int(start) for start, name in lines if name == method]

    def kill(self) -> None:
        os.kill(self.processes[-1], signal.SIGKILL)

    def left(self) -> list[int]:
        """Processes that still run."""
        return [pid for pid in self.processes if Path(f"/proc/{pid}").exists()]


async def ended(client: Client) -> None:
    """Return when the client has seen that the connection has ended."""
    async with asyncio.timeout(100):
        await client.connection.ended.wait()


@ERAS
async def test_a_list_in_flight_is_requested_again(tmp_path: Path, revision: str) -> None:
    mortal = Mortal(tmp_path, revision, dies={"tools/list": 2})
    async with asyncio.timeout(100), mortal.client() as client:
        assert [tool.name for tool in await client.list_tools()] == ["plain", "reads", "repeats"]
        assert mortal.asked("tools/list") == [1, 2, 3]
        assert len(await client.list_prompts()) == 1
    assert mortal.left() == []


@ERAS
async def test_a_call_in_flight_is_not_repeated_and_its_outcome_is_reported_as_unknown(
    tmp_path: Path, revision: str
) -> None:
    mortal = Mortal(tmp_path, revision, dies={"tools/call": 1})
    async with asyncio.timeout(100), mortal.client() as client:
        with pytest.raises(OutcomeUnknown, match="may or may not have taken effect, and was not sent again") as raised:
            await client.call_tool("reads")
        assert raised.value.exit_code == 3
        assert "tools/call kills me" in raised.value.stderr
        assert isinstance(raised.value, ConnectionLost)
        assert (await client.call_tool("reads")).text == "2"
        assert mortal.asked("tools/call") == [1, 2]


@pytest.mark.parametrize(("tool", "again"), [("reads", True), ("repeats", True), ("plain", False), ("nope", False)])
@pytest.mark.parametrize("known", [True, False], ids=["listed before", "never listed"])
async def test_hints_count_if_the_server_is_trusted(tmp_path: Path, tool: str, again: bool, known: bool) -> None:
    mortal = Mortal(tmp_path, dies={"tools/call": 1})
    async with asyncio.timeout(100), mortal.client(trusted=True) as client:
        if known:
            await client.list_tools()
        if again:
            assert (await client.call_tool(tool)).text == "2"
        else:
            with pytest.raises(OutcomeUnknown):
                await client.call_tool(tool)
        assert mortal.asked("tools/call") == ([1, 2] if again else [1])


async def test_any_request_is_sent_again_only_if_its_caller_says_that_it_may_be(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, dies={"prompts/get": 3})
    async with asyncio.timeout(100), mortal.client() as client:
        with pytest.raises(OutcomeUnknown):
            await client.request("prompts/get", {"name": "x"}, result=dict)
        assert await client.request("prompts/get", {"name": "x"}, result=dict, repeatable=True)
        assert mortal.asked("prompts/get") == [1, 2, 3, 4]


async def test_without_reconnect_everything_stays_as_it_was(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, dies={"tools/call": 1})
    async with asyncio.timeout(100), mortal.client(None) as client:
        with pytest.raises(ConnectionLost, match="tools/call kills me") as raised:
            await client.call_tool("reads")
        assert not isinstance(raised.value, OutcomeUnknown)
        with pytest.raises(ConnectionLost, match="tools/call kills me"):
            await client.list_tools()
        assert len(mortal.processes) == 1


@pytest.mark.parametrize("reconnect", [None, SOON], ids=["alone", "supervised"])
async def test_connecting_replaces_a_lost_connection(tmp_path: Path, reconnect: Reconnect | None) -> None:
    mortal = Mortal(tmp_path)
    async with asyncio.timeout(100), mortal.client(reconnect) as client:
        await client.connect()
        assert len(mortal.processes) == 1
        mortal.kill()
        await ended(client)
        await client.connect()
        assert (await client.call_tool("plain")).text == "2"
    assert mortal.left() == []


async def test_what_is_called_while_the_server_is_down_waits_for_it(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, fails=[2, 3])
    async with asyncio.timeout(100), mortal.client() as client:
        mortal.kill()
        await ended(client)
        calls = [client.call_tool("plain"), client.call_tool("plain")]
        assert [result.text for result in await asyncio.gather(*calls)] == ["4", "4"]


async def test_the_wait_for_a_server_that_is_down_is_bounded_by_the_timeout(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, fails=list(range(2, 1000)))
    async with asyncio.timeout(100), mortal.client(ENDLESSLY) as client:
        mortal.kill()
        await ended(client)
        for bound in ({"timeout": 0.2}, {"total_timeout": 0.2}):
            with pytest.raises(RequestTimeout, match=r"did not reconnect within 0\.2 s"):
                await client.call_tool("plain", **bound)


async def test_a_server_that_never_comes_back_is_given_up_and_all_waiting_calls_fail(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, fails=[2, 3, 4, 5])
    async with asyncio.timeout(100), mortal.client() as client:
        async with client.subscribe("res://a") as subscription, client.notifications() as stream:
            mortal.kill()
            given_up = r"given up after 4 attempts in a row \(Reconnect.attempts\)"
            with pytest.raises(ConnectionLost, match=given_up):
                await client.list_tools()
            with pytest.raises(ConnectionLost, match=given_up):
                await anext(subscription)
            with pytest.raises(ConnectionLost, match=given_up):
                await anext(stream)
            with pytest.raises(ConnectionLost, match=given_up):
                await client.call_tool("plain")
            assert len(mortal.processes) == 5
        await client.connect()  # somebody insists
        assert (await client.call_tool("plain")).text == "6"


async def test_a_request_that_always_kills_the_server_ends(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, dies={"tools/list": 1000})
    async with asyncio.timeout(100), mortal.client() as client:
        with pytest.raises(ConnectionLost):
            await client.list_tools()
        assert len(mortal.asked("tools/list")) == 1 + SOON.attempts


async def test_log_level_and_subscriptions_are_made_anew_through_2025(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, "2025-11-25")
    async with asyncio.timeout(100), mortal.client(log_level="debug") as client:
        async with client.subscribe("res://a") as subscription:
            mortal.kill()
            assert isinstance(await anext(subscription), Missed)
            await client.ping()
            assert mortal.asked("logging/setLevel") == [1, 2]
            assert mortal.asked("resources/subscribe") == [1, 2]
        assert mortal.asked("resources/unsubscribe") == [2]


async def test_subscriptions_are_made_anew_in_2026(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path)
    async with asyncio.timeout(100), mortal.client() as client, client.subscribe("res://a") as subscription:
        for start in (2, 3):
            mortal.kill()
            assert isinstance(await anext(subscription), Missed)
            await client.ping()
            assert mortal.asked("subscriptions/listen") == list(range(1, start + 1))
            assert subscription.granted == subscription.wish


async def test_the_cache_of_the_last_server_is_dropped(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path)
    async with asyncio.timeout(100), mortal.client() as client:
        assert [prompt.name for prompt in await client.list_prompts()] == ["1"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["1"]
        mortal.kill()
        await ended(client)
        await client.connect()
        assert [prompt.name for prompt in await client.list_prompts()] == ["2"]
    assert mortal.asked("prompts/list") == [1, 2]


async def test_closing_while_the_server_is_down_ends_at_once(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, fails=list(range(2, 1000)))
    async with asyncio.timeout(100):
        client = mortal.client(ENDLESSLY)
        await client.connect()
        mortal.kill()
        await ended(client)
        waiting = asyncio.create_task(client.call_tool("plain"))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(NotConnected):
            await waiting
        started = len(mortal.processes)
        assert mortal.left() == []
        assert len(mortal.processes) == started


@pytest.mark.parametrize("reconnect", [None, SOON], ids=["alone", "supervised"])
async def test_closing_while_connecting_leaves_no_process(tmp_path: Path, reconnect: Reconnect | None) -> None:
    mortal = Mortal(tmp_path, mute=[1])
    async with asyncio.timeout(100):
        client = mortal.client(reconnect)
        connecting = [asyncio.create_task(client.connect()) for _ in range(2)]
        await until(lambda: mortal.processes)
        await client.close()
        assert mortal.left() == []
        for task in connecting:
            with pytest.raises(NotConnected, match="closed while it"):
                await task
        assert len(mortal.processes) == 1
        async with client:  # and it can be opened again
            await client.ping()


async def test_a_second_call_of_close_waits_for_the_first(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, mute=[1])
    async with asyncio.timeout(100):
        client = mortal.client()
        connecting = asyncio.create_task(client.connect())
        await until(lambda: mortal.processes)
        closing = asyncio.create_task(client.close())
        await turns(5)
        await client.close()
        assert mortal.left() == []
        await closing
        with pytest.raises(NotConnected, match="closed while it"):
            await connecting


async def test_a_server_that_cannot_be_opened_at_first_is_no_case_for_reconnecting(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, fails=[1])
    with pytest.raises((ConnectError, ConnectionLost)):
        await mortal.client().connect()


async def test_a_transport_cannot_be_opened_twice() -> None:
    with pytest.raises(TargetError, match="a transport cannot be opened twice"):
        Client(memory.pair()[0], reconnect=SOON)


async def test_a_server_that_was_opened_before_is_not_taken_for_an_older_one(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, fails=[2])
    async with asyncio.timeout(100), mortal.client(revisions=REVISIONS) as client:
        mortal.kill()
        await ended(client)
        assert (await client.call_tool("plain")).text == "3"
        assert "initialize" not in (tmp_path / "asked").read_text()


async def test_a_server_that_ends_at_the_probe_is_not_probed_again(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path, "2025-11-25", dies={"server/discover": 1000})
    async with asyncio.timeout(100), mortal.client(revisions=REVISIONS) as client:
        mortal.kill()
        await ended(client)
        assert (await client.call_tool("plain")).text == "3"
        assert mortal.asked("server/discover") == [1]


async def test_closing_goes_on_when_the_one_who_closes_is_cancelled(tmp_path: Path) -> None:
    mortal = Mortal(tmp_path)
    async with asyncio.timeout(100):
        client = await mortal.client().connect()
        closing = asyncio.create_task(client.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        await client.close()
        assert mortal.left() == []


@pytest.mark.parametrize("reconnect", [None, SOON], ids=["alone", "supervised"])
async def test_what_follows_the_opening_is_bounded_in_time(reconnect: Reconnect | None) -> None:
    async def serve(transport: Transport) -> None:
        """Open, and never say another word."""
        offers = ServerCapabilities(logging={})
        connection = Connection(Session("server", PeerInfo(None, offers)), transport, never)
        await connection.start()
        await connection.ended.wait()

    async def never(pending: Any, connection: Any) -> None:
        reached.set()
        await asyncio.Event().wait()

    reached = asyncio.Event()
    target: Any = SimpleNamespace(serve=serve)
    limits = Limits(close_seconds=0.2, client=ClientLimits(connect_seconds=60))
    client = Client(target, revisions=["2025-11-25"], log_level="info", limits=limits, reconnect=reconnect)
    async with asyncio.timeout(100):
        connecting = asyncio.ensure_future(client.connect())
        await reached.wait()
        await Clock().jump(61)
        with pytest.raises(ConnectError, match="did not respond to the first requests after the handshake in 60 s"):
            await connecting


async def test_a_callback_may_close_the_client() -> None:
    server = Server("s")
    closed = asyncio.Event()

    @server.tool
    async def old() -> str:
        server.add_tool(Tool(name="new", input_schema={"type": "object"}), lambda arguments: "x")
        await asyncio.Event().wait()
        return ""

    async with asyncio.timeout(100), Client(server, revisions=["2025-11-25"]) as client:

        async def close(notice: Any) -> None:
            await client.close()
            closed.set()

        client.on("notifications/tools/list_changed", close)
        with pytest.raises(NotConnected):
            await client.call_tool("old")
        await closed.wait()


async def test_a_server_in_this_process_that_ends_is_served_again() -> None:
    server = Server("s")
    served = 0

    @server.tool
    def echo(text: str) -> str:
        return text

    async def serve(transport: Transport) -> None:
        nonlocal served
        served += 1
        serving = asyncio.ensure_future(server.serve(transport))
        if served == 1:
            await go_on.wait()
            await transport.close()
        await serving

    go_on = asyncio.Event()
    target: Any = SimpleNamespace(serve=serve)
    async with asyncio.timeout(100), Client(target, reconnect=SOON) as client:
        assert (await client.call_tool("echo", {"text": "1"})).text == "1"
        go_on.set()
        await ended(client)
        assert (await client.call_tool("echo", {"text": "2"})).text == "2"
        assert served == 2


@ERAS
async def test_connecting_while_the_client_closes_opens_another_connection(revision: str) -> None:
    server = Server("s")
    async with asyncio.timeout(100):
        for count in range(1, 40):
            client = await Client(server, revisions=[revision]).connect()
            closing = asyncio.create_task(client.close())
            await turns(count)
            await client.connect()
            await closing
            await client.ping()
            async with client.notifications():
                pass
            await client.close()


async def test_closing_while_a_server_in_this_process_ends_slowly_stops_the_reconnecting() -> None:
    async def serve(transport: Transport) -> None:
        serving = asyncio.ensure_future(server.serve(transport))
        await go_on.wait()
        await transport.close()
        await serving
        ending.set()
        await asyncio.Event().wait()

    server = Server("s")
    go_on, ending = asyncio.Event(), asyncio.Event()
    target: Any = SimpleNamespace(serve=serve)
    client = Client(target, reconnect=ENDLESSLY)
    async with asyncio.timeout(100):
        await client.connect()
        go_on.set()
        await until(lambda: client.state == "reconnecting" and ending.is_set())
        await client.close()
        assert client.state == "closed"


# The pauses


@given(
    attempts=st.integers(0, 20),
    first=st.floats(0, 10),
    most=st.floats(0, 100),
    lived=st.lists(st.floats(0, 200), max_size=60),
    share=st.floats(0, 1),
)
def test_pauses_grow_to_their_bound_and_end_after_so_many_in_a_row(
    attempts: int, first: float, most: float, lived: list[float], share: float
) -> None:
    reconnect = Reconnect(attempts=attempts, first_seconds=first, most_seconds=most, settled_seconds=100)
    backoff = Backoff(reconnect, lambda low, high: low + share * (high - low))
    row = 0
    for seconds in lived:
        row = 0 if seconds >= 100 else row
        pause = backoff.after(seconds)
        if row == attempts:
            assert pause is None
        else:
            assert pause == pytest.approx(share * min(most, first * 2**row))
            row += 1


def test_pauses_are_random_in_all_their_length() -> None:
    pauses = [Backoff(Reconnect(first_seconds=1)).after(0) or 0 for _ in range(1000)]
    assert 0 <= min(pauses) < 0.1
    assert 0.9 < max(pauses) <= 1


async def test_the_state_of_the_connection_is_observable(tmp_path: Path) -> None:
    seen: list[tuple[str, str | None]] = []
    server = Mortal(tmp_path)
    client = server.client(on_state=lambda state, error: seen.append((state, type(error).__name__ if error else None)))
    assert client.state == "closed"
    async with client:
        assert client.state == "connected"
        os.kill(server.processes[-1], signal.SIGKILL)
        await until(lambda: len(server.processes) == 2 and client.state == "connected")
    assert client.state == "closed"
    assert seen == [
        ("connecting", None),
        ("connected", None),
        ("reconnecting", "ConnectionLost"),
        ("connected", None),
        ("closed", None),
    ]


async def test_a_connection_that_is_lost_for_good_says_why(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    server = Mortal(tmp_path)
    async with server.client(None, on_state=lambda state, error: seen.append((state, str(error)))) as client:
        os.kill(server.processes[-1], signal.SIGKILL)
        await until(lambda: client.state == "lost")
        assert "SIGKILL" in seen[-1][1]
    refused = Client([sys.executable, "-c", ""], on_state=lambda state, error: seen.append((state, str(error))))
    with pytest.raises(ConnectionLost) as raised:
        await refused.connect()
    assert refused.state == "closed"
    assert seen[-1] == ("closed", str(raised.value))


async def test_connecting_that_is_cancelled_at_any_moment_leaves_nothing_open() -> None:
    server, before = Server("test"), asyncio.all_tasks()
    opened = False
    for count in range(100):
        client = Client(server)
        connecting = asyncio.create_task(client.connect())
        await turns(count, lambda connecting=connecting: connecting.done())  # type: ignore[misc]
        opened = connecting.done()
        connecting.cancel()
        await asyncio.wait({connecting})
        if opened:
            await client.close()
            break
        await until(lambda: asyncio.all_tasks() <= before, asyncio.all_tasks)
        assert client.state == "closed"
    assert opened


async def test_a_task_that_waits_for_a_cancelled_connection_opens_its_own() -> None:
    for count in range(30):
        client = Client(Server("test"))
        first, second = (asyncio.create_task(client.connect()) for _ in range(2))
        await turns(count)
        first.cancel()
        assert await second is client
        assert client.state == "connected"
        await client.close()
