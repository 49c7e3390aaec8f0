"""Any program of questions and effects, against any client: nothing that is not safe happens twice."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from accord.server.server import Server

from tests.server.input.caller import Caller, caller, texts
from tests.server.input.misbehaving_client import ACTIONS, HungUp, Logical, Wayward
from tests.server.input.programs import DECLARED, KINDS, Log, expected, places, programs, serve

WAYS = st.lists(st.sampled_from([*ACTIONS, "complete", "complete", "give up"]), max_size=6)
CALLS = st.builds(Logical, st.sampled_from(list(KINDS)), programs, WAYS)
CANCELS = {"cancel", "cancel one of two"}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Programs fail on purpose; that is not to be told a thousand times."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@settings(max_examples=500, derandomize=True, database=None)
@given(st.lists(CALLS, min_size=1, max_size=3))
def test_whatever_client_and_handler_do_nothing_happens_twice(calls: list[Logical]) -> None:
    asyncio.run(happens(calls))


async def happens(calls: list[Logical]) -> None:
    log = Log()
    server = serve(log)
    for number, call in enumerate(calls):
        call.token, call.done, call.ended = f"c{number}", [], None
        log.programs[call.token] = call.program
    async with caller(server) as client:
        waywards = [Wayward(client, call) for call in calls]
        await go(waywards)
        check_answers(client, waywards)
    for call in calls:
        check(call, log)
    check_nothing_left(server)


async def go(waywards: list[Wayward]) -> None:
    """All calls at once, until they end or one hangs up."""
    tasks = [asyncio.create_task(wayward.go()) for wayward in waywards]
    await asyncio.wait(tasks, timeout=100, return_when=asyncio.FIRST_EXCEPTION)
    for task in tasks:
        task.cancel()
    for failed in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(failed, Exception) and not isinstance(failed, HungUp):
            raise failed


def check_answers(client: Caller, waywards: list[Wayward]) -> None:
    """Every request has at most one answer; `Caller.answer` has seen that each that was waited for has one."""
    assert None not in client.heard, client.heard[None]
    assert all(len(answers) == 1 for answers in client.heard.values())
    assert not client.asked, "a server sends no requests"


def check(call: Logical, log: Log) -> None:
    token = call.token
    if call.runs_once:
        assert log.begun[token] <= 1
        assert all(times == 1 for times in (log.effects[token] + log.made[token]).values())
    if call.ended is None or "decline" in call.done:
        return
    if "error" in call.ended or call.ended["result"].get("isError"):
        assert any(places("fail", call.program)) or (call.runs_once and CANCELS & set(call.done)), call.ended
        return
    given = json.loads(json.dumps(DECLARED.get(call.kind, [])).replace("{}", token))
    made = [] if call.kind == "plain" else expected(call.program, token)
    assert json.loads(texts(call.ended)) == [given, made]
    assert set(log.effects[token]) == set(places("effect", call.program))


def check_nothing_left(server: Server) -> None:
    runs = server.round_trips.suspended_calls
    assert not runs._running
    assert not runs._runs
    assert not runs._ended
    assert not runs.waiting
    assert not runs._held
