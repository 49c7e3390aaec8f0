"""Elicitation and sampling that a server of 2025-11-25 requests as tasks of its client."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from accord import Client, Limits, TaskLimits
from accord.errors import RequestTimeout

from tests.client.raw import Message, RawServer, raw_server
from tests.client.test_input_handlers import ASK, form
from tests.clock import Clock

REVISION = "2025-11-25"
ELICIT, SAMPLE = "elicitation/create", "sampling/createMessage"
RELATED = "io.modelcontextprotocol/related-task"
UNKNOWN = {"code": -32602, "message": "no such task; it may have expired"}
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class User:
    """A user who answers when a test says so."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[Any] = asyncio.Queue()
        self.asked = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, params: Any) -> Any:
        self.asked.set()
        try:
            answer = await self.answers.get()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def asking(user: Any, **options: Any) -> AsyncIterator[tuple[RawServer, Client]]:
    async with raw_server(REVISION, elicitation=user, sampling=user, **options) as (server, client):
        yield server, client


async def created(server: RawServer, method: str = ELICIT, **task: Any) -> Message:
    """The task that the client makes of a request."""
    params = form() if method == ELICIT else ASK
    answer = await server.ask(method, {**params, "task": task})
    made: Message = answer["result"]["task"]
    return made


async def result_of(server: RawServer, id: str) -> Message:
    """What the client answers to `tasks/result`, and its notification of the end, in either order."""
    request = server.send("tasks/result", {"taskId": id})
    answers = {message.get("id"): message for message in (await server.hear(), await server.hear())}
    assert answers[None]["method"] == "notifications/tasks/status"
    assert answers[None]["params"]["taskId"] == id
    answer: Message = answers[request]
    return answer


async def test_a_client_declares_tasks_for_the_handlers_that_it_has() -> None:
    common: Message = {"list": {}, "cancel": {}}
    async with asking(User()) as (server, _):
        requests = {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}
        assert server.declared["tasks"] == {**common, "requests": requests}
    async with raw_server(REVISION, sampling=User()) as (server, _):
        assert server.declared["tasks"] == {**common, "requests": {"sampling": {"createMessage": {}}}}
    async with raw_server(REVISION, roots=[]) as (server, _):
        assert "tasks" not in server.declared
        for method in ("tasks/get", "tasks/result", "tasks/cancel", "tasks/list"):
            assert (await server.ask(method, {"taskId": "x"}))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("method", "answer", "result"),
    [
        (ELICIT, {"name": "Ada"}, {"action": "accept", "content": {"name": "Ada"}}),
        (SAMPLE, "Hm.", {"role": "assistant", "content": {"type": "text", "text": "Hm."}, "model": "unknown"}),
    ],
)
async def test_a_request_with_a_task_is_answered_at_once_and_has_its_result_later(
    method: str, answer: Any, result: Message
) -> None:
    user = User()
    async with asking(user) as (server, _):
        task = await created(server, method, ttl=60_000)
        id = task["taskId"]
        assert (task["status"], task["ttl"], len(id)) == ("working", 60_000, 43)
        assert task["pollInterval"] > 0
        assert TIMESTAMP.fullmatch(task["createdAt"])
        assert (await server.ask("tasks/get", {"taskId": id}))["result"]["status"] == "working"
        user.answers.put_nowait(answer)
        assert (await result_of(server, id))["result"] == {**result, "_meta": {RELATED: {"taskId": id}}}
        assert (await server.ask("tasks/get", {"taskId": id}))["result"]["status"] == "completed"
        (again,) = [await server.ask("tasks/result", {"taskId": id})]
        assert again["result"]["_meta"] == {RELATED: {"taskId": id}}


async def test_a_request_without_a_task_waits_for_the_answer_as_before() -> None:
    async with raw_server(REVISION, elicitation=lambda _: {"name": "Ada"}) as (server, _):
        assert (await server.ask(ELICIT, form()))["result"]["content"] == {"name": "Ada"}


async def test_a_client_without_tasks_in_its_revision_ignores_the_field() -> None:
    async with raw_server("2025-06-18", elicitation=lambda _: {"name": "Ada"}) as (server, _):
        assert "tasks" not in server.declared or server.declared["tasks"]
        assert (await server.ask(ELICIT, form(task={"ttl": 1})))["result"]["content"] == {"name": "Ada"}
        assert (await server.ask("tasks/get", {"taskId": "x"}))["error"]["code"] == -32601


async def test_an_invalid_request_is_refused_before_it_becomes_a_task() -> None:
    async with asking(User()) as (server, _):
        for params in ({"task": {}}, form(task={"ttl": 0}), form(task={"ttl": -1}), form(task=7)):
            assert (await server.ask(ELICIT, params))["error"]["code"] == -32602
        assert (await server.ask("tasks/list"))["result"] == {"tasks": []}


async def test_a_declined_request_is_a_failed_task_with_the_error_of_the_request() -> None:
    user = User()
    async with asking(user) as (server, _):
        id = (await created(server, SAMPLE))["taskId"]
        user.answers.put_nowait(None)
        assert (await result_of(server, id))["error"]["code"] == -1
        state = (await server.ask("tasks/get", {"taskId": id}))["result"]
        assert (state["status"], state["statusMessage"]) == ("failed", "User rejected sampling request")


async def test_a_handler_that_raises_fails_its_task_and_nothing_else() -> None:
    user = User()
    async with asking(user) as (server, client):
        id = (await created(server))["taskId"]
        user.answers.put_nowait(RuntimeError("the window was closed"))
        assert "the window was closed" in (await result_of(server, id))["error"]["message"]
        call = asyncio.ensure_future(client.call_tool("fine"))
        server.done(await server.hear())
        assert (await call).text == "done"


async def test_a_cancelled_task_ends_its_handler_and_has_no_result() -> None:
    user = User()
    async with asking(user) as (server, _):
        id = (await created(server))["taskId"]
        await user.asked.wait()
        server.send("tasks/cancel", {"taskId": id})
        answer, note = sorted((await server.hear(), await server.hear()), key=lambda each: "method" in each)
        assert (answer["result"]["status"], note["params"]["status"]) == ("cancelled", "cancelled")
        await user.cancelled.wait()
        assert (await server.ask("tasks/cancel", {"taskId": id}))["error"] == {
            "code": -32602,
            "message": "the task is cancelled already, and cannot be cancelled",
        }
        error = (await server.ask("tasks/result", {"taskId": id}))["error"]
        assert error == {"code": -32602, "message": "the task was cancelled, so it has no result"}


async def test_a_task_of_another_connection_is_as_unknown_as_one_that_never_was() -> None:
    async with asking(User()) as (other, _), asking(User()) as (server, _):
        foreign = (await created(other))["taskId"]
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            for id in (foreign, "unknown"):
                assert (await server.ask(method, {"taskId": id}))["error"] == UNKNOWN
        assert (await server.ask("tasks/list"))["result"] == {"tasks": []}


async def test_the_list_of_tasks_has_pages() -> None:
    async with asking(User(), limits=Limits(page_size=2)) as (server, _):
        made = [(await created(server))["taskId"] for _ in range(3)]
        first = (await server.ask("tasks/list"))["result"]
        second = (await server.ask("tasks/list", {"cursor": first["nextCursor"]}))["result"]
        assert sorted(each["taskId"] for each in first["tasks"] + second["tasks"]) == sorted(made)
        assert "nextCursor" not in second
        assert (await server.ask("tasks/list", {"cursor": "?"}))["error"]["code"] == -32602


async def test_the_closing_client_cancels_its_handlers() -> None:
    user = User()
    async with asking(user) as (server, _):
        await created(server)
        await user.asked.wait()
    assert user.cancelled.is_set()


# --- limits ----------------------------------------------------------------------------------------------------------


async def test_a_task_is_dropped_after_its_ttl_and_its_handler_ends() -> None:
    clock, user = Clock(), User()
    async with asking(user) as (server, _):
        id = (await created(server, ttl=5_000))["taskId"]
        await user.asked.wait()
        await clock.jump(6)
        await user.cancelled.wait()
        assert (await server.hear())["params"]["status"] == "cancelled"
        assert (await server.ask("tasks/get", {"taskId": id}))["error"] == UNKNOWN


async def test_the_ttl_of_a_task_is_limited_also_when_the_server_requests_none() -> None:
    async with asking(User(), limits=Limits(tasks=TaskLimits(ttl_seconds=7))) as (server, _):
        for requested in ({"ttl": 1_000_000}, {"ttl": 10**400}, {}, {"ttl": None}):
            assert (await created(server, **requested))["ttl"] == 7_000


async def test_the_number_of_tasks_is_limited() -> None:
    user = User()
    async with asking(user, limits=Limits(tasks=TaskLimits(tasks_per_principal=2))) as (server, _):
        id = (await created(server))["taskId"]
        await created(server)
        refused = (await server.ask(ELICIT, form(task={})))["error"]
        assert refused["code"] == 429
        assert "too many tasks: the limit is 2 (TaskLimits.tasks_per_principal)" in refused["message"]
        user.answers.put_nowait({"name": "Ada"})
        await result_of(server, id)
        assert "error" in await server.ask(ELICIT, form(task={})), "one that has ended still counts"


async def test_the_number_of_handlers_that_run_for_tasks_is_that_of_requests() -> None:
    async with asking(User(), limits=Limits(requests_in_flight=2)) as (server, _):
        await created(server)
        await created(server)
        refused = (await server.ask(ELICIT, form(task={})))["error"]
        assert "too many running tasks: the limit is 2 (Limits.requests_in_flight)" in refused["message"]


@pytest.mark.parametrize("limit", ["result_bytes", "kept_bytes"])
async def test_a_result_that_is_too_large_fails_its_task(limit: str) -> None:
    user = User()
    async with asking(user, limits=Limits(tasks=TaskLimits(**{limit: 500}))) as (server, _):
        id = (await created(server))["taskId"]
        user.answers.put_nowait({"name": "x" * 1_000})
        error = (await result_of(server, id))["error"]
        assert f"500 bytes (TaskLimits.{limit})" in error["message"]


async def test_polls_are_limited() -> None:
    async with asking(User(), limits=Limits(tasks=TaskLimits(polls_per_second=1))) as (server, _):
        id = (await created(server))["taskId"]
        assert "result" in await server.ask("tasks/get", {"taskId": id})
        error = (await server.ask("tasks/get", {"taskId": id}))["error"]
        assert error["code"] == 429
        assert error["data"]["retryAfter"] > 0


async def test_a_task_suspends_the_timeout_of_the_call_that_may_wait_for_it() -> None:
    clock, user = Clock(), User()
    async with asking(user) as (server, client):
        call = asyncio.ensure_future(client.call_tool("ask", timeout=10))
        request = await server.hear()
        id = (await created(server))["taskId"]
        await user.asked.wait()
        await clock.jump(40)
        user.answers.put_nowait({"name": "Ada"})
        await result_of(server, id)
        server.done(request)
        assert (await call).text == "done"

        late = asyncio.ensure_future(client.call_tool("ask", timeout=10))
        await server.hear()
        await clock.jump(11)
        with pytest.raises(RequestTimeout):
            await late


async def test_a_handler_that_cancels_itself_fails_its_task() -> None:
    async def cancelled(params: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.cancel()
        return await future

    async with asking(cancelled) as (server, _):
        task = await created(server)
        answer = await result_of(server, task["taskId"])
        assert answer["error"] == {"code": -32603, "message": "the handler cancelled its own task"}
