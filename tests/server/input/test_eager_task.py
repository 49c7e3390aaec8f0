"""Handlers that run in a task of their own from their first step on, without one if they never wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Annotated, Any

import pytest

from accord import Context, Depends, Limits, Server
from accord.messages.tools import ToolAnnotations
from accord.server.input.eager_task import EagerTask

from tests.clock import Clock
from tests.server.input.caller import asks, caller, questions, retry, texts

SEEN: ContextVar[str] = ContextVar("SEEN", default="unset")

Work = Callable[[], Awaitable[Any]]


async def outcome(work: Coroutine[Any, Any, Any]) -> Any:
    """Run work in an eager task as the server runs a handler, and return its value or its exception."""
    ended: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        try:
            ended.set_result(await work)
        except BaseException as exc:
            ended.set_result(exc)

    eager = EagerTask()
    if eager.start(run()):
        assert ended.done()
        eager.task.cancel()
    async with asyncio.timeout(30):
        await asyncio.wait((eager.task,))
        return await ended


async def test_work_that_never_waits_has_ended_at_once_and_leaves_its_task_to_the_next() -> None:
    eager, caller_task, tasks = EagerTask(), asyncio.current_task(), []

    async def work() -> None:
        tasks.append(asyncio.current_task())

    for _ in range(3):
        assert eager.start(work())
        assert asyncio.current_task() is caller_task
    assert tasks == [eager.task] * 3
    eager.task.cancel()
    await asyncio.wait((eager.task,))
    assert eager.task.cancelled()


@pytest.mark.parametrize("idle", [False, True])
async def test_work_has_one_task_before_and_after_it_waits(idle: bool) -> None:
    eager, tasks = EagerTask(), []
    if idle:
        await asyncio.sleep(0)  # the task waits for work

    async def work() -> None:
        for _ in range(3):
            tasks.append(asyncio.current_task())
            await asyncio.sleep(0)

    assert not eager.start(work())
    assert not eager.task.done()
    await eager.task
    assert tasks == [eager.task] * 3
    assert asyncio.current_task() is not eager.task


async def test_a_timeout_that_began_before_the_first_wait_ends_the_work_and_not_its_caller() -> None:
    async def work() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            task = asyncio.current_task()
            assert task is not None
            return f"timeout {task.cancelling()}"
        return "none"

    assert await outcome(work()) == "timeout 0"
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


async def test_a_task_group_that_began_before_the_first_wait_is_cancelled_by_its_child() -> None:
    async def fails() -> None:
        raise ValueError("child")

    async def work() -> str:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                await asyncio.Event().wait()
        except ExceptionGroup as errors:
            return str(errors.exceptions[0])
        return "none"

    assert await outcome(work()) == "child"


async def test_a_cancellation_before_the_task_goes_on_cancels_what_the_work_waits_for() -> None:
    children: list[asyncio.Future[Any]] = [asyncio.get_running_loop().create_future() for _ in range(2)]
    eager, noted = EagerTask(), []

    async def work() -> None:
        try:
            await asyncio.gather(*children)
        except asyncio.CancelledError as exc:
            task = asyncio.current_task()
            assert task is not None
            noted.append((exc.args, task.cancelling()))

    assert not eager.start(work())
    eager.task.cancel("why")
    await asyncio.wait((eager.task,))
    assert all(child.cancelled() for child in children)
    assert noted == [(("why",), 1)]


async def test_a_cancellation_reaches_work_that_waits_for_nothing() -> None:
    eager, noted = EagerTask(), []

    async def work() -> None:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            noted.append("cancelled")

    assert not eager.start(work())
    eager.task.cancel()
    await asyncio.wait((eager.task,))
    assert noted == ["cancelled"]


@pytest.mark.parametrize("idle", [False, True])
async def test_work_that_cancels_its_own_task_is_cancelled_at_its_next_wait(idle: bool) -> None:
    eager, noted = EagerTask(), []
    if idle:
        await asyncio.sleep(0)

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            await future
        except asyncio.CancelledError:
            noted.append(future.cancelled())

    assert not eager.start(work())
    await asyncio.wait((eager.task,))
    assert noted == [True]


async def test_work_that_cancels_its_own_task_and_never_waits_has_its_outcome() -> None:
    async def work() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "done"

    assert await outcome(work()) == "done"


async def test_context_variables_last_through_the_waits_of_work_and_end_with_it() -> None:
    async def work() -> list[str]:
        seen = [SEEN.get()]
        SEEN.set("own")
        for _ in range(2):
            await asyncio.sleep(0)
            seen.append(SEEN.get())
        return seen

    token = SEEN.set("caller")
    assert await outcome(work()) == ["caller", "own", "own"]
    assert SEEN.get() == "caller"
    SEEN.reset(token)


async def test_others_may_wait_for_what_the_work_first_waits_for() -> None:
    shared: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    noted: list[str] = []

    async def work() -> None:
        noted.append(await shared)

    eager = EagerTask()
    assert not eager.start(work())  # the task has not gone on yet
    other = asyncio.create_task(work())
    second = EagerTask()
    assert not second.start(work())
    asyncio.get_running_loop().call_soon(shared.set_result, "value")
    async with asyncio.timeout(30):
        await asyncio.gather(eager.task, other, second.task)
    assert noted == ["value"] * 3


async def test_work_goes_on_if_what_it_waits_for_is_ready_before_its_task_is() -> None:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    noted: list[str] = []

    async def work() -> None:
        noted.append(await ready)

    eager = EagerTask()
    assert not eager.start(work())
    ready.set_result("value")
    await eager.task
    assert noted == ["value"]


# --- handlers ----------------------------------------------------------------------------------------------------


async def test_a_handler_with_a_context_that_never_waits_starts_no_task() -> None:
    server = Server("test")
    tasks: list[Any] = []

    @server.tool
    async def echo(text: str, ctx: Context) -> str:
        await ctx.report_progress(1)
        tasks.append(asyncio.current_task())
        return text

    async with caller(server) as client:
        assert texts(await client.call("echo", {"text": "first"})) == "first"
        loop, started = asyncio.get_running_loop(), []

        def note(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
            started.append(work)
            return asyncio.Task(work, loop=loop, **options)

        loop.set_task_factory(note)
        try:
            for number in range(5):
                assert texts(await client.call("echo", {"text": str(number)})) == str(number)
        finally:
            loop.set_task_factory(None)
    assert not started
    assert len(set(tasks)) == 1


async def test_the_spare_task_can_be_cancelled_by_others() -> None:
    server = Server("test")
    tasks: list[asyncio.Task[Any] | None] = []

    @server.tool
    async def echo(ctx: Context) -> str:
        tasks.append(asyncio.current_task())
        return "echo"

    async with caller(server) as client:
        for _ in range(3):
            assert texts(await client.call("echo")) == "echo"
            assert tasks[-1] is not None
            tasks[-1].cancel()
    assert len(set(tasks)) == 3


async def test_handlers_in_flight_together_have_tasks_of_their_own() -> None:
    server = Server("test")

    @server.tool
    async def waits(number: int, ctx: Context) -> str:
        task = asyncio.current_task()
        await asyncio.sleep(0)
        answer = await ctx.elicit(f"Number {number}?", str)
        assert asyncio.current_task() is task
        return f"{number} {answer.data}"

    async with caller(server) as client:
        asked = await asyncio.gather(*(client.call("waits", {"number": number}) for number in range(5)))
        said = await asyncio.gather(
            *(client.call("waits", {"number": number}, **retry(each)) for number, each in enumerate(asked))
        )
    assert [texts(each) for each in said] == [f"{number} answer to Number {number}?" for number in range(5)]


async def test_a_timeout_around_the_first_question_ends_only_the_question() -> None:
    server, expired = Server("test"), asyncio.Event()

    @server.tool
    async def impatient(ctx: Context) -> str:
        try:
            async with asyncio.timeout(0.001):
                await ctx.elicit("Name?", str)
        except TimeoutError:
            expired.set()
            return "nobody"
        return "somebody"

    async with caller(server) as client:
        asked = await client.call("impatient")
        await expired.wait()
        if asks(asked):
            asked = await client.call("impatient", **retry(asked))
    assert texts(asked) == "nobody"


async def test_a_task_group_may_request_input_before_the_first_wait() -> None:
    server = Server("test")

    @server.tool
    async def both(ctx: Context) -> str:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(ctx.elicit(f"{number}?", str)) for number in range(2)]
        return ", ".join(str(each.result().data) for each in asked)  # type: ignore[union-attr]

    async with caller(server) as client:
        asked = await client.call("both")
        assert len(questions(asked)) == 2
        said = await client.call("both", **retry(asked))
    assert texts(said) == "answer to 0?, answer to 1?"


async def test_a_cancelled_request_cancels_a_handler_that_waits_in_a_task_group() -> None:
    server, noted = Server("test"), []
    waits = asyncio.Event()

    async def child() -> None:
        waits.set()
        try:
            await asyncio.Event().wait()
        finally:
            noted.append("child")

    @server.tool
    async def group(ctx: Context) -> str:
        try:
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                group.create_task(child())
        finally:
            noted.append("handler")
        return "done"

    async with caller(server) as client:
        id = client.send("tools/call", {"name": "group", "arguments": {}})
        await waits.wait()
        client.cancel(id)
        await client.ask("tools/list", {})
        for _ in range(20):
            await asyncio.sleep(0)
        assert noted == ["child", "handler"]
        assert id not in client.heard


async def test_middleware_and_clean_ups_have_the_task_and_the_variables_of_their_handler() -> None:
    server, noted = Server("test"), []

    async def resource() -> AsyncIterator[str]:
        task = asyncio.current_task()
        SEEN.set(f"{SEEN.get()} dependency")
        async with asyncio.timeout(60):
            yield "db"
        assert asyncio.current_task() is task
        noted.append(("clean-up", SEEN.get()))

    @server.middleware
    async def sets(request: Any, call_next: Any) -> Any:
        SEEN.set("middleware")
        async with asyncio.timeout(60):
            result = await call_next(request)
        noted.append(("middleware", SEEN.get()))
        return result

    @server.tool
    async def asks_once(db: Annotated[str, Depends(resource)], ctx: Context) -> str:
        ctx.report_progress(0.5)
        value = await ctx.once("key", lambda: 1)
        answer = await ctx.elicit("Name?", str)
        return f"{db} {value} {answer.data} {SEEN.get()}"

    async with caller(server) as client:
        asked = await client.ask("tools/call", {"name": "asks_once", "arguments": {}}, progressToken=1)
        assert [each["params"]["progress"] for each in client.told] == [0.5]
        assert not noted
        said = await client.call("asks_once", **retry(asked))
    assert texts(said) == "db 1 answer to Name? middleware dependency"
    assert noted == [("clean-up", "middleware dependency"), ("middleware", "middleware dependency")]
    assert SEEN.get() == "unset"


@pytest.mark.parametrize("marks", [None, ToolAnnotations(read_only_hint=True)])
async def test_the_time_of_a_tool_does_not_run_while_its_first_question_is_open(marks: ToolAnnotations | None) -> None:
    server = Server("test", limits=Limits(tool_seconds=60))

    @server.tool(annotations=marks)
    async def slow_person(ctx: Context) -> str:
        answer = await ctx.elicit("Name?", str)
        return str(answer.data)

    async with caller(server) as client:
        asked = await client.call("slow_person")
        await Clock().jump(61)
        assert texts(await client.call("slow_person", **retry(asked))) == "answer to Name?"


async def test_a_tool_with_a_context_is_stopped_after_its_time() -> None:
    server = Server("test", limits=Limits(tool_seconds=0.01))

    @server.tool
    async def stuck(ctx: Context) -> str:
        await asyncio.Event().wait()
        return "never"

    for revision in ("2025-11-25", "2026-07-28"):
        async with caller(server, revision) as client:
            said = await client.call("stuck")
        assert said["result"]["isError"]
        assert "0.01 s" in texts(said)
