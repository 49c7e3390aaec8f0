"""Tasks over HTTP: in sessions (2025-11-25) and without them (2026-07-28), with streams that break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from accord import Accepted, APIKeys, Client, Context, HTTPOptions, Principal, Server
from accord.server.notify.subscriber import NotificationQueue
from accord.stores import MemoryTasks, SQLiteEvents, SQLiteTasks, TaskRecord
from accord.types import CallToolResult

from tests.server.http.http_clients import Modern, Stateful, both_ways, quick, site
from tests.server.http.raw import JSON, Answer, Event, Socket, served
from tests.waiting import until

CORE, EXTENSION = "2025-11-25", "2026-07-28"
BOTH = pytest.mark.parametrize("revision", [CORE, EXTENSION])
DECLARED: JSON = {"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
UNKNOWN = {"code": -32602, "message": "no such task; it may have expired"}
KEYS = {"ann-key": Principal("ann"), "ben-key": Principal("ben")}
ANSWER = {"action": "accept", "content": {"name": "Ada"}}


class Name(msgspec.Struct):
    name: str


class Desk(Server):
    """A server whose tasks wait until a test lets them go on."""

    def __init__(self, **options: Any) -> None:
        super().__init__("desk", "1", **{"limits": quick(), **options})
        self.go_on = asyncio.Event()

        @self.tool(task=True)
        async def work(ctx: Context) -> str:
            ctx.status("at work")
            await self.go_on.wait()
            return "worked"

        @self.tool(task=True)
        async def ask(ctx: Context) -> str:
            answer = await ctx.elicit("Who?", Name)
            return f"Hello, {answer.data.name}" if isinstance(answer, Accepted) else answer.action


async def start(client: Stateful, tool: str = "work") -> str:
    """The id of a new task in a session."""
    answer = await client.ask("tools/call", {"name": tool, "task": {}})
    return str((await answer.result())["result"]["task"]["taskId"])


async def result_of(client: Stateful, id: str) -> Any:
    return (await (await client.ask("tasks/result", {"taskId": id})).result())["result"]


async def until_message(answer: Answer) -> tuple[list[Event], Event]:
    """The events up to the first that is a message, and that one."""
    events = [await answer.event()]
    while events[-1].data is None:
        events.append(await answer.event())
    return events, events[-1]


def said(result: Any) -> str:
    return str(result["content"][0]["text"])


# --- sessions (2025-11-25) -------------------------------------------------------------------------------------------


@both_ways
async def test_the_stream_of_a_session_has_the_states_of_its_tasks(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = await Stateful(here.raw).open()
        stream = await client.listen()
        id = await start(client)
        server.go_on.set()
        states: list[JSON] = []
        while not states or states[-1]["params"]["status"] != "completed":
            states.append(await stream.message())
        assert {each["method"] for each in states} == {"notifications/tasks/status"}
        assert {each["params"]["taskId"] for each in states} == {id}
        assert said(await result_of(client, id)) == "worked"
        await stream.leave()


@both_ways
@pytest.mark.parametrize("ended", [True, False])
async def test_a_cut_request_for_the_result_is_resumed_and_gets_it_once(ended: bool, way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = await Stateful(here.raw).open()
        id = await start(client)
        waiting = await client.ask("tasks/result", {"taskId": id}, id=7)
        primed = await waiting.event()
        await waiting.leave()
        if ended:
            server.go_on.set()
            await until(lambda: not here.busy())
        again = await client.listen(primed.id)
        server.go_on.set()
        messages = [event.data for event in await again.events() if event.data is not None]
        assert [each["id"] for each in messages] == [7]
        assert said(messages[0]["result"]) == "worked"


@both_ways
async def test_a_question_of_a_task_survives_a_cut_and_its_answer_reaches_the_handler(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = await Stateful(here.raw).open()
        id = await start(client, "ask")
        waiting = await client.ask("tasks/result", {"taskId": id}, id=7)
        events, question = await until_message(waiting)
        await waiting.leave()
        assert question.data["method"] == "elicitation/create"
        assert question.data["params"]["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": id}

        again = await client.listen(events[0].id)
        assert await again.message() == question.data, "it is repeated, since the client may not have read it"
        assert await client.answer(question.data["id"], ANSWER) == 202
        assert said((await again.message())["result"]) == "Hello, Ada"


@both_ways
async def test_a_client_in_a_new_session_continues_its_task_and_is_asked_again(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = await Stateful(here.raw).open()
        id = await start(client, "ask")
        waiting = await client.ask("tasks/result", {"taskId": id})
        _, question = await until_message(waiting)
        await client.delete()
        await waiting.leave()

        later = await Stateful(here.raw).open()
        state = await (await later.ask("tasks/get", {"taskId": id})).result()
        assert state["result"]["status"] == "input_required"
        waiting = await later.ask("tasks/result", {"taskId": id}, id=8)
        _, question = await until_message(waiting)
        await later.answer(question.data["id"], ANSWER)
        assert said((await waiting.message())["result"]) == "Hello, Ada"


async def test_an_event_store_and_a_task_store_keep_a_result_over_a_restart(tmp_path: Any) -> None:
    options = HTTPOptions(events=SQLiteEvents(tmp_path / "events.db"))
    first = Desk(tasks=SQLiteTasks(tmp_path / "tasks.db"))
    async with site(first, "socket", options) as here:
        client = await Stateful(here.raw).open()
        id = await start(client)
        first.go_on.set()
        assert said(await result_of(client, id)) == "worked"
    second = Desk(tasks=SQLiteTasks(tmp_path / "tasks.db"))
    async with site(second, "socket") as here:
        later = await Stateful(here.raw).open()
        assert said(await result_of(later, id)) == "worked"


# --- without sessions (2026-07-28) -----------------------------------------------------------------------------------


@both_ways
async def test_a_request_about_a_task_needs_the_id_in_its_header(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = Modern(here.raw, DECLARED)
        id = (await (await client.call("work")).result())["result"]["taskId"]
        for header, code in ((id, None), (None, -32020), ("another", -32020)):
            answer = await client.post(client.request("tasks/get", {"taskId": id}), mcp_name=header)
            assert (await answer.result()).get("error", {}).get("code") == code
        server.go_on.set()


@both_ways
async def test_a_cut_subscription_loses_no_result(way: str) -> None:
    server = Desk()
    async with site(server, way) as here:
        client = Modern(here.raw, DECLARED)
        id = (await (await client.call("work")).result())["result"]["taskId"]
        listening = await client.ask("subscriptions/listen", {"notifications": {"taskIds": [id]}})
        assert (await listening.message())["params"]["notifications"] == {"taskIds": [id]}
        await listening.leave()
        server.go_on.set()
        other = Modern(here.raw, DECLARED)  # another connection, and perhaps another process

        async def state() -> JSON:
            answer = await other.post(other.request("tasks/get", {"taskId": id}), mcp_name=id)
            found: JSON = (await answer.result())["result"]
            return found

        while (found := await state())["status"] != "completed":
            await asyncio.sleep(0.01)
        assert said(found["result"]) == "worked"


# --- principals ------------------------------------------------------------------------------------------------------


async def test_principals_cannot_see_the_tasks_of_each_other_in_sessions() -> None:
    server = Desk(auth=APIKeys(KEYS))
    async with site(server) as here:
        ann = await Stateful(here.raw, authorization="Bearer ann-key").open()
        ben = await Stateful(here.raw, authorization="Bearer ben-key").open()
        id = await start(ann)
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            foreign, unknown = [
                (await (await ben.ask(method, {"taskId": each})).result())["error"] for each in (id, "x" * 43)
            ]
            assert foreign == unknown == UNKNOWN
        listed = [
            [task["taskId"] for task in (await (await each.ask("tasks/list")).result())["result"]["tasks"]]
            for each in (ann, ben)
        ]
        assert listed == [[id], []]
        server.go_on.set()
        assert said(await result_of(ann, id)) == "worked"


async def test_principals_cannot_see_the_tasks_of_each_other_without_sessions() -> None:
    server = Desk(auth=APIKeys(KEYS))
    async with site(server) as here:
        ann, ben = [Modern(here.raw, DECLARED, authorization=f"Bearer {key}") for key in KEYS]
        id = (await (await ann.call("work")).result())["result"]["taskId"]
        for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
            errors = []
            for each in (id, "x" * 43):
                answer = await ben.post(ben.request(method, {"taskId": each, **more}), mcp_name=each)
                errors.append((await answer.result())["error"])
            assert errors == [UNKNOWN, UNKNOWN]
        listening = await ben.ask("subscriptions/listen", {"notifications": {"taskIds": [id]}})
        assert (await listening.message())["params"]["notifications"] == {"taskIds": []}
        await listening.leave()
        server.go_on.set()


async def test_a_token_with_fewer_scopes_does_not_see_the_tasks_of_its_principal() -> None:
    scopes = {"low": {"read"}, "high": {"read", "admin"}, "higher": {"read", "admin", "more"}}
    server = Desk(auth=APIKeys({key: Principal("ann", frozenset(each)) for key, each in scopes.items()}))
    server.tool(name="secret", task=True, scopes={"admin"})(lambda: "secret")
    async with site(server) as here:
        seen: dict[str, list[Any]] = {}
        modern = {key: Modern(here.raw, DECLARED, authorization=f"Bearer {key}") for key in scopes}
        extension = (await (await modern["high"].call("secret")).result())["result"]["taskId"]
        core = await start(await Stateful(here.raw, authorization="Bearer high").open(), "secret")
        for key in scopes:
            client = await Stateful(here.raw, authorization=f"Bearer {key}").open()
            found = await (await client.ask("tasks/result", {"taskId": core})).result()
            listed = (await (await client.ask("tasks/list")).result())["result"]["tasks"]
            asked = modern[key].request("tasks/get", {"taskId": extension})
            known = await (await modern[key].post(asked, mcp_name=extension)).result()
            seen[key] = [found.get("error"), known.get("error"), len(listed)]
    assert seen == {"low": [UNKNOWN, UNKNOWN, 0], "high": [None, None, 1], "higher": [None, None, 1]}


class CountingTasks(MemoryTasks):
    """Tasks in memory that count their reads."""

    reads = 0

    async def load(self, id: str) -> TaskRecord | None:
        self.reads += 1
        return await super().load(id)


async def test_missed_states_of_tasks_wait_for_a_client_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    store, queued, count = CountingTasks(), list[Any](), 8
    monkeypatch.setattr(NotificationQueue, "_enqueue", lambda _, notification, *__: queued.append(notification))
    server = Desk(tasks=store)
    server.tool(name="long_text", task=True)(lambda: "x" * 4_000_000)
    async with site(server, "socket") as here:
        client = Modern(here.raw, DECLARED)
        ids = [(await (await client.call("long_text")).result())["result"]["taskId"] for _ in range(count)]
        runner = server.task_service.runner(server.limits)  # type: ignore[union-attr]
        await until(lambda: not runner.tasks)
        store.reads = 0
        asked = client.request("subscriptions/listen", {"notifications": {"taskIds": ids}})
        listening = await client.begin(asked)
        await until(lambda: store.reads > count + 2)
        assert not queued
        await listening.leave()


# --- accord's client -------------------------------------------------------------------------------------------------


class Recorder:
    """An ASGI application that records the headers of the requests that it passes on."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.requests: list[dict[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.app, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.requests.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await self.app(scope, receive, send)


@asynccontextmanager
async def recorded(server: Server) -> AsyncIterator[tuple[Socket, Recorder]]:
    app = Recorder(server.asgi())
    async with served(app, server.limits) as socket:  # type: ignore[arg-type]
        yield socket, app


def client_of(socket: Socket, revision: str) -> Client:
    url = f"http://127.0.0.1:{socket.port}/mcp"
    return Client(url, revisions=[revision], elicitation=lambda params: {"name": "Zoe"})


@BOTH
async def test_a_client_waits_for_its_tasks_and_another_client_continues_one(revision: str) -> None:
    server = Desk()
    async with recorded(server) as (socket, app):
        async with client_of(socket, revision) as client:
            assert (await client.call_tool("ask")).text == "Hello, Zoe"
            task = await client.start_tool("work")
        async with client_of(socket, revision) as other:
            again = other.task(task.id)
            assert (await again.state()).status == "working"
            server.go_on.set()
            assert (await again.result()).text == "worked"
        names = {each.get("mcp-name") for each in app.requests if each.get("mcp-method") == "tasks/get"}
        assert (task.id in names) == (revision == EXTENSION)


async def test_a_client_whose_session_ends_while_it_waits_opens_another_and_goes_on() -> None:
    server = Desk()
    async with recorded(server) as (socket, app), client_of(socket, CORE) as client:
        task = await client.start_tool("work")
        waiting = asyncio.ensure_future(task.result())
        await until(lambda: any("mcp-session-id" in each for each in app.requests))
        session = next(each["mcp-session-id"] for each in app.requests if "mcp-session-id" in each)
        await Stateful(socket).join(session).delete()
        server.go_on.set()
        result = await waiting
        assert isinstance(result, CallToolResult)
        assert result.text == "worked"
        assert len({each["mcp-session-id"] for each in app.requests if "mcp-session-id" in each}) == 2
