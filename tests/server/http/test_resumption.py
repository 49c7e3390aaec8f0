"""A client that lost its connection takes up its stream again: every event once, in order, and none of another's."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from accord import Context, Server
from accord.server.auth.api_keys import APIKeys
from accord.server.auth.authentication import Auth
from accord.server.http.event_stream import EventStream
from accord.server.http.options import HTTPOptions
from accord.server.http.stored_stream import StoredStream
from accord.store.base import Events, Replay
from accord.store.memory import MemoryEvents
from accord.store.sqlite import SQLiteEvents
from accord.transport.asgi.sse_response import SSEResponse

from tests.server.http.http_clients import Stateful, both_ways, quick, site, text, until
from tests.server.http.raw import Answer, Ended, Event

STEPS = 5


class Desk(Server):
    """A server with calls that take several steps, each of which a test may hold up."""

    def __init__(self, auth: Auth | None = None, **limits: Any) -> None:
        super().__init__("desk", "1", limits=quick(**limits), auth=auth)
        self.gates: dict[str, asyncio.Semaphore] = {}
        self.asking: set[asyncio.Task[None]] = set()

        @self.tool
        async def steps(ctx: Context, name: str, count: int = STEPS) -> str:
            """Reports; where there is a gate of that name, when it opens."""
            for step in range(count):
                if (gate := self.gates.get(name)) is not None:
                    await gate.acquire()
                ctx.report_progress(step + 1, count, f"{name} {step}")
            return f"{name} done"

        @self.tool
        async def polled(ctx: Context, name: str) -> str:
            """Has its client come back before each step."""
            for step in range(STEPS):
                ctx.close_sse_stream(0.5)
                await self.gates[name].acquire()
                ctx.report_progress(step + 1, STEPS, f"{name} {step}")
            return f"{name} done"

        @self.tool
        async def large(ctx: Context, size: int) -> str:
            ctx.report_progress(1)
            return "x" * size

        @self.tool
        async def background(ctx: Context, count: int) -> str:
            async def tell() -> None:
                for number in range(count):
                    ctx.info(f"{number}")

            self.asking.add(task := asyncio.create_task(tell()))
            task.add_done_callback(self.asking.discard)
            return "begun"


@pytest.fixture(params=["memory", "sqlite"])
def events(request: pytest.FixtureRequest, tmp_path: Path) -> Events:
    return MemoryEvents() if request.param == "memory" else SQLiteEvents(tmp_path / "events.db")


async def some(answer: Answer, count: int) -> list[Event]:
    return [await answer.event() for _ in range(count)]


def told(found: list[Event], name: str, first: int = 0) -> None:
    """These are all events of a call of that name from some event on, and nothing else."""
    expected = ["primed", *(f"{name} {step}" for step in range(STEPS)), f"{name} done"]
    assert [what(event) for event in found] == expected[first:]


def what(event: Event) -> str:
    if event.data is None:
        return "primed"
    return str(event.data["params"]["message"]) if "method" in event.data else text(event.data)


# --- cut anywhere ------------------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("finished", [True, False])
async def test_a_stream_that_is_cut_after_any_event_is_taken_up_there(finished: bool, way: str, events: Events) -> None:
    server = Desk()
    async with site(server, way, HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        for seen in range(1, STEPS + 2):
            name = f"cut{seen}"
            gate = server.gates[name] = asyncio.Semaphore(seen - 1)
            call = await client.call("steps", {"name": name}, id=name, progressToken=name)
            first = await some(call, seen)
            await call.leave()
            if finished:
                [gate.release() for _ in range(STEPS)]
                await until(lambda: not here.busy())
            again = await client.listen(first[-1].id)
            assert again.status == 200, await again.body()
            [gate.release() for _ in range(STEPS)]
            told(first + await again.events(), name)
            assert again.whole
            told(await (await client.listen(first[0].id)).events(), name, 1)


async def test_a_stream_that_is_cut_again_and_again_loses_nothing(events: Events) -> None:
    server = Desk()
    async with site(server, "socket", HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        gate = server.gates["a"] = asyncio.Semaphore(0)
        stream = await client.call("steps", {"name": "a"}, progressToken=1)
        found: list[Event] = []
        for _ in range(STEPS + 1):
            found.append(await stream.event())
            await stream.leave()
            gate.release()
            stream = await client.listen(found[-1].id)
        told(found + await stream.events(), "a")


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
async def test_a_stream_that_is_not_primed_is_taken_up_from_its_first_event(revision: str, events: Events) -> None:
    server = Desk()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw, revision).open()
        gate = server.gates["a"] = asyncio.Semaphore(1)
        call = await client.call("steps", {"name": "a"}, progressToken=1)
        first = await some(call, 1)
        await call.leave()
        [gate.release() for _ in range(STEPS)]
        told(first + await (await client.listen(first[0].id)).events(), "a", 1)


async def test_many_streams_are_cut_and_taken_up_and_none_has_an_event_of_another(events: Events) -> None:
    server = Desk()
    seeded = random.Random(5)

    async def one(client: Stateful, name: str) -> None:
        server.gates[name] = asyncio.Semaphore(0)
        stream = await client.call("steps", {"name": name}, id=name, progressToken=name)
        found: list[Event] = []
        while len(found) < STEPS + 2:
            server.gates[name].release()
            try:
                for _ in range(seeded.randint(0, 3)):
                    found.append(await stream.event())
                    server.gates[name].release()
            except Ended:
                pass
            if found:
                await stream.leave()
                stream = await client.listen(found[-1].id)
        told(found, name)
        await stream.leave()

    async with site(server, options=HTTPOptions(events=events)) as here:
        clients = [await Stateful(here.raw).open() for _ in range(4)]
        await asyncio.gather(*(one(client, f"{n}-{m}") for n, client in enumerate(clients) for m in range(10)))


async def test_who_takes_up_a_stream_that_another_carries_has_it_alone(events: Events) -> None:
    server = Desk()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        gate = server.gates["a"] = asyncio.Semaphore(2)
        call = await client.call("steps", {"name": "a"}, progressToken=1)
        first = await some(call, 3)
        again = await client.listen(first[0].id)
        assert await call.events() == []
        assert call.whole
        [gate.release() for _ in range(STEPS)]
        told(await again.events(), "a", 1)


async def test_a_call_that_ends_while_its_stream_is_looked_for_was_not_cut_off() -> None:
    class Late(MemoryEvents):
        """Says what was so a while ago."""

        async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
            replay = await super().read(session, stream, after, most)
            asked.set()
            await late.wait()
            return replay

    server, asked, late = Desk(), asyncio.Event(), asyncio.Event()
    async with site(server, options=HTTPOptions(events=Late())) as here:
        client = await Stateful(here.raw).open()
        gate = server.gates["a"] = asyncio.Semaphore(0)
        call = await client.call("steps", {"name": "a"}, progressToken=1)
        first = await call.event()
        await call.leave()
        again = await client.begin("GET", last_event_id=first.id)
        await asked.wait()
        [gate.release() for _ in range(STEPS)]
        (session,) = here.endpoint.sessions
        await until(lambda: list(session._streams) == ["0"])
        late.set()
        told([first, *await (await again.start()).events()], "a")


async def test_the_general_stream_is_taken_up_too(events: Events) -> None:
    server = Desk()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        await (await client.call("background", {"count": 10})).end()
        general = await client.listen()
        first = await some(general, 3)
        await general.leave()
        again = await client.listen(first[-1].id)
        rest = await some(again, 7)
        assert [event.data["params"]["data"] for event in first + rest] == [str(number) for number in range(10)]
        await (await client.call("background", {"count": 1}, id=2)).end()
        assert (await again.event()).data["params"]["data"] == "0"
        await again.leave()


# --- ids that lead nowhere ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["", "garbage", "-", "-1", "0-", "0-x", "0--1", "0-1.5", "0-" + "9" * 30, "0-²", "é-1"])
async def test_an_id_that_was_never_given_is_refused(id: str, events: Events) -> None:
    async with site(Desk(), options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        answer = await client.listen(id)
        assert answer.status in (400, 410), id
        assert "error" in await answer.json()
        assert (await client.ask("ping")).status == 200


async def test_an_event_of_another_session_leads_nowhere(events: Events) -> None:
    server = Desk()
    async with site(server, options=HTTPOptions(events=events)) as here:
        one, other = await Stateful(here.raw).open(), await Stateful(here.raw).open()
        server.gates["live"] = asyncio.Semaphore(0)
        live = await one.call("steps", {"name": "live"}, id=1, progressToken=1)
        over = await (await one.call("steps", {"name": "over"}, id=2, progressToken=1)).events()
        for id in ((await live.event()).id, over[0].id):
            answer = await other.listen(id)
            assert answer.status == 410
            assert "error" in await answer.json()
        [server.gates["live"].release() for _ in range(STEPS)]
        told(await live.events(), "live", 1)


@pytest.mark.parametrize("stream", ["live", "over", "general", "general that was never written to"])
async def test_a_number_that_was_not_reached_yet_is_refused_rather_than_waited_for(stream: str, events: Events) -> None:
    server = Desk()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        server.gates["live"] = asyncio.Semaphore(0)
        call = await client.call("steps", {"name": stream}, progressToken=1)
        id = (await call.event()).id
        if stream == "general":
            await (await client.call("background", {"count": 1}, id=2)).end()
            general = await client.listen()
            id = (await general.event()).id
            await general.leave()
        elif stream.startswith("general"):
            id = "0-0"
        assert id is not None
        answer = await client.listen(f"{id.rpartition('-')[0]}-7000")
        assert answer.status == 410, await answer.event()
        [server.gates["live"].release() for _ in range(STEPS)]
        await call.end()


async def test_dropped_events_are_reported_and_not_passed_over(tmp_path: Path) -> None:
    server = Desk(http_events_bytes=2000, progress_per_second=1e6)
    async with site(server, options=HTTPOptions(events=MemoryEvents(server.limits))) as here:
        client = await Stateful(here.raw).open()
        found = await (await client.call("steps", {"name": "a", "count": 50}, progressToken=1)).events()
        assert len(found) == 52
        answer = await client.listen(found[3].id)
        assert answer.status == 410
        assert "dropped" in (await answer.json())["error"]["message"]


async def test_a_sender_does_not_wait_for_a_client_to_read_events_that_were_dropped() -> None:
    async def send(message: Any) -> None:
        pass

    limits = quick(pending_bytes=1_000, http_events_bytes=2_000)
    stream = EventStream(StoredStream(MemoryEvents(limits), "session", "0"), limits)
    for _ in range(5):
        stream.send(b"x" * 900)
    await stream.wait_stored()
    stream.attach(SSEResponse(send, limits))
    async with asyncio.timeout(10):
        await stream.drain()


# --- polling -----------------------------------------------------------------------------------------------------


@both_ways
async def test_a_call_releases_its_client_to_poll_at_each_step(way: str, events: Events) -> None:
    server = Desk()
    async with site(server, way, HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        gate = server.gates["a"] = asyncio.Semaphore(0)
        stream = await client.call("polled", {"name": "a"}, progressToken=1)
        found: list[Event] = []
        while True:
            part = await stream.events()
            assert stream.whole
            found += [event for event in part if event.id is not None]
            if "done" in what(found[-1]):
                break
            assert part[-1].retry == 500
            stream = await client.listen(found[-1].id)
            gate.release()
        told(found, "a")


@pytest.mark.parametrize("kind", ["async", "sync"])
async def test_a_call_that_releases_its_client_and_ends_at_once_is_answered_on_reconnect(kind: str) -> None:
    server = Desk()

    async def in_a_task(ctx: Context) -> str:
        ctx.close_sse_stream()
        return "done"

    def in_a_thread(ctx: Context) -> str:
        ctx.close_sse_stream()
        return "done"

    server.tool(name="lets_go")(in_a_task if kind == "async" else in_a_thread)
    async with site(server, "socket", HTTPOptions(retry_seconds=2.5)) as here:
        client = await Stateful(here.raw).open()
        for id in range(20):
            call = await client.call("lets_go", id=id)
            if not call.streams:
                assert kind == "sync"
                assert text(await call.json()) == "done"
                continue
            events = await call.events()
            assert events[-1].retry == 2500 or text(events[-1].data) == "done"
            if events[-1].data is None:
                events += await (await client.listen(events[0].id)).events()
            assert text(events[-1].data) == "done"
        (session,) = here.endpoint.sessions
        await until(lambda: list(session._streams) == ["0"], lambda: session._streams)


async def test_a_call_of_older_revisions_keeps_its_stream(events: Events) -> None:
    server = Desk()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw, "2025-06-18").open()
        server.gates["a"] = asyncio.Semaphore(STEPS)
        told(await (await client.call("polled", {"name": "a"}, progressToken=1)).events(), "a", 1)


# --- large and many ----------------------------------------------------------------------------------------------


@both_ways
async def test_an_answer_that_is_larger_than_a_stream_may_owe_is_sent_all_the_same(way: str, events: Events) -> None:
    async with site(Desk(http_stream_bytes=100_000), way, HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        call = await client.call("large", {"size": 1_000_000}, progressToken=1)
        assert len(text(await call.result())) == 1_000_000


@both_ways
async def test_many_events_are_more_than_a_stream_may_owe_and_none_is_lost(way: str, events: Events) -> None:
    limits = {"http_stream_bytes": 50_000, "http_events_bytes": 1 << 22, "progress_per_second": 1e6}
    async with site(Desk(**limits), way, HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        name, count = "x" * 5_000, 100
        call = await client.call("steps", {"name": name, "count": count}, progressToken=1)
        found = await call.events()
        assert call.whole
        again = await (await client.listen(found[0].id)).events()
        assert again == found[1:]
        assert [what(event).rpartition(" ")[2] for event in again] == [*map(str, range(count)), "done"]


# --- another process ---------------------------------------------------------------------------------------------


async def after_restart(
    path: Path, before: Callable[[Stateful], Any], after: Callable[[Stateful, Any], Any], **options: Any
) -> None:
    """What a client does with one server, and then with the next, which has the same file."""
    async with site(Desk(), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        client = await Stateful(here.raw, **options).open()
        found = await before(client)
    async with site(Desk(), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        await after(Stateful(here.raw, **options).join(client.id), found)


async def test_a_session_and_its_streams_outlive_the_server(tmp_path: Path) -> None:
    async def before(client: Stateful) -> list[Event]:
        return await (await client.call("steps", {"name": "a"}, progressToken=1)).events()

    async def after(client: Stateful, found: list[Event]) -> None:
        assert (await client.ask("ping")).status == 200
        told(await (await client.listen(found[2].id)).events(), "a", 3)

    await after_restart(tmp_path / "e.db", before, after)


async def test_after_a_restart_a_session_is_still_its_principals_and_as_old_as_it_was(tmp_path: Path) -> None:
    keys = APIKeys({"k-ann": "ann", "k-bob": "bob"})
    path = tmp_path / "e.db"
    async with site(Desk(auth=keys), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        ann = await Stateful(here.raw, authorization="Bearer k-ann").open()
        gone = await Stateful(here.raw, authorization="Bearer k-ann").open()
        await gone.delete()
        for session in here.endpoint.sessions:
            session.created_at -= 86_300
            await session._save()
    async with site(Desk(auth=keys), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        bob = Stateful(here.raw, authorization="Bearer k-bob").join(ann.id)
        refused = [await bob.ask("ping"), await bob.join("x" * 43).ask("ping")]
        refused.append(await Stateful(here.raw, authorization="Bearer k-ann").join(gone.id).ask("ping"))
        assert [answer.status for answer in refused] == [404] * 3
        assert len({await answer.body() for answer in refused}) == 1
        again = Stateful(here.raw, authorization="Bearer k-ann").join(ann.id)
        assert (await again.ask("ping")).status == 200
        for session in here.endpoint.sessions:
            session.created_at -= 200
        await here.endpoint.sessions.sweep()
        assert (await again.ask("ping")).status == 404


async def test_each_call_of_a_batch_that_was_cut_off_ends_with_an_error(tmp_path: Path) -> None:
    class Mortal(SQLiteEvents):
        """Hears of no end: as if the process had been killed before."""

        async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
            return 0 if ends else await super().append(session, stream, messages)

    path, server = tmp_path / "e.db", Desk()
    async with site(server, options=HTTPOptions(events=Mortal(path))) as here:
        client = await Stateful(here.raw, "2025-03-26").open()
        server.gates["a"] = asyncio.Semaphore(1)
        batch = [client.calling("steps", {"name": "a"}, id=id, progressToken=id) for id in ("one", "two")]
        call = await client.post(batch)
        first = await call.event()
        await call.leave()
        await here.app.drain(0.01)
        await here.app.close()
    async with site(Desk(), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        rest = await (await Stateful(here.raw, "2025-03-26").join(client.id).listen(first.id)).events()
        assert {event.data["id"] for event in rest} == {"one", "two"}
        assert all("restarted" in event.data["error"]["message"] for event in rest)


async def test_the_general_stream_goes_on_after_a_restart_even_where_nothing_was_sent_on_it(tmp_path: Path) -> None:
    async def before(client: Stateful) -> None:
        pass

    async def after(client: Stateful, _: None) -> None:
        await (await client.call("background", {"count": 3})).end()
        general = await client.listen()
        found = await some(general, 3)
        assert [(event.id, event.data["params"]["data"]) for event in found] == [
            (f"0-{n + 1}", str(n)) for n in range(3)
        ]
        await general.leave()
        again = await client.listen(found[0].id)
        assert [event.data["params"]["data"] for event in await some(again, 2)] == ["1", "2"]
        await again.leave()

    await after_restart(tmp_path / "e.db", before, after)


@pytest.mark.parametrize("first", ["the client listens", "the server tells"])
async def test_numbers_of_the_general_stream_go_on_after_a_restart(first: str, tmp_path: Path) -> None:
    async def before(client: Stateful) -> Event:
        await (await client.call("background", {"count": 3})).end()
        general = await client.listen()
        found = await some(general, 2)
        await general.leave()
        return found[-1]

    async def after(client: Stateful, last: Event) -> None:
        again = await client.listen(last.id) if first == "the client listens" else None
        await (await client.call("background", {"count": 1})).end()
        again = again or await client.listen(last.id)
        found = await some(again, 2)
        assert [(event.id, event.data["params"]["data"]) for event in found] == [("0-3", "2"), ("0-4", "0")]
        await again.leave()

    await after_restart(tmp_path / "e.db", before, after)


async def test_a_late_answer_to_the_server_before_does_not_answer_the_next_one(tmp_path: Path) -> None:
    def asking(server: Server) -> Server:
        @server.tool
        async def ask(ctx: Context) -> str:
            return str((await ctx.elicit("sure?", bool)).action)

        return server

    path = tmp_path / "e.db"
    async with site(asking(Desk()), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        client = await Stateful(here.raw).open()
        call = await client.call("ask")
        await call.event()
        old = (await call.message())["id"]
        await call.leave()
        id = client.id
        await here.endpoint.close()
    async with site(asking(Desk()), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        client = Stateful(here.raw).join(id)
        call = await client.call("ask")
        await call.event()
        new = (await call.message())["id"]
        assert await client.answer(old, {"action": "accept", "content": {"value": True}}) == 400
        assert await client.answer(new, {"action": "decline"}) == 202
        assert text(await call.message()) == "decline"
