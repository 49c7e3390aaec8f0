"""A repeated `initialize` gets a fresh handshake, and a session that knows nothing of the one before.

Clients do so that keep a process between two sessions; and so does a bridge that has one process for all its clients.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

from accord import Context, Limits, Server

from tests.server.http.http_clients import Legacy, Stateful, notification, request, site
from tests.server.raw import RawPeer, raw_peer

CLIENT = {"name": "second", "version": "2"}


def hello(revision: str = "2025-06-18", id: Any = 99, **capabilities: Any) -> dict[str, Any]:
    params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": CLIENT}
    return request("initialize", params, id)


def calling(tool: str, id: Any = 1) -> dict[str, Any]:
    return request("tools/call", {"name": tool, "arguments": {}}, id)


class Desk(Server):
    """A server that says what it knows of its session."""

    def __init__(self, grace_seconds: float = 0.2, **limits: Any) -> None:
        super().__init__("desk", limits=Limits(grace_seconds=grace_seconds, close_seconds=0.5, **limits))
        self.began = asyncio.Event()
        self.release = asyncio.Event()
        self.failed = ""

        @self.resource("note://one")
        def one() -> str:
            return "one"

        @self.tool
        async def known(ctx: Context) -> str:
            info = ctx.client
            return f"{info.name if info else ''} {ctx.revision}"

        @self.tool
        def log(ctx: Context) -> str:
            ctx.info("told")
            return "logged"

        @self.tool
        def hide(ctx: Context) -> str:
            ctx.disable("log")
            return "hidden"

        @self.tool
        async def waits() -> str:
            self.began.set()
            await self.release.wait()
            return "done"

        @self.tool
        async def asks(ctx: Context) -> str:
            try:
                await ctx.elicit("which?", str)
            except Exception as exc:
                self.failed = str(exc)
                raise
            return "answered"


async def said(peer: RawPeer, tool: str) -> str:
    return str((await peer.call(tool))["content"][0]["text"])


async def begin_anew(peer: RawPeer, revision: str = "2025-06-18", **capabilities: Any) -> dict[str, Any]:
    """The answer to another `initialize`, confirmed."""
    peer.say(hello(revision, **capabilities))
    answer: dict[str, Any] = await peer.hear()
    peer.say(notification("notifications/initialized"))
    return answer


@pytest.mark.parametrize("before", ["2024-11-05", "2025-03-26", "2025-11-25"])
async def test_a_second_initialize_is_answered_and_agrees_on_another_revision(before: str) -> None:
    async with raw_peer(Desk(), before) as peer:
        answer = await begin_anew(peer)
        assert (answer["id"], answer["result"]["protocolVersion"]) == (99, "2025-06-18")
        assert await said(peer, "known") == "second 2025-06-18"


async def test_a_second_initialize_before_initialized_is_answered_too() -> None:
    async with raw_peer(Desk(), None) as peer:
        peer.say(hello(id=1))
        peer.say(hello("2025-11-25", id=2))
        assert (await peer.hear())["result"]["protocolVersion"] == "2025-06-18"
        assert (await peer.hear())["result"]["protocolVersion"] == "2025-11-25"


async def test_a_second_initialize_that_cannot_be_read_leaves_the_session_as_it_was() -> None:
    async with raw_peer(Desk()) as peer:
        peer.send("resources/subscribe", {"uri": "note://one"})
        await peer.hear()
        answer = await peer.ask("initialize", {"protocolVersion": 5})
        assert answer["error"]["code"] == -32602
        assert await said(peer, "known") == "raw 2025-11-25"


async def test_the_session_forgets_subscriptions_the_log_level_and_what_was_hidden() -> None:
    server = Desk()
    async with raw_peer(server) as peer:
        await peer.ask("resources/subscribe", {"uri": "note://one"})
        await peer.ask("logging/setLevel", {"level": "error"})
        peer.send("tools/call", {"name": "hide", "arguments": {}})
        while "result" not in await peer.hear():
            pass  # it is told that lists have changed
        await begin_anew(peer)
        server.resource_updated("note://one")
        peer.send("tools/call", {"name": "log", "arguments": {}})
        assert (await peer.hear())["params"]["data"] == "told"
        assert (await peer.hear())["result"]["content"][0]["text"] == "logged"


async def test_calls_that_end_in_time_are_answered_before_the_new_handshake() -> None:
    server = Desk(grace_seconds=20)
    async with raw_peer(server) as peer:
        peer.say(calling("waits", "a"))
        await server.began.wait()
        peer.say(hello())
        await asyncio.sleep(0)
        server.release.set()
        assert [(await peer.hear())["id"] for _ in range(2)] == ["a", 99]


async def test_calls_that_take_longer_are_answered_with_an_error_and_their_ids_are_free() -> None:
    server = Desk()
    async with raw_peer(server) as peer:
        peer.say(calling("waits", 99))
        await server.began.wait()
        peer.say(hello(id=0))
        failed, answer = await peer.hear(), await peer.hear()
        assert failed["id"] == 99
        assert "initialize" in failed["error"]["message"]
        assert answer["id"] == 0
        server.release.set()
        peer.say(calling("known", 99))
        assert (await peer.hear())["result"]["content"][0]["text"] == "second 2025-06-18"


async def test_a_question_to_the_client_before_fails_at_once() -> None:
    server = Desk(grace_seconds=60)
    async with raw_peer(server, None) as peer:
        peer.say(hello(id=0, elicitation={}))
        await peer.hear()
        peer.say(notification("notifications/initialized"))
        peer.say(calling("asks", 1))
        assert (await peer.hear())["method"] == "elicitation/create"
        peer.say(hello(id=2, elicitation={}))
        assert (await peer.hear())["result"]["isError"]
        assert (await peer.hear())["id"] == 2
        assert "initialize" in server.failed
        peer.say(calling("asks", 3))  # waits until the client is ready
        peer.say(notification("notifications/initialized"))
        question = await peer.hear()
        peer.say({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"value": "x"}}})
        assert (await peer.hear())["result"]["content"][0]["text"] == "answered"


async def test_requests_that_name_their_revision_go_on() -> None:
    server = Desk()
    async with raw_peer(server) as peer:
        peer.revision = "2026-07-28"
        waiting = peer.send("tools/call", {"name": "waits", "arguments": {}})
        await server.began.wait()
        assert (await begin_anew(peer))["id"] == 99
        server.release.set()
        assert (await peer.hear())["id"] == waiting


async def test_over_http_and_sse_a_second_initialize_is_answered_on_the_stream() -> None:
    server = Desk()
    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open()
        await client.ask("resources/subscribe", {"uri": "note://one"}, id=5)
        await client.post(calling("waits", 6))
        await server.began.wait()
        assert (await client.post(hello())).status == 202
        assert (await client.stream.message())["error"]["message"].startswith("the client has sent initialize again")
        answer = await client.stream.message()
        assert answer["result"]["protocolVersion"] == "2025-06-18"
        await client.post(notification("notifications/initialized"))
        server.resource_updated("note://one")
        answer = await client.ask("tools/call", {"name": "known", "arguments": {}})
        assert answer["result"]["content"][0]["text"] == "second 2025-06-18"


async def test_in_a_session_of_streamable_http_a_second_initialize_resets_that_session() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        await (await client.ask("resources/subscribe", {"uri": "note://one"})).json()
        answer = await client.post(hello())
        assert answer.headers["mcp-session-id"] == client.id
        assert (await answer.json())["result"]["protocolVersion"] == "2025-06-18"
        assert await client.tell("notifications/initialized") == 202
        (session,) = here.endpoint.sessions
        assert here.endpoint.context.subscription_index.uris(session.peer) == []
        client.headers["mcp-protocol-version"] = "2025-06-18"
        said = await (await client.call("known")).json()
        assert said["result"]["content"][0]["text"] == "second 2025-06-18"


PROGRAM = """
from accord import Server
server = Server("test")

@server.tool
def add(a: int, b: int) -> int:
    return a + b

server.run()
"""


def test_one_process_serves_one_client_after_another() -> None:
    """As behind a bridge: each client begins with `initialize`, and ids are used again."""
    add = {"name": "add", "arguments": {"a": 1, "b": 2}}
    asked = [hello(id=0), notification("notifications/initialized"), request("tools/call", add, 1)]
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for message in asked * 3:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            if "id" in message:
                answer = json.loads(process.stdout.readline())
                assert (answer["id"], "result" in answer) == (message["id"], True)
        process.stdin.close()
        assert process.wait(30) == 0
