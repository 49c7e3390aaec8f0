"""The response cache: first by itself, against a model and without a clock; then as a client uses it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import monotonic
from types import FrameType
from typing import Any, Literal

import hypothesis.strategies as st
import pytest
from hypothesis import given
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from msgspec import Raw

from accord import APIKeys, CacheHint, Client, Context, HTTPSettings, Server
from accord.client.cache import Cache, CacheableRequest, ClientCache
from accord.errors import InvalidParams, ResourceNotFound
from accord.limits import ClientLimits, Limits
from accord.messages.meta import CacheableResult

from tests.client.raw import Message, RawServer, raw_server
from tests.measure import costs_at_most
from tests.server.http.raw import served

S26 = "2026-07-28"
LISTS = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
CHANGED = {
    "notifications/tools/list_changed": ["tools/list"],
    "notifications/prompts/list_changed": ["prompts/list"],
    "notifications/resources/list_changed": ["resources/list", "resources/templates/list"],
}
URIS = ["res://a", "res://a/", "res://a/b", "res://a/b#c", "res://ab", "res://b?x"]

requests = st.one_of(
    st.builds(CacheableRequest, st.sampled_from(LISTS), st.sampled_from([None, "", "next"])),
    st.builds(CacheableRequest, st.just("resources/read"), st.sampled_from(URIS)),
)
hints = st.builds(
    CacheableResult,
    ttl_ms=st.sampled_from([None, -5, 0, 1, 1000, 5000, 10**400]),
    cache_scope=st.sampled_from([None, "private", "public"]),
)
DAY = 86_400


class CacheAgainstModel(RuleBasedStateMachine):
    """Two clients of one server and one of another share a cache.

    The model has a table for each client and one for each server; nothing in them is ever too much.
    """

    under_way = Bundle("under_way")

    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()
        self.servers = ["one", "one", "other"]
        self.clients = [ClientCache(self.cache, server) for server in self.servers]
        self.private: dict[tuple[int, CacheableRequest], tuple[bytes, float]] = {}
        self.public: dict[tuple[str, CacheableRequest], tuple[bytes, float]] = {}
        self.stale: list[set[tuple[str, str]]] = []  # for each request: what has changed since it was sent
        self.answers = 0
        self.now = 0.0

    @rule(target=under_way, client=st.integers(0, 2), request=requests)
    def ask(self, client: int, request: CacheableRequest) -> tuple[int, int, CacheableRequest, int]:
        self.stale.append(set())
        return len(self.stale) - 1, client, request, self.clients[client].generation(request.method)

    @rule(asked=under_way, hint=hints)
    def answer(self, asked: tuple[int, int, CacheableRequest, int], hint: CacheableResult) -> None:
        number, client, request, changes = asked
        server = self.servers[client]
        self.answers += 1
        raw = b"%d" % self.answers
        self.clients[client].put(request, Raw(raw), hint, changes, self.now)
        self.private.pop((client, request), None)
        self.public.pop((server, request), None)
        seconds = min(hint.ttl_ms or 0, DAY * 1000) / 1000
        if seconds > 0 and (server, request.method) not in self.stale[number]:
            kept = raw, self.now + seconds
            if hint.cache_scope == "public":
                self.public[server, request] = kept
            else:
                self.private[client, request] = kept

    @rule(seconds=st.sampled_from([0.001, 0.5, 1, 5, DAY]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(client=st.integers(0, 2), name=st.sampled_from([*CHANGED, "notifications/message"]))
    def a_list_changes(self, client: int, name: str) -> None:
        self.clients[client].on_notification(name)
        for method in CHANGED.get(name, []):
            self.forget(client, lambda request, method=method: request.method == method)
            self.changed(client, method)

    @rule(client=st.integers(0, 2), uri=st.sampled_from(URIS))
    def a_resource_changes(self, client: int, uri: str) -> None:
        self.clients[client].invalidate_resource(uri)
        self.forget(client, lambda request: request.key in KIN[uri] and request.method == "resources/read")
        self.changed(client, "resources/read")

    @rule(client=st.integers(0, 2))
    def the_server_is_another(self, client: int) -> None:
        self.clients[client].clear()
        self.forget(client, lambda request: True)
        for method in [*LISTS, "resources/read"]:
            self.changed(client, method)

    def forget(self, client: int, concerns: Callable[[CacheableRequest], bool]) -> None:
        server = self.servers[client]
        self.private = {key: kept for key, kept in self.private.items() if key[0] != client or not concerns(key[1])}
        self.public = {key: kept for key, kept in self.public.items() if key[0] != server or not concerns(key[1])}

    def changed(self, client: int, method: str) -> None:
        for since in self.stale:
            since.add((self.servers[client], method))

    @rule(client=st.integers(0, 2), request=requests)
    def look(self, client: int, request: CacheableRequest) -> None:
        rows = self.private.get((client, request)), self.public.get((self.servers[client], request))
        expected = next((Raw(row[0]) for row in rows if row is not None and self.now < row[1]), None)
        found = self.clients[client].get(request, self.now)
        assert (found and bytes(found)) == (expected and bytes(expected))

    @invariant()
    def it_counts_its_bytes(self) -> None:
        assert self.cache.bytes == sum(len(entry.raw) for entry in self.cache._entries.values())


TestCacheAgainstModel = CacheAgainstModel.TestCase

KIN = {
    "res://a": {"res://a", "res://a/", "res://a/b", "res://a/b#c"},
    "res://a/": {"res://a", "res://a/", "res://a/b", "res://a/b#c"},
    "res://a/b": {"res://a", "res://a/", "res://a/b", "res://a/b#c"},
    "res://a/b#c": {"res://a", "res://a/", "res://a/b", "res://a/b#c"},
    "res://ab": {"res://ab"},
    "res://b?x": {"res://b?x"},
}
"""Which of the URIs an update concerns: the resource, its parts, and what it is a part of."""


@given(sizes=st.lists(st.integers(0, 60), max_size=60))
def test_it_holds_no_more_entries_and_bytes_than_allowed_and_the_latest_of_them(sizes: list[int]) -> None:
    cache = Cache(Limits(client=ClientLimits(cache_entries=10, cache_bytes=100)))
    kept = ClientCache(cache, "server")
    for number, size in enumerate(sizes):
        kept.put(CacheableRequest("tools/list", str(number)), Raw(b"x" * size), CacheableResult(ttl_ms=1000), 0, 0)
        assert len(cache) <= 10
        assert cache.bytes <= 100
        assert kept.get(CacheableRequest("tools/list", str(number)), 0) is not None


def test_what_is_larger_than_the_whole_cache_drives_nothing_out() -> None:
    cache = Cache(Limits(client=ClientLimits(cache_bytes=100)))
    kept = ClientCache(cache, "server")
    kept.put(CacheableRequest("tools/list"), Raw(b"small"), CacheableResult(ttl_ms=1000), 0, 0)
    kept.put(CacheableRequest("prompts/list"), Raw(b"x" * 101), CacheableResult(ttl_ms=1000), 0, 0)
    assert kept.get(CacheableRequest("tools/list"), 0) is not None
    assert kept.get(CacheableRequest("prompts/list"), 0) is None


def test_the_one_not_used_for_the_longest_time_goes_first() -> None:
    kept = ClientCache(Cache(Limits(client=ClientLimits(cache_entries=2))), "server")
    old, used, new = (CacheableRequest("resources/read", uri) for uri in ("a", "b", "c"))
    for request in (used, old):
        kept.put(request, Raw(b"{}"), CacheableResult(ttl_ms=1000), 0, 0)
    assert kept.get(used, 0) is not None
    kept.put(new, Raw(b"{}"), CacheableResult(ttl_ms=1000), 0, 0)
    assert kept.get(old, 0) is None
    assert kept.get(used, 0) is not None


@pytest.mark.parametrize("scope", ["private", "public"])
@pytest.mark.parametrize(
    "notify",
    [
        lambda kept: kept.invalidate_resource("res://none"),
        lambda kept: kept.on_notification("notifications/tools/list_changed"),
    ],
    ids=["resource", "list"],
)
def test_a_notification_looks_at_few_of_many_cached_results(
    scope: Literal["private", "public"], notify: Callable[[ClientCache], None]
) -> None:
    kept = ClientCache(Cache(), "server")
    for number in range(1_000):
        request = CacheableRequest("resources/read", f"res://{number:04}/text")
        kept.put(request, Raw(b"{}"), CacheableResult(ttl_ms=60_000, cache_scope=scope), 0, 0.0)
    assert executed_lines(lambda: notify(kept)) < 200  # it was 1,000
    kept.invalidate_resource("res://0007/text/3")
    assert kept.get(CacheableRequest("resources/read", "res://0007/text"), 0.0) is None
    assert kept.get(CacheableRequest("resources/read", "res://0008/text"), 0.0) is not None


def executed_lines(work: Callable[[], object]) -> int:
    """Return the number of lines of Python that `work` executes, those of each step of a generator included."""
    lines = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def test_an_update_of_a_long_uri_costs_no_copies_of_it_for_each_result() -> None:
    kept = ClientCache(Cache(), "server")
    for number in range(1_000):
        kept.put(
            CacheableRequest("resources/read", f"res://{number}"), Raw(b"{}"), CacheableResult(ttl_ms=60_000), 0, 0.0
        )
    long = "res://" + "a" * 4_000_000
    with costs_at_most(30):  # it was 1,000
        kept.invalidate_resource(long)
    assert kept.get(CacheableRequest("resources/read", "res://7"), 0.0) is not None


# As a client uses it


class Counting:
    """Plays a server whose answers carry hints; `hints` is what it adds to each, `heard` what it was asked."""

    def __init__(self, server: RawServer, **hints: Any) -> None:
        self.server = server
        self.hints = hints
        self.heard: list[str] = []
        self.fail: Message | None = None

    async def run(self) -> None:
        while True:
            message = await self.server.hear(60)
            self.reply(message)

    def reply(self, message: Message) -> None:
        params = message["params"]
        self.heard.append(params.get("uri") or params.get("cursor") or message["method"])
        if self.fail is not None:
            self.server.say({"id": message["id"], "error": self.fail})
        elif message["method"] == "resources/read":
            content = {"uri": params["uri"], "text": str(len(self.heard))}
            self.server.answer(message, contents=[content], **self.hints)
        else:
            tool = {"name": f"tool{len(self.heard)}", "inputSchema": {"type": "object"}}
            more = {"nextCursor": "two"} if "cursor" not in params else {}
            self.server.answer(message, tools=[tool], **more, **self.hints)


@asynccontextmanager
async def counting(hints: Message, **options: Any) -> AsyncIterator[tuple[Counting, Client]]:
    """A client and a server that counts; `hints` go with each result."""
    revision = options.pop("revision", S26)
    async with raw_server(revision, **options) as (server, client):
        played = Counting(server, **hints)
        running = asyncio.create_task(played.run())
        try:
            yield played, client
        finally:
            running.cancel()


FRESH = {"ttlMs": 60_000, "cacheScope": "private"}


async def test_each_page_is_requested_once_while_it_is_fresh() -> None:
    async with counting(FRESH) as (server, client):
        first = await client.list_tools()
        assert await client.list_tools() == first
        assert server.heard == ["tools/list", "two"]
        assert await client.list_tools(fresh=True) != first
        assert server.heard == ["tools/list", "two", "tools/list", "two"]


async def test_a_resource_is_read_once_for_each_uri_while_it_is_fresh() -> None:
    async with counting(FRESH) as (server, client):
        for uri in ("res://a", "res://b", "res://a"):
            assert (await client.read_resource(uri)).contents[0].uri == uri
        assert server.heard == ["res://a", "res://b"]
        assert (await client.read_resource("res://a", fresh=True)).contents[0].text == "3"
        assert (await client.read_resource("res://a")).contents[0].text == "3"


@pytest.mark.parametrize("hints", [{}, {"ttlMs": 0}, {"ttlMs": -1}], ids=["absent", "zero", "negative"])
async def test_without_time_to_live_nothing_is_cached(hints: Message) -> None:
    async with counting({"cacheScope": "public", **hints}) as (server, client):
        await client.read_resource("res://a")
        await client.read_resource("res://a")
        assert len(server.heard) == 2


async def test_a_client_may_do_without() -> None:
    async with counting(FRESH, cache=False) as (server, client):
        await client.read_resource("res://a")
        await client.read_resource("res://a")
        assert len(server.heard) == 2


async def test_hints_of_a_revision_that_has_none_mean_nothing() -> None:
    async with counting(FRESH, revision="2025-11-25") as (server, client):
        await client.read_resource("res://a")
        await client.read_resource("res://a")
        assert len(server.heard) == 2


async def test_a_request_with_a_meta_of_its_own_is_neither_answered_from_the_cache_nor_cached() -> None:
    async with counting(FRESH) as (server, client):
        await client.read_resource("res://a", meta={"com.example/tenant": "x"})
        await client.read_resource("res://a")
        await client.read_resource("res://a", meta={"com.example/tenant": "y"})
        assert len(server.heard) == 3


async def test_errors_are_not_cached() -> None:
    async with counting(FRESH) as (server, client):
        server.fail = {"code": -32602, "message": "no", "data": {"uri": "res://a"}}
        for _ in range(2):
            with pytest.raises(ResourceNotFound):
                await client.read_resource("res://a")
        server.fail = None
        assert (await client.read_resource("res://a")).contents[0].text == "3"


async def test_a_cursor_that_is_refused_drops_all_pages_and_the_list_is_read_from_its_beginning() -> None:
    async with counting(FRESH) as (server, client):
        await client.list_tools()
        client._cache._cache._drop([key for key in client._cache._cache._entries if key.request.key == "two"])
        heard = len(server.heard)
        original, server.reply = server.reply, lambda message: refuse_cursor(server, message)  # type: ignore[method-assign]
        with pytest.raises(InvalidParams):  # refused from the beginning too: once more, and no further
            await client.list_tools()
        assert server.heard[heard:] == ["two", "tools/list", "two"]
        server.reply = original  # type: ignore[method-assign]
        await client.list_tools()
        assert server.heard[heard + 3 :] == ["tools/list", "two"]


def refuse_cursor(server: Counting, message: Message) -> None:
    server.fail = {"code": -32602, "message": "what cursor?"} if "cursor" in message["params"] else None
    Counting.reply(server, message)
    server.fail = None


async def test_a_result_that_used_an_answer_of_the_client_is_not_cached() -> None:
    async with raw_server(S26, elicitation=lambda params: {"ok": True}) as (server, client):
        for _ in range(2):
            reading = asyncio.create_task(client.read_resource("res://a"))
            question = {"method": "elicitation/create", "params": FORM}
            server.require(await server.hear(), inputRequests={"q": question}, requestState="s", **FRESH)
            again = await server.hear()
            assert "inputResponses" in again["params"]
            server.answer(again, contents=[{"uri": "res://a", "text": "x"}], **FRESH)
            await reading


FORM = {
    "mode": "form",
    "message": "Really?",
    "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
}


async def test_a_change_notified_while_the_list_was_in_flight_counts() -> None:
    async with raw_server(S26) as (server, client):
        listing = asyncio.create_task(client.list_prompts())
        server.answer(await server.hear(), prompts=[], **FRESH)
        server.say({"method": "notifications/prompts/list_changed"})
        await listing
        again = asyncio.create_task(client.list_prompts())
        server.answer(await server.hear(), prompts=[], **FRESH)
        await again


async def test_a_changed_list_is_requested_again() -> None:
    async with counting(FRESH) as (server, client):
        await client.read_resource("res://a/b")
        server.server.say({"method": "notifications/resources/updated", "params": {"uri": "res://a"}})
        await client.read_resource("res://other")
        await client.read_resource("res://a/b")
        assert server.heard == ["res://a/b", "res://other", "res://a/b"]


async def test_clients_that_share_a_cache_share_what_is_public_and_nothing_else() -> None:
    cache = Cache()
    server = Server("shared")
    async with Client(server, cache=cache) as one, Client(server, cache=cache) as two:
        for client in (one, two):
            assert client.revision == S26
        kept = one._cache
        kept.put(
            CacheableRequest("tools/list"), PUBLIC, CacheableResult(ttl_ms=60_000, cache_scope="public"), 0, monotonic()
        )
        kept.put(CacheableRequest("prompts/list"), PUBLIC, CacheableResult(ttl_ms=60_000), 0, monotonic())
        assert [tool.name for tool in await two.list_tools()] == ["kept"]
        assert two._cache.get(CacheableRequest("prompts/list"), monotonic()) is None
        async with Client(Server("another"), cache=cache) as third:
            assert third._cache.get(CacheableRequest("tools/list"), monotonic()) is None


PUBLIC = Raw(b'{"tools":[{"name":"kept","inputSchema":{"type":"object"}}],"resultType":"complete"}')


# --- the user of a client may change ---------------------------------------------------------------------------


async def test_a_client_whose_headers_change_the_user_shows_none_what_another_received() -> None:
    server = Server("desk", cache=CacheHint(ttl=60), auth=APIKeys({"key-of-ann": "ann", "key-of-bob": "bob"}))

    @server.resource("desk://me", cache=CacheHint(ttl=60))
    def me(ctx: Context) -> str:
        """Return the user."""
        return ctx.principal.id if ctx.principal is not None else "nobody"

    keys = ["key-of-ann"]
    settings = HTTPSettings(headers=lambda: {"Authorization": f"Bearer {keys[0]}"})
    async with served(server.app) as socket, Client(f"http://127.0.0.1:{socket.port}/mcp", http=settings) as client:
        assert (await client.read_resource("desk://me")).contents[0].text == "ann"
        keys[0] = "key-of-bob"
        assert (await client.read_resource("desk://me")).contents[0].text == "bob"
