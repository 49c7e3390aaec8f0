"""`Caching`: what is the same, what is kept, and when it is forgotten."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

import pytest
from hypothesis import given, strategies as st

from accord import (
    APIKeys,
    Caching,
    CallToolResult,
    Client,
    Context,
    DeclarationError,
    Elicit,
    MemoryResults,
    Principal,
    Request,
    Server,
    TextContent,
    ToolAnnotations,
    ToolError,
)

from tests.server.http.http_clients import Modern, encode, site
from tests.server.input.caller import caller
from tests.server.middleware.transports import SOME, WAYS, called, reached, text
from tests.server.raw import raw_peer
from tests.waiting import turns, until

READ_ONLY = ToolAnnotations(read_only_hint=True)


class Counting(Server):
    """Every answer has the number of times that a function ran."""

    def __init__(self, caching: Caching, **options: Any) -> None:
        super().__init__("test", middleware=[caching], **options)
        self.ran = 0
        self.prompt(name="tell")(lambda: f"tell {self.count()}")
        self.resource("data://x")(lambda: f"x {self.count()}")

        @self.tool(annotations=READ_ONLY)
        async def look(a: int = 0, b: str = "", fail: str = "") -> dict[str, int]:
            self.count()
            if fail == "tool":
                raise ToolError("it failed")
            if fail == "other":
                raise ValueError("it failed")
            return {"ran": self.ran}

        @self.tool(annotations=READ_ONLY)
        def complains() -> CallToolResult:
            return CallToolResult(content=[TextContent(text=str(self.count()))], is_error=True)

        @self.tool
        def write() -> str:
            return str(self.count())

    def count(self) -> int:
        self.ran += 1
        return self.ran


@pytest.mark.parametrize("way", WAYS)
async def test_what_only_reads_runs_once_and_is_answered_alike(way: str) -> None:
    server = Counting(Caching())
    asked = [called("look", a=1), ("prompts/get", {"name": "tell"}), ("resources/read", {"uri": "data://x"})]
    async with reached(server, way) as ask:
        first = [(await ask(*each))["result"] for each in asked]
        again = [(await ask(*each))["result"] for each in asked]
    assert first == again
    assert server.ran == 3


async def test_arguments_that_are_nested_too_deep_are_refused() -> None:
    async with raw_peer(Counting(Caching(60))) as peer:
        deep = '{"b":' * 5_000 + "1" + "}" * 5_000
        peer.say(
            f'{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"look","arguments":{deep}}}}}'.encode()
        )
        assert (await peer.hear())["error"]["code"] in (-32700, -32602)
        assert "result" in await peer.ask("tools/call", {"name": "look", "arguments": {"a": 1}})


@pytest.mark.parametrize("raw", ['{"a":2,"a":1}', '{"a":1,"b":"x","b":""}'])
async def test_a_duplicate_member_is_refused_although_a_result_is_cached(raw: str) -> None:
    server = Counting(Caching(60))
    async with raw_peer(server) as peer:
        assert "result" in await peer.ask("tools/call", {"name": "look", "arguments": {"a": 1, "b": ""}})
        assert "result" in await peer.ask("tools/call", {"name": "look", "arguments": {"a": 1}})
        peer.say(
            f'{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"look","arguments":{raw}}}}}'.encode()
        )
        assert "twice" in (await peer.hear())["error"]["message"]


@pytest.mark.parametrize("way", WAYS)
async def test_structured_output_is_answered_alike(way: str) -> None:
    server = Server("test", middleware=[Caching()])
    ran: list[int] = []

    @server.tool(annotations=READ_ONLY)
    def numbers() -> list[int]:
        ran.append(1)
        return ran

    async with reached(server, way) as ask:
        first, again = [(await ask(*called("numbers")))["result"] for _ in range(2)]
    assert first == again
    assert not first.get("isError")
    assert ran == [1]


@pytest.mark.parametrize("way", SOME)
async def test_what_may_do_something_runs_each_time_unless_it_is_named(way: str) -> None:
    for caching, ran in ((Caching(), 2), (Caching(tools={"write"}), 1)):
        server = Counting(caching)
        async with reached(server, way) as ask:
            for _ in range(2):
                await ask(*called("write"))
        assert server.ran == ran


async def test_with_tools_named_a_mark_does_not_count() -> None:
    server = Counting(Caching(tools=()))
    async with reached(server, "memory 2026-07-28") as ask:
        for _ in range(2):
            await ask(*called("look"))
    assert server.ran == 2


@pytest.mark.parametrize("way", SOME)
async def test_errors_are_not_cached(way: str) -> None:
    server = Counting(Caching())
    async with reached(server, way) as ask:
        for call in (called("look", fail="tool"), called("look", fail="other"), called("complains")):
            before = server.ran
            for _ in range(2):
                assert (await ask(*call))["result"]["isError"]
            assert server.ran == before + 2


JSON_VALUES = st.fixed_dictionaries({}, optional={"a": st.integers(-(1 << 63), 1 << 63), "b": st.text(max_size=3)})


@given(JSON_VALUES, JSON_VALUES)
def test_two_calls_share_a_result_just_when_their_arguments_are_equal(one: dict[str, Any], two: dict[str, Any]) -> None:
    async def run() -> int:
        server = Counting(Caching())
        async with reached(server, "memory 2026-07-28") as ask:
            await ask(*called("look", **one))
            await ask(*called("look", **dict(reversed(two.items()))))
        return server.ran

    assert asyncio.run(run()) == (1 if one == two else 2)


async def test_each_principal_has_its_own_and_so_have_other_scopes() -> None:
    keys = {
        "k-ann": Principal("ann"),
        "k-ann-admin": Principal("ann", frozenset({"admin"})),
        "k-bob": Principal("bob"),
    }
    server = Counting(Caching(), auth=APIKeys(keys))
    async with site(server) as here:
        for _ in range(2):
            for key in keys:
                client = Modern(here.raw, authorization=f"Bearer {key}")
                await (await client.call("look")).result()
    assert server.ran == 3


async def test_revisions_and_versions_are_distinguished() -> None:
    server = Counting(Caching())
    for version in ("1", "2"):
        server.tool(name="v", version=version, annotations=READ_ONLY)(lambda version=version: version)
    for way in SOME:
        async with reached(server, way) as ask:
            method, params = called("v")
            for version in ("1", "2", "1"):
                assert text(await ask(method, {**params, "_meta": {"accord/version": version}})) == version
            await ask(*called("look"))
    assert server.ran == 2


async def test_a_key_of_ones_own_adds_to_what_is_the_same_or_says_that_nothing_is() -> None:
    asked: list[str | None] = []

    def key(request: Request) -> str | None:
        return asked[-1]

    server = Counting(Caching(key=key))
    async with reached(server, "memory 2026-07-28") as ask:
        for language in ("en", "no", "en", None, None):
            asked.append(language)
            await ask(*called("look"))
    assert server.ran == 4


@pytest.mark.parametrize("way", SOME)
async def test_its_time_ends(way: str) -> None:
    now = [0.0]
    server = Counting(Caching(seconds=10, store=MemoryResults(clock=lambda: now[0])))
    async with reached(server, way) as ask:
        for now[0] in (0, 9.9, 10, 19):
            await ask(*called("look"))
    assert server.ran == 2


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_it_is_forgotten_when_a_resource_or_what_is_offered_changes(revision: str) -> None:
    caching = Caching()
    server = Counting(caching)
    async with caller(server, revision) as client:

        async def both() -> str:
            await client.ask(*called("look"))
            return text(await client.ask("resources/read", {"uri": "data://x"}))

        assert [await both(), await both()] == ["x 2", "x 2"]
        server.resource_updated("data://x")
        assert await both() == "x 3"
        server.tool(name="more")(lambda: "")
        assert await both() == "x 5"
        await caching.clear()
        assert await both() == "x 7"


async def test_what_was_in_flight_when_it_changed_is_not_cached() -> None:
    server = Counting(Caching())
    go = asyncio.Event()
    seen: list[str] = []

    @server.resource("data://slow")
    async def slow() -> str:
        seen.append("before" if not go.is_set() else "after")
        await go.wait()
        return seen[-1]

    async with caller(server, "2025-11-25") as client:
        id = client.send("resources/read", {"uri": "data://slow"})
        await until(lambda: seen)
        server.resource_updated("data://slow")
        go.set()
        assert text(await client.answer(id)) == "before"
        assert text(await client.ask("resources/read", {"uri": "data://slow"})) == "after"


# --- equal requests at once ----------------------------------------------------------------------------------------


def slow_server(caching: Caching) -> tuple[Server, list[int], asyncio.Event]:
    server, ran, go = Server("test", middleware=[caching]), list[int](), asyncio.Event()

    @server.tool(annotations=READ_ONLY)
    async def look(fail: bool = False) -> str:
        ran.append(1)
        await go.wait()
        if fail:
            raise ToolError(f"failed {len(ran)}")
        return f"done {len(ran)}"

    return server, ran, go


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_equal_requests_at_once_run_once(revision: str) -> None:
    server, ran, go = slow_server(Caching())
    async with caller(server, revision) as client:
        ids = [client.send(*called("look")) for _ in range(10)]
        await turns(20)
        go.set()
        assert {text(await client.answer(id)) for id in ids} == {"done 1"}
    assert len(ran) == 1


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_when_the_first_is_cancelled_the_next_takes_its_place(revision: str) -> None:
    server, ran, go = slow_server(Caching())
    async with caller(server, revision) as client:
        first, *others = [client.send(*called("look")) for _ in range(5)]
        await turns(20)
        client.cancel(first)
        await turns(20)
        go.set()
        assert {text(await client.answer(id)) for id in others} == {"done 2"}
    assert len(ran) == 2


async def test_when_the_first_fails_each_finds_out_alone() -> None:
    server, ran, go = slow_server(Caching())
    async with caller(server, "2025-11-25") as client:
        ids = [client.send(*called("look", fail=True)) for _ in range(3)]
        await turns(20)
        go.set()
        assert sorted([text(await client.answer(id)) for id in ids])[0] == "failed 1"
    assert len(ran) == 3


async def test_no_call_waits_for_the_answer_of_another_user() -> None:
    server, ran = Server("test", middleware=[Caching()]), []

    @server.tool(annotations=READ_ONLY)
    async def asks(ctx: Context) -> str:
        ran.append(1)
        return str((await ctx.elicit("Name?", str)).data)

    for revision in ("2025-11-25", "2026-07-28"):
        ran.clear()
        async with caller(server, revision) as client:
            for _ in range(2):
                assert text(await client.through(*called("asks"))) == "answer to Name?"
        assert len(ran) == (2 if revision == "2025-11-25" else 4)  # there, up to the question and again


# --- where it is kept ----------------------------------------------------------------------------------------------


class Broken:
    """A store that fails."""

    async def get(self, key: str) -> bytes | None:
        raise OSError("no store")

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        raise OSError("no store")

    async def clear(self, prefix: str = "") -> None:
        raise OSError("no store")


async def test_a_store_that_fails_costs_no_call_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    server = Counting(Caching(store=Broken()))
    async with reached(server, "memory 2026-07-28") as ask:
        for _ in range(2):
            assert "error" not in await ask(*called("look"))
        server.resource_updated("data://x")
        assert "error" not in await ask(*called("look"))
    assert server.ran == 3
    assert "a store of results failed" in caplog.text


class Remote(MemoryResults):
    """A store in another place: an operation named in `slow` waits for `go`, and clearing fails `failures` times."""

    def __init__(self, slow: str = "", failures: int = 0) -> None:
        super().__init__()
        self.slow, self.failures = slow, failures
        self.waiting, self.go = 0, asyncio.Event()

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        await self._answers("put")
        await super().put(key, value, seconds)

    async def clear(self, prefix: str = "") -> None:
        await self._answers("clear")
        if self.failures:
            self.failures -= 1
            raise OSError("no store")
        await super().clear(prefix)

    async def _answers(self, operation: str) -> None:
        if operation == self.slow:
            self.waiting += 1
            await self.go.wait()


async def test_what_could_not_be_cleared_is_not_answered_until_it_is() -> None:
    server = Counting(Caching(store=Remote(failures=2)))
    async with reached(server, "memory 2026-07-28") as ask:
        seen = []
        for changes in (False, True, False, False, False):
            if changes:
                server.resource_updated("data://x")
            seen.append(text(await ask("resources/read", {"uri": "data://x"})))
    assert seen == ["x 1", "x 2", "x 3", "x 4", "x 4"]


async def test_what_is_being_cleared_is_not_answered() -> None:
    store = Remote("clear")
    server = Counting(Caching(store=store))
    async with caller(server, "2025-11-25") as client:
        assert text(await client.ask("resources/read", {"uri": "data://x"})) == "x 1"
        server.resource_updated("data://x")
        ids = [client.send("resources/read", {"uri": "data://x"}) for _ in range(2)]
        await until(lambda: store.waiting)
        await turns(20)
        store.go.set()
        assert {text(await client.answer(id)) for id in ids} == {"x 2"}


async def test_what_was_put_while_it_changed_is_not_answered() -> None:
    store = Remote("put")
    server = Counting(Caching(store=store))
    async with caller(server, "2025-11-25") as client:
        id = client.send("resources/read", {"uri": "data://x"})
        await until(lambda: store.waiting)
        server.resource_updated("data://x")
        await client.ask(*called("look", fail="tool"))  # the store is cleared before it
        store.go.set()
        assert text(await client.answer(id)) == "x 1"
        assert text(await client.ask("resources/read", {"uri": "data://x"})) == "x 3"


@pytest.mark.parametrize("found", [b"", b"[]", b"{}", b"\xff", "text"])
async def test_a_value_that_is_no_result_is_not_answered(found: Any, caplog: pytest.LogCaptureFixture) -> None:
    """Another version of a program may have stored it."""
    store = MemoryResults()
    server = Counting(Caching(store=store))
    async with reached(server, "memory 2026-07-28") as ask:
        assert text(await ask("resources/read", {"uri": "data://x"})) == "x 1"
        for key, (_, ends) in store._results.items():
            store._results[key] = found, ends
        assert text(await ask("resources/read", {"uri": "data://x"})) == "x 2"
        assert text(await ask("resources/read", {"uri": "data://x"})) == "x 2"
    assert "a store of results failed" in caplog.text


async def test_concurrent_requests_clear_a_store_once() -> None:
    store = Remote("clear")
    server = Counting(Caching(store=store))
    async with caller(server, "2025-11-25") as client:
        await client.ask("resources/read", {"uri": "data://x"})
        server.resource_updated("data://x")
        ids = [client.send("resources/read", {"uri": "data://x"}) for _ in range(5)]
        await until(lambda: store.waiting)
        await turns(20)
        store.go.set()
        assert len([await client.answer(id) for id in ids]) == 5
    assert store.waiting == 1


async def test_memory_is_bounded_by_number_and_bytes_and_what_is_used_stays() -> None:
    store = MemoryResults(most=2, bytes=100)
    await store.put("a", b"1", 60)
    await store.put("b", b"2", 60)
    assert await store.get("a") == b"1"
    await store.put("c", b"3", 60)
    assert [await store.get(key) for key in "abc"] == [b"1", None, b"3"]
    await store.put("d", b"x" * 100, 60)
    assert [await store.get(key) for key in "acd"] == [None, None, b"x" * 100]
    await store.put("d", b"x" * 101, 60)
    assert await store.get("d") is None
    assert len(store) == 0
    await store.put("x 1", b"", 60)
    await store.put("y 1", b"", 60)
    await store.clear("x ")
    assert [await store.get("x 1"), await store.get("y 1")] == [None, b""]


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"seconds": float("nan")}, {"most": 0}, {"bytes": 0}])
def test_bounds_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(DeclarationError):
        Caching(**wrong)


# --- what belongs to one client ------------------------------------------------------------------------------------


READS: dict[str, Any] = {
    "headers": lambda ctx: ctx.headers.get("x-tenant"),
    "client": lambda ctx: ctx.client and ctx.client.name,
    "capabilities": lambda ctx: ctx.client_capabilities.roots is not None,
    "meta": lambda ctx: ctx.meta.get("tenant"),
    "trace": lambda ctx: ctx.trace.get("baggage"),
}


def reading(what: str, caching: Caching) -> tuple[Server, list[int]]:
    server, ran = Server("test", middleware=[caching]), list[int]()

    @server.tool(annotations=READ_ONLY)
    def look(ctx: Context) -> str:
        ran.append(1)
        return str(READS[what](ctx))

    return server, ran


@pytest.mark.parametrize("what", READS)
async def test_what_has_read_something_of_its_client_is_not_cached(what: str) -> None:
    server, ran = reading(what, Caching())
    async with site(server) as here:
        for tenant in ("a", "b"):
            client = Modern(here.raw, **{"x-tenant": tenant})
            said = text(await (await client.call("look")).result())
            if what == "headers":
                assert said == tenant
    assert len(ran) == 2


async def test_what_the_key_has_read_is_a_part_of_it() -> None:
    server, ran = reading("headers", Caching(key=lambda request: request.headers.get("x-tenant", "")))
    async with site(server) as here:
        for tenant in ("a", "b", "a"):
            assert text(await (await Modern(here.raw, **{"x-tenant": tenant}).call("look")).result()) == tenant
    assert len(ran) == 2


async def test_state_of_an_outer_middleware_is_not_cached_for_others() -> None:
    async def tenant(request: Request, call_next: Any) -> Any:
        request.state["tenant"] = request.headers.get("x-tenant")
        return await call_next(request)

    server = Server("test", middleware=[tenant, Caching()])

    @server.tool(annotations=READ_ONLY)
    def look(ctx: Context) -> str:
        return str(ctx.state["tenant"])

    async with site(server) as here:
        for name in ("a", "b"):
            assert text(await (await Modern(here.raw, **{"x-tenant": name}).call("look")).result()) == name


async def test_a_call_with_something_in_its_state_is_not_answered_from_one_without() -> None:
    async def tenant(request: Request, call_next: Any) -> Any:
        if name := request.headers.get("x-tenant"):
            request.state["tenant"] = name
        return await call_next(request)

    server = Server("test", middleware=[tenant, Caching()])

    @server.tool(annotations=READ_ONLY)
    def look(ctx: Context) -> str:
        return str(ctx.state.get("tenant"))

    async with site(server) as here:
        assert text(await (await Modern(here.raw).call("look")).result()) == "None"
        assert text(await (await Modern(here.raw, **{"x-tenant": "a"}).call("look")).result()) == "a"


async def test_the_roots_of_one_session_are_not_answered_to_another() -> None:
    server = Server("test", middleware=[Caching()])

    @server.tool(annotations=READ_ONLY)
    async def look(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.list_roots())

    for uri in ("file:///a", "file:///b"):
        async with Client(server, revisions=["2025-11-25"], roots=[uri]) as client:
            for _ in range(2):  # the second time the session knows them, and nothing is asked
                assert (await client.call_tool("look")).text == uri


async def test_what_depends_on_the_capabilities_of_a_client_is_not_cached() -> None:
    server, said = Server("test", middleware=[Caching()]), []

    @server.tool(annotations=READ_ONLY)
    def look(name: Annotated[str, Elicit("Name?")] = "nobody") -> str:
        return name

    for options in ({}, {"elicitation": lambda params: {"value": "Ann"}}):
        async with Client(server, revisions=["2025-11-25"], **options) as client:
            said.append((await client.call_tool("look")).text)
    assert said == ["nobody", "Ann"]


async def test_what_a_session_hides_is_not_answered_from_another() -> None:
    server = Server("test", middleware=[Caching()])
    server.search_tools(budget=1)
    server.tool("delete")(lambda: "")

    @server.tool
    def hide(ctx: Context) -> str:
        ctx.disable("delete")
        return ""

    found = []
    for hides in (False, True, False):
        async with Client(server, revisions=["2025-11-25"]) as client:
            if hides:
                await client.call_tool("hide")
            result = await client.call_tool("search_tools", {"query": "delete"})
            found.append([tool["name"] for tool in result.structured_content["tools"]])
    assert found == [["delete"], [], ["delete"]]


@pytest.mark.parametrize("place", ["mounted", "tool", "twice"])
async def test_one_cache_around_a_call_several_times_does_not_wait_for_itself(place: str) -> None:
    caching, ran = Caching(), []
    inner = Server("inner", middleware=[caching] if place == "mounted" else [])

    @inner.tool(annotations=READ_ONLY, middleware=[caching] if place == "tool" else [])
    def look() -> str:
        ran.append(1)
        return str(len(ran))

    server = Server("outer", middleware=[caching] * (2 if place == "twice" else 1))
    server.mount(inner)
    async with site(server) as here:
        calls = [asyncio.create_task(Modern(here.raw).call("look")) for _ in range(3)]
        await until(lambda: all(each.done() for each in calls))
        assert {text(await each.result().result()) for each in calls} == {"1"}
    assert len(ran) == 1


@pytest.mark.parametrize("names", [("one", "two"), ("same", "same")])
async def test_one_cache_on_two_servers_keeps_them_apart(names: tuple[str, str]) -> None:
    caching = Caching()
    servers = [Server(name, middleware=[caching]) for name in names]
    for number, server in enumerate(servers):
        server.tool("look", annotations=READ_ONLY)(lambda number=number: str(number))
    for _ in range(2):
        for number, server in enumerate(servers):
            async with reached(server, "memory 2026-07-28") as ask:
                assert text(await ask(*called("look"))) == str(number)


async def test_all_that_is_known_of_a_principal_is_a_part_of_the_key() -> None:
    class Known(Principal, frozen=True):
        tenant: str = ""

    server = Counting(Caching(), auth=APIKeys({name: Known("ann", tenant=name) for name in ("a", "b")}))
    async with site(server) as here:
        for key in ("a", "b", "a"):
            await (await Modern(here.raw, authorization=f"Bearer {key}").call("look")).result()
    assert server.ran == 2


async def test_equal_requests_at_once_share_nothing_that_a_middleware_has_read_of_a_client() -> None:
    go = asyncio.Event()

    async def tenant(request: Request, call_next: Any) -> Any:
        await go.wait()
        return f"{await call_next(request)} {request.headers.get('x-tenant')}"

    server = Server("test", middleware=[Caching(), tenant])
    server.tool("look", annotations=READ_ONLY)(lambda: "for")
    async with site(server) as here:

        async def look(name: str) -> str:
            return text(await (await Modern(here.raw, **{"x-tenant": name}).call("look")).result())

        asked = [asyncio.create_task(look(name)) for name in "abc"]
        await turns(100)
        go.set()
        assert await asyncio.gather(*asked) == ["for a", "for b", "for c"]


async def test_integers_and_floats_do_not_share_a_result() -> None:
    server = Server("test", middleware=[Caching()])

    @server.tool(annotations=READ_ONLY)
    def show(value: Any) -> str:
        return repr(value)

    values = ["1", "1.0", "0", "-0.0", "0.0"]
    async with site(server) as here:
        for value in values:
            message = encode(Modern(here.raw).calling("show", {"value": "number"})).replace(b'"number"', value.encode())
            answer = await here.raw.begin("POST", "/mcp", Modern(here.raw).head(json.loads(message)), message)
            assert text(await (await answer.start()).result()) == value
