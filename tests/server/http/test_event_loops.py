"""One application on several event loops: one after the other, at once, and with a lifespan or without; and several
applications of one server on one loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Context
from accord.server.http.app import HTTPApp
from accord.server.http.options import HTTPOptions
from accord.server.server import Server
from accord.store.sqlite import SQLiteEvents

from tests.server.http.http_clients import BASIC, Direct, Modern, Stateful, quick, text

SECONDS = 100


def made() -> Server:
    server = Server("loops", "1", limits=quick(grace_seconds=0.2))

    @server.tool
    def echo(text: str) -> str:
        return text

    return server


@asynccontextmanager
async def lifespan(app: HTTPApp) -> AsyncIterator[list[dict[str, Any]]]:
    """What a server does before and after; yields what it is told."""
    told: list[dict[str, Any]] = []
    news: asyncio.Queue[None] = asyncio.Queue()
    asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    async def send(message: Any) -> None:
        told.append(message)
        news.put_nowait(None)

    running = asyncio.create_task(app({"type": "lifespan"}, asked.get, send))
    asked.put_nowait({"type": "lifespan.startup"})
    await asyncio.wait_for(news.get(), SECONDS)
    yield told
    asked.put_nowait({"type": "lifespan.shutdown"})
    await asyncio.wait_for(running, SECONDS)


async def both_forms(app: HTTPApp, secret: str) -> Stateful:
    """A call of either form is answered; the session is left open."""
    raw = Direct(app)
    assert text(await (await Modern(raw).call("echo", {"text": secret})).result()) == secret
    client = await Stateful(raw).open()
    assert text(await (await client.call("echo", {"text": secret})).result()) == secret
    return client


def in_threads(*works: Coroutine[Any, Any, Any]) -> None:
    """Run each on a loop of its own, in a thread of its own, at once."""
    with ThreadPoolExecutor(len(works)) as pool:
        for done in as_completed([pool.submit(asyncio.run, work) for work in works], SECONDS):
            done.result()


def workers() -> int:
    return sum(thread.name.startswith("accord-worker") for thread in threading.enumerate())


def test_one_loop_after_the_other_is_served_and_nothing_is_left_of_the_first() -> None:
    before, app = workers(), made().app
    for number in range(4):
        asyncio.run(both_forms(app, f"secret {number}"))

    async def last() -> None:
        await both_forms(app, "the last")
        await app.close()

    asyncio.run(last())
    for thread in threading.enumerate():
        if thread.name.startswith("accord-worker") and workers() > before:
            thread.join(SECONDS)
    assert workers() <= before


def test_a_session_belongs_to_its_loop() -> None:
    app = made().app
    client = asyncio.run(both_forms(app, "first"))

    async def again() -> int:
        client.raw = Direct(app)
        return (await client.call("echo", {"text": "second"})).status

    assert asyncio.run(again()) == 404


def test_a_stored_session_is_resumed_by_the_next_loop(tmp_path: Path) -> None:
    app = made().asgi(HTTPOptions(events=SQLiteEvents(tmp_path / "events.db")))
    client = asyncio.run(both_forms(app, "first"))

    async def again() -> str:
        client.raw = Direct(app)
        said = text(await (await client.call("echo", {"text": "second"})).result())
        await app.close()
        return said

    assert asyncio.run(again()) == "second"


def test_two_loops_at_once_are_served_and_both_are_notified_of_a_change() -> None:
    server = made()
    app, listening = server.app, threading.Barrier(3)

    async def client(name: str) -> None:
        session = await both_forms(app, name)
        stream = await session.listen()
        await asyncio.to_thread(listening.wait, SECONDS)
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
        for number in range(200):
            said = text(await (await session.call("echo", {"text": f"{name} {number}"})).result())
            assert said == f"{name} {number}"
        await app.close()

    async def change() -> None:
        await asyncio.to_thread(listening.wait, SECONDS)
        server.tool(name="more")(lambda: "more")

    in_threads(client("one"), client("other"), change())


def test_a_call_that_waits_on_one_loop_is_refused_on_another_and_goes_on_where_it_is() -> None:
    server = made()

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("which?", str)).action

    async def retry(result: Any) -> str:
        (key,) = result["inputRequests"]
        answers = {"requestState": result["requestState"], "inputResponses": {key: {"action": "decline"}}}
        client = Modern(Direct(server.app), {"elicitation": {}})
        answer = await client.ask("tools/call", {"name": "ask", "arguments": {}, **answers}, id=2)
        return text(await answer.json())

    async def story() -> None:
        asked = await (await Modern(Direct(server.app), {"elicitation": {}}).call("ask")).json()
        elsewhere = await asyncio.to_thread(asyncio.run, retry(asked["result"]))
        assert "another event loop" in elsewhere
        assert await retry(asked["result"]) == "decline"
        await server.app.close()

    asyncio.run(asyncio.wait_for(story(), SECONDS))


async def test_the_clients_of_two_applications_on_one_loop_are_notified_until_one_of_them_ends() -> None:
    server = made()
    apps = [server.asgi(HTTPOptions()), server.asgi(HTTPOptions())]
    for app in apps:
        await app.start()
    wanted = {"notifications": {"toolsListChanged": True}}
    streams = [await Modern(Direct(app)).ask("subscriptions/listen", wanted) for app in apps]
    for stream in streams:
        assert "acknowledged" in (await stream.message())["method"]
    server.tool(name="more")(lambda: "more")
    for stream in streams:
        assert (await stream.message())["method"] == "notifications/tools/list_changed"
    await streams[0].leave()
    await apps[0].close()
    server.tool(name="most")(lambda: "most")
    assert (await streams[1].message())["method"] == "notifications/tools/list_changed"
    await streams[1].leave()
    await apps[1].close()
    assert not server.change_bus.indexes


def test_one_loop_ends_while_another_goes_on(tmp_path: Path) -> None:
    app = made().asgi(HTTPOptions(events=SQLiteEvents(tmp_path / "events.db")))
    both, ended = threading.Barrier(2), threading.Event()

    async def ends() -> None:
        await both_forms(app, "ends")
        await asyncio.to_thread(both.wait, SECONDS)
        assert await app.drain(1)
        assert (await Direct(app).send("GET", "/ready", BASIC)).status == 503
        assert (await Modern(Direct(app)).call("echo", {"text": "late"})).status == 503
        await app.close()
        ended.set()

    async def goes_on() -> None:
        session = await both_forms(app, "goes on")
        await asyncio.to_thread(both.wait, SECONDS)
        await asyncio.to_thread(ended.wait, SECONDS)
        assert (await Direct(app).send("GET", "/ready", BASIC)).status == 200
        assert text(await (await session.call("echo", {"text": "still"})).result()) == "still"
        await both_forms(app, "new")
        await app.close()

    in_threads(ends(), goes_on())


def test_a_lifespan_may_come_again() -> None:
    app = made().app

    async def once() -> list[str]:
        async with lifespan(app) as told:
            await both_forms(app, "within")
        assert (await Modern(Direct(app)).call("echo", {"text": "late"})).status == 503
        return [message["type"] for message in told]

    for _ in range(2):
        assert asyncio.run(once()) == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_store_that_cannot_be_opened_fails_the_start(tmp_path: Path) -> None:
    app = made().asgi(HTTPOptions(events=SQLiteEvents(tmp_path / "none" / "events.db")))

    async def started() -> list[dict[str, Any]]:
        async with lifespan(app) as told:
            return told

    (failed,) = asyncio.run(started())
    assert failed["type"] == "lifespan.startup.failed"
    assert "events.db" in failed["message"]


def test_without_a_lifespan_such_a_store_fails_each_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "none"
    app = made().asgi(HTTPOptions(events=SQLiteEvents(folder / "events.db")))

    async def story() -> None:
        refused = await Modern(Direct(app)).call("echo", {"text": "x"})
        assert refused.status == 503
        assert str(folder).encode() not in await refused.body()
        assert str(folder) in caplog.text
        folder.mkdir()
        await both_forms(app, "mended")
        await app.close()

    asyncio.run(story())
