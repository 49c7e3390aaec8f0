"""What a client tells a server that belongs to no request: remembered at once, whatever the program still does."""

from __future__ import annotations

import asyncio
from typing import Any

from accord import Context, Extension, Method, Server
from accord.messages.meta import NotificationParams

from tests.server.input.caller import JSON, Later, caller, texts

NOTED = Extension(
    name="com.example/noted", methods=(Method("notifications/com.example/noted", "client", NotificationParams),)
)


def places(**options: Any) -> Server:
    server = Server("places", **options)

    @server.tool
    async def where(ctx: Context) -> str:
        return " ".join(root.uri for root in await ctx.list_roots())

    return server


async def test_a_slow_handler_of_a_notification_does_not_hold_back_that_the_folders_changed() -> None:
    server, heard, now = places(extensions=[NOTED]), [], ["file:///old"]

    @server.method("notifications/com.example/noted")
    async def noted(params: NotificationParams) -> None:
        heard.append("begun")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            heard.append("ended")

    capabilities = {"roots": {"listChanged": True}, "extensions": {NOTED.name: {}}}
    async with caller(server, "2025-11-25", capabilities, lambda _: {"roots": [{"uri": now[0]}]}) as client:
        assert texts(await client.call("where")) == "file:///old"
        client.say({"method": "notifications/com.example/noted"})
        now[0] = "file:///new"
        client.say({"method": "notifications/roots/list_changed"})
        assert texts(await client.call("where")) == "file:///new"
        client.say({"method": "notifications/com.example/noted"})
        assert texts(await client.call("where")) == "file:///new"
        assert heard == ["begun"], "one after the other"
    assert heard == ["begun", "ended"], "what still runs is cancelled at the end"


async def test_roots_that_changed_during_a_request_are_requested_again() -> None:
    def later(question: JSON) -> JSON:
        raise Later

    async with caller(places(), "2025-11-25", {"roots": {"listChanged": True}}, later) as client:
        for number, changes in enumerate((True, False)):
            id = client.send("tools/call", {"name": "where", "arguments": {}})
            await client.until(lambda number=number: len(client.asked) > number)  # type: ignore[misc]
            if changes:
                client.say({"method": "notifications/roots/list_changed"})
            client.say({"id": client.asked[-1]["id"], "result": {"roots": [{"uri": f"file:///{number}"}]}})
            assert texts(await client.answer(id)) == f"file:///{number}"
        assert texts(await client.call("where")) == "file:///1", "known by now"
