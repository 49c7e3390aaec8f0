"""Notifications of servers: counts, log messages by level, subscriptions, and what changed in a list."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from accord import Server
from accord.client.notifications import Notice
from accord.errors import NotSupported
from accord.inspector import list_changes
from accord.inspector.commands import InspectorError
from accord.inspector.notifications import LOGS_PER_LEVEL, RECENT, TEXT_CHARACTERS
from accord.messages.notifications import LoggingMessageParams, NotificationParams
from accord.messages.revision import REVISIONS
from accord.messages.tools import Tool

from tests.inspector.sender import Page, PlayedServer, page
from tests.measure import costs_at_most
from tests.waiting import until

EVERYTHING = "examples/everything.py"


async def report(each: Page, ready: Callable[[Any], bool] = lambda found: True) -> Any:
    """The notifications of the first server, as soon as they are `ready`."""
    async with asyncio.timeout(100):
        while not ready(found := await each.send("notifications/list", server="one")):
            await asyncio.sleep(0.01)
    return found


# --- log messages --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_log_messages_of_a_process_are_shown_by_level(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        await each.send("notifications/set-level", server="one", level="info")
        await each.workspace.server("one").client.call_tool("test_tool_with_logging")
        found = await report(each, lambda found: found["counts"].get("notifications/message") == 3)
        assert found["level"] == "info"
        (logs,) = found["logs"]
        assert (logs["level"], logs["count"]) == ("info", 3)
        assert logs["entries"][0]["dataJson"] == '"Tool execution completed"'


async def test_the_level_is_set_again_on_the_next_connection() -> None:
    async with page(EVERYTHING) as each:
        await each.send("notifications/set-level", server="one", level="error")
        await each.send("servers/disconnect", server="one")
        await each.send("servers/connect", server="one")
        await each.workspace.server("one").client.call_tool("test_tool_with_logging")
        await each.workspace.server("one").client.call_tool("test_simple_text")
        assert (await report(each))["counts"] == {}


async def test_a_server_without_log_messages_is_an_error() -> None:
    async with page(PlayedServer("2025-11-25", offers={"tools": {}}), revision="2025-11-25") as each:
        with pytest.raises(NotSupported):
            await each.send("notifications/set-level", server="one", level="info")


async def test_a_flood_of_one_level_does_not_displace_another() -> None:
    async with page() as each:
        own = each.workspace.notifications.of("one")
        own.receive(_log("emergency", "fire"))
        for number in range(5_000):
            own.receive(_log("debug", number))
        assert [entry.data_json for entry in own.logs["emergency"]] == ['"fire"']
        assert (own.log_counts["debug"], len(own.logs["debug"])) == (5_000, LOGS_PER_LEVEL)


def _log(level: Any, data: Any) -> Notice:
    return Notice("notifications/message", LoggingMessageParams(level=level, data=data))


# --- bounds --------------------------------------------------------------------------------------------------------


async def test_a_flood_is_counted_and_its_memory_bounded() -> None:
    async with page() as each:
        own = each.workspace.notifications.of("one")
        for number in range(20_000):
            own.receive(Notice(f"notifications/n{number}", NotificationParams(meta={"text": "x" * 5_000})))
        assert own.total == 20_000
        assert sum(own.counts.values()) == 20_000
        assert len(own.counts) == 201
        assert len(own.recent) == RECENT
        assert {len(entry.params_json) for entry in own.recent} == {TEXT_CHARACTERS}
        assert own.recent[-1].length > 5_000


async def test_a_million_notifications_are_counted_and_a_few_stored() -> None:
    """Without a connection: `test_heavy_traffic` has fewer, through all parts and with a page."""
    async with page() as each:
        own = each.workspace.notifications.of("one")
        message, change = _log("debug", "again"), Notice("notifications/resources/updated", NotificationParams())
        for _ in range(500_000):
            own.receive(message)
            own.receive(change)
        assert own.total == sum(own.counts.values()) == 1_000_000
        assert own.log_counts == {"debug": 500_000}
        assert (len(own.logs["debug"]), len(own.recent)) == (LOGS_PER_LEVEL, RECENT)
        assert b'"notifications":{"changes":1000000}' in await anext(each.workspace.topics.stream())


async def test_a_page_learns_of_many_notifications_by_few_lines() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        lines = []

        async def read() -> None:
            async for line in each.workspace.topics.stream():
                lines.append(line)

        reading = asyncio.create_task(read())
        for number in range(20_000):
            server.raw.say({"method": "notifications/message", "params": {"level": "info", "data": number}})
        found = await report(each, lambda found: found["total"] == 20_000)
        assert found["logs"][0]["count"] == 20_000
        assert len(lines) < 2_000
        reading.cancel()


# --- changed lists -------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists are requested without pauses."""
    monkeypatch.setattr(list_changes, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(list_changes, "_FIRST_PAUSE_SECONDS", 0.01)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_changed_list_is_shown_with_the_difference(revision: str) -> None:
    server = Server("changing")
    server.tool(name="old", description="Old.")(lambda: "old")
    server.tool(name="same", description="One text.")(lambda: "same")
    async with page(server, revision=revision) as each:
        opened = await each.send("subscriptions/open", server="one", lists=["tools"])
        assert opened["granted"] == ["tools"]
        await report(each, lambda found: found["differences"])
        server.remove_tool("old")
        server.remove_tool("same")
        server.tool(name="same", description="Another text.")(lambda: "same")
        server.tool(name="new", description="New.")(lambda: "new")
        found = await report(each, lambda found: any("new" in one["added"] for one in found["differences"]))
        difference = next(one for one in found["differences"] if "new" in one["added"])
        first = found["differences"][-1]
        assert "first read: 2 items" in first["note"]
        assert difference["added"] == ["new"]
        assert difference["removed"] == ["old"]
        (changed,) = difference["changed"]
        assert changed["name"] == "same"
        assert '-  "description": "One text."' in changed["lines"]
        assert '+  "description": "Another text."' in changed["lines"]


@pytest.mark.usefixtures("quick")
async def test_a_change_as_the_last_request_ends_is_not_lost() -> None:
    requests: list[asyncio.Task[Any]] = []

    async def fetch(kind: list_changes.ListKind) -> list[Any]:
        return []

    def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.create_task(work)
        requests.append(task)
        if len(requests) == 1:
            task.add_done_callback(lambda _: watch.changed("tools"))
        return task

    watch = list_changes.ListWatch(fetch, lambda: None, start)
    watch.changed("tools")
    for task in requests:  # it grows meanwhile
        await task
        await asyncio.sleep(0)
    assert len(watch.differences) == 2


@pytest.mark.usefixtures("quick")
async def test_many_changes_become_few_requests() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        for _ in range(1_000):
            server.raw.say({"method": "notifications/tools/list_changed"})
        request = await server.raw.hear()
        assert request["method"] == "tools/list"
        server.raw.answer(request, tools=[])
        await report(each, lambda found: found["total"] == 1_000 and found["differences"])
        assert len((await report(each))["differences"]) <= 2


@pytest.mark.usefixtures("quick")
async def test_a_list_that_cannot_be_requested_is_a_note() -> None:
    server = PlayedServer("2025-11-25")
    async with page(server, revision="2025-11-25") as each:
        server.raw.say({"method": "notifications/prompts/list_changed"})
        server.raw.refuse(await server.raw.hear(), -32603, "broken today")
        found = await report(each, lambda found: found["differences"])
        assert "broken today" in found["differences"][0]["note"]


async def test_a_list_that_the_page_has_read_is_the_one_before() -> None:
    server = Server("changing")
    server.tool(name="old", description="Old.")(lambda: "old")
    async with page(server) as each:
        await each.send("tools/list", server="one")
        server.tool(name="new", description="New.")(lambda: "new")
        each.workspace.notifications.of("one").lists.changed("tools")
        found = await report(each, lambda found: found["differences"])
        assert found["differences"][0]["added"] == ["new"]


# --- subscriptions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_subscription_shows_its_events_until_it_is_closed(revision: str) -> None:
    async with page(EVERYTHING, revision=revision) as each:
        uri = "test://watched-resource"
        opened = await each.send("subscriptions/open", server="one", uris=[uri])
        assert opened["granted"] == [uri]
        await each.workspace.server("one").client.call_tool("touch")
        found = await report(each, lambda found: found["subscriptions"][0]["events"])
        assert uri in found["subscriptions"][0]["recent"][0]
        await each.send("subscriptions/close", server="one", id=opened["id"])
        found = await report(each, lambda found: not found["subscriptions"][0]["isOpen"])
        assert found["subscriptions"][0]["reason"] == "closed here"


async def test_a_subscription_of_a_server_that_is_disconnected_has_ended() -> None:
    async with page(EVERYTHING) as each:
        await each.send("subscriptions/open", server="one", lists=["tools"])
        await each.send("servers/disconnect", server="one")
        found = await report(each, lambda found: not found["subscriptions"][0]["isOpen"])
        assert found["subscriptions"][0]["reason"]


async def test_subscriptions_are_bounded_and_ended_ones_make_room() -> None:
    async with page(EVERYTHING) as each:
        opened = [await each.send("subscriptions/open", server="one", lists=["tools"]) for _ in range(50)]
        with pytest.raises(InspectorError, match="50 subscriptions"):
            await each.send("subscriptions/open", server="one", lists=["tools"])
        await each.send("subscriptions/close", server="one", id=opened[7]["id"])
        await report(each, lambda found: sum(view["isOpen"] for view in found["subscriptions"]) == 49)
        await each.send("subscriptions/open", server="one", lists=["tools"])
        assert len((await report(each))["subscriptions"]) == 50


@pytest.mark.usefixtures("quick")
async def test_changed_definitions_that_are_large_are_compared_in_little_time() -> None:
    def deep(leaf: int) -> Tool:
        value: Any = [leaf] * 200_000
        for _ in range(100):
            value = [value]
        return Tool(name="deep", input_schema={"type": "object", "x": value})

    lists = iter([[deep(0)], [deep(1)]])

    async def fetch(kind: list_changes.ListKind) -> list[Any]:
        return next(lists)

    watch = list_changes.ListWatch(fetch, lambda: None, asyncio.create_task)
    with costs_at_most(200):
        for count in (1, 2):
            watch.changed("tools")
            await until(lambda count=count: len(watch.differences) == count)
    (changed,) = watch.differences[-1].changed
    assert changed.lines == ["  ... the definitions are too long to compare"]
