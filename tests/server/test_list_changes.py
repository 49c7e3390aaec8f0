"""Tools, prompts and resources that come and go while clients are connected."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from accord import DeclarationError, Limits, Server, Tool
from accord.messages.content import Annotations
from accord.messages.identity import Icon
from accord.messages.revision import HANDSHAKE, REVISIONS
from accord.messages.tools import ToolAnnotations
from accord.server.core.content import CacheHint

from tests.server.raw import raw_peer

ROOT = Path(__file__).parent.parent.parent
LISTS = {"tools": "tools/list", "prompts": "prompts/list", "resources": "resources/list"}


def server() -> Server:
    made = Server("test", "1")

    @made.tool
    async def first() -> str:
        return "1"

    @made.prompt
    def hello(name: str) -> str:
        return name

    @made.resource("test://first")
    def thing() -> str:
        return "1"

    return made


async def second() -> str:
    return "2"


def add_a_tool(made: Server) -> None:
    made.tool(second)


def add_a_raw_tool(made: Server) -> None:
    made.add_tool(Tool(name="second", input_schema={"type": "object"}), lambda arguments: "2")


CHANGES = [
    ("tools", add_a_tool),
    ("tools", add_a_raw_tool),
    ("tools", lambda made: made.remove_tool("first")),
    ("prompts", lambda made: made.prompt(second)),
    ("prompts", lambda made: made.remove_prompt("hello")),
    ("resources", lambda made: made.resource("test://second")(second)),
    ("resources", lambda made: made.resource("test://{n}")(lambda n: n)),
    ("resources", lambda made: made.remove_resource("test://first")),
]


@pytest.mark.parametrize("revision", HANDSHAKE)
@pytest.mark.parametrize(("what", "change"), CHANGES)
async def test_a_change_is_notified_and_the_list_is_new(revision: str, what: str, change: Any) -> None:
    made = server()
    async with raw_peer(made, revision) as peer:
        before = await peer.ask(LISTS[what])
        templates = await peer.ask("resources/templates/list")
        change(made)
        assert await peer.hear() == {"jsonrpc": "2.0", "method": f"notifications/{what}/list_changed"}
        after = (await peer.ask(LISTS[what]), await peer.ask("resources/templates/list"))
        assert [one["result"] for one in after] != [before["result"], templates["result"]]


@pytest.mark.parametrize(("what", "change"), CHANGES)
async def test_without_a_handshake_only_subscribers_are_notified(what: str, change: Any) -> None:
    made = server()
    async with raw_peer(made, "2026-07-28") as peer:
        wanted = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
        one = peer.send("subscriptions/listen", {"notifications": {f"{what}ListChanged": True}})
        await peer.hear()
        rest = peer.send("subscriptions/listen", {"notifications": {**wanted, f"{what}ListChanged": False}})
        await peer.hear()
        change(made)
        told = await peer.hear()
        assert told["method"] == f"notifications/{what}/list_changed"
        assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == one
        assert "result" in await peer.ask("tools/list")  # and nothing before it
        assert rest != one


async def test_what_is_removed_is_gone_and_what_is_not_there_cannot_be_removed() -> None:
    made = server()
    async with raw_peer(made) as peer:
        assert await peer.call("first")
        made.remove_tool("first")
        await peer.hear()
        assert (await peer.ask("tools/call", {"name": "first"}))["error"]["code"] == -32602
        assert (await peer.ask("tools/list"))["result"]["tools"] == []
    for remove in (made.remove_tool, made.remove_prompt, made.remove_resource):
        with pytest.raises(DeclarationError, match=r"'nothing'.*does not exist"):
            remove("nothing")
    with pytest.raises(DeclarationError, match="cannot remove resource template"):
        made.remove_resource("test://{n}")


async def test_changes_of_one_turn_are_notified_once() -> None:
    made = server()
    async with raw_peer(made) as peer:
        for number in range(100):
            made.tool(name=f"tool{number}")(second)
        made.prompt(second)
        assert (await peer.hear())["method"] == "notifications/tools/list_changed"
        assert (await peer.hear())["method"] == "notifications/prompts/list_changed"
        assert len((await peer.ask("tools/list"))["result"]["tools"]) == 101


async def test_any_thread_may_change_things() -> None:
    made = server()

    def work(number: int) -> None:
        made.tool(name=f"tool{number}")(second)
        made.remove_tool(f"tool{number}")
        made.tool(name=f"tool{number}")(second)

    async with raw_peer(made) as peer:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        listed: list[Any] = []
        while len(listed) < 21:
            id = peer.send("tools/list")
            while (message := await peer.hear()).get("id") != id:
                assert message["method"] == "notifications/tools/list_changed"
            listed = message["result"]["tools"]
        for thread in threads:
            thread.join()


async def test_no_notification_is_sent_before_the_client_is_ready() -> None:
    made = server()
    async with raw_peer(made, None) as peer:
        made.tool(name="a")(second)
        await asyncio.sleep(0)
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        assert "result" in await peer.ask("initialize", params)
        made.tool(name="b")(second)
        assert len((await peer.ask("tools/list"))["result"]["tools"]) == 3
        peer.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert (await peer.hear())["method"] == "notifications/tools/list_changed"
        assert "result" in await peer.ask("ping")


async def test_a_client_without_a_grant_is_notified_of_nothing() -> None:
    made = Server("test")
    made.tool(name="one")(second)
    async with raw_peer(made) as peer:
        made.prompt(second)
        await asyncio.sleep(0)
        assert "result" in await peer.ask("ping")
        assert len((await peer.ask("prompts/list"))["result"]["prompts"]) == 1
        made.tool(second)
        assert (await peer.hear())["method"] == "notifications/tools/list_changed"


async def test_an_empty_list_can_still_be_requested() -> None:
    made = server()
    async with raw_peer(made) as peer:
        made.remove_prompt("hello")
        await peer.hear()
        assert (await peer.ask("prompts/list"))["result"] == {"prompts": []}


async def test_added_items_are_in_the_next_list() -> None:
    made = Server("test")
    async with raw_peer(made, "2026-07-28") as peer:
        assert "tools" not in (await peer.ask("server/discover"))["result"]["capabilities"]
        made.tool(second)
        await asyncio.sleep(0)
        found = (await peer.ask("server/discover"))["result"]["capabilities"]
        assert found["tools"] == {"listChanged": True}
        assert (await peer.call("second"))["content"][0]["text"] == "2"


async def test_a_disconnected_client_is_forgotten() -> None:
    made = server()
    async with raw_peer(made):
        assert made.change_bus.indexes
    assert not made.change_bus.indexes
    made.tool(second)


# --- what a list shows


def complete_server(cache: CacheHint | None = None) -> Server:
    made = Server("test", "1") if cache is None else Server("test", "1", cache=cache)
    icons = [Icon(src="https://example.com/i.png")]
    meta = {"com.example/k": 1}

    @made.tool(title="T", icons=icons, meta=meta, annotations=ToolAnnotations(read_only_hint=True))
    async def tool() -> str:
        return ""

    @made.prompt(title="T", icons=icons, meta=meta)
    def prompt() -> str:
        return ""

    @made.resource("a:b", title="T", icons=icons, meta=meta, annotations=Annotations(priority=1), size=3)
    def resource() -> str:
        return ""

    @made.resource("a:{b}", title="T", icons=icons, meta=meta, annotations=Annotations(priority=1))
    def template(b: str) -> str:
        return b

    return made


METHODS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", METHODS)
async def test_each_revision_lists_what_it_knows(revision: str, method: str) -> None:
    since = {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"}
    since["annotations"] = "2025-03-26" if method == "tools/list" else "2024-11-05"
    async with raw_peer(complete_server(), revision) as peer:
        (listed,) = (await peer.ask(method))["result"][METHODS[method]]
    for field, first in since.items():
        known = REVISIONS.index(revision) >= REVISIONS.index(first)
        assert (field in listed) == (known and (field, method) != ("annotations", "prompts/list")), field


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("method", METHODS)
async def test_a_list_has_a_cache_hint_where_the_revision_has_them(revision: str, method: str) -> None:
    for hint, told in ((None, (0, "private")), (CacheHint(ttl=1.5, scope="public"), (1500, "public"))):
        async with raw_peer(complete_server(hint), revision) as peer:
            result = (await peer.ask(method))["result"]
        expected = told if revision == "2026-07-28" else (None, None)
        assert (result.get("ttlMs"), result.get("cacheScope")) == expected


@pytest.mark.parametrize("wrong", [{"ttl": -1}, {"ttl": float("nan")}, {"ttl": float("inf")}, {"scope": "mine"}])
def test_a_hint_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ttl|scope"):
        CacheHint(**wrong)


PAGES = """
import asyncio, json, sys
from accord import Limits, Server
from tests.server.raw import raw_peer

server = Server("test", limits=Limits(page_size=2))
for number in range(5):
    server.tool(name=f"tool{number}")(lambda: "x")

async def main(cursor):
    async with raw_peer(server) as peer:
        print(json.dumps(await peer.ask("tools/list", {"cursor": cursor} if cursor else {})))

asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else None))
"""


def page(*cursor: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-c", PAGES, *cursor], check=True, capture_output=True, text=True, cwd=ROOT)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_a_cursor_is_good_in_another_process() -> None:
    cursor = page()["result"]["nextCursor"]
    assert [tool["name"] for tool in page(cursor)["result"]["tools"]] == ["tool2", "tool3"]
    assert page(cursor[:-2] + "00")["error"]["code"] == -32602


SPELLINGS = [
    str.upper,
    lambda cursor: cursor + " ",
    lambda cursor: f"{cursor[:2]} {cursor[2:]}",
    lambda _: "",
    lambda _: "\x00",
]


@pytest.mark.parametrize("spell", SPELLINGS)
async def test_a_cursor_is_good_only_as_it_was_written(spell: Any) -> None:
    made = Server("test", limits=Limits(page_size=2))
    for name in ("\xe9", "j\xf8rn", "third"):
        made.tool(name=name)(second)
    async with raw_peer(made) as peer:
        cursor = (await peer.ask("tools/list"))["result"]["nextCursor"]
        assert "result" in await peer.ask("tools/list", {"cursor": cursor})
        assert (await peer.ask("tools/list", {"cursor": spell(cursor)}))["error"]["code"] == -32602
