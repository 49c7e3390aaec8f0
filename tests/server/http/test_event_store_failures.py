"""A store that fails, hangs, or answers late: what a client is told then, and that it is always told something."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from accord import Context, Server
from accord.errors import StoreError
from accord.server.http.options import HTTPOptions
from accord.store.base import Replay
from accord.store.memory import MemoryEvents
from accord.store.sqlite import SQLiteEvents

from tests.clock import Clock
from tests.server.http.http_clients import Stateful, encode, quick, request, site, text, until
from tests.server.http.raw import Answer


class Moody(MemoryEvents):
    """Fails as it is told to, and waits where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: Exception | None = None
        self.failing: set[str] = set()
        self.gates: dict[str, asyncio.Event] = {}
        self.pages: list[int] = []
        self.saved: list[bytes] = []

    async def _mood(self, what: str) -> None:
        if what in self.gates:
            await self.gates[what].wait()
        if what in self.failing:
            raise self.failure or StoreError("the disk is full")

    async def append(self, session: str, stream: str, messages: Sequence[bytes], *, ends: bool = False) -> int:
        await self._mood("append")
        return await super().append(session, stream, messages, ends=ends)

    async def read(self, session: str, stream: str, after: int, most: int | None = None) -> Replay | None:
        replay = await super().read(session, stream, after, most)
        self.pages.append(len(replay.events) if replay is not None else 0)
        await self._mood("read")
        return replay

    async def load(self, session: str) -> bytes | None:
        kept = await super().load(session)
        await self._mood("load")
        return kept

    async def save(self, session: str, record: bytes) -> None:
        self.saved.append(record)
        await self._mood("save")
        await super().save(session, record)

    async def forget(self, session: str) -> None:
        await self._mood("forget")
        await super().forget(session)


class Desk(Server):
    """A call that says something each time it is let on."""

    def __init__(self, **limits: Any) -> None:
        super().__init__("desk", "1", limits=quick(logs_per_second=1e9, **limits))
        self.gate = asyncio.Semaphore(0)

        @self.tool
        async def speaks(ctx: Context, count: int = 3) -> str:
            for number in range(count):
                await self.gate.acquire()
                ctx.info(f"{number}")
            await self.gate.acquire()
            return "done"

        @self.tool
        async def chatters(ctx: Context, count: int) -> str:
            for number in range(count):
                ctx.info(f"{number}")
                if not number % 100:
                    await asyncio.sleep(0)
            return "done"

    def let_on(self, steps: int = 1) -> None:
        for _ in range(steps):
            self.gate.release()

    def change(self, name: str) -> None:
        """Tell on the general stream that there is a new tool."""
        self.tool(name=name)(lambda: "")


async def said(answer: Answer) -> list[str]:
    """What is said from here to the end."""
    found = [event.data for event in await answer.events() if event.data is not None]
    return [data["params"]["data"] if "method" in data else text(data) for data in found]


# --- the end of a session ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("slow", ["forget", "load"])
async def test_a_session_that_is_being_ended_is_not_taken_up_from_the_store(slow: str) -> None:
    events = Moody()
    async with site(Desk(), options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        (session,) = here.endpoint.sessions
        gate = events.gates[slow] = asyncio.Event()
        ending = asyncio.create_task(here.endpoint.sessions.end(session, "it is over"))
        await until(lambda: not len(here.endpoint.sessions))
        late = await client.begin("POST", encode(request("ping")))
        await asyncio.sleep(0)
        gate.set()
        await ending
        assert (await late.start()).status == 404
        assert (await client.ask("ping")).status == 404
        assert not len(here.endpoint.sessions)
        assert await events.load(client.id) is None


async def test_a_stream_that_is_requested_while_its_session_ends_is_404() -> None:
    server, events = Desk(), Moody()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        server.change("one")
        general = await client.listen()
        last = (await general.event()).id
        await general.leave()
        gate = events.gates["read"] = asyncio.Event()
        again = await client.begin("GET", last_event_id=last)
        await until(lambda: events.pages)
        assert (await client.delete()).status == 200
        gate.set()
        assert (await again.start()).status == 404


async def test_a_store_that_fails_to_forget_does_not_end_the_sweeping() -> None:
    events = Moody()
    clock = Clock()
    async with site(Desk(), options=HTTPOptions(events=events)) as here:
        await Stateful(here.raw).open()
        events.failing, events.failure = {"forget"}, OSError("the store is gone")
        await clock.jump(1801)
        await until(lambda: not len(here.endpoint.sessions))
        await Stateful(here.raw).open()
        await clock.jump(1801)
        await until(lambda: not len(here.endpoint.sessions))


async def test_sessions_are_closed_side_by_side_where_the_store_hangs() -> None:
    server, events = Desk(close_seconds=1), Moody()
    async with site(server, options=HTTPOptions(events=events)) as here:
        clients = [await Stateful(here.raw).open() for _ in range(50)]
        events.gates["append"] = asyncio.Event()
        server.let_on(50)
        calls = [await client.begin("POST", encode(client.calling("speaks"))) for client in clients]
        await until(lambda: sum(len(session._streams) for session in here.endpoint.sessions) == 100)
        async with asyncio.timeout(40):  # one after the other takes 50 s
            await here.app.close()
        for call in calls:
            await call.leave()
        events.gates["append"].set()


async def test_what_many_requests_change_while_the_store_is_slow_is_saved_once_for_all() -> None:
    server, events = Server("notes", "1", limits=quick()), Moody()

    @server.resource("note://{name}")
    def note(name: str) -> str:
        return name

    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        before, uris = len(events.saved), [f"note://{number}" for number in range(20)]
        events.gates["save"] = asyncio.Event()
        asked = [
            asyncio.create_task(client.ask("resources/subscribe", {"uri": uri}, id=id)) for id, uri in enumerate(uris)
        ]
        session = here.endpoint.sessions.get(client.id)
        assert session is not None
        await until(lambda: len(here.endpoint.context.subscription_index.uris(session.peer)) == len(uris))
        assert len(events.saved) == before + 1
        events.gates["save"].set()
        answers = [await answer.json() for answer in await asyncio.gather(*asked)]
        assert all("result" in answer for answer in answers)
        assert len(events.saved) == before + 2
        assert all(uri.encode() in events.saved[-1] for uri in uris)


async def test_the_store_gets_one_large_record_at_a_time_and_small_ones_in_between() -> None:
    server, events = Server("notes", "1", limits=quick()), Moody()

    @server.resource("note://{name}")
    def note(name: str) -> str:
        return name

    async with site(server, options=HTTPOptions(events=events)) as here:
        clients = [await Stateful(here.raw).open() for _ in range(3)]
        for client in clients:
            for id in range(9):
                assert "result" in await (await subscribe(client, 8_000, id)).json()
        before, events.gates["save"] = len(events.saved), asyncio.Event()
        asked = [asyncio.create_task(subscribe(client, 8_000, 9)) for client in clients]
        await until(lambda: len(events.saved) > before)
        asked.append(asyncio.create_task(Stateful(here.raw).initialize()))
        await until(lambda: len(events.saved) == before + 2)
        assert sorted(len(each) > 72_000 for each in events.saved[before:]) == [False, True]
        events.gates["save"].set()
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 4
        assert sum(len(each) > 72_000 for each in events.saved[before:]) == 3


async def subscribe(client: Stateful, length: int, id: int) -> Answer:
    return await client.ask("resources/subscribe", {"uri": f"note://{id}{'x' * length}"}, id=id)


async def test_a_record_that_waits_while_the_server_closes_is_an_error_in_the_log_and_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, events = Server("notes", "1", limits=quick(close_seconds=0.05)), Moody()

    @server.resource("note://{name}")
    def note(name: str) -> str:
        return name

    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        before, events.gates["save"] = len(events.saved), asyncio.Event()
        asked = [asyncio.create_task(subscribe(client, 1, id)) for id in range(2)]
        await until(lambda: len(events.saved) > before)
        session = here.endpoint.sessions.get(client.id)
        assert session is not None
        await until(lambda: len(here.endpoint.context.subscription_index.uris(session.peer)) == 2)
        await here.endpoint.sessions.close("the server was closed")
        events.gates["save"].set()
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 2
        assert "the session was closed before its record was saved" in caplog.text


# --- what cannot be kept -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [StoreError("full"), OSError("gone"), KeyError("a defect")])
async def test_a_call_is_answered_whatever_the_store_raises(failure: Exception) -> None:
    server, events = Desk(), Moody()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        events.failing, events.failure = {"append", "begin", "end"}, failure
        server.let_on(4)
        assert await said(await client.call("speaks")) == ["0", "1", "2", "done"]


async def test_unstored_messages_are_reported_to_a_client_that_resumes() -> None:
    server, events = Desk(), Moody()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        call = await client.call("speaks")
        server.let_on()
        seen = [await call.event(), await call.event()]
        events.failing = {"append"}
        server.let_on()
        await call.event()
        events.failing = set()
        assert (await client.listen(seen[-1].id)).status == 410
        server.let_on(2)
        assert await said(call) == ["2", "done"]
        assert (await client.listen(seen[-1].id)).status == 410


async def test_streams_that_the_store_lacks_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accord.server.http.session._INCOMPLETE_STREAMS", 2)
    server, events = Desk(), Moody()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        (session,) = here.endpoint.sessions
        seen = []
        for number in range(4):
            events.failing = set()
            call = await client.call("speaks", id=number + 1)
            server.let_on()
            seen += [await call.event(), await call.event()][1:]
            events.failing = {"append", "end"}
            server.let_on(3)
            await call.end()
            await until(lambda: list(session._streams) == ["0"])
        assert len(session._incomplete) == 2
        events.failing = set()
        resumed = await client.listen(seen[0].id)
        assert "restarted" in resumed_error(await resumed.events())
        assert (await client.listen(seen[-1].id)).status == 410


def resumed_error(events: list[Any]) -> str:
    return str(events[-1].data["error"]["message"])


async def test_messages_without_a_client_wait_for_a_store_that_works_again() -> None:
    server, events = Desk(), Moody()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        call = await client.call("speaks")
        last = (await call.event()).id
        await call.leave()
        events.failing = {"append"}
        server.let_on(4)
        await until(lambda: not here.busy())
        events.failing = set()
        assert await said(await client.listen(last)) == ["0", "1", "2", "done"]


async def test_the_general_stream_remembers_again_when_its_store_is_well() -> None:
    server, events = Desk(), Moody()
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        general = await client.listen()
        server.change("kept")
        before = (await general.event()).id
        events.failing = {"append"}
        server.change("unkept")
        assert (await general.event()).id is None
        events.failing = set()
        server.change("kept again")
        after = (await general.event()).id
        server.change("and again")
        await general.event()
        await general.leave()
        assert (await client.listen(before)).status == 410
        again = await client.listen(after)
        assert (await again.event()).data["method"] == "notifications/tools/list_changed"
        await again.leave()


async def test_a_long_stream_is_read_in_pages() -> None:
    events = Moody()
    async with site(Desk(), options=HTTPOptions(events=events)) as here:
        client = await Stateful(here.raw).open()
        whole = await (await client.call("chatters", {"count": 1_000})).events()
        events.pages.clear()
        again = await client.listen(whole[0].id)
        assert await again.events() == whole[1:]
        assert max(events.pages) < 300
        assert sum(events.pages) == len(whole) - 1


# --- what is kept of a session -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"\xff",
        b'{"principal": ""}',
        b'{"principal":"","revision":"1999-01-01","ready":true,"begun":0,"info":null,"capabilities":{}}',
        b'{"principal":"","revision":"2025-03-26","ready":true,"begun":9e9,"info":null,"capabilities":{}}',
    ],
)
async def test_a_session_that_this_server_cannot_carry_on_is_none(record: bytes) -> None:
    events = MemoryEvents()
    await events.save("kept", record)
    server = Server("new", "1", revisions=["2026-07-28", "2025-11-25"])
    async with site(server, options=HTTPOptions(events=events)) as here:
        client = Stateful(here.raw).join("kept")
        assert (await client.post(request("ping"), mcp_protocol_version=None)).status == 404


def library() -> Server:
    server = Desk()

    @server.resource("a://{x}")
    async def thing(x: str) -> str:
        return x

    @server.tool
    async def noise(ctx: Context) -> str:
        ctx.debug("noise")
        return "done"

    return server


async def test_after_a_restart_a_client_is_notified_of_what_it_subscribed_to(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    async with site(library(), options=HTTPOptions(events=SQLiteEvents(path))) as here:
        client = await Stateful(here.raw).open()
        for uri in ("a://1", "a://2"):
            await (await client.ask("resources/subscribe", {"uri": uri})).end()
        await (await client.ask("resources/unsubscribe", {"uri": "a://2"})).end()
        await (await client.ask("logging/setLevel", {"level": "error"})).end()
    server = library()
    async with site(server, options=HTTPOptions(events=SQLiteEvents(path))) as here:
        client = Stateful(here.raw).join(client.id)
        general = await client.listen()
        server.resource_updated("a://2")
        server.resource_updated("a://1")
        assert (await general.event()).data["params"] == {"uri": "a://1"}
        await general.leave()
        call = await client.call("noise")
        assert text(await call.result()) == "done"
        assert not call.streams


async def test_after_a_restart_a_client_that_names_no_event_receives_only_new_ones(tmp_path: Path) -> None:
    path, server = tmp_path / "e.db", Desk()
    async with site(server, options=HTTPOptions(events=SQLiteEvents(path))) as here:
        client = await Stateful(here.raw).open()
        general = await client.listen()
        for name in ("one", "two"):
            server.change(name)
            await general.event()
        await general.leave()
    server = Desk()
    async with site(server, options=HTTPOptions(events=SQLiteEvents(path))) as here:
        client = Stateful(here.raw).join(client.id)
        general = await client.listen()
        server.change("one")
        assert (await general.event()).id == "0-3"
        server.change("two")
        assert (await general.event()).id == "0-4"
        await general.leave()


async def test_an_application_that_is_closed_leaves_its_store_to_another(tmp_path: Path) -> None:
    events = SQLiteEvents(tmp_path / "e.db")
    async with site(Desk(), options=HTTPOptions(events=events)) as one:
        await Stateful(one.raw).open()
        async with site(Desk(), options=HTTPOptions(events=events)) as two:
            await Stateful(two.raw).open()
        assert (await Stateful(one.raw).initialize()).status == 200
