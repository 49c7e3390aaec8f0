"""Which calls become tasks, what their clients see, and how they end, in both protocols."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
import pytest

from accord import Accepted, Client, Context, Elicit, Limits, Principal, Server, StoreError, Task, TaskLimits, ToolError
from accord.errors import (
    DeclarationError,
    InternalError,
    InvalidParams,
    MethodNotFound,
    MissingClientCapability,
    ProtocolError,
    RateLimited,
)
from accord.server.tasks.methods import TaskMethods
from accord.stores import MemoryTasks, TaskRecord
from accord.types import CallToolParams

from tests.server.raw import META, RawPeer, raw_peer
from tests.waiting import until

CORE, EXTENSION = "2025-11-25", "2026-07-28"
BOTH = pytest.mark.parametrize("revision", [CORE, EXTENSION])
DECLARED = {
    "_meta": {
        **META,
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
    }
}


class Name(msgspec.Struct):
    name: str


class Desk:
    """A server with tools that wait until they are let on."""

    def __init__(self, limits: Limits = Limits(), tasks: Any = None) -> None:  # noqa: B008  # frozen
        self.let_on = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.ran: list[str] = []
        self.server = server = Server("desk", limits=limits, tasks=tasks)

        @server.tool(task=True)
        async def work(ctx: Context, label: str = "") -> str:
            self.ran.append(label)
            ctx.report_progress(1, 2, "half done")
            try:
                await self.let_on.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
            return f"worked {label}"

        @server.tool(task="required")
        def must() -> str:
            return "as a task"

        @server.tool
        def plain() -> str:
            return "at once"

        @server.tool(task=Task(after=None))
        async def decide(ctx: Context, slow: bool) -> str:
            return f"a task: {await ctx.run_as_task() if slow else False}"

        @server.tool(task=True)
        async def ask(ctx: Context) -> str:
            answer = await ctx.elicit("Who?", Name)
            return f"Hello, {answer.data.name}" if isinstance(answer, Accepted) else answer.action

        @server.tool(task=True)
        async def greet(who: Annotated[Name, Elicit("Who?")]) -> str:
            return f"Hello, {who.name}"

        @server.tool(task=True)
        def fail(kind: str) -> str:
            raise ToolError("no luck") if kind == "tool" else InternalError("broken", data={"part": 7})

        @server.tool(task=True)
        def large() -> str:
            return "x" * 2_000


def client(desk: Desk, revision: str, **options: Any) -> Client:
    return Client(desk.server, revisions=[revision], elicitation=lambda _: {"name": "Zoe"}, **options)


async def test_the_id_of_a_task_is_no_option_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("secrets.token_urlsafe", lambda size: "-C" + "x" * 41)
    async with client(Desk(), EXTENSION) as each:
        assert not (await each.start_tool("work")).id.startswith("-")


@BOTH
async def test_a_call_returns_the_result_of_its_task(revision: str) -> None:
    desk = Desk()
    desk.let_on.set()
    async with client(desk, revision) as each:
        assert (await each.call_tool("work", {"label": "a"})).text == "worked a"
        assert (await each.call_tool("must")).text == "as a task"
        assert (await each.call_tool("plain")).text == "at once"
        assert (await each.call_tool("ask")).text == "Hello, Zoe"
        assert (await each.call_tool("greet")).text == "Hello, Zoe"


@BOTH
async def test_the_json_of_a_result_is_that_of_its_task(revision: str) -> None:
    desk = Desk()
    desk.let_on.set()
    async with client(desk, revision) as each:
        params = CallToolParams(name="work", arguments={"label": "a"})
        json = await each.request("tools/call", params, result=msgspec.Raw)
        assert msgspec.json.decode(json)["content"][0]["text"] == "worked a"


@BOTH
async def test_a_task_shows_its_status_until_it_ends(revision: str) -> None:
    desk = Desk()
    async with client(desk, revision) as each:
        task = await each.start_tool("work", {"label": "a"})
        assert len(task.id) == 43
        state = await task.state()
        assert (state.status, state.message) == ("working", "half done")
        desk.let_on.set()
        assert (await each.task(task.id).result()).text == "worked a"
        assert (await task.state()).status == "completed"
        assert desk.ran == ["a"]


@BOTH
async def test_cancelling_a_task_cancels_its_handler(revision: str) -> None:
    desk = Desk()
    async with client(desk, revision) as each:
        task = await each.start_tool("work")
        await task.cancel()
        assert (await task.state()).status == "cancelled"
        await asyncio.wait_for(desk.cancelled.wait(), 100)
        with pytest.raises(ProtocolError, match="cancelled"):
            await task.result()
        await task.cancel()  # it stays as it is


@BOTH
async def test_a_caller_that_gives_up_cancels_the_task(revision: str) -> None:
    desk = Desk()
    async with client(desk, revision) as each:
        calling = asyncio.create_task(each.call_tool("work"))
        await until(lambda: desk.ran and (revision == CORE or each.stats.requests_sent > 2))  # the first poll was sent
        calling.cancel()
        await asyncio.wait_for(desk.cancelled.wait(), 100)


@BOTH
async def test_the_task_of_another_principal_is_unknown(revision: str) -> None:
    desk = Desk()
    async with (
        client(desk, revision, principal=Principal("ann")) as ann,
        client(desk, revision, principal=Principal("ben")) as ben,
    ):
        task = await ann.start_tool("work")
        errors = []
        for id in (task.id, "x" * 43):
            with pytest.raises(InvalidParams) as caught:
                await ben.task(id).state()
            errors.append((caught.value.code, caught.value.message))
        assert errors == [(-32602, "no such task; it may have expired")] * 2
        with pytest.raises(InvalidParams):
            await ben.task(task.id).cancel()
        assert (await task.state()).status == "working"


@BOTH
async def test_a_failed_call_fails_as_its_protocol_says(revision: str) -> None:
    async with client(Desk(), revision) as each:
        tool = await each.start_tool("fail", {"kind": "tool"})
        result = await tool.result()
        assert (result.is_error, result.text) == (True, "no luck")
        state = await tool.state()
        assert (state.status, state.message) == (("failed", "no luck") if revision == CORE else ("completed", None))
        broken = await each.start_tool("fail", {"kind": "protocol"})
        with pytest.raises(InternalError, match="broken") as caught:
            await broken.result()
        assert caught.value.data == {"part": 7}
        assert (await broken.state()).status == "failed"


@BOTH
async def test_a_result_over_the_limit_fails_the_task(revision: str) -> None:
    desk = Desk(Limits(tasks=TaskLimits(result_bytes=1_000)))
    async with client(desk, revision) as each:
        with pytest.raises(InternalError, match=r"over 1,000 bytes \(TaskLimits.result_bytes\)"):
            await (await each.start_tool("large")).result()


@BOTH
async def test_too_many_tasks_are_refused_before_the_handler_runs(revision: str) -> None:
    desk = Desk(Limits(tasks=TaskLimits(running_per_principal=1)))
    async with client(desk, revision) as each:
        first = await each.start_tool("work", {"label": "a"})
        with pytest.raises(RateLimited, match="running_per_principal"):
            await each.start_tool("work", {"label": "b"})
        desk.let_on.set()
        await first.result()
        await (await each.start_tool("work", {"label": "c"})).result()
        assert desk.ran == ["a", "c"]


class FullStore(MemoryTasks):
    async def create(self, record: TaskRecord) -> None:
        raise StoreError("the disk is full")


@BOTH
async def test_a_store_that_cannot_write_refuses_the_call_before_the_handler_runs(revision: str) -> None:
    desk = Desk(tasks=FullStore())
    async with client(desk, revision) as each:
        with pytest.raises(InternalError, match="cannot become a task: the disk is full"):
            await each.start_tool("work")
        assert (await each.call_tool("decide", {"slow": True})).text == "a task: False" or revision == CORE
    assert desk.ran == []


async def test_a_client_without_the_extension_gets_the_result_itself() -> None:
    desk = Desk()
    desk.let_on.set()
    async with raw_peer(desk.server, EXTENSION) as peer:
        assert (await peer.call("work"))["resultType"] == "complete"
        refused = (await peer.ask("tools/call", {"name": "must"}))["error"]
        assert refused["code"] == MissingClientCapability.default_code
        assert refused["data"] == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
        assert (await peer.ask("tasks/get", {"taskId": "x"}))["error"]["code"] == MissingClientCapability.default_code
        for method in ("tasks/result", "tasks/list"):
            assert (await peer.ask(method, {"taskId": "x", **DECLARED}))["error"]["code"] == -32601


async def test_only_a_tool_with_tasks_may_be_asked_to_run_as_one() -> None:
    async with raw_peer(Desk().server, CORE) as peer:
        refused = await peer.ask("tools/call", {"name": "plain", "task": {}})
        assert refused["error"]["code"] == MethodNotFound.default_code
        assert (await peer.ask("tools/call", {"name": "must"}))["error"]["code"] == MethodNotFound.default_code
    async with raw_peer(Desk().server, EXTENSION) as peer:  # `task` has no meaning there
        assert (await peer.ask("tools/call", {"name": "plain", "task": {}}))["result"]["resultType"] == "complete"


@BOTH
async def test_the_handler_decides_whether_its_call_becomes_a_task(revision: str) -> None:
    async with client(Desk(), revision) as each:
        assert (await each.call_tool("decide", {"slow": False})).text == "a task: False"
        if revision == EXTENSION:
            task = await each.start_tool("decide", {"slow": True})
            assert task.id
            assert (await task.result()).text == "a task: True"


async def test_answers_go_to_their_questions_and_others_are_ignored() -> None:
    async with raw_peer(Desk().server, EXTENSION) as peer:
        created = (await peer.ask("tools/call", {"name": "ask", **DECLARED}))["result"]
        about = {"taskId": created["taskId"], **DECLARED}
        asked = (await peer.ask("tasks/get", about))["result"]
        assert asked["status"] == "input_required"
        (key,) = asked["inputRequests"]
        good, bad = ({"action": "accept", "content": {"name": name}} for name in ("Zoe", 7))
        assert "result" in await peer.ask("tasks/update", {**about, "inputResponses": {"other": good}})
        refused = await peer.ask("tasks/update", {**about, "inputResponses": {key: bad}})
        assert refused["error"]["code"] == -32602
        assert (await peer.ask("tasks/get", about))["result"]["inputRequests"] == asked["inputRequests"]
        updated = (await peer.ask("tasks/update", {**about, "inputResponses": {key: good}}))["result"]
        assert updated["resultType"] == "complete"
        assert "result" in await peer.ask("tasks/update", {**about, "inputResponses": {key: bad}})  # answered already
        done = await poll(peer, about)
        assert done["result"]["content"][0]["text"] == "Hello, Zoe"
        assert "inputRequests" not in done


async def poll(peer: RawPeer, about: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a task once it has ended."""
    for _ in range(1_000):
        state: dict[str, Any] = (await peer.ask("tasks/get", about))["result"]
        if state["status"] not in ("working", "input_required"):
            return state
        await asyncio.sleep(0.001)
    raise AssertionError(state)


async def test_subscribers_receive_the_states_of_their_tasks() -> None:
    desk = Desk()
    async with raw_peer(desk.server, EXTENSION) as peer:
        id = (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]["taskId"]
        refused = await peer.ask("subscriptions/listen", {"notifications": {"taskIds": [id]}})
        assert refused["error"]["code"] == MissingClientCapability.default_code
        listening = peer.send("subscriptions/listen", {"notifications": {"taskIds": [id, "unknown"]}, **DECLARED})
        acknowledged = await peer.hear()
        assert acknowledged["params"]["notifications"] == {"taskIds": [id]}
        desk.let_on.set()
        told = await peer.hear()
        assert told["method"] == "notifications/tasks"
        assert told["params"]["status"] == "completed"
        assert told["params"]["result"]["content"][0]["text"] == "worked "
        assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": listening}


async def test_the_session_receives_the_states_of_its_tasks() -> None:
    desk = Desk()
    async with raw_peer(desk.server, CORE) as peer:
        id = (await peer.ask("tools/call", {"name": "work", "task": {"ttl": 60_000}}))["result"]["task"]["taskId"]
        desk.let_on.set()
        states = [await peer.hear(), await peer.hear()]
        assert [each["method"] for each in states] == ["notifications/tasks/status"] * 2
        assert [each["params"]["status"] for each in states] == ["working", "completed"]
        assert states[0]["params"]["ttl"] == 60_000
        result = (await peer.ask("tasks/result", {"taskId": id}))["result"]
        assert result["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": id}}


@BOTH
async def test_frequent_polls_are_refused_and_the_client_waits(revision: str) -> None:
    desk = Desk(Limits(tasks=TaskLimits(polls_per_second=1)))
    async with client(desk, revision) as each:
        task = await each.start_tool("work")
        await task.state()
        with pytest.raises(RateLimited, match="try again in"):
            await task.state()
        desk.let_on.set()
        assert (await task.result()).text == "worked "


@BOTH
async def test_a_mounted_server_has_its_tasks(revision: str) -> None:
    desk, outer = Desk(), Server("outer")
    desk.let_on.set()
    outer.mount(desk.server, "in")
    async with Client(outer, revisions=[revision]) as each:
        assert (await each.call_tool("in_work", {"label": "a"})).text == "worked a"
        assert (await each.call_tool("in_must")).text == "as a task"


@pytest.mark.parametrize("support", ["always", 3, -1.0])
def test_an_invalid_option_is_refused(support: Any) -> None:
    with pytest.raises(DeclarationError, match=r"task= takes|seconds"):
        Server("desk").tool(lambda: "", name="work", task=support)


@pytest.mark.parametrize("times", [{"ttl": 0}, {"ttl": -1}, {"poll": float("nan")}, {"after": True}])
def test_invalid_times_are_refused(times: dict[str, Any]) -> None:
    with pytest.raises(DeclarationError, match="takes seconds"):
        Task(**times)


async def test_only_a_revision_with_tool_execution_lists_it() -> None:
    for revision, support in ((CORE, "optional"), (EXTENSION, None)):
        async with client(Desk(), revision) as each:
            tool = next(tool for tool in await each.list_tools() if tool.name == "work")
            assert (None if tool.execution is None else tool.execution.task_support) == support


async def test_the_result_of_a_call_that_became_a_task_names_the_server() -> None:
    async with raw_peer(Desk().server, EXTENSION) as peer:
        created = (await peer.ask("tools/call", {"name": "work", **DECLARED}))["result"]
        assert created["resultType"] == "task"
        assert created["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "desk"


async def test_a_ttl_that_no_float_can_hold_is_limited() -> None:
    async with raw_peer(Desk().server, CORE) as peer:
        made = await peer.ask("tools/call", {"name": "work", "task": {"ttl": 10**400}})
        assert made["result"]["task"]["ttl"] == 3_600_000


@pytest.mark.parametrize("failures", [3, 1_000])
async def test_an_internal_error_of_a_task_that_goes_on_is_not_its_result(
    failures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2025-11-25: a server over HTTP that was killed answers the open request so, and may continue the task."""
    left, result = failures, TaskMethods.result

    async def fail(methods: TaskMethods, pending: Any, peer: Any) -> Any:
        nonlocal left
        left -= 1
        if left >= 0:
            raise InternalError("the server was restarted")
        return await result(methods, pending, peer)

    monkeypatch.setattr(TaskMethods, "result", fail)
    async with client(Desk(), CORE) as each:
        task = await each.start_tool("ask")
        if failures == 3:
            assert (await task.result()).text == "Hello, Zoe"
        else:
            with pytest.raises(InternalError, match="restarted"):
                await task.result()
            assert left == failures - 4
