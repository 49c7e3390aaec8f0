"""The end: what runs is finished, streams are ended as they should be, and nothing new is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Context, Principal, Server
from accord.server.http.options import HTTPOptions
from accord.store.sqlite import SQLiteEvents

from tests.server.http.http_clients import META, Legacy, Modern, Stateful, both_ways, quick, request, site, text, until
from tests.server.http.raw import BASIC, JSON, SECONDS
from tests.waiting import turns

WANTED = {"notifications": {"toolsListChanged": True}}


class Desk(Server):
    """A server whose tools wait."""

    def __init__(self) -> None:
        super().__init__("desk", "1", limits=quick())
        self.release = asyncio.Event()
        self.ends: list[str] = []

        @self.tool
        async def waits(ctx: Context, report: bool = False) -> str:
            if report:
                ctx.report_progress(1)
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.ends.append("cancelled")
                raise
            self.ends.append("done")
            return "done"

        @self.tool
        async def ask(ctx: Context) -> str:
            return (await ctx.elicit("which?", str)).action


@both_ways
@pytest.mark.parametrize("report", [False, True])
async def test_what_runs_is_finished_and_nothing_new_is_taken(report: bool, way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        new, old = Modern(here.raw), await Stateful(here.raw).open()
        oldest = await (await Legacy.connect(here.raw)).open()
        arguments = {"report": report}
        modern = await new.begin(new.calling("waits", arguments, progressToken=1))
        stateful = asyncio.create_task(old.call("waits", arguments, progressToken=1))
        call = request("tools/call", {"name": "waits", "arguments": {}}, 9)
        assert (await oldest.post(call)).status == 202
        await until(lambda: sum(map(len, here.busy())) == 3)
        draining = asyncio.create_task(here.app.drain(SECONDS))
        await until(lambda: here.app.draining)

        for refused in (await new.ask("tools/list"), await old.ask("ping"), await old.listen()):
            assert refused.status == 503
            assert int(refused.headers["retry-after"]) > 0
        assert (await here.raw.send("GET", "/sse", BASIC)).status == 503
        assert (await here.raw.send("GET", "/ready", BASIC)).status == 503
        assert (await here.raw.send("GET", "/health", BASIC)).status == 200
        assert not draining.done()

        server.release.set()
        assert text(await (await modern.start()).result()) == "done"
        assert text(await (await stateful).result()) == "done"
        assert text(await oldest.stream.message()) == "done"
        assert await draining is True
        assert server.ends == ["done"] * 3
        await oldest.stream.leave()


async def test_every_drain_returns_at_the_end_though_others_drain_too() -> None:
    server = Desk()
    async with site(server) as here:
        client = Modern(here.raw)
        call = await client.begin(client.calling("waits"))
        await until(here.busy)
        draining = [asyncio.create_task(here.app.drain(SECONDS)) for _ in range(2)]
        await until(lambda: here.endpoint.idle is not None)
        draining.append(asyncio.create_task(here.app.drain(SECONDS)))
        await turns(5)
        assert not any(each.done() for each in draining)
        server.release.set()
        async with asyncio.timeout(SECONDS / 2):
            assert await asyncio.gather(*draining) == [True] * 3
        assert text(await (await call.start()).result()) == "done"
        assert await here.app.drain(SECONDS) is True


async def test_a_call_of_the_oldest_form_is_finished_though_no_request_is_open_for_it() -> None:
    server = Desk()
    async with site(server) as here:
        client = await (await Legacy.connect(here.raw)).open()
        await client.post(request("tools/call", {"name": "waits", "arguments": {}}, 9))
        await until(here.busy)
        draining = asyncio.create_task(here.app.drain(SECONDS))
        await until(lambda: here.app.draining)
        await turns(5)
        assert not draining.done()
        server.release.set()
        assert text(await client.stream.message()) == "done"
        assert await draining is True
        await client.stream.leave()


@both_ways
async def test_running_calls_receive_answers_and_cancellations_during_shutdown(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client, other = await Stateful(here.raw).open(), await Stateful(here.raw).open()
        asking, waiting = await client.call("ask"), asyncio.create_task(other.call("waits"))
        question = await asking.message()
        await until(lambda: len(here.busy()) == 2)
        draining = asyncio.create_task(here.app.drain(SECONDS))
        await until(lambda: here.app.draining)
        assert await client.answer(question["id"], {"action": "decline"}) == 202
        assert text(await asking.result()) == "decline"
        assert await other.tell("notifications/cancelled", {"requestId": 1}) == 202
        assert [event.data for event in await (await waiting).events()] == [None]
        assert await draining is True
        assert server.ends == ["cancelled"]


async def test_a_stream_that_was_cut_is_taken_up_again_while_the_server_ends() -> None:
    server = Desk()
    async with site(server) as here:
        client = await Stateful(here.raw).open()
        call = await client.call("waits", {"report": True}, progressToken=1)
        first = await call.event()
        await call.leave()
        draining = asyncio.create_task(here.app.drain(SECONDS))
        await until(lambda: here.app.draining)
        general = await client.listen("0-0")
        assert general.status == 503
        rest = await client.listen(first.id)
        server.release.set()
        assert text((await rest.events())[-1].data) == "done"
        assert await draining is True


@both_ways
async def test_streams_are_ended_as_they_should_be(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        listen = await Modern(here.raw).ask("subscriptions/listen", WANTED, id="l")
        await listen.message()
        client = await Stateful(here.raw).open()
        general = await client.listen()
        server.tool(name="last")(lambda: "x")
        assert await here.app.drain(SECONDS) is True
        told: list[JSON] = [event.data for event in await listen.events()]
        assert [each.get("method", each.get("id")) for each in told] == ["notifications/tools/list_changed", "l"]
        assert told[-1]["result"]["_meta"][META + "subscriptionId"] == "l"
        assert listen.whole
        assert [event.data["method"] for event in await general.events()] == ["notifications/tools/list_changed"]
        assert general.whole


async def test_what_does_not_end_in_time_is_reported_and_cancelled() -> None:
    server = Desk()
    async with site(server) as here:
        new, old = Modern(here.raw), await Stateful(here.raw).open()
        oldest = await (await Legacy.connect(here.raw)).open()
        calls = [
            await new.begin(new.calling("waits", {"report": True}, progressToken=1)),
            await new.begin(new.calling("waits")),
            await old.call("waits", {"report": True}, progressToken=1),
        ]
        await oldest.post(request("tools/call", {"name": "waits", "arguments": {}}, 9))
        await until(lambda: sum(map(len, here.busy())) == 4)
        assert await here.app.drain(0.01) is False
        await here.app.close()
        for call in calls:
            said = await (await call.start()).result()
            assert said["error"]["message"] == "the server was closed"
        assert (await oldest.stream.message())["error"]["message"] == "the server was closed"
        assert await oldest.stream.events() == []
        assert server.ends == ["cancelled"] * 4


async def test_a_call_that_was_ended_with_the_server_is_found_ended_by_who_comes_back(tmp_path: Path) -> None:
    async with site(Desk(), options=HTTPOptions(events=SQLiteEvents(tmp_path / "e.db"))) as here:
        client = await Stateful(here.raw).open()
        call = await client.call("waits", {"report": True}, progressToken=1)
        first = await call.event()
        await call.leave()
        await here.app.drain(0.01)
        await here.app.close()
    async with site(Desk(), options=HTTPOptions(events=SQLiteEvents(tmp_path / "e.db"))) as here:
        again = Stateful(here.raw).join(client.id)
        rest = await (await again.listen(first.id)).events()
        assert rest[0].data["method"] == "notifications/progress"
        assert [event.data["error"]["message"] for event in rest[1:]] == ["the server was closed"]


async def test_an_unused_application_is_drained_and_closed_at_once() -> None:
    app = Desk().asgi()
    assert await app.drain(SECONDS) is True
    await app.close()


class Guarded:
    """An `auth` that takes its time; `asked` is how many requests wait for it."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.asked = 0

    async def authenticate(self, request: Any) -> Principal:
        self.asked += 1
        await self.release.wait()
        return Principal("ann")


def guarded() -> tuple[Server, Guarded, list[str]]:
    """A server with such an `auth`, and what happens to it."""
    auth, told = Guarded(), list[str]()

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        told.append("begun")
        yield
        told.append("ended")

    server = Server("guarded", "1", limits=quick(), auth=auth, lifespan=lifespan)

    @server.tool
    def act() -> str:
        told.append("called")
        return "done"

    return server, auth, told


@both_ways
async def test_a_request_of_which_auth_is_not_done_is_answered_as_the_server_ends(way: str) -> None:
    server, auth, told = guarded()
    async with site(server, way) as here:
        await here.app.start()
        client, old = Modern(here.raw), Stateful(here.raw).join("of another process")
        call = await client.begin(client.calling("act"))
        stream = asyncio.create_task(old.listen())
        await until(lambda: auth.asked == 2)
        draining = asyncio.create_task(here.app.drain(SECONDS))
        await until(lambda: here.app.draining)
        assert (await client.ask("tools/list")).status == 503  # `auth` is asked no more
        await turns(5)
        assert not draining.done()
        auth.release.set()
        for refused in (await call.start(), await stream):
            assert refused.status == 503
            assert int(refused.headers["retry-after"]) > 0
        assert await draining is True
    assert told == ["begun", "ended"]


@pytest.mark.parametrize("path", ["/mcp", "/sse", "/messages?session_id=x"])
async def test_a_request_of_which_auth_is_done_after_the_end_begins_no_server_anew(path: str) -> None:
    server, auth, told = guarded()
    async with site(server) as here:
        await here.app.start()
        answer = await here.raw.begin("GET" if path == "/sse" else "POST", path, BASIC, b"{}")
        await until(lambda: auth.asked == 1)
        await here.app.drain(0.01)
        await here.app.close()
        assert told == ["begun", "ended"]
        auth.release.set()
        assert (await answer.start()).status == 503
    assert told == ["begun", "ended"]
