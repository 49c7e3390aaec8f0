"""2025-11-25: a client waits in `tasks/result` at one process for a task that another one runs, and is asked there."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from accord import (
    Accepted,
    AnswerError,
    Client,
    ConnectionLost,
    Context,
    InvalidResult,
    Limits,
    RequestTimeout,
    Server,
    StoreError,
    TaskHandle,
    TaskLimits,
)
from accord.errors import InternalError, StoreFull
from accord.server.input.direct import request_response
from accord.server.tasks import question_sender
from accord.store.tasks import TaskInput
from accord.stores import SQLiteTasks

from tests.server.raw import raw_peer
from tests.server.tasks.test_calls import CORE, Name
from tests.waiting import SECONDS, turns, until

PROGRAM = str(Path(__file__).with_name("killed.py"))


def desk(folder: Path) -> Server:
    limits = Limits(tasks=TaskLimits(polls_per_second=1e6))
    server = Server("desk", tasks=SQLiteTasks(folder / "tasks.db"), limits=limits)

    @server.tool(task=True)
    async def ask(ctx: Context) -> str:
        try:
            answer = await ctx.elicit("Who?", Name)
        except (AnswerError, InvalidResult) as error:
            return f"{type(error).__name__}: {error}"
        return answer.data.name if isinstance(answer, Accepted) else answer.action

    @server.tool(task=True)
    async def hang() -> None:
        await asyncio.get_running_loop().create_future()

    @server.tool(task=True)
    async def ask_briefly(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.5):
                await ctx.elicit("Who?", Name)
        except TimeoutError:
            return "nobody"
        raise AssertionError

    return server


@asynccontextmanager
async def shared_task(folder: Path, tool: str = "ask") -> AsyncIterator[TaskHandle]:
    """A task of another server on the same file, with a client that has the capability and does not wait for it."""
    async with client(folder, lambda _: {"name": "Ann"}) as runs:
        task = await runs.start_tool(tool)
        while (await task.state()).status != "input_required":
            pass
        yield task


def client(folder: Path, elicitation: Callable[[Any], Any] | None) -> Client:
    return Client(desk(folder), revisions=[CORE], elicitation=elicitation)


async def test_another_process_asks_its_client(tmp_path: Path) -> None:
    command, options = [sys.executable, PROGRAM, str(tmp_path)], {"revisions": [CORE]}
    async with Client(command, elicitation=lambda _: {"name": "Ann"}, **options) as runs:
        task = await runs.start_tool("unsafe")
        async with Client(command, elicitation=lambda _: {"name": "Zoe"}, **options) as waits:
            assert (await waits.task(task.id).result()).text == "7 Zoe"
        assert (await task.result()).text == "7 Zoe"


async def test_a_question_outlasts_the_process_that_runs_its_task(tmp_path: Path) -> None:
    command, asked, is_killed = [sys.executable, PROGRAM, str(tmp_path)], asyncio.Event(), asyncio.Event()

    async def answer(_: Any) -> dict[str, str]:
        asked.set()
        await is_killed.wait()
        return {"name": "Zoe"}

    async with Client(command, revisions=[CORE], elicitation=answer) as waits:
        async with Client(command, revisions=[CORE], elicitation=answer) as runs:
            task = await runs.start_tool("safe")
            waiting = asyncio.create_task(waits.task(task.id).result())
            await asked.wait()
            with pytest.raises(ConnectionLost):
                await runs.call_tool("end")
        is_killed.set()
        assert (await waiting).text == "7 Zoe"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda _: {"name": "Zoe"}, "Zoe"),
        (lambda _: None, "decline"),
        (lambda _: 1 / 0, "AnswerError: the client answered elicitation/create with an error"),
    ],
)
async def test_the_handler_learns_every_outcome(answer: Callable[[Any], Any], text: str, tmp_path: Path) -> None:
    async with shared_task(tmp_path) as task, client(tmp_path, answer) as waits:
        assert (await waits.task(task.id).result()).text.startswith(text)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"action": "accept", "content": {"name": 7}}, "InvalidResult: the response to elicitation/create is invalid"),
        (["not", False], "InvalidResult: the response to elicitation/create is invalid"),
    ],
    ids=str,
)
async def test_the_handler_learns_of_an_answer_that_does_not_fit(result: Any, text: str, tmp_path: Path) -> None:
    async with shared_task(tmp_path) as task, raw_peer(desk(tmp_path), None) as peer:
        info = {"name": "raw", "version": "1"}
        opening = {"protocolVersion": CORE, "capabilities": {"elicitation": {}}, "clientInfo": info}
        await peer.ask("initialize", opening)
        peer.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        peer.send("tasks/result", {"taskId": task.id})
        question = await peer.hear()
        assert question["params"]["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task.id}
        peer.say({"jsonrpc": "2.0", "id": question["id"], "result": result})
        assert (await peer.hear())["result"]["content"][0]["text"].startswith(text)


async def test_two_processes_ask_and_the_first_answer_counts(tmp_path: Path) -> None:
    asked, is_withdrawn = asyncio.Event(), asyncio.Event()

    async def never(_: Any) -> None:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            is_withdrawn.set()

    async with shared_task(tmp_path) as task, client(tmp_path, never) as slow:
        late = asyncio.create_task(slow.task(task.id).result())
        await asked.wait()
        assert (await task.result()).text == "Ann"
        assert (await late).text == "Ann"
        await is_withdrawn.wait()


async def test_a_client_that_has_gone_holds_no_question_back(tmp_path: Path) -> None:
    """Its session goes on over HTTP: the next session of its user was not asked, and the handler got a timeout."""
    server, asked = desk(tmp_path), asyncio.Event()

    async def never(_: Any) -> None:
        asked.set()
        await asyncio.get_running_loop().create_future()

    async with Client(server, revisions=[CORE], elicitation=never) as gone:
        task = await gone.start_tool("ask")
        waiting = asyncio.create_task(task.result())
        await asked.wait()
        async with Client(server, revisions=[CORE], elicitation=lambda _: {"name": "Zoe"}) as again:
            assert (await again.task(task.id).result()).text == "Zoe"
        assert (await waiting).text == "Zoe"
    assert not server.task_service.runner(server.limits).asking  # type: ignore[union-attr]


async def test_the_timeout_of_a_client_that_has_gone_ends_no_question_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, gone_asked, asked, request = desk(tmp_path), asyncio.Event(), asyncio.Event(), request_response

    async def time_out(*options: Any) -> bytes:
        if gone_asked.is_set():
            return await request(*options)
        gone_asked.set()
        await asked.wait()
        raise RequestTimeout("no answer")

    monkeypatch.setattr(question_sender, "request_response", time_out)
    async with Client(server, revisions=[CORE], elicitation=lambda _: None) as gone:
        task = await gone.start_tool("ask")
        waiting = asyncio.create_task(task.result())
        await gone_asked.wait()
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]

        async def answer(_: Any) -> dict[str, str]:
            asked.set()
            await until(lambda: [len(each) for each in runner.asking.values()] == [1])
            return {"name": "Zoe"}

        async with Client(server, revisions=[CORE], elicitation=answer) as again:
            assert (await again.task(task.id).result()).text == "Zoe"
        assert (await waiting).text == "Zoe"


async def test_a_client_that_timed_out_is_asked_again_once_no_other_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others left without an answer, and the handler waited until the ttl."""
    server, asked, asked_later, request = desk(tmp_path), asyncio.Event(), asyncio.Event(), request_response
    calls = 0

    async def time_out(*options: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 1:
            return await request(*options)
        asked.set()
        await asked_later.wait()
        raise RequestTimeout("no answer")

    async def never(_: Any) -> None:
        asked_later.set()
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(question_sender, "request_response", time_out)
    async with Client(server, revisions=[CORE], elicitation=lambda _: {"name": "Ann"}) as slow:
        task = await slow.start_tool("ask")
        waiting = asyncio.create_task(task.result())
        await asked.wait()
        async with Client(server, revisions=[CORE], elicitation=never) as leaves:
            leaving = asyncio.create_task(leaves.task(task.id).result())
            await asked_later.wait()
            await turns(20)
            assert calls == 2
            leaving.cancel()
        async with asyncio.timeout(SECONDS):
            assert (await waiting).text == "Ann"
    assert calls == 3
    assert not server.task_service.runner(server.limits).asking  # type: ignore[union-attr]


async def test_errors_of_the_store_while_a_client_is_asked_end_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, failed, reads_again, load = 0, 0, asyncio.Event(), SQLiteTasks.load

    async def answer(_: Any) -> dict[str, str]:
        nonlocal asked
        asked += 1
        monkeypatch.setattr(SQLiteTasks, "load", fail)
        await reads_again.wait()
        return {"name": "Zoe"}

    async def fail(store: SQLiteTasks, id: str) -> Any:
        nonlocal failed
        failed += 1
        if failed <= 3:
            raise StoreError("locked")
        reads_again.set()
        return await load(store, id)

    async with shared_task(tmp_path) as task, client(tmp_path, answer) as waits:
        assert (await waits.task(task.id).result()).text == "Zoe"
    assert asked == 1


async def test_one_client_is_asked_once(tmp_path: Path) -> None:
    asked, answers = 0, asyncio.Event()

    async def answer(_: Any) -> dict[str, str]:
        nonlocal asked
        asked += 1
        await answers.wait()
        return {"name": "Zoe"}

    async with shared_task(tmp_path) as task, client(tmp_path, answer) as waits:
        waiting = [asyncio.create_task(waits.task(task.id).result()) for _ in range(3)]
        await until(lambda: asked)
        waiting.pop(0).cancel()  # another request asks again
        await until(lambda: asked == 2)
        answers.set()
        assert {(await each).text for each in waiting} == {"Zoe"}
        assert asked == 2


async def test_a_client_without_the_capability_waits_for_the_answer_of_another(tmp_path: Path) -> None:
    async with shared_task(tmp_path) as task, client(tmp_path, None) as watches:
        watching = asyncio.create_task(watches.task(task.id).result())
        async with client(tmp_path, lambda _: {"name": "Zoe"}) as waits:
            assert (await waits.task(task.id).result()).text == "Zoe"
        assert (await watching).text == "Zoe"


async def test_a_question_whose_handler_waits_no_longer_is_withdrawn(tmp_path: Path) -> None:
    is_withdrawn = asyncio.Event()

    async def never(_: Any) -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            is_withdrawn.set()

    async with shared_task(tmp_path, "ask_briefly") as task, client(tmp_path, never) as waits:
        assert (await waits.task(task.id).result()).text == "nobody"
        await is_withdrawn.wait()


@pytest.mark.parametrize(
    ("errors", "text"),
    [
        ([StoreError("locked"), StoreFull("no room"), OSError("of another kind")], "Zoe"),
        ([StoreFull("no room")] * 2, "AnswerError: no room"),
    ],
)
async def test_an_answer_outlasts_errors_of_the_store_and_the_end_of_its_request(
    errors: list[Exception], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without room is tried again too: a process takes a hundred answers at once, and a handler may ask more."""
    monkeypatch.setattr(question_sender, "_AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(question_sender, "_MAX_FULL", 2)
    failed, send = 0, SQLiteTasks.send

    async def fail(store: SQLiteTasks, input: TaskInput) -> None:
        nonlocal failed
        failed += 1
        if failed <= len(errors):
            raise errors[failed - 1]
        await send(store, input)

    monkeypatch.setattr(SQLiteTasks, "send", fail)
    async with shared_task(tmp_path) as task, client(tmp_path, lambda _: {"name": "Zoe"}) as waits:
        waiting = asyncio.create_task(waits.task(task.id).result())
        await until(lambda: failed)
        waiting.cancel()
        while not (state := await task.state()).ended:
            pass
        assert (await task.result()).text == text
        assert state.status == "completed"


async def test_a_request_for_a_result_that_its_server_abandons_may_be_sent_again(tmp_path: Path) -> None:
    """The next process continues the task: a client that was told that it has no result would cancel it."""
    server = desk(tmp_path)
    async with raw_peer(server, CORE) as peer:
        id = (await peer.ask("tools/call", {"name": "hang", "task": {}}))["result"]["task"]["taskId"]
        peer.send("tasks/result", {"taskId": id})
        await turns(20)
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        runner.tasks[id].stop(abandon=True)
        assert (await peer.hear())["error"]["code"] == InternalError.default_code
