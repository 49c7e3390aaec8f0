"""Where middleware stands: what is around what, what it is given, and what is made of what it gives."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

import pytest

from accord import (
    CallNext,
    CallToolResult,
    Completion,
    Context,
    DeclarationError,
    Depends,
    PromptMessage,
    Request,
    ResourceNotFound,
    Server,
    TextContent,
    Tool,
    ToolAnnotations,
)
from accord.messages.prompts import GetPromptResult
from accord.messages.resources import ReadResourceResult

from tests.server.input.caller import caller
from tests.server.middleware.transports import SOME, WAYS, called, names, reached, text
from tests.server.raw import raw_peer


def noting(notes: list[str], name: str) -> Any:
    """A middleware that notes when it is entered and left."""

    async def note(request: Request, call_next: CallNext) -> Any:
        notes.append(f"> {name} {request.name}".rstrip())
        try:
            return await call_next(request)
        finally:
            notes.append(f"< {name}")

    return note


@pytest.mark.parametrize("way", WAYS)
async def test_the_first_is_outermost_and_a_tools_own_runs_inside_the_servers(way: str) -> None:
    notes: list[str] = []
    server = Server("test", middleware=[noting(notes, "a"), noting(notes, "b")])

    @server.tool(middleware=[noting(notes, "c"), noting(notes, "d")])
    async def it() -> str:
        notes.append("it")
        return "done"

    async with reached(server, way) as ask:
        assert text(await ask(*called("it"))) == "done"
    assert notes == ["> a it", "> b it", "> c it", "> d it", "it", "< d", "< c", "< b", "< a"]


@pytest.mark.parametrize("way", WAYS)
async def test_that_of_a_mounted_server_runs_inside_and_knows_the_names_inside(way: str) -> None:
    notes: list[str] = []
    outer, inner = Server("outer", middleware=[noting(notes, "outer")]), Server("inner")
    inner.add_middleware(noting(notes, "inner"))
    inner.tool(name="it", middleware=[noting(notes, "own")])(lambda: "done")
    inner.resource("data://x/{n}")(lambda n: n)
    outer.mount(inner, "acme")

    async with reached(outer, way) as ask:
        assert text(await ask(*called("acme_it"))) == "done"
        assert notes == ["> outer acme_it", "> inner it", "> own it", "< own", "< inner", "< outer"]
        notes.clear()
        assert text(await ask("resources/read", {"uri": "data://acme/x/7"})) == "7"
        assert notes == ["> outer data://acme/x/7", "> inner data://x/7", "< inner", "< outer"]


@pytest.mark.parametrize("way", SOME)
async def test_a_result_that_is_packed_inside_a_mounted_server_has_the_uri_outside(way: str) -> None:
    outer, inner = Server("outer"), Server("inner")

    @inner.middleware
    async def packed(request: Request, call_next: CallNext) -> Any:
        return request.pack(await call_next(request))

    inner.resource("data://x")(lambda: "here")
    outer.mount(inner, "acme")
    async with reached(outer, way) as ask:
        (contents,) = (await ask("resources/read", {"uri": "data://acme/x"}))["result"]["contents"]
    assert contents == {"uri": "data://acme/x", "mimeType": "text/plain", "text": "here"}


async def test_a_request_has_its_method_and_name() -> None:
    seen: list[Request] = []
    server = Server("test")

    @server.middleware
    async def look(request: Request, call_next: CallNext) -> Any:
        seen.append(request)
        return await call_next(request)

    @server.tool(tags={"x"}, annotations=ToolAnnotations(idempotent_hint=True), version="2")
    async def it(n: int) -> str:
        return str(n)

    async with reached(server, "memory 2026-07-28") as ask:
        method, params = called("it", n=1)
        await ask(method, {**params, "_meta": {"mine": 1}})
        await ask("tools/list")
    call, listing = seen
    assert (call.method, call.name, call.arguments, call.revision) == ("tools/call", "it", {"n": 1}, "2026-07-28")
    assert call.tool is not None
    assert call.tool.name == "it"
    assert call.client is not None
    assert call.client.name == "raw"
    assert (set(call.tags), call.version, call.principal, call.meta["mine"]) == ({"x"}, "2", None, 1)
    assert call.may_run_again
    assert call.local
    assert not call.lists
    assert not call.may_ask
    assert repr(call) == "<Request tools/call it>"
    assert (listing.method, listing.name, listing.tool, listing.arguments) == ("tools/list", "", None, {})
    assert listing.lists
    assert listing.tags_of("it") == {"x"}


@pytest.mark.parametrize("way", WAYS)
async def test_replaced_arguments_reach_the_handler_and_are_checked(way: str) -> None:
    server = Server("test")

    @server.middleware
    async def double(request: Request, call_next: CallNext) -> Any:
        n = request.arguments["n"]
        request.arguments["n"] = "changed in place, which goes no further"
        return await call_next(request.replace(arguments={"n": n * 2 if n < 100 else "many"}))

    @server.tool
    async def it(n: int) -> str:
        return str(n)

    async with reached(server, way) as ask:
        assert text(await ask(*called("it", n=21))) == "42"
        refused = await ask(*called("it", n=100))
        assert refused["result"]["isError"]
        assert "expected integer" in text(refused)


@pytest.mark.parametrize("way", SOME)
async def test_replaced_arguments_of_a_prompt_are_checked_as_well(way: str) -> None:
    server = Server("test")
    server.prompt(name="tell")(lambda n: f"tell {n}")

    @server.prompt
    def count(n: int) -> str:
        return f"count {n}"

    @server.middleware
    async def louder(request: Request, call_next: CallNext) -> Any:
        return await call_next(request.replace(arguments={"n": request.arguments["n"] + "!"}))

    async with reached(server, way) as ask:
        said = await ask("prompts/get", {"name": "tell", "arguments": {"n": "it"}})
        refused = await ask("prompts/get", {"name": "count", "arguments": {"n": "1"}})
    assert text(said) == "tell it!"
    assert refused["error"]["code"] == -32602


@pytest.mark.parametrize("way", WAYS)
async def test_what_it_returns_is_taken_for_what_the_handler_returned(way: str) -> None:
    server = Server("test")
    instead: list[Any] = []

    @server.middleware
    async def another(request: Request, call_next: CallNext) -> Any:
        value = await call_next(request)
        assert value == {"days": 1}
        return instead[0]

    @server.tool
    async def it() -> dict[str, int]:
        return {"days": 1}

    async with reached(server, way) as ask:
        instead[:] = [{"days": 2}]
        assert '"days":2' in text(await ask(*called("it"))).replace(" ", "")
        instead[:] = [CallToolResult(content=[TextContent(text="mine")], is_error=True)]
        answer = await ask(*called("it"))
        assert (text(answer), answer["result"]["isError"]) == ("mine", True)
        instead[:] = [object()]
        answer = await ask(*called("it"))
        assert answer["result"]["isError"]
        assert "cannot be" in text(answer)


async def list_of_numbers() -> list[int]:
    return [1, 2]


@pytest.mark.parametrize("way", WAYS)
async def test_a_packed_result_can_be_looked_at_and_given_on(way: str) -> None:
    seen: list[Any] = []

    async def look(request: Request, call_next: CallNext) -> Any:
        seen.append(request.pack(await call_next(request)))
        return seen[-1]

    said = []
    for middleware in ([look], []):
        server = Server("test", middleware=middleware)
        server.tool(name="it")(list_of_numbers)
        server.prompt(name="tell")(lambda: "tell")
        server.resource("data://x")(lambda: b"x")
        asked = [called("it"), ("prompts/get", {"name": "tell"}), ("resources/read", {"uri": "data://x"})]
        async with reached(server, way) as ask:
            said.append([(await ask(method, params))["result"] for method, params in asked])
    assert said[0] == said[1]
    kinds = (CallToolResult, GetPromptResult, ReadResourceResult)
    assert all(isinstance(each, kind) for each, kind in zip(seen, kinds, strict=True))


@pytest.mark.parametrize("way", WAYS)
async def test_without_call_next_the_handler_does_not_run(way: str) -> None:
    server, ran = Server("test"), []

    @server.middleware
    async def short(request: Request, call_next: CallNext) -> Any:
        return "short" if request.method == "tools/call" else await call_next(request)

    @server.tool
    async def it() -> str:
        ran.append(1)
        return "done"

    async with reached(server, way) as ask:
        assert text(await ask(*called("it"))) == "short"
    assert not ran


@pytest.mark.parametrize("way", SOME)
async def test_call_next_twice_runs_the_handler_twice_with_its_dependencies(way: str) -> None:
    server = Server("test")
    notes: list[str] = []

    def opened() -> Any:
        notes.append("open")
        yield len(notes)
        notes.append("close")

    @server.middleware
    async def twice(request: Request, call_next: CallNext) -> Any:
        return f"{await call_next(request)} and {await call_next(request)}"

    @server.tool
    async def it(n: Annotated[int, Depends(opened)]) -> str:
        notes.append("it")
        return str(n)

    async with reached(server, way) as ask:
        method, params = called("it")
        assert text(await ask(method, params)) == "1 and 4"
    assert notes == ["open", "it", "close"] * 2


@pytest.mark.parametrize("way", SOME)
async def test_state_is_shared_by_middleware_dependencies_and_handler_of_one_call(way: str) -> None:
    server = Server("test")

    @server.middleware
    async def before(request: Request, call_next: CallNext) -> Any:
        assert not request.state
        request.state["middleware"] = 1
        value = await call_next(request.replace(arguments=dict(request.arguments)))
        return f"{value} {sorted(request.state)}"

    def depends(ctx: Context) -> int:
        ctx.state["dependency"] = 2
        return len(ctx.state)

    @server.tool
    async def it(ctx: Context, n: Annotated[int, Depends(depends)]) -> str:
        ctx.state["handler"] = 3
        return str(n)

    async with reached(server, way) as ask:
        for _ in range(2):
            assert text(await ask(*called("it"))) == "2 ['dependency', 'handler', 'middleware']"


@pytest.mark.parametrize("way", WAYS)
async def test_lists_are_filtered_and_renamed_before_they_are_cut_into_pages(way: str) -> None:
    server = Server("test")
    for n in range(1_500):
        server.tool(name=f"t{n}")(lambda: "")

    @server.middleware
    async def some(request: Request, call_next: CallNext) -> Any:
        if request.method != "tools/list":
            return await call_next(request)
        found: list[Tool] = await call_next(request)
        assert len(found) == 1_500
        return [tool for tool in found if not tool.name.endswith("7")]

    async with reached(server, way) as ask:
        answer = await ask("tools/list")
        rest = await ask("tools/list", {"cursor": answer["result"]["nextCursor"]})
    found = names(answer) + names(rest)
    assert len(names(answer)) == 1_000
    assert found == [f"t{n}" for n in range(1_500) if n % 10 != 7]


@pytest.mark.parametrize("way", WAYS)
async def test_prompts_resources_and_their_lists_go_through_it(way: str) -> None:
    server, seen = Server("test"), []

    @server.middleware
    async def look(request: Request, call_next: CallNext) -> Any:
        value = await call_next(request)
        seen.append((request.method, request.name, type(value).__name__))
        return [PromptMessage(role="user", content=TextContent(text="mine"))] if request.name == "tell" else value

    server.prompt(name="tell")(lambda: "tell")
    server.resource("data://x")(lambda: "x")
    server.resource("data://y/{n}")(lambda n: n)
    lists = ["prompts/list", "resources/list", "resources/templates/list"]
    async with reached(server, way) as ask:
        assert text(await ask("prompts/get", {"name": "tell"})) == "mine"
        assert text(await ask("resources/read", {"uri": "data://y/7"})) == "7"
        for method in lists:
            assert "result" in await ask(method)
    assert seen[:2] == [("prompts/get", "tell", "str"), ("resources/read", "data://y/7", "str")]
    assert seen[2:] == [(method, "", "list") for method in lists]


@pytest.mark.parametrize("way", WAYS)
async def test_completions_go_through_it_with_what_was_typed_as_arguments(way: str) -> None:
    server = Server("test")

    @server.middleware
    async def more(request: Request, call_next: CallNext) -> Any:
        if request.method != "completion/complete":
            return await call_next(request)
        assert (request.name, request.arguments) == ("tell", {"city": "B"})
        found = await call_next(request.replace(arguments={"city": "Os"}))
        assert isinstance(found, Completion)
        return [*found.values, "Ostrava"]

    @server.prompt
    def tell(city: str) -> str:
        return city

    @tell.complete("city")
    def cities(typed: str) -> list[str]:
        return [city for city in ("Bergen", "Oslo") if city.startswith(typed)]

    ref = {"ref": {"type": "ref/prompt", "name": "tell"}, "argument": {"name": "city", "value": "B"}}
    async with reached(server, way) as ask:
        assert (await ask("completion/complete", ref))["result"]["completion"]["values"] == ["Oslo", "Ostrava"]


def hiding() -> Server:
    server = Server("test")
    server.resource("data://open")(lambda: "")
    server.resource("data://secret")(lambda: "")

    @server.middleware
    async def hide(request: Request, call_next: CallNext) -> Any:
        if "secret" in request.name:
            raise ResourceNotFound(uri=request.name)
        return await call_next(request)

    return server


async def test_updates_reach_only_clients_that_may_read_the_resource() -> None:
    async with reached(hiding(), "memory 2025-11-25") as ask:
        assert "result" in await ask("resources/subscribe", {"uri": "data://open"})
        assert (await ask("resources/subscribe", {"uri": "data://secret"}))["error"]["code"] == -32002


async def test_who_may_not_read_a_resource_does_not_listen_to_it_in_2026() -> None:
    async with raw_peer(hiding(), "2026-07-28") as peer:
        peer.send(
            "subscriptions/listen", {"notifications": {"resourceSubscriptions": ["data://open", "data://secret"]}}
        )
        told = await peer.hear()
    assert told["params"]["notifications"]["resourceSubscriptions"] == ["data://open"]


# --- what is a middleware ------------------------------------------------------------------------------------------


class Callable_:
    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        return f"object {await call_next(request)}"

    async def method(self, request: Request, call_next: CallNext) -> Any:
        return f"method {await call_next(request)}"

    @staticmethod
    async def static(request: Request, call_next: CallNext) -> Any:
        return f"static {await call_next(request)}"


async def named(name: str, request: Request, call_next: CallNext) -> Any:
    return f"{name} {await call_next(request)}"


async def with_default(request: Request, call_next: CallNext, name: str = "default") -> Any:
    return f"{name} {await call_next(request)}"


async def anything(*args: Any, **kwargs: Any) -> Any:
    request, call_next = args
    return f"anything {await call_next(request)}"


async def with_rest(request: Request, call_next: CallNext, **kwargs: Any) -> Any:
    return f"rest {await call_next(request)}"


@pytest.mark.parametrize(
    ("middleware", "said"),
    [
        (Callable_(), "object"),
        (Callable_().method, "method"),
        (Callable_.static, "static"),
        (partial(named, "partial"), "partial"),
        (with_default, "default"),
        (anything, "anything"),
        (with_rest, "rest"),
    ],
)
@pytest.mark.parametrize("way", SOME)
async def test_anything_that_is_called_with_a_request_and_the_next_is_one(middleware: Any, said: str, way: str) -> None:
    server = Server("test", middleware=[middleware])
    server.tool(name="it")(lambda: "done")
    async with reached(server, way) as ask:
        assert text(await ask(*called("it"))) == f"{said} done"


def not_async(request: Request, call_next: CallNext) -> Any:
    return call_next(request)


async def too_few(request: Request) -> Any:
    return None


async def too_many(request: Request, call_next: CallNext, ctx: Context, more: Any) -> Any:
    return None


async def by_name(request: Request, call_next: CallNext, *, more: Any) -> Any:
    return None


async def yields(request: Request, call_next: CallNext) -> Any:
    yield None


@pytest.mark.parametrize(
    "wrong", [not_async, too_few, too_many, by_name, yields, Callable_, Callable_.method, None, "text", 7, []]
)
def test_what_is_none_is_refused_when_it_is_added_with_how_to_write_it(wrong: Any) -> None:
    server = Server("test")
    for add in (
        lambda: server.add_middleware(wrong),
        lambda: Server("test", middleware=[wrong]),
        lambda: server.tool(name="it", middleware=[wrong])(lambda: ""),
        lambda: server.prompt(name="it", middleware=[wrong])(lambda: ""),
        lambda: server.resource("data://x", middleware=[wrong])(lambda: ""),
    ):
        with pytest.raises(DeclarationError, match=r"middleware.*async def middleware\(request, call_next\)"):
            add()
    assert not server.registry.middleware


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_it_may_be_added_while_the_server_serves_and_what_runs_ends_as_it_began(revision: str) -> None:
    server = Server("test")
    started, go = asyncio.Event(), asyncio.Event()

    @server.tool
    async def slow() -> str:
        started.set()
        await go.wait()
        return "done"

    async with caller(server, revision) as client:
        running = client.send(*called("slow"))
        await started.wait()
        server.add_middleware(Callable_())
        go.set()
        assert text(await client.answer(running)) == "done"
        assert text(await client.ask(*called("slow"))) == "object done"
