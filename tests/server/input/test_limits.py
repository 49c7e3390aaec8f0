"""Bounds on what waits for answers: how many, how long, and how much is kept."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest

from accord import Context, Server
from accord.errors import ToolError
from accord.server import run
from accord.server.core.peer import Peer
from accord.server.input import suspended_calls as asking_runs
from accord.server.input.questions import Elicit

from tests.clock import Clock
from tests.limits import limits_of
from tests.server.input.caller import JSON, Later, asks, caller, retry, texts, yes


def serving(**limits: Any) -> tuple[Server, list[str]]:
    """A server, and what happened to its handlers."""
    server = Server("limits", limits=limits_of(**limits))
    happened: list[str] = []

    @server.tool
    async def wait(ctx: Context, size: int = 0) -> str:
        try:
            answer = await ctx.elicit("Sure?", bool)
        except ToolError:
            happened.append("refused")
            raise
        except asyncio.CancelledError:
            happened.append("ended")
            raise
        happened.append(answer.action)
        return "x" * size

    @server.tool
    async def declared(sure: Annotated[bool, Elicit("Sure?")], size: int = 0) -> str:
        happened.append("began")
        return "x" * size

    return server, happened


def nothing_waits(server: Server) -> bool:
    runs = server.round_trips.suspended_calls
    return not (runs._running or runs._runs or runs._ended or runs._nonces or runs.waiting or runs._held)


async def test_one_principal_suspends_so_many_handlers_and_one_more_ends_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, happened = serving(parked=3)
    monkeypatch.setattr(run, "Peer", lambda line, _: Peer(line, "ann"))
    async with caller(server) as ann:
        await ann.call("nothing")  # now it is connected
        monkeypatch.setattr(run, "Peer", lambda line, _: Peer(line, "bob"))
        async with caller(server) as bob:
            other = await bob.call("wait")
            said = [await ann.call("wait") for _ in range(4)]
            assert all(map(asks, said))
            over = await ann.call("wait", **retry(said[0]))
            assert over["result"]["isError"]
            assert "newer calls needed its room" in texts(over)
            assert happened == ["ended"]
            assert texts(await bob.call("wait", **retry(other))) == "", "another person has places of their own"
            assert texts(await ann.call("wait", **retry(said[1]))) == ""
            assert asks(await ann.call("wait")), "an answer makes room"
            assert happened == ["ended", "accept", "accept"]


async def test_a_handler_waits_as_long_as_the_limit_and_is_ended_then(clock: Clock) -> None:
    server, happened = serving(answer_seconds=600)
    async with caller(server) as client:
        said = await client.call("wait")
        await clock.jump(590)
        assert not happened
        again = await client.call("wait", requestState=said["result"]["requestState"])
        assert asks(again)
        await clock.jump(11)
        assert happened == ["ended"], "a part of an answer buys no time"
        for one in (said, again):
            over = await client.call("wait", **retry(one))
            assert over["result"]["isError"]
            assert "not known" in texts(over) or "has ended" in texts(over)


@pytest.mark.parametrize("answered", [True, False])
async def test_nothing_is_left_when_the_time_is_over(clock: Clock, answered: bool) -> None:
    server, _ = serving(answer_seconds=600)
    async with caller(server) as client:
        for tool in ("wait", "declared"):
            said = await client.call(tool)
            if answered:
                assert texts(await client.call(tool, **retry(said))) == ""
                assert texts(await client.call(tool, **retry(said))) == ""
        assert nothing_waits(server) is False
        await clock.jump(601)
        await clock.jump(601)
        assert nothing_waits(server)
        assert not timers(), "no timer runs for what is over"


def timers() -> list[Any]:
    scheduled = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return [timer for timer in scheduled if not timer.cancelled() and "asking" in repr(timer)]


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_a_request_to_the_client_waits_as_long_as_the_limit(revision: str, clock: Clock) -> None:
    server, _ = serving(answer_seconds=600)
    async with caller(server, revision, reply=later) as client:
        id = client.send("tools/call", {"name": "wait", "arguments": {}})
        await client.until(lambda: bool(client.asked))
        await clock.jump(590)
        assert not client.heard.get(id)
        await clock.jump(11)
        said = await client.answer(id)
        assert said["result"]["isError"]
        assert "600 s" in texts(said)


def later(question: JSON) -> JSON:
    raise Later


async def test_outcomes_are_stored_within_the_limit_and_nonces_beyond_it() -> None:
    server, happened = serving(kept_bytes=100_000)
    async with caller(server) as client:
        said = [await client.call("declared", {"size": 40_000}) for _ in range(4)]
        for one in said:
            assert len(texts(await client.call("declared", {"size": 40_000}, **retry(one)))) == 40_000
        assert server.round_trips.suspended_calls._held.total() <= 100_000
        dropped = await client.call("declared", {"size": 40_000}, **retry(said[0]))
        assert dropped["result"]["isError"]
        assert "its result is no longer kept" in texts(dropped)
        assert len(texts(await client.call("declared", {"size": 40_000}, **retry(said[3])))) == 40_000
        assert happened == ["began"] * 4, "what was forgotten is not run again"


@pytest.mark.parametrize("bound", ["_MAX_NONCES", "_MAX_NONCES_PER_ACCOUNT"])
async def test_there_is_a_bound_on_what_is_remembered_and_what_is_forgotten_is_not_run_again(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_runs, bound, 5)
    server, happened = serving(answer_seconds=600)
    async with caller(server) as client:
        early = await client.call("declared")
        first = await client.call("declared")
        assert texts(await client.call("declared", **retry(first))) == ""
        for _ in range(8):
            assert not asks(await client.through("tools/call", {"name": "declared", "arguments": {}}, yes))
        assert len(server.round_trips.suspended_calls._nonces) == 5
        assert len(happened) == 9
        for old in (first, early):  # the one was used and is forgotten; of the other nobody can tell
            refused = await client.call("declared", **retry(old))
            assert refused["result"]["isError"]
        assert len(happened) == 9


async def test_who_waits_again_does_not_hold_up_what_is_over(clock: Clock) -> None:
    server, _ = serving(answer_seconds=600)

    @server.tool
    async def twice(ctx: Context) -> str:
        return f"{await ctx.elicit('A?', str)} {await ctx.elicit('B?', str)}"

    async with caller(server) as client:
        said = await client.call("twice")
        await client.through("tools/call", {"name": "declared", "arguments": {}})
        await clock.jump(500)
        assert asks(await client.call("twice", **retry(said)))
        assert len(server.round_trips.suspended_calls._nonces) == 2
        await clock.jump(101)
        assert len(server.round_trips.suspended_calls._nonces) == 1
