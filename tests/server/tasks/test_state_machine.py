"""Whatever a client does with its tasks, in any order: their states follow a small model, in both protocols."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accord import AccordError, Context, Limits, Server, TaskLimits
from accord.errors import InternalError
from accord.transport import memory

from tests.server.tasks.test_calls import CORE, DECLARED, EXTENSION, Name
from tests.waiting import turns, until

FINAL = ("completed", "failed", "cancelled")
GOOD, BAD = ({"action": "accept", "content": {"name": name}} for name in ("Zoe", 7))
numbers = st.integers(0, 20)


class Model:
    """What a task must be."""

    def __init__(self, id: str, commands: asyncio.Queue[str]) -> None:
        self.id = id
        self.commands = commands
        self.status = "working"
        self.open: dict[Any, None] = {}
        """The keys of the questions, or the ids of their requests (2025-11-25)."""
        self.used: set[Any] = set()
        self.last: dict[str, Any] = {}


class Machine(RuleBasedStateMachine):
    revision = EXTENSION

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.models: list[Model] = []
        self.queues: list[asyncio.Queue[str]] = []
        self.answers: dict[Any, Any] = {}
        self.asked: dict[str, list[Any]] = {}
        """The ids of the server's requests, by task (2025-11-25)."""
        self.number = 0
        self.server = Server("machine", limits=Limits(tasks=TaskLimits(polls_per_second=1_000_000)))
        self.server.tool(self.drive, task=True)
        self.run(self.start())

    async def drive(self, number: int, ctx: Context) -> str:
        while (command := await self.queues[number].get()) != "finish":
            if command == "fail":
                raise InternalError("broken")
            asking = [ctx.elicit(f"Who is {each}?", Name) for each in range(2)]
            for answer in await asyncio.gather(*asking, return_exceptions=True):
                if isinstance(answer, BaseException) and not isinstance(answer, AccordError):
                    raise answer
        return "done"

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def start(self) -> None:
        self.transport, theirs = memory.pair()
        self.serving = self.loop.create_task(self.server.serve(theirs))
        self.reading = self.loop.create_task(self.read())
        if self.revision == CORE:
            info = {"clientInfo": {"name": "raw", "version": "1"}, "capabilities": {"elicitation": {}}}
            await self.ask("initialize", {"protocolVersion": CORE, **info})
            self.say({"method": "notifications/initialized"})

    async def read(self) -> None:
        while messages := await self.transport.receive():
            for message in map(json.loads, messages):
                if message.get("method") == "elicitation/create":
                    task = message["params"]["_meta"]["io.modelcontextprotocol/related-task"]["taskId"]
                    self.asked.setdefault(task, []).append(message["id"])
                elif "id" in message:
                    self.answers[message["id"]] = message

    def say(self, message: dict[str, Any]) -> None:
        self.transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def send(self, method: str, params: dict[str, Any]) -> int:
        self.number += 1
        declared = DECLARED if self.revision == EXTENSION else {}
        self.say({"id": self.number, "method": method, "params": {**params, **declared}})
        return self.number

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        id = self.send(method, params)
        await until(lambda: id in self.answers)
        return self.answers.pop(id)

    def pick(self, number: int) -> Model:
        return self.models[number % len(self.models)]

    async def get(self, model: Model) -> dict[str, Any]:
        state: dict[str, Any] = (await self.ask("tasks/get", {"taskId": model.id}))["result"]
        return state

    async def follow(self, model: Model) -> dict[str, Any]:
        """Return the state once it is that of the model."""
        for _ in range(100):
            state = await self.get(model)
            if state["status"] == model.status:
                break
            await turns(3)
        assert state["status"] == model.status
        return state

    @precondition(lambda self: len(self.models) < 4)
    @rule()
    def create(self) -> None:
        async def work() -> None:
            self.queues.append(asyncio.Queue())
            params: dict[str, Any] = {"name": "drive", "arguments": {"number": len(self.queues) - 1}}
            if self.revision == CORE:
                params["task"] = {}
            created = (await self.ask("tools/call", params))["result"]
            self.models.append(Model(created.get("task", created)["taskId"], self.queues[-1]))
            if self.revision == CORE:
                self.send("tasks/result", {"taskId": self.models[-1].id})

        self.run(work())

    @precondition(lambda self: self.models)
    @rule(number=numbers, command=st.sampled_from(["ask", "ask", "finish", "fail"]))
    def command(self, number: int, command: str) -> None:
        async def work() -> None:
            model = self.pick(number)
            if model.status != "working":
                return
            model.commands.put_nowait(command)
            model.status = {"ask": "input_required", "finish": "completed", "fail": "failed"}[command]
            if command == "ask":
                await until(lambda: len(self.asked.get(model.id, ())) == 2 or self.revision == EXTENSION)
                state = await self.follow(model)
                while self.revision == EXTENSION and len(state["inputRequests"]) < 2:
                    state = await self.get(model)
                keys = self.asked.pop(model.id) if self.revision == CORE else list(state["inputRequests"])
                assert len(keys) == 2
                assert not model.used & set(keys)
                model.open = dict.fromkeys(keys)
                model.used |= set(keys)

        self.run(work())

    @precondition(lambda self: self.models)
    @rule(number=numbers, which=st.sampled_from(["one", "all", "wrong", "used", "unknown"]))
    def answer(self, number: int, which: str) -> None:
        async def work() -> None:
            model = self.pick(number)
            keys = list(model.open)[: None if which == "all" else 1] if which in ("one", "all", "wrong") else []
            others = {"used": sorted(model.used - set(model.open), key=str), "unknown": ["other"]}.get(which, [])
            value = BAD if which == "wrong" else GOOD
            if self.revision == CORE:
                for key in (*keys, *others):
                    self.say({"id": key, "result": value})
            elif keys or others:
                params = {"taskId": model.id, "inputResponses": dict.fromkeys((*keys, *others), value)}
                answer = await self.ask("tasks/update", params)
                assert answer.get("error", {}).get("code") == (-32602 if which == "wrong" and keys else None)
            if (
                which != "wrong" or self.revision == CORE
            ):  # there, an answer that does not fit is an error in the handler
                for key in keys:
                    del model.open[key]
                if keys and not model.open:
                    model.status = "working"

        self.run(work())

    @precondition(lambda self: self.models)
    @rule(number=numbers)
    def cancel(self, number: int) -> None:
        async def work() -> None:
            model = self.pick(number)
            await self.follow(model)
            answer = await self.ask("tasks/cancel", {"taskId": model.id})
            had_ended = model.status in FINAL
            assert answer.get("error", {}).get("code") == (-32602 if had_ended and self.revision == CORE else None)
            if not had_ended:
                model.status, model.open = "cancelled", {}

        self.run(work())

    @precondition(lambda self: self.models)
    @rule(number=numbers)
    def expire(self, number: int) -> None:
        async def work() -> None:
            model = self.pick(number)
            await self.follow(model)
            task = self.server.task_service.runner(self.server.limits).tasks.get(model.id)  # type: ignore[union-attr]
            assert (task is None) == (model.status in FINAL)
            if task is not None:
                await task.expire()
                model.status, model.open = "failed", {}

        self.run(work())

    @invariant()
    def the_states_are_those_of_the_model(self) -> None:
        async def work() -> None:
            for model in self.models:
                state = await self.follow(model)
                if self.revision == EXTENSION:
                    assert set(state.get("inputRequests", ())) == set(model.open)
                    assert ("result" in state, "error" in state) == (
                        model.status == "completed",
                        model.status == "failed",
                    )
                assert state["lastUpdatedAt"] >= model.last.get("lastUpdatedAt", state["createdAt"])
                state.pop("pollIntervalMs", None), state.pop("pollInterval", None)
                if model.last.get("status") in FINAL:
                    assert state == model.last
                model.last = state

        self.run(work())

    def teardown(self) -> None:
        async def work() -> None:
            await self.transport.close()
            await self.serving
            await self.reading
            await turns(5)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left

        self.run(work())
        self.loop.close()


class CoreMachine(Machine):
    revision = CORE


TestExtension = Machine.TestCase
TestExtension.settings = settings(max_examples=8, stateful_step_count=20, deadline=None)
TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=3, stateful_step_count=15, deadline=None)
