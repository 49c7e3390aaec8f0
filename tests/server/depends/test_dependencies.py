"""Parameters that functions of the program fill: in tools, prompts, resources and completions, in every revision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from types import FunctionType
from typing import Annotated, Any

import pytest
from hypothesis import given, settings, strategies as st

from accord import Client, Context, DeclarationError, Depends, Elicit, Handles, Server, ToolError

from tests.waiting import until

REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28"]

happened: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_happened() -> None:
    happened.clear()


class Db:
    def rows(self) -> str:
        return "rows"


def plain() -> Db:
    return Db()


async def awaited() -> Db:
    await asyncio.sleep(0)
    return Db()


def generator() -> Iterator[Db]:
    happened.append("open")
    try:
        yield Db()
    except BaseException as exc:
        happened.append(type(exc).__name__)
        raise
    finally:
        happened.append("close")


async def async_generator() -> AsyncIterator[Db]:
    happened.append("open")
    yield Db()
    happened.append("close")


@contextmanager
def managed() -> Iterator[Db]:
    happened.append("open")
    yield Db()
    happened.append("close")


@asynccontextmanager
async def async_managed() -> AsyncIterator[Db]:
    happened.append("open")
    yield Db()
    happened.append("close")


class Session(Db):
    async def __aenter__(self) -> Session:
        happened.append("open")
        return self

    async def __aexit__(self, *_: object) -> None:
        happened.append("close")


class Factory:
    async def __call__(self) -> Db:
        return Db()


CLOSED = [generator, async_generator, managed, async_managed, Session]
MAKES: list[Callable[..., Any]] = [plain, awaited, Db, Factory(), partial(plain), *CLOSED]


def server_with(make: Callable[..., Any], **options: Any) -> Server:
    server = Server("shop")

    @server.tool
    async def order(item: str, db: Annotated[Any, Depends(make, **options)], count: int = 1) -> str:
        happened.append("run")
        return f"{count} {item} {db.rows()}"

    return server


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("make", MAKES, ids=lambda make: getattr(make, "__name__", type(make).__name__))
async def test_a_parameter_is_filled_whatever_makes_it(make: Callable[..., Any], revision: str) -> None:
    async with Client(server_with(make), revisions=[revision]) as client:
        assert (await client.call_tool("order", {"item": "tea"})).text == "1 tea rows"
    assert happened == (["open", "run", "close"] if make in CLOSED else ["run"])


async def test_it_is_no_part_of_what_a_model_sees_or_may_give() -> None:
    async with Client(server_with(plain)) as client:
        (tool,) = await client.list_tools()
        assert [*tool.input_schema["properties"]] == ["item", "count"]
        refused = await client.call_tool("order", {"item": "tea", "db": "mine"})
        assert refused.is_error
        assert 'unknown argument "db"' in refused.text
    assert happened == []


async def test_it_may_stand_as_the_default_and_in_threads_methods_and_schemas_of_others() -> None:
    server = Server("shop")

    @server.tool
    def in_a_thread(n: int, *, db: Db = Depends(generator)) -> str:  # noqa: B008  # what FastAPI has taught people to write
        return f"{n} {db.rows()}"

    class Shop:
        def order(self, db: Annotated[Db, Depends(plain)], n: int = 3) -> str:
            return f"{n} {db.rows()}"

    server.tool(Shop().order)
    async with Client(server) as client:
        assert (await client.call_tool("in_a_thread", {"n": 2})).text == "2 rows"
        assert (await client.call_tool("order")).text == "3 rows"


async def test_resources_prompts_and_completions_have_them_too() -> None:
    server = Server("shop")

    @server.resource("shop://{item}")
    def item(item: str, db: Annotated[Db, Depends(plain)]) -> str:
        return f"{item} {db.rows()}"

    @server.prompt
    async def plan(city: str, db: Annotated[Db, Depends(awaited)]) -> str:
        return f"{city} {db.rows()}"

    @plan.complete("city")
    def cities(typed: str, db: Annotated[Db, Depends(generator)]) -> list[str]:
        return [f"{typed} {db.rows()}"]

    async with Client(server) as client:
        assert (await client.read_resource("shop://tea")).contents[0].text == "tea rows"
        prompt = await client.get_prompt("plan", {"city": "Oslo"})
        assert prompt.messages[0].content.text == "Oslo rows"  # type: ignore[union-attr]
        (listed,) = await client.list_prompts()
        assert [argument.name for argument in listed.arguments or ()] == ["city"]
        assert (await client.complete(prompt="plan", argument="city", value="O")).values == ["O rows"]


async def test_one_value_serves_all_who_need_it_in_a_call() -> None:
    made: list[Db] = []

    def get_db() -> Db:
        made.append(Db())
        return made[-1]

    def users(db: Annotated[Db, Depends(get_db)]) -> Db:
        return db

    server = Server("shop")

    @server.tool
    def same(
        a: Annotated[Db, Depends(get_db)],
        b: Annotated[Db, Depends(users)],
        c: Annotated[Db, Depends(get_db, cached=False)],
    ) -> list[bool]:
        return [a is b, a is c]

    async with Client(server) as client:
        assert (await client.call_tool("same")).data == [True, False]
        await client.call_tool("same")
    assert len(made) == 4


@pytest.mark.parametrize("hint", ["Context", "'Context'", "accord.Context | None", "'Context | None'"])
async def test_a_dependency_finds_a_context_imported_for_type_checkers_only(hint: str) -> None:
    def user(ctx):  # type: ignore[no-untyped-def]
        return f"user of {ctx.server.name}"

    user.__annotations__["ctx"] = hint
    elsewhere = FunctionType(user.__code__, {})
    elsewhere.__annotations__ = user.__annotations__
    server = Server("shop")
    server.tool(name="whoami")(lambda who=Depends(elsewhere): who)  # noqa: B008
    async with Client(server) as client:
        assert (await client.call_tool("whoami")).text == "user of shop"


async def test_a_dependency_may_take_the_context_and_share_state_with_the_handler() -> None:
    def user(ctx: Context) -> str:
        ctx.state["seen"] = ctx.request_id
        return f"user of {ctx.server.name}"

    server = Server("shop")

    @server.tool
    def whoami(who: Annotated[str, Depends(user)], ctx: Context) -> str:
        return f"{who}: {ctx.state['seen'] == ctx.request_id}"

    @server.tool
    def without(who: Annotated[str, Depends(user)]) -> str:
        return who

    for revision in REVISIONS:
        async with Client(server, revisions=[revision]) as client:
            assert (await client.call_tool("whoami")).text == "user of shop: True"
            assert (await client.call_tool("without")).text == "user of shop"


async def test_what_the_call_raises_is_seen_at_the_yield_and_reported_all_the_same() -> None:
    server = Server("shop")

    @server.tool
    def fail(db: Annotated[Db, Depends(generator)]) -> str:
        raise ToolError("out of tea")

    async with Client(server) as client:
        failed = await client.call_tool("fail")
    assert (failed.is_error, failed.text) == (True, "out of tea")
    assert happened == ["open", "ToolError", "close"]


async def test_a_dependency_that_swallows_the_error_is_reported() -> None:
    def swallows() -> Iterator[Db]:
        with suppress(ValueError):
            yield Db()

    server = Server("shop")

    @server.tool
    def fail(db: Annotated[Db, Depends(swallows)]) -> str:
        raise ValueError("lost")

    async with Client(server) as client:
        failed = await client.call_tool("fail")
    assert failed.is_error
    assert "swallowed an exception" in failed.text


async def broken() -> Db:
    raise RuntimeError("no database")


def breaks_at_its_end() -> Iterator[Db]:
    yield Db()
    raise RuntimeError("cannot commit")


@pytest.mark.parametrize(("make", "text"), [(broken, "no database"), (breaks_at_its_end, "cannot commit")])
@pytest.mark.parametrize("revision", REVISIONS)
async def test_one_that_fails_to_start_or_to_stop_fails_its_own_call_only(
    make: Callable[..., Any], text: str, revision: str
) -> None:
    server = server_with(make)

    @server.tool
    def well() -> str:
        return "well"

    async with Client(server, revisions=[revision]) as client:
        for _ in range(2):
            failed = await client.call_tool("order", {"item": "tea"})
            assert failed.is_error
            assert text in failed.text
            assert (await client.call_tool("well")).text == "well"


async def test_a_cancelled_call_closes_what_it_had() -> None:
    server = Server("shop")

    @server.tool
    async def wait(db: Annotated[Db, Depends(generator)]) -> None:
        happened.append("wait")
        await asyncio.Event().wait()

    async with Client(server) as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await until(lambda: "wait" in happened)
        call.cancel()
        await until(lambda: "close" in happened)
    assert happened == ["open", "wait", "CancelledError", "close"]


# --- for as long as the server runs ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [generator, async_managed, Session])
async def test_one_that_lasts_is_made_once_when_needed_and_closed_with_the_server(make: Callable[..., Any]) -> None:
    server = server_with(make, scope="lifespan")
    async with Client(server) as one, Client(server) as other:
        assert happened == []
        calls = [client.call_tool("order", {"item": "tea"}) for client in (one, other) for _ in range(5)]
        assert {result.text for result in await asyncio.gather(*calls)} == {"1 tea rows"}
        assert happened == ["open", *["run"] * 10]
    assert happened == ["open", *["run"] * 10, "close"]


async def test_one_that_lasts_and_failed_is_tried_again() -> None:
    tries = iter([RuntimeError("not yet"), Db()])

    async def connect() -> Db:
        found = next(tries)
        if isinstance(found, Exception):
            raise found
        return found

    async with Client(server_with(connect, scope="lifespan")) as client:
        assert "not yet" in (await client.call_tool("order", {"item": "tea"})).text
        for _ in range(2):
            assert (await client.call_tool("order", {"item": "tea"})).text == "1 tea rows"


async def test_one_that_cannot_be_closed_is_logged_and_holds_nothing_up(caplog: pytest.LogCaptureFixture) -> None:
    async with Client(server_with(breaks_at_its_end, scope="lifespan")) as client:
        await client.call_tool("order", {"item": "tea"})
    assert "failed to end" in caplog.text
    assert "cannot commit" in caplog.text


# --- in the place of another --------------------------------------------------------------------------------------


class Fake(Db):
    def rows(self) -> str:
        return "fake"


@pytest.mark.parametrize("options", [{}, {"scope": "lifespan"}])
async def test_a_test_fills_a_parameter_with_something_else(options: dict[str, Any]) -> None:
    server = server_with(generator, **options)
    outer = Server("outer")
    outer.mount(server, "in")
    for target, name in ((server, "order"), (outer, "in_order")):
        async with Client(target) as client:
            with target.override(generator, Fake):
                assert (await client.call_tool(name, {"item": "tea"})).text == "1 tea fake"
                with target.override(generator, plain):
                    assert (await client.call_tool(name, {"item": "tea"})).text == "1 tea rows"
                assert (await client.call_tool(name, {"item": "tea"})).text == "1 tea fake"
            assert (await client.call_tool(name, {"item": "tea"})).text == "1 tea rows"
    with pytest.raises(DeclarationError, match="cannot be called"), server.override(generator, Db()):  # type: ignore[arg-type]
        pass


# --- declarations that cannot work --------------------------------------------------------------------------------


def circle(me: Any = None) -> Db:
    return Db()


def needs(argument: str) -> Db:
    return Db()


def takes_context(ctx: Context) -> Db:
    return Db()


def of_a_call(db: Annotated[Db, Depends(plain)]) -> Db:
    return db


@pytest.mark.parametrize(
    ("make", "scope", "says"),
    [
        (needs, "call", "its parameter 'argument' has no value"),
        (takes_context, "lifespan", 'has scope "call"'),
        (of_a_call, "lifespan", 'has scope "call"'),
        ("text", "call", "cannot be called"),
    ],
)
def test_what_cannot_be_filled_is_refused_when_declared(make: Any, scope: Any, says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        server_with(make, scope=scope)


def test_a_circle_is_refused_when_declared() -> None:
    circle.__defaults__ = (Depends(circle),)
    with pytest.raises(DeclarationError, match="form a cycle: circle → circle"):
        server_with(circle)


async def test_a_question_and_a_dependency_may_stand_side_by_side() -> None:
    server = Server("shop")

    @server.tool
    async def order(
        item: str, sure: Annotated[bool, Elicit("Order {item}?")], db: Annotated[Db, Depends(generator)]
    ) -> str:
        return f"{item} {sure} {db.rows()}"

    for revision in ("2025-06-18", "2026-07-28"):
        async with Client(server, elicitation=lambda params: True, revisions=[revision]) as client:
            assert (await client.call_tool("order", {"item": "tea"})).text == "tea True rows"
    assert happened == ["open", "close"] * 2


# --- any graph ----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["plain", "async", "generator"]), st.sets(st.integers(0, 7)))))
def test_any_graph_is_made_in_order_and_closed_in_reverse(nodes: list[tuple[str, set[int]]]) -> None:
    """Each node needs some of those before it; what closes is closed before what it was made of."""
    opened: list[int] = []
    closed: list[int] = []
    makes: list[Callable[..., Any]] = []

    def node(number: int, kind: str, needs: list[int]) -> Callable[..., Any]:
        def make(**given: int) -> int:
            assert [*given.values()] == needs
            assert all(one in opened for one in needs)
            opened.append(number)
            return number

        async def make_async(**given: int) -> int:
            return make(**given)

        def generate(**given: int) -> Iterator[int]:
            yield make(**given)
            closed.append(number)

        made = {"plain": make, "async": make_async, "generator": generate}[kind]
        made.__signature__ = _signature(needs, makes)  # type: ignore[attr-defined]
        return made

    for number, (kind, wanted) in enumerate(nodes):
        makes.append(node(number, kind, sorted(one for one in wanted if one < number)))
    server = Server("graph")

    async def top(**given: int) -> int:
        return len(given)

    top.__signature__ = _signature([*range(len(makes))], makes)  # type: ignore[attr-defined]
    server.tool(top)

    async def call() -> Any:
        async with Client(server) as client:
            return await client.call_tool("top")

    result = asyncio.run(call())
    assert result.text == str(len(nodes))
    assert sorted(opened) == [*range(len(nodes))]
    assert closed == [number for number in reversed(opened) if nodes[number][0] == "generator"]


def _signature(needs: list[int], makes: list[Callable[..., Any]]) -> Any:
    import inspect

    return inspect.Signature(
        [
            inspect.Parameter(
                f"n{number}", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[int, Depends(makes[number])]
            )
            for number in needs
        ]
    )


HIDDEN = [
    Annotated[dict[str, str], Depends(dict)] | None,
    list[Annotated[dict[str, str], Depends(dict)]],
    Annotated[bool, Elicit("Delete it?")] | None,
    Annotated[list[str], Handles("cart", list[str])] | None,
]


@pytest.mark.parametrize("hint", HIDDEN)
def test_a_mark_inside_of_a_type_is_refused_rather_than_given_to_the_model(hint: Any) -> None:
    def delete(it: Any = None) -> str:
        return "gone"

    delete.__annotations__["it"] = hint
    with pytest.raises(DeclarationError, match=r"write Annotated\[X | None, mark\]"):
        Server("files").tool(delete)


async def test_a_handle_may_be_left_out() -> None:
    server, carts = Server("shop"), Handles("cart", list[str])

    @server.tool
    def count(cart: Annotated[list[str] | None, carts] = None) -> int:
        return len(cart or ())

    @server.tool
    def open_cart(ctx: Context) -> str:
        return carts.open(["tea"], ctx)

    async with Client(server) as client:
        assert (await client.call_tool("count")).data == 0
        cart = (await client.call_tool("open_cart")).text
        assert (await client.call_tool("count", {"cart": cart})).data == 1
