"""Subscriptions: to resources after a handshake, and `subscriptions/listen` where there is none."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from accord import Limits, Server
from accord.messages.revision import HANDSHAKE
from accord.server.notify.subscription_index import SubscriptionIndex, make_subscription_index, parent_uris
from accord.server.run import serve
from accord.transport import memory

from tests.limits import limits_of
from tests.server.raw import RawPeer, raw_peer

ID = "io.modelcontextprotocol/subscriptionId"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def server(**limits: Any) -> Server:
    made = Server("test", "1", limits=limits_of(**limits))

    @made.resource("test://first")
    def first() -> str:
        return "1"

    @made.resource("test://items/{+path}")
    def item(path: str) -> str:
        return path

    @made.tool
    async def touch(uri: str) -> str:
        made.resource_updated(uri)
        return "touched"

    @made.tool
    def touch_from_a_thread(uri: str) -> str:
        made.resource_updated(uri)
        return "touched"

    return made


async def listen(peer: RawPeer, *uris: str, **wanted: bool) -> tuple[int, dict[str, Any]]:
    """The id of a subscription, and what is granted."""
    id = peer.send("subscriptions/listen", {"notifications": {**wanted, "resourceSubscriptions": list(uris)}})
    first = await peer.hear()
    assert first["method"] == ACKNOWLEDGED
    assert first["params"]["_meta"] == {ID: id}
    return id, first["params"]["notifications"]


async def hears(peer: RawPeer, *expected: Any) -> None:
    """Exactly these notifications come: (URI, subscription or None)."""
    marker = peer.send("tools/list")
    found = []
    while (message := await peer.hear()).get("id") != marker:
        found.append(message)
    for each in found:
        assert each["method"] == UPDATED
    assert [(each["params"]["uri"], each["params"].get("_meta", {}).get(ID)) for each in found] == list(expected)


async def turn() -> None:
    """Let this turn of the loop end."""
    await asyncio.sleep(0)


# --- after a handshake


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_a_client_is_notified_of_what_it_subscribed_to_until_it_unsubscribes(revision: str) -> None:
    made = server()
    async with raw_peer(made, revision) as peer:
        assert (await peer.ask("resources/subscribe", {"uri": "test://first"}))["result"] == {}
        made.resource_updated("test://first")
        made.resource_updated("test://items/1")
        await turn()
        await hears(peer, ("test://first", None))
        await peer.ask("resources/unsubscribe", {"uri": "test://first"})
        made.resource_updated("test://first")
        await turn()
        await hears(peer)


async def test_what_is_not_there_cannot_be_subscribed_to_but_may_be_left() -> None:
    async with raw_peer(server()) as peer:
        error = (await peer.ask("resources/subscribe", {"uri": "test://nothing"}))["error"]
        assert (error["code"], error["data"]) == (-32002, {"uri": "test://nothing"})
        assert "result" in await peer.ask("resources/unsubscribe", {"uri": "test://nothing"})


async def test_what_one_subscribed_to_is_no_business_of_another() -> None:
    made = server()
    async with raw_peer(made) as one, raw_peer(made) as other:
        await one.ask("resources/subscribe", {"uri": "test://first"})
        made.resource_updated("test://first")
        await turn()
        await hears(one, ("test://first", None))
        await hears(other)


async def test_a_subscription_twice_is_one() -> None:
    made = server()
    async with raw_peer(made) as peer:
        for _ in range(2):
            await peer.ask("resources/subscribe", {"uri": "test://items/"})
            await peer.ask("resources/subscribe", {"uri": "test://items/a"})
        made.resource_updated("test://items/a")
        made.resource_updated("test://items/a")
        await turn()
        await hears(peer, ("test://items/a", None))
        await peer.ask("resources/unsubscribe", {"uri": "test://items/a"})
        made.resource_updated("test://items/a")
        await turn()
        await hears(peer, ("test://items/a", None))


@pytest.mark.parametrize("revision", HANDSHAKE)
async def test_listening_is_unknown_there(revision: str) -> None:
    async with raw_peer(server(), revision) as peer:
        answer = await peer.ask("subscriptions/listen", {"notifications": {}})
        assert answer["error"]["code"] == -32601


async def test_one_client_may_have_so_many_subscriptions() -> None:
    async with raw_peer(server(subscriptions=2)) as peer:
        for name in "abb":
            assert "result" in await peer.ask("resources/subscribe", {"uri": f"test://items/{name}"})
        error = (await peer.ask("resources/subscribe", {"uri": "test://items/c"}))["error"]
        assert "limit is 2" in error["message"]
        await peer.ask("resources/unsubscribe", {"uri": "test://items/a"})
        assert "result" in await peer.ask("resources/subscribe", {"uri": "test://items/c"})


async def test_a_long_uri_is_not_subscribed_to() -> None:
    made = server()
    async with raw_peer(made) as peer:
        longest = "test://items/".ljust(8192, "a")
        error = (await peer.ask("resources/subscribe", {"uri": longest + "a"}))["error"]
        assert (error["code"], "8192" in error["message"], len(error["message"]) < 500) == (-32602, True, True)
        for uri in (longest, "test://items/"):
            assert "result" in await peer.ask("resources/subscribe", {"uri": uri})
        made.resource_updated("test://items/" + "a/" * 1_000_000)
        await turn()
        assert (await peer.hear())["method"] == UPDATED


# --- without one


async def test_a_long_uri_is_not_listened_to() -> None:
    async with raw_peer(server(uri_bytes=20), "2026-07-28") as peer:
        await listen(peer, "test://items/" + "a" * 7)
        for uri in ("test://items/" + "a" * 8, "test://items/" + "\xe9" * 4):
            wanted = {"notifications": {"resourceSubscriptions": ["test://first", uri]}}
            error = (await peer.ask("subscriptions/listen", wanted))["error"]
            assert (error["code"], "20 bytes" in error["message"]) == (-32602, True)


async def test_a_subscription_is_acknowledged_and_tagged() -> None:
    made = server()
    async with raw_peer(made, "2026-07-28") as peer:
        one, granted = await listen(peer, "test://first", toolsListChanged=True)
        assert granted == {"toolsListChanged": True, "resourceSubscriptions": ["test://first"]}
        two, _ = await listen(peer, "test://first", "test://items/a")
        made.resource_updated("test://first")
        made.resource_updated("test://items/a")
        await turn()
        await hears(peer, ("test://first", one), ("test://first", two), ("test://items/a", two))


async def test_what_is_not_supported_is_left_out() -> None:
    made = Server("test")
    made.tool(name="t")(lambda: "x")
    async with raw_peer(made, "2026-07-28") as peer:
        _, granted = await listen(peer, "test://first", toolsListChanged=True, promptsListChanged=True)
        assert granted == {"toolsListChanged": True}
    async with raw_peer(server(), "2026-07-28") as peer:
        _, granted = await listen(peer, "test://nothing", "test://first", "test://first", resourcesListChanged=False)
        assert granted == {"resourceSubscriptions": ["test://first"]}


@pytest.mark.parametrize("id", ["7", 7, "x" * 50])
async def test_the_id_keeps_its_type(id: int | str) -> None:
    made = server()
    async with raw_peer(made, "2026-07-28") as peer:
        peer.send("tools/list")
        await peer.hear()
        params = {"_meta": META, "notifications": {"resourceSubscriptions": ["test://first"]}}
        peer.say({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": params})
        assert (await peer.hear())["params"]["_meta"] == {ID: id}
        made.resource_updated("test://first")
        assert (await peer.hear())["params"]["_meta"] == {ID: id}


META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


async def test_the_client_ends_it_by_a_cancel() -> None:
    made = server()
    async with raw_peer(made, "2026-07-28") as peer:
        one, _ = await listen(peer, "test://first")
        two, _ = await listen(peer, "test://first")
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": one}})
        await peer.ask("tools/list")
        made.resource_updated("test://first")
        await turn()
        await hears(peer, ("test://first", two))


async def test_an_era_of_its_own_on_one_connection() -> None:
    made = server()
    async with raw_peer(made, "2025-11-25") as peer:
        await peer.ask("resources/subscribe", {"uri": "test://first"})
        peer.revision = "2026-07-28"
        id, _ = await listen(peer, "test://first")
        made.resource_updated("test://first")
        await turn()
        peer.revision = "2025-11-25"
        await hears(peer, ("test://first", None), ("test://first", id))


async def test_the_server_ends_it_gracefully() -> None:
    made = server()
    stop = asyncio.Event()
    ours, theirs = memory.pair()
    serving = asyncio.get_running_loop().create_task(serve(made, theirs, stop))
    peer = RawPeer(ours)
    await peer.open("2026-07-28")
    id, _ = await listen(peer, "test://first")
    made.resource_updated("test://first")
    stop.set()
    assert (await peer.hear())["method"] == UPDATED
    cancelled = await peer.hear()
    assert (cancelled["method"], cancelled["params"]["requestId"]) == ("notifications/cancelled", id)
    result = await peer.hear()
    assert (result["id"], result["result"]["_meta"][ID]) == (id, id)
    assert result["result"]["resultType"] == "complete"
    async with asyncio.timeout(100):
        await serving
    await ours.close()


async def test_subscriptions_do_not_use_up_the_room_for_requests() -> None:
    made = server(requests_in_flight=2, subscriptions=5)
    async with raw_peer(made, "2026-07-28") as peer:
        for _ in range(5):
            await listen(peer, "test://first")
        assert (await peer.call("touch", uri="other:"))["content"][0]["text"] == "touched"
        peer.send("subscriptions/listen", {"notifications": {}})
        assert "limit is 5" in (await peer.hear())["error"]["message"]


async def test_one_client_has_a_limit_of_resources() -> None:
    async with raw_peer(server(subscriptions=3), "2026-07-28") as peer:
        await listen(peer, "test://items/a", "test://items/b")
        peer.send(
            "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["test://items/c", "test://first"]}}
        )
        assert "limit is 3" in (await peer.hear())["error"]["message"]
        await listen(peer, "test://items/c")


async def test_subscriptions_that_begin_together_keep_the_limit() -> None:
    """The resources of a subscription are looked up one after another, and others are counted meanwhile."""
    made, both = server(subscriptions=3), asyncio.Barrier(2)

    async def wait_for_the_other(request: Any, call_next: Any) -> Any:
        if request.name == "test://items/a":
            await both.wait()
        return await call_next(request)

    made.add_middleware(wait_for_the_other)
    async with raw_peer(made, "2026-07-28") as peer:
        wanted = {"notifications": {"resourceSubscriptions": ["test://items/a", "test://first"]}}
        for _ in range(2):
            peer.send("subscriptions/listen", wanted)
        answers = [await peer.hear(), await peer.hear()]
        assert sorted(answer.get("method", "error") for answer in answers) == ["error", ACKNOWLEDGED]
        (refused,) = [answer for answer in answers if "error" in answer]
        assert "limit is 3 resources" in refused["error"]["message"]


# --- both


@pytest.mark.parametrize("tool", ["touch", "touch_from_a_thread"])
async def test_a_handler_may_say_that_something_changed(tool: str) -> None:
    async with raw_peer(server()) as peer:
        await peer.ask("resources/subscribe", {"uri": "test://first"})
        peer.send("tools/call", {"name": tool, "arguments": {"uri": "test://first"}})
        heard = [await peer.hear(), await peer.hear()]
        assert {message.get("method") for message in heard} == {UPDATED, None}


async def test_two_loops_in_two_threads_are_both_notified() -> None:
    made = server()
    ready, told = threading.Event(), threading.Event()

    async def other() -> None:
        async with raw_peer(made) as peer:
            await peer.ask("resources/subscribe", {"uri": "test://first"})
            ready.set()
            assert (await peer.hear())["method"] == UPDATED
            told.set()

    thread = threading.Thread(target=asyncio.run, args=(other(),))
    thread.start()
    async with raw_peer(made) as peer:
        await peer.ask("resources/subscribe", {"uri": "test://first"})
        await asyncio.to_thread(ready.wait, 5)
        made.resource_updated("test://first")
        assert (await peer.hear())["method"] == UPDATED
        assert await asyncio.to_thread(told.wait, 5)
    await asyncio.to_thread(thread.join)
    made.resource_updated("test://first")  # to nobody


async def test_dropped_messages_of_a_client_that_does_not_read_are_counted_in_two_lines(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = server(subscriptions=10)
    ours, theirs = memory.pair(Limits(pending_bytes=1_000))
    serving = asyncio.get_running_loop().create_task(serve(made, theirs))
    peer = RawPeer(ours)
    await peer.open("2026-07-28")
    await listen(peer, "test://items/")
    for number in range(20_000):
        made.resource_updated(f"test://items/{number}")
    await turn()
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 1
    assert "does not read" in warned[0]
    await ours.close()
    await serving
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == 2
    (count,) = re.findall(r"\d[\d,]*", warned[1])
    assert 10_000 < int(count.replace(",", "")) < 20_000


def test_a_loop_that_was_closed_while_it_served_is_passed_over() -> None:
    made = server()

    async def served() -> SubscriptionIndex:
        return make_subscription_index(made.registry, made.profile, made.limits)

    with closing(asyncio.new_event_loop()) as loop:
        made.change_bus.indexes[loop] = loop.run_until_complete(served())
    made.resource_updated("test://first")

    async def other() -> None:
        async with raw_peer(made) as peer:
            await peer.ask("resources/subscribe", {"uri": "test://first"})
            made.resource_updated("test://first")
            assert (await peer.hear())["method"] == UPDATED

    asyncio.run(other())


def test_a_loop_that_runs_in_another_thread_is_notified_there() -> None:
    made, loop, ready = server(), asyncio.new_event_loop(), threading.Event()
    ours, theirs = memory.pair()
    peer = RawPeer(ours)

    async def begin() -> asyncio.Task[None]:
        serving = asyncio.create_task(made.serve(theirs))
        await peer.open("2025-11-25")
        await peer.ask("resources/subscribe", {"uri": "test://first"})
        return serving

    async def go_on(serving: asyncio.Task[None]) -> str:
        asyncio.get_running_loop().call_later(0.01, ready.set)
        heard = await peer.hear()
        await ours.close()
        await serving
        return str(heard["method"])

    with closing(loop), ThreadPoolExecutor(1) as thread:
        running = thread.submit(loop.run_until_complete, go_on(loop.run_until_complete(begin())))
        assert ready.wait(20)
        made.resource_updated("test://first")
        assert running.result() == UPDATED


async def test_a_client_that_does_not_read_is_owed_each_change_once() -> None:
    made = server(subscriptions=5_000)
    ours, theirs = memory.pair(Limits(pending_bytes=1_000))
    serving = asyncio.get_running_loop().create_task(serve(made, theirs))
    peer = RawPeer(ours)
    await peer.open("2026-07-28")
    uris = [f"test://items/{number}" for number in range(3_000)]
    await listen(peer, *uris)
    for _ in range(10):
        for uri in uris:
            made.resource_updated(uri)
        await turn()
    counts = dict.fromkeys(uris, 0)
    while min(counts.values()) == 0:
        counts[(await peer.hear())["params"]["uri"]] += 1
    assert sum(counts.values()) <= len(uris) + 1_000
    await ours.close()
    await serving


@pytest.mark.parametrize(
    ("uri", "above"),
    [
        ("a://h/x/y", ["a://h/x/", "a://h/x", "a://h/", "a://h", "a://"]),
        ("a://h/x/", ["a://h/x", "a://h/", "a://h", "a://"]),
        ("file:///x/y", ["file:///x/", "file:///x", "file:///", "file://"]),
        ("a://h/x?q=1#f", ["a://h/x?q=1", "a://h/x", "a://h/", "a://h", "a://"]),
        ("urn:x/y", ["urn:x/", "urn:x", "urn:"]),
        ("a://h", ["a://"]),
        ("a://", []),
        ("", []),
    ],
)
def test_a_resource_is_part_of_those_above_it(uri: str, above: list[str]) -> None:
    assert list(parent_uris(uri, 100)) == [uri, *above]


@given(st.text(alphabet="ab:/?#%", max_size=30), st.integers(0, 40))
def test_whatever_is_above_a_uri_is_its_beginning(uri: str, longest: int) -> None:
    every, found = list(parent_uris(uri, 100)), list(parent_uris(uri, longest))
    assert found[0] == uri
    assert found[1:] == [one for one in every[1:] if len(one) <= longest]
    assert all(uri.startswith(one) for one in found)
    assert len(found) <= 1 + 2 * len(uri)


PROGRAM = """
from accord import Server

server = Server("test")
server.resource("test://first")(lambda: "1")
server.run()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
def test_a_process_that_ends_ends_its_subscriptions(how: str) -> None:
    params = {"_meta": META, "notifications": {"resourceSubscriptions": ["test://first"]}}
    message = {"jsonrpc": "2.0", "id": "one", "method": "subscriptions/listen", "params": params}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parent
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["method"] == ACKNOWLEDGED
        if how == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        else:
            process.stdin.close()
            process.stdin = None
        last = [json.loads(line) for line in process.stdout]
        assert process.wait(timeout=100) == 0
    assert [each.get("method", each.get("id")) for each in last] == ["notifications/cancelled", "one"]
    assert last[1]["result"]["_meta"][ID] == "one"
