"""Tasks whose store fails or is slow, and whose clients give up meanwhile: each ends, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from accord import (
    Client,
    Context,
    HTTPLimits,
    Limits,
    Principal,
    Server,
    StoreError,
    StoreFull,
    Task,
    TaskLimits,
    ToolAnnotations,
)
from accord.errors import InternalError
from accord.server.tasks import question_sender
from accord.server.tasks.runner import _Step
from accord.stores import MemoryTasks, SQLiteTasks, TaskRecord

from tests.server.http.http_clients import Direct, Modern, text
from tests.server.raw import RawPeer, raw_peer
from tests.server.tasks.test_calls import CORE, DECLARED, EXTENSION, Desk, poll
from tests.waiting import turns, until


class SlowStore(MemoryTasks):
    """A store whose calls wait until the test lets them on, and fail as often as it says."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.waiting = 0
        self.failures = 0
        self.error: Exception = StoreError("the disk is full")
        self.saves = 0
        self.created: list[str] = []
        self.stored: dict[str, str] = {}

    async def _pass(self) -> None:
        self.waiting += 1
        try:
            await self.is_open.wait()
        finally:
            self.waiting -= 1
        if self.failures:
            self.failures -= 1
            raise self.error

    async def create(self, record: TaskRecord) -> None:
        await super().create(record)  # as in a thread, the end of the caller does not end it
        self.created.append(record.id)
        await self._pass()

    async def save(self, record: TaskRecord) -> None:
        await self._pass()
        await super().save(record)
        self.saves += 1
        self.stored[record.id] = record.status


@pytest.mark.parametrize("ending", ["cancelled", "completed"])
async def test_a_cancellation_whose_request_ends_meanwhile_ends_the_task(ending: str) -> None:
    store = SlowStore()
    desk = Desk(Limits(), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        about = {"taskId": (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"], **DECLARED}
        await until(lambda: desk.ran)
        await until(lambda: store.stored)  # the first state
        store.is_open.clear()
        if ending == "completed":
            desk.let_on.set()
            await until(lambda: store.waiting)
        cancelling = peer.send("tasks/cancel", about)
        await until(lambda: store.waiting)
        params = {"requestId": cancelling, "reason": "gone"}
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await turns(20)
        store.is_open.set()
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner.tasks)
        assert store.stored[about["taskId"]] == ending
        assert (await poll(peer, about))["status"] == ending
        assert desk.cancelled.is_set() == (ending == "cancelled")


async def test_the_end_of_a_task_is_stored_again_after_the_store_has_failed() -> None:
    store = SlowStore()
    desk = Desk(Limits(), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        about = {"taskId": (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"], **DECLARED}
        await until(lambda: store.stored)
        store.failures = 1
        desk.let_on.set()
        assert (await poll(peer, about))["status"] == "completed"
        await until(lambda: store.stored[about["taskId"]] == "completed")


async def test_a_change_during_the_storage_of_an_earlier_one_is_stored_too() -> None:
    store = SlowStore()
    server = Server("desk", tasks=store)
    changes = asyncio.Queue[str]()

    @server.tool(task=True)
    async def report(ctx: Context) -> None:
        while True:
            ctx.status(await changes.get())

    async with raw_peer(server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "report", **DECLARED}))["result"]["taskId"]
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        task = runner.tasks[id]
        store.is_open.clear()
        changes.put_nowait("first")
        await until(lambda: store.waiting)
        changes.put_nowait("second")
        await until(lambda: task.record.message == "second")
        store.is_open.set()
        await until(lambda: store.saves == 2)


async def test_no_client_sees_a_result_that_is_not_stored() -> None:
    store = SlowStore()
    desk = Desk(Limits(), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        about = {"taskId": (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"], **DECLARED}
        await until(lambda: store.stored)
        store.is_open.clear()
        desk.let_on.set()
        await until(lambda: store.waiting)
        assert (await peer.ask("tasks/get", about))["result"]["status"] == "working"
        store.is_open.set()
        assert (await poll(peer, about))["status"] == "completed"


async def test_a_call_that_is_cancelled_while_its_task_is_created_leaves_no_task_that_runs() -> None:
    store = SlowStore()
    desk = Desk(Limits(), store)
    store.is_open.clear()
    async with raw_peer(desk.server, EXTENSION) as peer:
        calling = peer.send("tools/call", {"name": "work", **DECLARED})
        await until(lambda: store.created)
        params = {"requestId": calling, "reason": "gone"}
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await turns(20)
        store.is_open.set()
        await until(lambda: store.stored.get(store.created[0]) == "cancelled")
        assert desk.ran == []


async def stuck(ctx: Context, become: bool = False) -> str:
    if become:
        await ctx.run_as_task()
    await asyncio.get_running_loop().create_future()
    return ""


async def test_a_call_that_is_no_task_yet_has_the_time_limit_of_a_call() -> None:
    server = Server("desk", limits=Limits(tool_seconds=0.05))
    server.tool(stuck, task=Task(after=None))
    async with raw_peer(server, EXTENSION) as peer:
        answer = (await peer.ask("tools/call", {"name": "stuck", **DECLARED}))["result"]
        assert answer["isError"]


async def test_a_call_over_http_that_is_no_task_yet_has_the_time_limit_of_a_call_over_http() -> None:
    server = Server("desk", limits=Limits(http=HTTPLimits(tool_seconds=0.05)))
    server.tool(stuck, task=Task(after=None))
    async with asyncio.timeout(100):
        modern = Modern(Direct(server.app), {"extensions": {"io.modelcontextprotocol/tasks": {}}})
        task = (await (await modern.call("stuck", {"become": True})).result())["result"]
        assert task["resultType"] == "task"
        assert "took longer than 0.05 s" in text(await (await modern.call("stuck")).result())
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        running = runner.tasks[task["taskId"]]  # although it has run for longer
        assert not running.record.ended
        await running.cancel()


async def test_a_result_without_room_in_the_store_fails_the_task_with_the_name_of_the_limit() -> None:
    server = Server("desk", limits=Limits(tasks=TaskLimits(kept_bytes=20_000)))

    @server.tool(task=True)
    def large(count: int) -> str:
        return "x" * count

    async with raw_peer(server, EXTENSION) as peer:
        for count in (1_000, 50_000, 1_000):
            called = {"name": "large", "arguments": {"count": count}, **DECLARED}
            id = (await peer.ask("tools/call", called))["result"]["taskId"]
            ended = await poll(peer, {"taskId": id, **DECLARED})
            assert ended["status"] == ("failed" if count == 50_000 else "completed")
            assert count != 50_000 or "TaskLimits.kept_bytes" in ended["error"]["message"]


async def test_a_long_status_message_is_cut() -> None:
    server = Server("desk")

    @server.tool(task=True)
    async def long(ctx: Context) -> None:
        ctx.status("x" * 1_000_000)
        await asyncio.get_running_loop().create_future()

    async with raw_peer(server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "long", **DECLARED}))["result"]["taskId"]
        while "statusMessage" not in (state := (await peer.ask("tasks/get", {"taskId": id, **DECLARED}))["result"]):
            pass
        assert state["statusMessage"] == "x" * 1_000


async def test_the_poll_rate_of_one_client_survives_many_others() -> None:
    server = Server("desk", limits=Limits(tasks=TaskLimits(polls_per_second=0.001), principals=3))
    server.tool(stuck, task=True)
    async with raw_peer(server, EXTENSION, Principal("ann")) as ann:
        about = {"taskId": (await ann.ask("tools/call", {"name": "stuck", **DECLARED}))["result"]["taskId"], **DECLARED}
        assert "result" in await ann.ask("tasks/get", about)
        for number in range(9):
            async with raw_peer(server, EXTENSION, Principal(f"other {number}")) as other:
                await other.ask("tasks/get", about)
            assert (await ann.ask("tasks/get", about))["error"]["code"] == 429


async def test_a_request_to_run_a_hidden_tool_as_a_task_does_not_reveal_it() -> None:
    desk = Desk()

    @desk.server.tool(scopes={"admin"})
    def secret() -> str:
        return ""

    async with raw_peer(desk.server, "2025-11-25", Principal("ann")) as peer:
        hidden, unknown = [(await peer.ask("tools/call", {"name": name, "task": {}})) for name in ("secret", "absent")]
        assert "error" in hidden
        assert hidden["error"]["code"] == unknown["error"]["code"]
        assert hidden["error"]["message"].replace("secret", "absent") == unknown["error"]["message"]


class FailingOnce(SQLiteTasks):
    """A store that does not save one change."""

    is_failing = False
    failed = 0

    async def save(self, record: TaskRecord) -> None:
        if self.is_failing and any(each.answer is not None for each in record.asked):
            self.is_failing, self.failed = False, self.failed + 1
            raise StoreError("disk full")
        await super().save(record)


async def test_an_answer_from_another_process_is_not_lost_if_its_save_fails(tmp_path: Path) -> None:
    store = FailingOnce(tmp_path / "tasks.db")
    limits = Limits(tasks=TaskLimits(polls_per_second=1e6))
    here, there = Desk(limits, store), Desk(limits, SQLiteTasks(tmp_path / "tasks.db"))
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as answers:
        id = (await runs.ask("tools/call", {"name": "ask", **DECLARED}))["result"]["taskId"]
        state: dict[str, Any] = {"status": "working"}
        while state["status"] == "working":
            state = (await runs.ask("tasks/get", {"taskId": id, **DECLARED}))["result"]
        store.is_failing = True
        given = {key: {"action": "accept", "content": {"name": "Zoe"}} for key in state["inputRequests"]}
        await answers.ask("tasks/update", {"taskId": id, "inputResponses": given, **DECLARED})
        await until(lambda: store.failed == 1)
        state = await poll(runs, {"taskId": id, **DECLARED})
        assert state["result"]["content"][0]["text"] == "Hello, Zoe"


class Full(SQLiteTasks):
    """A store that saves no answer while it is full."""

    is_full, refused = True, 0

    async def save(self, record: TaskRecord) -> None:
        if self.is_full and any(each.answer is not None for each in record.asked):
            self.refused += 1
            raise StoreError("disk full")
        await super().save(record)


async def test_answers_without_a_question_do_not_wait_for_a_store_that_is_full(tmp_path: Path) -> None:
    store, limits = Full(tmp_path / "tasks.db"), Limits(tasks=TaskLimits(polls_per_second=1e6))
    here, there = Desk(limits, store), Desk(limits, SQLiteTasks(tmp_path / "tasks.db"))
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as answers:
        id = (await runs.ask("tools/call", {"name": "ask", **DECLARED}))["result"]["taskId"]
        state: dict[str, Any] = {"status": "working"}
        while state["status"] == "working":
            state = (await runs.ask("tasks/get", {"taskId": id, **DECLARED}))["result"]
        (key,) = state["inputRequests"]
        for number in range(3):
            refused = store.refused
            given = {each: {"action": "accept", "content": {"name": "Zoe"}} for each in (key, f"unknown {number}")}
            await answers.ask("tasks/update", {"taskId": id, "inputResponses": given, **DECLARED})
            await until(lambda refused=refused: store.refused > refused + 1)  # type: ignore[misc]
        runner = here.server.task_service.runner(limits)  # type: ignore[union-attr]
        assert set(runner._unsaved.get(id, ())) <= {key}
        store.is_full = False
        await until(lambda: not runner.tasks)
        assert (await poll(runs, {"taskId": id, **DECLARED}))["result"]["content"][0]["text"] == "Hello, Zoe"


async def test_an_answer_whose_request_ends_meanwhile_reaches_the_handler() -> None:
    store = SlowStore()
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "ask", **DECLARED}))["result"]["taskId"]
        state: dict[str, Any] = {"status": "working"}
        while state["status"] == "working":
            state = (await peer.ask("tasks/get", {"taskId": id, **DECLARED}))["result"]
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner._changed)
        store.is_open.clear()
        given = {key: {"action": "accept", "content": {"name": "Zoe"}} for key in state["inputRequests"]}
        answering = peer.send("tasks/update", {"taskId": id, "inputResponses": given, **DECLARED})
        await until(lambda: store.waiting)
        params = {"requestId": answering, "reason": "gone"}
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        await turns(20)
        store.is_open.set()
        await until(lambda: not runner.tasks)
        state = await poll(peer, {"taskId": id, **DECLARED})
        assert state["result"]["content"][0]["text"] == "Hello, Zoe"


class WaitingTasks(MemoryTasks):
    """Tasks whose lookup waits until the test lets it on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open, self.waiting = asyncio.Event(), 0

    async def load(self, id: str) -> TaskRecord | None:
        self.waiting += 1
        await self.is_open.wait()
        self.waiting -= 1
        return await super().load(id)


async def test_only_a_few_requests_at_once_read_tasks_of_the_store() -> None:
    store = WaitingTasks()
    async with raw_peer(Desk(tasks=store).server, EXTENSION) as peer:
        for _ in range(20):
            peer.send("tasks/get", {"taskId": "unknown", **DECLARED})
        await until(lambda: store.waiting)
        await turns(100)
        assert store.waiting == 4
        store.is_open.set()
        for _ in range(20):
            assert (await peer.hear())["error"]["code"] == -32602


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_task_that_has_ended_holds_neither_its_arguments_nor_its_result(
    is_cancelled: bool, tmp_path: Path
) -> None:
    desk = Desk(tasks=SQLiteTasks(tmp_path / "tasks.db"))
    async with raw_peer(desk.server, EXTENSION) as peer:
        call = {"name": "work", "arguments": {"label": "a" * 9_000}, **DECLARED}
        id = (await peer.ask("tools/call", call))["result"]["taskId"]
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        (handler,) = [each.handler for each in runner.tasks.values()]
        gc.disable()  # tasks, requests and contexts refer to each other
        try:
            if is_cancelled:
                await peer.ask("tasks/cancel", {"taskId": id, **DECLARED})
            desk.let_on.set()
            await until(lambda: handler is not None and handler.done() and not runner.tasks)
            await until(
                lambda: not any(isinstance(each, TaskRecord) and each.size > 9_000 for each in gc.get_objects())
            )
        finally:
            gc.enable()
        status = (await poll(peer, {"taskId": id, **DECLARED}))["status"]
        assert status == ("cancelled" if is_cancelled else "completed")


async def question_of(peer: RawPeer, id: str) -> dict[str, Any]:
    """Return answers to the questions of a task, once it asks."""
    state: dict[str, Any] = {"status": "working"}
    while state["status"] == "working":
        state = (await peer.ask("tasks/get", {"taskId": id, **DECLARED}))["result"]
    return {key: {"action": "accept", "content": {"name": "Zoe"}} for key in state["inputRequests"]}


async def test_an_answer_that_is_sent_again_while_it_is_stored_is_acknowledged_only_if_it_is_stored() -> None:
    store = SlowStore()
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "ask", **DECLARED}))["result"]["taskId"]
        params = {"taskId": id, "inputResponses": await question_of(peer, id), **DECLARED}
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner._changed)
        store.is_open.clear()
        peer.send("tasks/update", params)
        await until(lambda: store.waiting)
        peer.send("tasks/update", params)
        await turns(20)
        store.failures = 1
        store.is_open.set()
        outcomes = ["error" in await peer.hear() for _ in range(2)]
        assert outcomes == [True, False]
        assert (await poll(peer, {"taskId": id, **DECLARED}))["result"]["content"][0]["text"] == "Hello, Zoe"


async def test_a_client_that_has_disconnected_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    desk, asked, request = Desk(Limits(grace_seconds=0.1)), 0, question_sender.request_response

    async def count(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return await request(*given)

    monkeypatch.setattr(question_sender, "request_response", count)
    async with raw_peer(desk.server, None) as peer:
        client = {"name": "raw", "version": "1"}
        opening = {"protocolVersion": CORE, "capabilities": {"elicitation": {}}, "clientInfo": client}
        await peer.ask("initialize", opening)
        peer.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        created = (await peer.ask("tools/call", {"name": "ask", "task": {}}))["result"]["task"]
        peer.send("tasks/result", {"taskId": created["taskId"]})
        await until(lambda: asked)
        await peer.transport.close()
        await turns(100)
        assert asked <= 2


class Picky(MemoryTasks):
    """A store that refuses the ends of these tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()
        self.stored: set[str] = set()

    async def save(self, record: TaskRecord) -> None:
        if record.ended and record.id in self.refused:
            raise StoreFull("no room")
        await super().save(record)
        if record.ended:
            self.stored.add(record.id)


async def test_an_end_that_cannot_be_stored_delays_no_other() -> None:
    store = Picky()
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1e6)), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        ids = [(await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"] for _ in range(2)]
        await until(lambda: len(desk.ran) == 2)
        store.refused = set(ids)
        desk.let_on.set()
        runner = desk.server.task_service.runner(desk.server.limits)  # type: ignore[union-attr]
        await until(lambda: len(runner._unstored) == 2)
        first, second = runner._unstored
        store.refused = {first}
        await until(lambda: second in store.stored)


async def test_a_task_whose_answer_has_no_room_fails(tmp_path: Path) -> None:
    store, limits = NoRoom(tmp_path / "tasks.db"), Limits(tasks=TaskLimits(polls_per_second=1e6))
    here, there = Desk(limits, store), Desk(limits, SQLiteTasks(tmp_path / "tasks.db"))
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as answers:
        id = (await runs.ask("tools/call", {"name": "ask", **DECLARED}))["result"]["taskId"]
        given = await question_of(runs, id)
        await answers.ask("tasks/update", {"taskId": id, "inputResponses": given, **DECLARED})
        runner = here.server.task_service.runner(limits)  # type: ignore[union-attr]
        await until(lambda: not runner.tasks)
        assert not runner._unsaved
        state = (await runs.ask("tasks/get", {"taskId": id, **DECLARED}))["result"]
        assert "an answer cannot be kept: no room" in state["error"]["message"]


class NoRoom(SQLiteTasks):
    """A store without room for answers."""

    async def save(self, record: TaskRecord) -> None:
        if any(each.answer is not None for each in record.asked):
            raise StoreFull("no room")
        await super().save(record)


async def test_a_task_that_is_cancelled_while_its_server_stops_ends_once(tmp_path: Path) -> None:
    store = SlowEnds(tmp_path / "tasks.db")
    server, runs = Server("desk", tasks=store), asyncio.Event()

    @server.tool(task=True, annotations=ToolAnnotations(read_only_hint=True))
    async def work() -> None:
        runs.set()
        await asyncio.Event().wait()

    async with raw_peer(server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"]
        await runs.wait()
        task = server.task_service.runner(server.limits).tasks[id]  # type: ignore[union-attr]
        cancelling = asyncio.ensure_future(task.cancel())
        await store.is_ending.wait()
        task.stop(abandon=True)
        await turns(20)
        store.let_on.set()
        await cancelling
        assert task.record.status == "cancelled"


class SlowEnds(SQLiteTasks):
    """A store that stores the end of a task when the test lets it on."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.is_ending, self.let_on = asyncio.Event(), asyncio.Event()

    async def save(self, record: TaskRecord) -> None:
        if record.ended:
            self.is_ending.set()
            await self.let_on.wait()
        await super().save(record)


def stubborn(folder: Path, limits: Limits) -> tuple[Server, asyncio.Event]:
    """A server whose task `work` does not end, even if it is cancelled, before the event."""
    goes_on = asyncio.Event()
    server = Server("stubborn", tasks=SQLiteTasks(folder / "tasks.db"), limits=limits)

    @server.tool(task=True)
    async def work() -> None:
        while not goes_on.is_set():
            with suppress(asyncio.CancelledError):
                await goes_on.wait()

    return server, goes_on


async def test_a_handler_that_does_not_end_leaves_no_lock_behind(tmp_path: Path) -> None:
    server, goes_on = stubborn(tmp_path, Limits(grace_seconds=0.1, close_seconds=0.5))
    async with raw_peer(server, EXTENSION) as peer:
        await peer.ask("tools/call", {"name": "work", **DECLARED})
    await until(lambda: not list(tmp_path.glob("*-runner-*")))
    goes_on.set()


async def test_an_answer_of_a_session_is_stored_again_after_the_store_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2025-11-25: the user is asked once, and the handler learns of no failure."""
    monkeypatch.setattr(question_sender, "_AGAIN_SECONDS", 0.01)
    store, asked = SlowStore(), 0

    def answer(_: Any) -> dict[str, str]:
        nonlocal asked
        asked += 1
        store.failures = 2
        return {"name": "Zoe"}

    async with Client(Desk(Limits(), store).server, revisions=[CORE], elicitation=answer) as client:
        task = await client.start_tool("ask")
        assert (await task.result()).text == "Hello, Zoe"
        assert asked == 1


async def test_an_answer_from_another_process_that_has_room_once_is_stored(tmp_path: Path) -> None:
    limits = Limits(tasks=TaskLimits(kept_bytes=100_000, polls_per_second=1e6))
    here, there = (Desk(limits, SQLiteTasks(tmp_path / "tasks.db", limits)) for _ in range(2))
    async with raw_peer(here.server, EXTENSION) as runs, raw_peer(there.server, EXTENSION) as answers:
        id = (await runs.ask("tools/call", {"name": "ask", **DECLARED}))["result"]["taskId"]
        given = {key: {"action": "accept", "content": {"name": "Z" * 60_000}} for key in await question_of(runs, id)}
        await answers.ask("tasks/update", {"taskId": id, "inputResponses": given, **DECLARED})
        runner = here.server.task_service.runner(limits)  # type: ignore[union-attr]
        await until(lambda: not runner.tasks)
        state = await poll(runs, {"taskId": id, **DECLARED})
        assert len(state["result"]["content"][0]["text"]) == len("Hello, ") + 60_000


async def test_answers_that_nobody_has_asked_for_are_not_stored() -> None:
    store = SlowStore()
    desk = Desk(Limits(), store)
    async with raw_peer(desk.server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"]
        await until(lambda: store.saves)
        params = {"taskId": id, "inputResponses": {"unknown": {"action": "decline"}}, **DECLARED}
        store.is_open.clear()
        assert "result" in await peer.ask("tasks/update", params)
        store.is_open.set()


async def test_a_step_that_fails_pauses_for_longer_each_time() -> None:
    ran: list[float] = []
    now = 0.0

    async def work() -> None:
        ran.append(now)
        if now < 60:
            raise StoreError("the disk is full")

    step = _Step(work)
    while now < 70:
        await step.run(now)
        now += 0.25
    assert ran[:5] == [0, 0.5, 1.5, 3.5, 5.5]
    assert len([each for each in ran if each < 60]) < 35
    assert len([each for each in ran if each > 65]) == 19


@pytest.mark.parametrize("revision", [CORE, EXTENSION])
async def test_an_answer_outlasts_any_error_of_a_store(revision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question would otherwise be open no longer, and its handler wait for ever."""
    monkeypatch.setattr(question_sender, "_AGAIN_SECONDS", 0.01)
    store = SlowStore()
    store.error = ConnectionResetError("the database is gone")

    def answer(_: Any) -> dict[str, str]:
        store.failures = 1
        return {"name": "Zoe"}

    async with Client(Desk(Limits(), store).server, revisions=[revision], elicitation=answer) as client:
        task = await client.start_tool("ask")
        if revision == EXTENSION:
            with pytest.raises(InternalError, match="send them again"):
                await task.result()
        assert (await task.result()).text == "Hello, Zoe"


async def test_a_task_that_ends_after_its_server_leaves_nothing_that_runs(tmp_path: Path) -> None:
    limits = Limits(grace_seconds=0.1, close_seconds=0.1)
    server, goes_on = stubborn(tmp_path, limits)
    async with raw_peer(server, EXTENSION) as peer:
        await peer.ask("tools/call", {"name": "work", **DECLARED})
        runner = server.task_service.runner(limits)  # type: ignore[union-attr]
    await until(lambda: not list(tmp_path.glob("*-runner-*")))
    goes_on.set()
    await until(lambda: not runner.tasks)
    await turns(20)
    assert runner._turns is None


async def test_a_task_that_ends_before_its_cancellation_is_not_cancelled() -> None:
    """2025-11-25: such a cancellation is refused."""
    store = SlowStore()
    desk = Desk(Limits(), store)
    async with raw_peer(desk.server, CORE) as peer:
        id = (await peer.ask("tools/call", {"name": "work", "task": {}}))["result"]["task"]["taskId"]
        await until(lambda: store.saves)
        store.is_open.clear()
        desk.let_on.set()
        await until(lambda: store.waiting)
        cancelling = peer.send("tasks/cancel", {"taskId": id})
        await turns(20)
        store.is_open.set()
        while (answer := await peer.hear()).get("id") != cancelling:
            pass
        assert answer["error"]["message"] == "the task is completed already, and cannot be cancelled"
