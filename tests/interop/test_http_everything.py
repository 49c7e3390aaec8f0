"""accord's client with the official `server-everything`, from its bare URL: Streamable HTTP and HTTP+SSE."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple

import pytest

from accord import Client, Reconnect
from accord.client.subscription import ResourceUpdated
from accord.errors import RequestTimeout

from tests.interop.peers import npm_server
from tests.interop.serving import Serving, free_port, serving
from tests.measure import slowness

SECONDS = 150
LONG = "trigger-long-running-operation"
UPDATED = "demo://resource/dynamic/text/1"

WAYS = {"streamableHttp": "mcp", "sse": "sse"}


class Way(NamedTuple):
    """`server-everything`, in one of its ways."""

    command: list[str]
    path: str

    def client(self, server: Serving, **options: Any) -> Client:
        return Client(f"{server.url}/{self.path}", timeout=100, **options)


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    return Way([*npm_server("everything"), request.param], WAYS[request.param])


async def test_everything_lists_answers_and_reports_progress(way: Way) -> None:
    slow = slowness()
    steps: list[tuple[float, float | None, str | None]] = []
    with serving(way.command, free_port()) as server:
        async with asyncio.timeout(SECONDS), way.client(server, strict=True) as client:
            assert client.revision == "2025-11-25"
            assert {"echo", "get-sum", LONG} <= {tool.name for tool in await client.list_tools()}
            assert (await client.call_tool("echo", {"message": "hé 🎉"})).data == "Echo: hé 🎉"
            structured = await client.call_tool("get-structured-content", {"location": "Chicago"})
            assert structured.data == {"temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82}
            long = client.call_tool(
                LONG,
                {"duration": 3 * slow, "steps": 10},
                timeout=2.5 * slow,
                on_progress=lambda *step: steps.append(step),
            )
            assert "completed" in (await long).text
            assert steps == [(step, 10, None) for step in range(1, 11)]


async def test_everything_sends_requests_and_notifications_and_receives_them(way: Way) -> None:
    logged = asyncio.Event()

    def hear(message: Any) -> None:
        if "Received Unsubscribe Resource request" in str(message.data):
            logged.set()

    options: dict[str, Any] = {
        "sampling": lambda params: "42",
        "elicitation": lambda params: None,
        "roots": ["/srv/a"],
        "on_log": hear,
        "log_level": "debug",
    }
    with serving(way.command, free_port()) as server:
        async with asyncio.timeout(SECONDS), way.client(server, **options) as client:
            async with client.subscribe(UPDATED, tools=True) as subscription:
                await client.call_tool("toggle-subscriber-updates")
                assert await anext(subscription) == ResourceUpdated(UPDATED)
            sampled = await client.call_tool("trigger-sampling-request", {"prompt": "Hi", "maxTokens": 9})
            assert '"text": "42"' in sampled.text
            assert "declined" in (await client.call_tool("trigger-elicitation-request")).text
            assert "file:///srv/a" in (await client.call_tool("get-roots-list")).text
            await logged.wait()


async def test_everything_is_reported_when_nobody_waits_any_more(way: Way) -> None:
    with serving(way.command, free_port()) as server:
        async with asyncio.timeout(SECONDS), way.client(server) as client:
            long = {"duration": 60, "steps": 1}
            with pytest.raises(RequestTimeout, match=r"no answer or progress for 0\.1 s"):
                await client.call_tool(LONG, long, timeout=0.1)
            given_up = asyncio.create_task(client.call_tool(LONG, long))
            await client.ping()
            given_up.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await given_up
            assert client.stats.cancels_sent == 2
            assert (await client.call_tool("echo", {"message": "still here"})).data == "Echo: still here"


async def test_everything_is_found_again_after_a_restart(way: Way) -> None:
    port = free_port()
    with serving(way.command, port) as server:
        async with asyncio.timeout(SECONDS), way.client(server, reconnect=Reconnect()) as client:
            assert (await client.call_tool("echo", {"message": "before"})).data == "Echo: before"
            server.end()
            with serving(way.command, port):
                # A call may have been sent before the end was noticed; a ping may always be repeated.
                await client.ping()
                assert (await client.call_tool("echo", {"message": "after"})).data == "Echo: after"
