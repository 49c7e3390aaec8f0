"""What lasts as long as a server, when something goes wrong at one of its ends: nobody hangs, nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import ContextVar
from typing import Annotated

import pytest

from accord import (
    CallNext,
    Client,
    Context,
    Depends,
    HTTPOptions,
    InternalError,
    LifespanError,
    Limits,
    MemoryEvents,
    Provided,
    Provider,
    Request,
    Server,
    StoreError,
    Tool,
)
from accord.server.core.lifetime import Lifetime

from tests.clock import without_waiting
from tests.waiting import turns


async def test_a_lasting_dependency_that_was_cancelled_itself_takes_nothing_along() -> None:
    """Its `CancelledError` is an error like others: nobody has cancelled the server."""
    server, happened = Server("desk"), list[str]()

    async def table() -> str:
        happened.append("made")
        if len(happened) == 1:
            await _cancelled()
        return "a table"

    @server.tool
    async def sit(at: Annotated[str, Depends(table, scope="lifespan")]) -> str:
        return at

    async with asyncio.timeout(100), Client(server) as client:
        assert (await client.call_tool("sit")).is_error
        assert (await client.call_tool("sit")).text == "a table"


async def _cancelled() -> None:
    waits = asyncio.ensure_future(asyncio.Event().wait())
    waits.cancel()
    await waits


async def test_a_lasting_dependency_that_would_end_the_process_fails_its_call_only() -> None:
    server = Server("desk")

    def settings() -> str:
        sys.exit("there are no settings")

    @server.tool
    async def read(found: Annotated[str, Depends(settings, scope="lifespan")]) -> str:
        return found

    async with asyncio.timeout(100), Client(server) as client:
        for _ in range(2):
            assert "there are no settings" in (await client.call_tool("read")).text


async def test_what_is_needed_after_the_end_is_an_error_and_no_wait() -> None:
    lifetime = Lifetime(Server("desk"))
    await lifetime.stop()
    async with asyncio.timeout(100):
        with pytest.raises(LifespanError, match="'desk' has shut down"):
            await lifetime.start_mounted(Server("other").lifetimes)


@without_waiting
async def test_whoever_waits_for_what_could_not_be_made_in_time_waits_no_longer() -> None:
    server = Server("desk", limits=Limits(grace_seconds=0.01))
    one, other = _Stuck("one"), _Stuck("other")
    lifetime = Lifetime(server)
    waiting = [asyncio.create_task(lifetime.start_mounted(each.lifetimes)) for each in (one, other)]
    await one.entered.wait()
    async with asyncio.timeout(100):
        await lifetime.stop()
        assert [type(each) for each in await asyncio.gather(*waiting, return_exceptions=True)] == [
            asyncio.CancelledError
        ] * 2


class _Stuck(Server):
    """A server whose lifespan never begins."""

    def __init__(self, name: str) -> None:
        self.entered = asyncio.Event()
        super().__init__(name, lifespan=self._begin, limits=Limits(grace_seconds=0.01))

    async def _begin(self, server: Server) -> AsyncIterator[None]:
        self.entered.set()
        await asyncio.Event().wait()
        yield


async def test_nothing_is_left_of_an_abandoned_start(caplog: pytest.LogCaptureFixture) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    ended: list[str] = []

    async def first(server: Server) -> AsyncIterator[None]:
        begun.set()
        await go.wait()
        yield
        ended.append("first")

    async def second(server: Server) -> AsyncIterator[None]:
        yield
        ended.append("second")

    server = Server("desk", lifespan=first)
    server.add_lifespan(second)
    before = asyncio.all_tasks()
    entering = asyncio.create_task(server.lifetimes.enter())
    await begun.wait()
    entering.cancel()
    await asyncio.wait((entering,), timeout=0)
    go.set()
    async with asyncio.timeout(100):
        with pytest.raises(asyncio.CancelledError):
            await entering
        while asyncio.all_tasks() - before:
            await asyncio.wait(asyncio.all_tasks() - before)
    gc.collect()
    assert ended == ["first"]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_the_next_client_finds_a_lifespan_that_has_not_begun_before_the_last_one_was_over() -> None:
    happened: list[str] = []
    ends, go = asyncio.Event(), asyncio.Event()

    async def lifespan(server: Server) -> AsyncIterator[None]:
        happened.append("begins")
        yield
        happened.append("ends")
        ends.set()
        await go.wait()
        happened.append("has shut down")

    server = Server("desk", lifespan=lifespan)
    await server.lifetimes.enter()
    leaving = asyncio.create_task(server.lifetimes.leave())
    await ends.wait()
    entering = asyncio.create_task(server.lifetimes.enter())
    await turns(10)  # it has had its chances
    go.set()
    await asyncio.gather(leaving, entering)
    await server.lifetimes.leave()
    assert happened == ["begins", "ends", "has shut down"] * 2


async def test_a_start_that_was_given_up_does_not_let_the_next_one_begin_before_the_last_one_was_over() -> None:
    happened: list[str] = []
    ends, go = asyncio.Event(), asyncio.Event()

    async def lifespan(server: Server) -> AsyncIterator[None]:
        happened.append("begins")
        yield
        ends.set()
        await go.wait()
        happened.append("has shut down")

    server = Server("desk", lifespan=lifespan)
    await server.lifetimes.enter()
    leaving = asyncio.create_task(server.lifetimes.leave())
    await ends.wait()
    given_up = asyncio.create_task(server.lifetimes.enter())
    await turns(10)
    given_up.cancel()
    await asyncio.wait((given_up,))
    entering = asyncio.create_task(server.lifetimes.enter())
    await turns(10)
    go.set()
    await asyncio.gather(leaving, entering)
    await server.lifetimes.leave()
    assert happened == ["begins", "has shut down"] * 2


async def test_a_mounted_server_that_does_not_start_delays_no_other() -> None:
    outer, stuck, other = Server("outer"), _Stuck("stuck"), Server("other", lifespan=_nothing)

    async def table() -> str:
        return "a table"

    @other.tool
    def answer() -> int:
        return 42

    @outer.tool
    async def sit(at: Annotated[str, Depends(table, scope="lifespan")]) -> str:
        return at

    stuck.tool("wait")(lambda: None)
    outer.mount(stuck, "stuck")
    outer.mount(other, "other")
    async with asyncio.timeout(100), Client(outer) as client:
        waiting = asyncio.create_task(client.call_tool("stuck_wait"))
        await stuck.entered.wait()
        assert (await client.call_tool("other_answer")).text == "42"
        assert (await client.call_tool("sit")).text == "a table"
        waiting.cancel()


async def test_a_mounted_server_whose_lifespan_was_cancelled_itself_fails_alone() -> None:
    async def lifespan(server: Server) -> AsyncIterator[None]:
        await _cancelled()
        yield

    class Items(Provider):
        async def tools(self) -> list[Provided]:
            return [Provided(Tool(name="item", input_schema={"type": "object"}), lambda arguments: "item")]

    outer, inner = Server("outer"), Server("inner", lifespan=lifespan)
    inner.add_provider(Items())
    outer.mount(inner, "inner")
    outer.tool("own")(lambda: 42)
    async with Client(outer) as client:
        assert [each.name for each in await client.list_tools()] == ["own"]
        with pytest.raises(InternalError, match="lifespan of 'inner' failed to start: CancelledError"):
            await client.call_tool("inner_item")


async def _nothing(server: Server) -> AsyncIterator[None]:
    yield


async def test_it_ends_although_a_handler_will_not_and_the_client_has_lost_patience() -> None:
    ended, begun = asyncio.Event(), asyncio.Event()

    async def lifespan(server: Server) -> AsyncIterator[None]:
        yield
        ended.set()

    server = Server("desk", lifespan=lifespan, limits=Limits(grace_seconds=0.01, close_seconds=1000))

    @server.tool
    async def stay() -> None:
        begun.set()
        while not ended.is_set():
            with suppress(asyncio.CancelledError):
                await ended.wait()

    async with asyncio.timeout(100):
        async with Client(server, limits=Limits(close_seconds=0.2)) as client:
            call = asyncio.create_task(client.call_tool("stay"))
            await begun.wait()
        await ended.wait()
        await asyncio.wait((call,))
        assert call.exception() is not None


async def test_an_application_whose_store_fails_at_the_end_has_ended_all_the_same() -> None:
    happened: list[str] = []

    async def lifespan(server: Server) -> AsyncIterator[None]:
        happened.append("begins")
        yield
        happened.append("ends")

    class Failing(MemoryEvents):
        async def close(self) -> None:
            raise OSError("the disk is gone")

    app = Server("desk", lifespan=lifespan).asgi(HTTPOptions(events=Failing()))
    await app.start()
    with suppress(StoreError, OSError):
        await app.close()
    assert happened == ["begins", "ends"]


asked: ContextVar[str] = ContextVar("asked", default="nobody")


async def test_what_lasts_knows_nothing_of_the_call_that_needed_it_first() -> None:
    """Tasks that it starts would go on for ever in the name of that call."""

    async def note(request: Request, call_next: CallNext, ctx: Context) -> object:
        asked.set("the first call")
        return await call_next(request)

    async def whose() -> str:
        return asked.get()

    server = Server("desk", middleware=[note])

    @server.tool
    async def tell(seen: Annotated[str, Depends(whose, scope="lifespan")]) -> str:
        return seen

    async with Client(server) as client:
        assert (await client.call_tool("tell")).text == "nobody"


def test_loops_that_begin_together_in_several_threads_do_not_lose_one_another() -> None:
    server, looked = Server("desk"), threading.Event()
    third_is_there, done = threading.Event(), threading.Event()
    seen: list[str] = []

    class First(asyncio.SelectorEventLoop):
        """A loop that is looked at just when another begins."""

        def is_closed(self) -> bool:
            looked.set()
            third_is_there.wait(1)
            return super().is_closed()

    async def third() -> None:
        await server.lifetimes.enter()
        third_is_there.set()
        done.wait(100)
        server.lifetimes.current()
        await server.lifetimes.leave()
        seen.append("third")

    def begin_third() -> None:
        looked.wait(100)
        asyncio.run(third())

    first = First()
    first.run_until_complete(server.lifetimes.enter())
    looked.clear()
    thread = threading.Thread(target=begin_third)
    thread.start()
    try:
        asyncio.run(_entered_and_left(server))
    finally:
        done.set()
        thread.join(100)
    first.run_until_complete(server.lifetimes.leave())
    first.close()
    assert seen == ["third"]


async def _entered_and_left(server: Server) -> None:
    await server.lifetimes.enter()
    await server.lifetimes.leave()
