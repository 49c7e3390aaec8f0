"""What a handler learns and does through its context."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from accord import Client, Context, RequestTimeout, Server
from accord.messages.revision import REVISIONS
from accord.server.input.request_state import StateExpired

from tests.server.raw import raw_peer


def server() -> Server:
    made = Server("test", "1")

    @made.resource("test://plain")
    def plain() -> str:
        return threading.current_thread().name

    @made.resource("test://items/{n}")
    async def item(n: int, ctx: Context) -> str:
        return f"{n * 2} in {ctx.revision}"

    @made.tool
    async def read(uri: str, ctx: Context) -> str:
        return (await ctx.read_resource(uri))[0].text or ""

    return made


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_tool_reads_the_servers_own_resources(revision: str) -> None:
    async with raw_peer(server(), revision) as peer:
        assert (await peer.call("read", uri="test://items/21"))["content"][0]["text"] == f"42 in {revision}"
        missing = await peer.ask("tools/call", {"name": "read", "arguments": {"uri": "test://nothing"}})
        assert missing["error"]["data"] == {"uri": "test://nothing"}


async def test_a_plain_function_behind_a_resource_runs_in_a_thread() -> None:
    async with raw_peer(server()) as peer:
        assert (await peer.call("read", uri="test://plain"))["content"][0]["text"].startswith("accord-worker")


# --- after the end of a call -----------------------------------------------------------------------------------------


class Late:
    """A server with a tool whose background task reports when the call has ended."""

    def __init__(self) -> None:
        self.server = Server("test", "1")
        self.go = asyncio.Event()
        self.done = asyncio.Event()

        @self.server.tool
        async def start(ctx: Context) -> str:
            self.task = asyncio.create_task(self.report(ctx))
            return "started"

    async def report(self, ctx: Context) -> None:
        await self.go.wait()
        for step in range(3):
            await ctx.info(f"step {step}")
            await ctx.report_progress(step)
        self.done.set()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_is_sent_after_the_end_of_a_call_is_logged_once(
    revision: str, caplog: pytest.LogCaptureFixture
) -> None:
    late = Late()
    async with raw_peer(late.server, revision) as peer:
        await peer.call("start")
        late.go.set()
        await late.done.wait()
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "test_context.py:" in warning
    assert "a message for a call that has ended (tools/call, request" in warning
    assert "let the handler return when all of its work is done" in warning


async def test_a_question_after_the_end_of_a_call_is_an_error_with_the_reason() -> None:
    server, contexts = Server("test", "1"), list[Context]()

    @server.tool
    async def start(ctx: Context) -> str:
        contexts.append(ctx)
        return "started"

    async with Client(server, revisions=["2026-07-28"], elicitation=lambda params: {}, roots=["file:///a"]) as client:
        await client.call_tool("start")
        (ctx,) = contexts
        for ask in (lambda: ctx.elicit("Which one?", str), ctx.list_roots):
            with pytest.raises(StateExpired, match="this call has ended, so the client cannot be asked"):
                await ask()


async def test_what_a_handler_sends_between_a_question_and_its_answer_is_no_mistake(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("test", "1")
    asked, told = asyncio.Event(), asyncio.Event()

    @server.tool
    async def book(ctx: Context) -> str:
        async def tell() -> None:
            await asked.wait()
            ctx.info("still there")
            ctx.report_progress(1)
            told.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(tell())
            await ctx.elicit("Which one?", str)
        return "booked"

    async def answer(params: Any, context: Any) -> str:
        asked.set()
        await told.wait()
        return "that one"

    async with Client(server, elicitation=answer) as client:
        assert (await client.call_tool("book")).text == "booked"
    assert not caplog.records


async def test_a_call_that_was_cancelled_may_still_report(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("test", "1")
    cleaned = asyncio.Event()

    @server.tool
    async def wait(ctx: Context) -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ctx.info("cleaning up")
            ctx.report_progress(1)
            cleaned.set()

    async with Client(server) as client:
        with pytest.raises(RequestTimeout):
            await client.call_tool("wait", timeout=0.05)
        await cleaned.wait()
    assert not caplog.records


@pytest.mark.parametrize("revision", REVISIONS)
async def test_what_a_handler_changes_in_the_clients_description_stays_in_its_call(revision: str) -> None:
    server = Server("desk", "1")

    @server.tool
    def describe(ctx: Context) -> str:
        experimental = ctx.client_capabilities.experimental
        assert experimental is not None
        seen = str(experimental)
        experimental["fast"]["level"] = 9
        return seen

    async with Client(server, experimental={"fast": {"level": 1}}, revisions=[revision]) as client:
        for _ in range(3):
            assert (await client.call_tool("describe")).text == "{'fast': {'level': 1}}"
