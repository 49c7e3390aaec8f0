"""What reaches another worker than the one that it is for is refused with words that say what to do."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import Context, HTTPOptions, Server
from accord.server.http import base_session
from accord.server.http.base_session import is_own_id, new_id
from accord.store.sqlite import SQLiteEvents

from tests.server.http.http_clients import Here, Legacy, Modern, Stateful, quick, request, text
from tests.server.http.raw import Direct

CURE = "HTTPOptions(stateless=True)"


def desk(**options: Any) -> Server:
    server = Server("desk", "1", **{"limits": quick(http_patience_seconds=30), **options})

    @server.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("which?", str)).action

    return server


@asynccontextmanager
async def workers(path: Path | None = None, **limits: Any) -> AsyncIterator[list[Here]]:
    """Two of them, which share a store if there is one."""
    async with AsyncExitStack() as stack:
        stores = [None if path is None else SQLiteEvents(path) for _ in range(2)]
        apps = [
            desk(limits=quick(http_patience_seconds=30, **limits)).asgi(HTTPOptions(events=each)) for each in stores
        ]
        for app in apps:
            stack.push_async_callback(app.close)
        yield [Here(Direct(app), app) for app in apps]


def warned(caplog: pytest.LogCaptureFixture) -> int:
    """How often the cure was logged."""
    return sum(CURE in record.getMessage() for record in caplog.records)


@pytest.fixture
def another(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have what comes look like another process's."""

    def be() -> None:
        monkeypatch.setattr(base_session, "_KEY", b"of another process")

    return be


async def test_an_answer_that_reaches_another_worker_is_refused_and_the_right_one_still_takes_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with workers(tmp_path / "events.db") as (one, two):
        mine = await Stateful(one.raw).open()
        stream = await mine.call("ask")
        question = await stream.message()
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}
        for _ in range(3):
            refused = await Stateful(two.raw).join(mine.id).post(answer)
            assert refused.status == 400
            assert CURE in (await refused.json())["error"]["message"]
        assert warned(caplog) == 1
        assert (await mine.post(answer)).status == 202
        assert text(await stream.message()) == "decline"
        assert (await mine.post(answer)).status == 202  # once more, as after a POST whose answer was lost


async def test_what_a_worker_restores_of_sessions_of_others_is_bounded(tmp_path: Path) -> None:
    large = {"experimental": {"x": {"y": [{}] * 4_000}}}
    async with workers(tmp_path / "events.db", http_bodies_bytes=1_200_000) as (one, two):
        statuses = []
        for _ in range(4):
            client = await Stateful(one.raw, capabilities=large).open()
            statuses.append((await Stateful(two.raw).join(client.id).ask("ping")).status)
            assert (await client.delete()).status == 200, "the worker that it began with forgets it"
        assert statuses == [200, 200, 503, 503]
        assert len(two.endpoint.sessions) == 2
        budget = two.endpoint.context.handshake_budget
        assert budget.total > 1_000_000
        small = await Stateful(one.raw, capabilities={}).open()
        assert (await Stateful(two.raw).join(small.id).ask("ping")).status == 200
        for each in list(two.endpoint.sessions):
            await two.endpoint.sessions.end(each, "the test ends")
        assert budget.total == 0


async def test_a_session_of_another_worker_is_404_with_the_cure_which_is_logged_once(
    caplog: pytest.LogCaptureFixture, another: Any
) -> None:
    async with workers() as (one, two):
        mine = await Stateful(one.raw).open()
        another()
        for method in ("POST", "GET", "DELETE"):
            refused = await Stateful(two.raw).join(mine.id).send(method, b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
            assert refused.status == 404
            assert CURE in (await refused.json())["error"]["message"]
        assert warned(caplog) == 1


async def test_a_stream_of_another_worker_is_404_with_the_cure(caplog: pytest.LogCaptureFixture, another: Any) -> None:
    async with workers() as (one, two):
        mine = await Legacy.connect(one.raw)
        another()
        refused = await Legacy(two.raw, mine.stream, mine.address).post(request("ping"))
        assert refused.status == 404
        assert CURE in (await refused.json())["error"]["message"]
        assert warned(caplog) == 1
        await mine.stream.leave()


async def test_a_session_of_this_process_that_has_ended_is_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with workers() as (one, _):
        mine = await Stateful(one.raw).open()
        assert (await mine.delete()).status == 200
        assert (await mine.ask("ping")).status == 404
        assert warned(caplog) == 0


async def test_an_answer_to_nothing_on_http_and_sse_is_400() -> None:
    async with workers() as (one, _):
        client = await (await Legacy.connect(one.raw)).open()
        assert (await client.post({"jsonrpc": "2.0", "id": 77, "result": {}})).status == 400
        assert (await client.ask("ping"))["result"] == {}
        await client.stream.leave()


async def test_a_state_that_another_worker_has_sealed_is_refused_with_the_cure() -> None:
    async with workers() as (one, two):
        asked = await (await Modern(one.raw, {"elicitation": {}}).call("ask")).json()
        params = {"name": "ask", "arguments": {}, "requestState": asked["result"]["requestState"]}
        said = await (await Modern(two.raw, {"elicitation": {}}).ask("tools/call", params)).json()
        assert "state_keys" in text(said)


@pytest.mark.parametrize("id", ["", "x", "\xff" * 60, "é" * 12, "\udcff" * 60])
def test_an_id_that_is_none_is_not_of_this_process(id: str) -> None:
    assert not is_own_id(id)


def test_an_id_of_this_process_is_and_one_that_was_changed_is_not() -> None:
    id = new_id()
    assert is_own_id(id)
    assert not is_own_id(id[:-1] + ("a" if id[-1] != "a" else "b"))
