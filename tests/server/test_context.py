"""What a handler learns and does through its context."""

from __future__ import annotations

import threading

import pytest

from accord import Context, Server
from accord.messages.revision import REVISIONS

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
