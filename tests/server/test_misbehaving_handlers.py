"""A handler may do anything: it ends its own call, and nothing else."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from pathlib import Path
from typing import Annotated, Any

import pytest

from accord.errors import ToolError
from accord.limits import Limits
from accord.messages.content import AudioContent, ResourceLink
from accord.messages.revision import REVISIONS
from accord.messages.tools import CallToolResult
from accord.server.core.context import Context
from accord.server.input.questions import Elicit
from accord.server.server import Server

from tests.server.input.caller import caller
from tests.server.raw import raw_peer
from tests.waiting import until

RAISED: list[BaseException] = [
    ValueError("bad value"),
    SystemExit(3),
    KeyboardInterrupt(),
    BaseExceptionGroup("group", [ValueError("inner"), SystemExit()]),
    asyncio.CancelledError(),
    GeneratorExit(),
    StopIteration(1),
    StopAsyncIteration(),
    RecursionError("deep"),
    MemoryError(),
    ToolError("said on purpose"),
]
"""Raised with no traceback: the same one again and again would add to that of the last time."""


def server_with(function: Any, limits: Limits | None = None) -> Server:
    server = Server("test", "1", **({} if limits is None else {"limits": limits}))
    server.tool(name="it")(function)

    @server.tool
    async def fine() -> str:
        return "fine"

    return server


@pytest.mark.parametrize("kind", ["async", "async after waiting", "sync"])
@pytest.mark.parametrize("exc", RAISED, ids=lambda exc: type(exc).__name__)
@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_whatever_a_tool_raises_ends_only_its_own_call(exc: BaseException, kind: str, revision: str) -> None:
    async def at_once() -> str:
        raise exc.with_traceback(None)

    async def after_waiting() -> str:
        await asyncio.sleep(0)
        raise exc.with_traceback(None)

    def plain() -> str:
        raise exc.with_traceback(None)

    function = {"async": at_once, "async after waiting": after_waiting, "sync": plain}[kind]
    async with raw_peer(server_with(function), revision) as peer:
        result = await peer.call("it")
        assert result["isError"] is True
        assert result["content"][0]["text"]
        assert (await peer.call("fine"))["content"][0]["text"] == "fine"


async def test_a_tool_error_is_sent_unchanged_and_another_error_with_its_type() -> None:
    async def deliberate() -> str:
        raise ToolError("no such city")

    async with raw_peer(server_with(deliberate)) as peer:
        assert (await peer.call("it"))["content"][0]["text"] == "no such city"

    async def grouped() -> str:
        raise BaseExceptionGroup("outer", [ValueError("inner")])

    async with raw_peer(server_with(grouped)) as peer:
        assert (await peer.call("it"))["content"][0]["text"] == "ValueError: inner"


def _cycle() -> Any:
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize(
    "value",
    [
        "\ud800",
        ["\ud800"],
        float("nan"),
        [float("inf")],
        {"a": float("nan"), "b": None},
        _cycle(),
        object(),
        {1: {2}, "x": 1j},
    ],
    ids=["surrogate", "surrogate in list", "nan", "infinity", "nan and null", "cycle", "object", "complex"],
)
@pytest.mark.parametrize("hint", [Any, str, "structured"])
async def test_what_json_cannot_hold_becomes_a_tool_error(value: Any, hint: Any) -> None:
    async def it() -> Any:
        return value

    if hint == "structured":
        it.__annotations__["return"] = list[Any] | dict[str, Any] | float | str
    async with raw_peer(server_with(it)) as peer:
        result = await peer.call("it")
        assert result["isError"] is True, result
        assert (await peer.call("fine"))["content"][0]["text"] == "fine"


async def test_a_blocking_plain_tool_does_not_stop_ping() -> None:
    release = threading.Event()

    def blocks() -> str:
        release.wait(100)
        return "released"

    async with raw_peer(server_with(blocks)) as peer:
        slow = peer.send("tools/call", {"name": "it"})
        assert (await peer.ask("ping"))["result"] == {}
        release.set()
        assert (await peer.hear())["id"] == slow


async def test_all_workers_busy_is_an_error_that_says_so() -> None:
    release = threading.Event()

    def blocks() -> str:
        release.wait(100)
        return "released"

    async with raw_peer(server_with(blocks, Limits(workers=2, worker_queue=1))) as peer:
        ids = [peer.send("tools/call", {"name": "it"}) for _ in range(4)]
        refused = await peer.hear()
        assert refused["id"] == ids[3]
        assert "worker threads are busy" in refused["error"]["message"]
        release.set()
        assert {(await peer.hear())["id"] for _ in range(3)} == set(ids[:3])


async def test_a_tool_that_takes_too_long_is_stopped_and_says_so() -> None:
    server = Server("test", "1")

    @server.tool(timeout=0.01)
    async def slow() -> str:
        await asyncio.sleep(60)
        return "never"

    async with raw_peer(server) as peer:
        result = await peer.call("slow")
        assert result["isError"] is True
        assert "longer than 0.01 s" in result["content"][0]["text"]


async def test_a_cancelled_call_stops_and_is_not_answered() -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def waits() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()
        return "never"

    async with raw_peer(server_with(waits)) as peer:
        id = peer.send("tools/call", {"name": "it"})
        await started.wait()
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        async with asyncio.timeout(100):
            await stopped.wait()
        assert (await peer.ask("ping"))["result"] == {}


async def test_a_cancelled_call_that_answers_all_the_same_is_dropped() -> None:
    started = asyncio.Event()

    async def stubborn() -> str:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "too late"
        return "never"

    async with raw_peer(server_with(stubborn)) as peer:
        id = peer.send("tools/call", {"name": "it"})
        await started.wait()
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        assert (await peer.ask("ping"))["result"] == {}


async def test_context_variables_of_one_call_are_not_seen_by_the_next() -> None:
    seen = contextvars.ContextVar("seen", default="nothing")

    async def sets() -> str:
        before = seen.get()
        seen.set("something")
        return before

    async with raw_peer(server_with(sets)) as peer:
        assert (await peer.call("it"))["content"][0]["text"] == "nothing"
        assert (await peer.call("it"))["content"][0]["text"] == "nothing"


async def test_timeouts_and_task_groups_work_in_a_handler_that_never_waited_before() -> None:
    async def nested() -> str:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(asyncio.sleep(0, "inner"))
        try:
            async with asyncio.timeout(0.01):
                await asyncio.sleep(60)
        except TimeoutError:
            return f"{task.result()} and timed out"
        return "never"

    async with raw_peer(server_with(nested)) as peer:
        assert (await peer.call("it"))["content"][0]["text"] == "inner and timed out"


async def test_many_waiting_calls_run_side_by_side() -> None:
    arrived = 0
    everyone = asyncio.Event()

    async def meets() -> str:
        nonlocal arrived
        arrived += 1
        if arrived == 50:
            everyone.set()
        await everyone.wait()
        return "met"

    async with raw_peer(server_with(meets)) as peer:
        ids = {peer.send("tools/call", {"name": "it"}) for _ in range(50)}
        assert {(await peer.hear())["id"] for _ in range(50)} == ids


async def test_progress_comes_in_order_before_the_answer_and_none_after() -> None:
    kept: list[Context] = []

    async def reports(ctx: Context) -> str:
        kept.append(ctx)
        ctx.report_progress(1, 3, "first")
        await ctx.report_progress(1, 3, "not more than before")
        await asyncio.sleep(0)
        ctx.report_progress(2, 3)
        ctx.report_progress(3, 3, "last")
        return "done"

    async with raw_peer(server_with(reports)) as peer:
        peer.send("tools/call", {"name": "it", "_meta": {"progressToken": "t"}})
        heard = [await peer.hear() for _ in range(4)]
        assert [message.get("params", {}).get("progress") for message in heard] == [1, 2, 3, None]
        assert heard[0]["params"] == {"progressToken": "t", "progress": 1, "total": 3, "message": "first"}
        kept[0].report_progress(4, 4)
        assert (await peer.ask("ping"))["result"] == {}


async def test_a_plain_tool_reports_progress_from_its_thread() -> None:
    def reports(ctx: Context) -> str:
        ctx.report_progress(1, 1)
        return ctx.revision

    async with raw_peer(server_with(reports)) as peer:
        peer.send("tools/call", {"name": "it", "_meta": {"progressToken": 7}})
        assert (await peer.hear())["params"]["progressToken"] == 7
        assert (await peer.hear())["result"]["content"][0]["text"] == "2025-11-25"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_content_that_a_revision_lacks_is_converted_to_what_it_has(revision: str) -> None:
    async def both() -> Any:
        return [
            AudioContent(data="AAAA", mime_type="audio/wav"),
            ResourceLink(uri="file:///a.txt", name="a", description="the letter"),
        ]

    async with raw_peer(server_with(both), revision) as peer:
        audio, link = (await peer.call("it"))["content"]
    if revision == "2024-11-05":
        assert audio["type"] == "resource"
        assert audio["resource"]["blob"] == "AAAA"
    else:
        assert audio == {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    if revision in ("2024-11-05", "2025-03-26"):
        assert link == {"type": "text", "text": "[a](file:///a.txt): the letter"}
    else:
        assert link["type"] == "resource_link"


@pytest.mark.parametrize(("method", "params"), [("resources/read", {"uri": "a:b"}), ("prompts/get", {"name": "it"})])
@pytest.mark.parametrize("declared", [False, True])
async def test_what_a_resource_or_prompt_refuses_is_logged_without_a_traceback(
    method: str, params: dict[str, Any], declared: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def deliberate() -> str:
        raise ToolError("no such city")

    async def asks(ok: Annotated[bool, Elicit("Sure?")]) -> str:
        return "never"

    server, function = Server("test", "1"), asks if declared else deliberate
    server.resource("a:b")(function)
    server.prompt(name="it")(function)
    async with caller(server, "2025-11-25", reply=lambda _: {"action": "decline"}) as client:
        error = (await client.ask(method, params))["error"]
    assert error["code"] == -32603
    assert error["message"].startswith(f"{method} failed: ")
    assert declared or error["message"].endswith("no such city")
    (record,) = [record for record in caplog.records if method in record.getMessage()]
    assert record.exc_info is None


async def test_a_defect_of_a_resource_is_logged_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("test", "1")

    @server.resource("a:b")
    async def broken() -> str:
        raise ValueError("a defect")

    async with raw_peer(server) as peer:
        await peer.ask("resources/read", {"uri": "a:b"})
    (record,) = [record for record in caplog.records if "resources/read" in record.getMessage()]
    assert record.exc_info is not None


class Unsayable(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this")


async def test_an_exception_that_cannot_be_described_ends_only_its_own_call() -> None:
    async def raises() -> str:
        raise Unsayable

    async with raw_peer(server_with(raises)) as peer:
        assert (await peer.call("it"))["content"][0]["text"] == "Unsayable"
        assert (await peer.call("fine"))["content"][0]["text"] == "fine"


@pytest.mark.parametrize("waits", [False, True])
async def test_a_handler_that_cancels_its_own_task_ends_only_its_own_call(waits: bool) -> None:
    async def cancels() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if waits:
            await asyncio.sleep(0)
        return "cancelled"

    async with raw_peer(server_with(cancels)) as peer:
        for _ in range(3):
            answer = await peer.ask("tools/call", {"name": "it"})
            assert ("error" in answer) is waits
            assert (await peer.call("fine"))["content"][0]["text"] == "fine"


@pytest.mark.parametrize("revision", REVISIONS)
async def test_nan_in_a_result_made_by_hand_is_a_tool_error_in_every_revision(revision: str) -> None:
    async def made() -> CallToolResult:
        return CallToolResult(content=[], structured_content={"x": float("nan")})

    async with raw_peer(server_with(made), revision) as peer:
        assert (await peer.call("it"))["isError"] is True


async def test_the_threads_of_a_connection_end_with_it() -> None:
    before = set(threading.enumerate())
    for _ in range(5):
        async with raw_peer(server_with(lambda: "x")) as peer:
            assert (await peer.call("it"))["content"][0]["text"] == "x"
    await until(lambda: not set(threading.enumerate()) - before)


async def fetch() -> int:
    return 1


async def test_a_forgotten_await_is_named_with_its_line() -> None:
    made = []

    async def it() -> Any:
        made.append(fetch())
        return {"count": made[-1]}

    async with raw_peer(server_with(it)) as peer:
        result = await peer.call("it")
    made[0].close()
    assert result["isError"] is True
    assert "fetch() (test_misbehaving_handlers.py:" in result["content"][0]["text"]
    assert "did you forget `await`?" in result["content"][0]["text"]


async def test_a_generator_as_a_result_is_an_error_that_recommends_a_list() -> None:
    async def it() -> Any:
        return [1, 2], (number for number in range(3))

    async with raw_peer(server_with(it)) as peer:
        result = await peer.call("it")
    assert "collect what it yields in a list" in result["content"][0]["text"]


SECRET = "Zq8vT3nLw5xYb7Kd2mPf"


class SecretError(Exception):
    """The name of a type is no name of a secret."""


def failing(kind: str) -> str:
    if kind == "dsn":
        raise ConnectionError(f"could not connect to postgresql://app:{SECRET}@db.internal/shop")
    if kind == "bearer":
        raise RuntimeError(f"401 from /v1/users/3 with Authorization: Bearer {SECRET}")
    if kind == "path":
        Path("/home/ann/secret project/config.toml").read_text()
    if kind == "paths":
        os.rename("/books/ann/a", "/books/ann/b")
    if kind == "bytes":
        os.stat(b"/books/ann/a")
    if kind == "named":
        raise SecretError("not so secret")
    if kind == "windows":
        raise ValueError(r"cannot read C:\Users\ann\config.toml, nor file:///etc/app/x.conf")
    if kind == "drives":
        raise ValueError("cannot read C:/Users/ann/config.toml, nor file:///D:/app/x.conf")
    if kind == "wrapped":
        raise BaseExceptionGroup("g", [ValueError(f"api_key={SECRET} in /opt/app/settings.py:3")])
    raise ToolError(f"as written: /home/ann/x token={SECRET}")


TOLD = {
    "dsn": "ConnectionError: could not connect to postgresql://app:[redacted]@db.internal/shop",
    "bearer": "RuntimeError: 401 from /v1/users/3 with Authorization: [redacted]",
    "path": "FileNotFoundError: [Errno 2] No such file or directory: '[path]'",
    "paths": "FileNotFoundError: [Errno 2] No such file or directory: '[path]' -> '[path]'",
    "bytes": "FileNotFoundError: [Errno 2] No such file or directory: '[path]'",
    "named": "SecretError: not so secret",
    "windows": "ValueError: cannot read [path], nor file://[path]",
    "drives": "ValueError: cannot read [path], nor file:///[path]",
    "wrapped": "ValueError: api_key=[redacted] in [path]:3",
    "meant": f"as written: /home/ann/x token={SECRET}",
}


@pytest.mark.parametrize("kind", TOLD)
async def test_what_an_exception_says_is_redacted_for_clients_and_in_the_log(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("test")
    server.tool(failing, name="tool")
    server.prompt(failing, name="prompt")
    server.resource("it://{kind}")(failing)

    async with raw_peer(server) as peer:
        result = await peer.call("tool", kind=kind)
        assert result["content"][0]["text"] == TOLD[kind]
        error = (await peer.ask("prompts/get", {"name": "prompt", "arguments": {"kind": kind}}))["error"]
        assert error["message"] == f"prompts/get failed: {TOLD[kind]}"
        error = (await peer.ask("resources/read", {"uri": f"it://{kind}"}))["error"]
        assert error["message"] == f"resources/read failed: {TOLD[kind]}"
    if kind != "meant":
        assert "test_misbehaving_handlers.py" in caplog.text, "the log has the traceback, with files and lines"
        assert SECRET not in caplog.text
