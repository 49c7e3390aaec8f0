"""A server inside another, as it is at any time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest

from accord import (
    Client,
    Context,
    DeclarationError,
    Depends,
    Elicit,
    InvalidParams,
    ListChanged,
    ProtocolError,
    ResourceNotFound,
    ResourceUpdated,
    Server,
)
from accord.messages.revision import REVISIONS

from tests.server.compose.reaching import over_http, tools_of

ASKING = [revision for revision in REVISIONS if revision >= "2025-06-18"]


def child(name: str = "child", **options: Any) -> Server:
    made = Server(name, **options)

    @made.tool
    async def greet(who: str, ctx: Context) -> str:
        return f"{ctx.server.name} greets {who}"

    @made.prompt
    def ask(topic: str) -> str:
        return f"What of {topic}?"

    @made.resource("data://first")
    def first() -> str:
        return "the first"

    @made.resource("data://items/{id}")
    def item(id: str) -> str:
        return f"item {id}"

    @item.complete("id")
    def ids(typed: str) -> list[str]:
        return [f"{typed}{n}" for n in range(3)]

    @ask.complete("topic")
    def topics(typed: str) -> list[str]:
        return [typed + "!"]

    return made


def parent(*children: tuple[Server, str], **options: Any) -> Server:
    made = Server("parent", **options)
    for server, prefix in children:
        made.mount(server, prefix)
    return made


@pytest.mark.parametrize("revision", REVISIONS)
async def test_everything_is_there_behind_the_prefix(revision: str) -> None:
    async with Client(parent((child(), "acme")), revisions=[revision]) as client:
        assert await tools_of(client) == ["acme_greet"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["acme_ask"]
        assert [resource.uri for resource in await client.list_resources()] == ["data://acme/first"]
        assert [one.uri_template for one in await client.list_resource_templates()] == ["data://acme/items/{id}"]
        assert (await client.call_tool("acme_greet", {"who": "Ann"})).text == "child greets Ann"
        prompt = await client.get_prompt("acme_ask", {"topic": "rain"})
        assert prompt.messages[0].content.text == "What of rain?"  # type: ignore[union-attr]
        for uri, text in (("data://acme/first", "the first"), ("data://acme/items/7", "item 7")):
            contents = (await client.read_resource(uri)).contents
            assert [(one.uri, one.text) for one in contents] == [(uri, text)]
        for wrong in ("greet", "acme_nothing"):
            with pytest.raises(InvalidParams):
                await client.call_tool(wrong, {"who": "Ann"})
        with pytest.raises(ResourceNotFound):
            await client.read_resource("data://first")


@pytest.mark.parametrize("revision", REVISIONS[2:])
async def test_arguments_are_completed_by_the_mounted_server(revision: str) -> None:
    async with Client(parent((child(), "acme")), revisions=[revision]) as client:
        found = await client.complete(template="data://acme/items/{id}", argument="id", value="a")
        assert list(found.values) == ["a0", "a1", "a2"]
        assert list((await client.complete(prompt="acme_ask", argument="topic", value="x")).values) == ["x!"]


@pytest.mark.parametrize("revision", REVISIONS)
async def test_changes_inside_are_notified_outside(revision: str) -> None:
    inner = child()
    middle = parent((inner, "inner"))
    outer = parent((middle, "outer"))
    async with Client(outer, revisions=[revision]) as client:
        assert await tools_of(client) == ["outer_inner_greet"]
        async with client.subscribe(tools=True, resources=True) as told, asyncio.timeout(100):
            inner.tool("later")(lambda: "late")
            assert await anext(told) == ListChanged("tools")
            assert await tools_of(client) == ["outer_inner_greet", "outer_inner_later"]
            assert (await client.call_tool("outer_inner_later")).text == "late"
            inner.remove_tool("greet")
            assert await anext(told) == ListChanged("tools")
            assert await tools_of(client) == ["outer_inner_later"]
            inner.remove_resource("data://first")
            assert await anext(told) == ListChanged("resources")


@pytest.mark.parametrize("revision", REVISIONS)
async def test_updates_of_resources_come_through_the_prefixes(revision: str) -> None:
    inner = child()
    outer = parent((parent((inner, "in")), "out"))
    uris = ("data://out/in/first", "data://out/in/items/7")
    async with Client(outer, revisions=[revision]) as client, client.subscribe(*uris) as told, asyncio.timeout(100):
        inner.resource_updated("data://items/8")  # which nobody subscribed to
        inner.resource_updated("data://items/7")
        assert await anext(told) == ResourceUpdated(uris[1])
        inner.resource_updated("data://first")
        assert await anext(told) == ResourceUpdated(uris[0])


async def test_without_a_prefix_the_names_stay_and_the_first_that_has_one_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outer = parent((child("one"), ""), (child("two"), ""))
    outer.tool("ask")(lambda: "of the parent")
    async with Client(outer) as client:
        assert await tools_of(client) == ["ask", "greet"]
        assert (await client.call_tool("greet", {"who": "Ann"})).text == "one greets Ann"
        assert (await client.read_resource("data://first")).contents[0].text == "the first"
        assert "hidden by another" in caplog.text
        outer.tool("greet")(lambda who: "the parent greets")
        assert (await client.call_tool("greet", {"who": "Ann"})).text == "the parent greets"


async def test_an_unmounted_server_is_gone_and_notifies_no_more() -> None:
    inner = child()
    outer = parent((inner, "a"), (inner, "b"), (child("other"), "c"))
    async with Client(outer) as client, client.subscribe("data://c/first", tools=True) as told, asyncio.timeout(100):
        assert await tools_of(client) == ["a_greet", "b_greet", "c_greet"]
        outer.unmount(inner)
        assert await anext(told) == ListChanged("tools")
        assert await tools_of(client) == ["c_greet"]
        with pytest.raises(InvalidParams):
            await client.call_tool("a_greet", {"who": "Ann"})
        inner.tool("later")(lambda: "")  # nobody is told
        outer.resource_updated("data://c/first")
        assert await anext(told) == ResourceUpdated("data://c/first")
    with pytest.raises(DeclarationError, match="'child' is not mounted"):
        outer.unmount(inner)
    outer.mount(inner, "a")
    assert "a_later" in outer.registry.tools


async def test_a_call_that_runs_goes_on_when_its_server_is_unmounted() -> None:
    inner, go = Server("inner"), asyncio.Event()
    running = asyncio.Event()

    @inner.tool
    async def wait() -> str:
        running.set()
        await go.wait()
        return "done"

    outer = parent((inner, "a"))
    async with Client(outer) as client, asyncio.timeout(100):
        call = asyncio.create_task(client.call_tool("a_wait"))
        await running.wait()
        outer.unmount(inner)
        go.set()
        assert (await call).text == "done"


@pytest.mark.parametrize("other", ["acme", "https://example.com/mcp", None])
def test_what_is_no_server_cannot_be_mounted(other: Any) -> None:
    with pytest.raises(DeclarationError, match="takes a Server object"):
        Server("outer").mount(other)


def test_servers_cannot_stand_in_a_circle() -> None:
    one, two, three = Server("one"), Server("two"), Server("three")
    one.mount(two)
    two.mount(three)
    for outer, inner in ((one, one), (two, one), (three, one), (three, two)):
        with pytest.raises(DeclarationError, match="cannot be mounted in itself"):
            outer.mount(inner)
    one.mount(three, "again")


@pytest.mark.parametrize("prefix", ["a b", "a/b", "ü", "a:", "a?", "{a}", "\n"])
def test_a_prefix_that_names_and_uris_cannot_have_is_refused(prefix: str) -> None:
    with pytest.raises(DeclarationError, match="a prefix may contain"):
        Server("outer").mount(Server("inner"), prefix)


# --- what a mounted server has of its own ----------------------------------------------------------------------


async def get_db() -> AsyncIterator[str]:
    yield "db"


async def test_its_lifespan_runs_once_inside_that_of_its_parent_and_its_context_is_its_own() -> None:
    log: list[str] = []

    async def lifespan(server: Server) -> AsyncIterator[str]:
        log.append(f"{server.name} begins")
        yield f"of {server.name}"
        log.append(f"{server.name} ends")

    inner = Server("inner", lifespan=lifespan)

    @inner.tool
    async def tell(ctx: Context, db: Annotated[str, Depends(get_db)]) -> str:
        return f"{ctx.server.name}: {ctx.lifespan}, {db}"

    outer = parent((inner, "a"), (inner, "b"), lifespan=lifespan)
    async with Client(outer) as client, Client(outer) as other:
        assert log == ["parent begins"]
        for name in ("a_tell", "b_tell"):
            assert (await client.call_tool(name)).text == "inner: of inner, db"
            assert (await other.call_tool(name)).text == "inner: of inner, db"
        with inner.override(get_db, lambda: "fake"):
            assert (await client.call_tool("a_tell")).text == "inner: of inner, fake"
        with outer.override(get_db, lambda: "fake"):
            assert (await client.call_tool("a_tell")).text == "inner: of inner, fake"
    assert log == ["parent begins", "inner begins", "inner ends", "parent ends"]


async def test_its_completers_have_its_own_context() -> None:
    async def lifespan(server: Server) -> AsyncIterator[str]:
        yield f"of {server.name}"

    def get_name(ctx: Context) -> str:
        return ctx.server.name

    inner = Server("inner", lifespan=lifespan)
    inner.resource("data://x")(lambda: "text")
    ask = inner.prompt("ask")(lambda topic: topic)

    @ask.complete("topic")
    async def topics(typed: str, ctx: Context, name: Annotated[str, Depends(get_name)]) -> list[str]:
        (read,) = await ctx.read_resource("data://x")
        return [ctx.server.name, str(ctx.lifespan), name, str(read.text)]

    outer = parent((parent((inner, "b")), "a"), lifespan=lifespan)
    async with Client(outer) as client:
        found = await client.complete(prompt="a_b_ask", argument="topic")
    assert list(found.values) == ["inner", "of inner", "inner", "text"]


async def test_its_completers_have_dependencies_of_its_lifespan() -> None:
    inner = Server("inner")
    ask = inner.prompt("ask")(lambda topic: topic)

    @ask.complete("topic")
    def topics(typed: str, db: Annotated[str, Depends(get_db, scope="lifespan")]) -> list[str]:
        return [db]

    async with Client(parent((inner, "a"))) as client:
        for _ in range(2):
            assert list((await client.complete(prompt="a_ask", argument="topic")).values) == ["db"]


async def test_without_a_lifespan_there_is_none() -> None:
    inner = Server("inner")

    @inner.tool
    def tell(ctx: Context) -> str:
        return str(ctx.lifespan)

    async with Client(parent((inner, ""))) as client:
        assert (await client.call_tool("tell")).text == "None"


async def test_its_middleware_runs_inside_that_of_its_parent_and_knows_its_names() -> None:
    log: list[str] = []

    def noting(who: str) -> Any:
        async def note(request: Any, call_next: Any) -> Any:
            if not request.method.endswith("/list"):
                about = request.tool.name if request.tool else ""
                log.append(f"{who} {request.name} {about}".strip())
            return await call_next(request)

        return note

    inner = child("inner", middleware=[noting("inner")])
    middle = parent((inner, "in"), middleware=[noting("middle")])
    outer = parent((middle, "out"), middleware=[noting("outer")])

    @inner.tool(middleware=[noting("tool")])
    def low() -> str:
        return "low"

    async with Client(outer) as client:
        assert (await client.call_tool("out_in_low")).text == "low"
        assert log == ["outer out_in_low out_in_low", "middle in_low in_low", "inner low low", "tool low low"]
        log.clear()
        assert (await client.read_resource("data://out/in/items/7")).contents[0].uri == "data://out/in/items/7"
        assert log == ["outer data://out/in/items/7", "middle data://in/items/7", "inner data://items/7"]
        log.clear()
        await client.get_prompt("out_in_ask", {"topic": "x"})
        assert log == ["outer out_in_ask", "middle in_ask", "inner ask"]
        log.clear()
        assert (await client.call_tool("out_in_greet", {"who": "Ann"})).text == "inner greets Ann"
        await client.complete(template="data://out/in/items/{id}", argument="id", value="a")
        assert log[-1] == "inner data://items/{id}"
    async with Client(inner) as client:
        log.clear()
        assert (await client.call_tool("low")).text == "low"
        assert log == ["inner low low", "tool low low"]


async def test_a_server_that_cannot_start_fails_its_own_calls_and_is_tried_again() -> None:
    down = [True]

    async def lifespan(server: Server) -> AsyncIterator[str]:
        if down[0]:
            raise OSError("no database")
        yield "up"

    inner = child("inner", lifespan=lifespan)
    outer = parent((inner, "a"))
    outer.tool("fine")(lambda: "fine")
    async with Client(outer) as client:
        assert await tools_of(client) == ["fine", "a_greet"]
        for _ in range(2):
            result = await client.call_tool("a_greet", {"who": "Ann"})
            assert result.is_error
            assert "'inner' is not available" in result.text
            assert "no database" in result.text
        with pytest.raises(ProtocolError, match="no database"):
            await client.read_resource("data://a/first")
        with pytest.raises(ProtocolError, match="no database"):
            await client.get_prompt("a_ask", {"topic": "x"})
        assert (await client.call_tool("fine")).text == "fine"
        down[0] = False
        assert (await client.call_tool("a_greet", {"who": "Ann"})).text == "inner greets Ann"


@pytest.mark.parametrize("revision", ASKING)
async def test_its_questions_are_sent(revision: str) -> None:
    inner = Server("inner")

    @inner.tool
    async def wipe(path: str, sure: Annotated[bool, Elicit("Delete {path}?")], ctx: Context) -> str:
        again = await ctx.elicit("Really?", bool)
        return f"{path} {sure} {again.data} on {ctx.server.name}"

    outer = parent((inner, "a"))
    async with Client(outer, revisions=[revision], elicitation=lambda params: {"value": True}) as client:
        assert (await client.call_tool("a_wipe", {"path": "/x"})).text == "/x True True on inner"


async def test_it_reads_its_own_resources_by_its_own_names() -> None:
    inner = child()

    @inner.tool
    async def read(ctx: Context) -> str:
        return str((await ctx.read_resource("data://items/3"))[0].text)

    async with Client(parent((inner, "a"))) as client:
        assert (await client.call_tool("a_read")).text == "item 3"


async def test_it_is_served_alone_at_the_same_time() -> None:
    inner = child(lifespan=counted)
    outer = parent((inner, "a"), (inner, "b"))
    async with Client(outer) as one, Client(inner) as other, over_http(outer) as url, Client(url) as third:
        for client, name in ((one, "a_greet"), (other, "greet"), (third, "b_greet")):
            assert (await client.call_tool(name, {"who": "Ann"})).text == "child greets Ann"
        inner.tool("later")(lambda: "late")
        assert await tools_of(other) == ["greet", "later"]
        assert await tools_of(one) == await tools_of(third) == ["a_greet", "a_later", "b_greet", "b_later"]
        assert (await third.read_resource("data://b/items/7")).contents[0].text == "item 7"
    assert STARTED == ["begin", "end"]


STARTED: list[str] = []


async def counted(server: Server) -> AsyncIterator[None]:
    STARTED.append("begin")
    yield
    STARTED.append("end")


async def test_many_threads_change_a_mounted_server() -> None:
    inner = Server("inner")
    inner.tool("first")(lambda: "")
    outer = parent((parent((inner, "in")), "out"))

    def work(number: int) -> None:
        inner.tool(f"tool_{number}")(lambda: f"{number}")
        if number % 2:
            inner.remove_tool(f"tool_{number}")

    async with Client(outer) as client:
        await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(50)))
        assert set(await tools_of(client)) == {"out_in_first", *(f"out_in_tool_{number}" for number in range(0, 50, 2))}
        assert (await client.call_tool("out_in_tool_8")).text == "8"
