"""The relay against any order of messages, reloads, crashes and cancellations, by hypothesis.

A host and the processes of a program exchange messages through one relay. No request is lost, each has exactly one
answer, and no id is mixed up: each answer repeats a text that its request carries.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from accord.dev.actions import Action, Finished, Restart, StartFailed, ToHost, TookOver, ToProcess
from accord.dev.relay import Relay
from accord.messages.revision import HANDSHAKE, PER_REQUEST, REVISIONS

from tests.dev.test_relay import META, encoded, handshake_result

METHODS = ("tools/call", "tools/list", "prompts/get", "tasks/get", "ping", "logging/setLevel", "resources/subscribe")
LISTED = {"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class SimulatedProcess:
    """A process that answers its requests in any order."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.question = 0
        self.answers: dict[int, str] = {}
        """The texts that answers to its questions must repeat."""

    def receive(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            assert message["result"]["text"] == self.answers.pop(message["id"])
        elif "id" in message:
            assert message["id"] not in [each["id"] for each in self.requests]
            self.requests.append(message)
        elif message["method"] == "notifications/cancelled":
            self.requests = [each for each in self.requests if each["id"] != message["params"]["requestId"]]


class RelayMachine(RuleBasedStateMachine):
    """One connection. `revisions` are those of the host."""

    revisions: tuple[str, ...] = REVISIONS

    @initialize(data=st.data())
    def connect(self, data: Any) -> None:
        self.revision = data.draw(st.sampled_from(self.revisions))
        self.relay = Relay("program")
        self.processes: dict[int, SimulatedProcess] = {}
        self.starting: set[int] = set()
        self.retired: set[int] = set()
        self.active: int | None = None
        self.generation = self.next_id = 0
        self.pending: dict[Any, str] = {}
        """The host's requests without an answer, with the text that the answer must repeat."""
        self.cancelled: set[Any] = set()
        self.open_questions: dict[Any, str] = {}
        self.start_wanted = True
        self.changed = False
        self.is_open = False
        self.start()
        if self.revision in HANDSHAKE:
            self.send("initialize", {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": {}})

    # --- the world -----------------------------------------------------------------------------------------------

    def perform(self, actions: list[Action]) -> None:
        queue = deque(actions)
        while queue:
            action = queue.popleft()
            if isinstance(action, ToHost):
                decoded = json.loads(action.message)
                for message in decoded if isinstance(decoded, list) else [decoded]:
                    queue.extend(self.host_receives(message))
            elif isinstance(action, ToProcess):
                if action.generation in self.processes:
                    self.processes[action.generation].receive(json.loads(action.message))
            elif isinstance(action, TookOver):
                self.starting.discard(action.generation)
                if action.retired is not None:
                    self.retired.add(action.retired)
                self.active = action.generation
            elif isinstance(action, Finished):
                assert not [each for each in self.processes[action.generation].requests if each["id"] in self.pending]
                queue.extend(self.end(action.generation))
            elif isinstance(action, StartFailed):
                self.processes.pop(action.generation, None)
                self.starting.discard(action.generation)
                if self.active == action.generation:
                    self.active = None
            elif isinstance(action, Restart):
                self.active, self.start_wanted = None, True

    def host_receives(self, message: dict[str, Any]) -> list[Action]:
        if "method" in message and "id" in message:
            assert message["id"] not in self.open_questions
            self.open_questions[message["id"]] = message["params"]["text"]
        elif message.get("method") == "notifications/cancelled":
            self.open_questions.pop(message["params"]["requestId"])
        elif "method" not in message:
            if message["id"] in self.cancelled:
                return []
            text = self.pending.pop(message["id"])  # a second answer raises KeyError
            assert message.get("result", {}).get("text", text) == text
            if message["id"] == "initialize":
                self.is_open = True
                return self.relay.receive_host(encoded(method="notifications/initialized"))
        return []

    def send(self, method: str, params: dict[str, Any]) -> None:
        self.next_id += 1
        id = method if method == "initialize" else self.next_id if self.next_id % 2 else str(self.next_id)
        text = f"{method} {id!r}"
        self.pending[id] = text
        meta = {} if self.revision in HANDSHAKE else {"_meta": META}
        self.perform(self.relay.receive_host(encoded(id=id, method=method, params={**params, "text": text, **meta})))

    def start(self) -> None:
        self.start_wanted = False
        self.generation += 1
        self.processes[self.generation] = SimulatedProcess()
        self.starting.add(self.generation)
        self.perform(self.relay.start(self.generation))

    def end(self, generation: int) -> list[Action]:
        self.processes.pop(generation, None)
        self.retired.discard(generation)
        if generation == self.active:
            self.active = None
        return self.relay.process_ended(generation, "it ended")

    def answer(self, generation: int, request: dict[str, Any]) -> None:
        process = self.processes[generation]
        process.requests.remove(request)
        method = request["method"]
        if method == "initialize":
            result = handshake_result(self.revision, resources={"subscribe": True}, logging={})
        elif method == "server/discover":
            result = {"supportedVersions": list(PER_REQUEST), "capabilities": {"tools": {}, "resources": {}}}
        elif method in LISTED:
            result = {LISTED[method]: [], "generation": generation}
        else:
            result = {"generation": generation}
        if "text" in request.get("params", {}) and (method != "initialize" or request["id"] == "initialize"):
            result["text"] = request["params"]["text"]
        self.perform(self.relay.receive_process(generation, encoded(id=request["id"], result=result)))

    # --- rules ---------------------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        return self.is_open or self.revision not in HANDSHAKE

    @precondition(lambda self: self.is_ready)
    @rule(method=st.sampled_from(METHODS), value=st.integers(0, 2))
    def host_requests(self, method: str, value: int) -> None:
        self.send(method, {"uri": f"a://{value}", "level": ("info", "error", "debug")[value], "name": "n"})

    @precondition(lambda self: self.is_ready and self.revision in HANDSHAKE and self.revision == "2025-03-26")
    @rule(count=st.integers(1, 3))
    def host_sends_a_batch(self, count: int) -> None:
        parts = []
        for _ in range(count):
            self.next_id += 1
            self.pending[self.next_id] = text = f"batch {self.next_id}"
            parts.append(encoded(id=self.next_id, method="tools/call", params={"name": "n", "text": text}))
        self.perform(self.relay.receive_host(b"[" + b",".join(parts) + b"]"))

    @precondition(lambda self: self.revision not in HANDSHAKE)
    @rule()
    def host_listens(self) -> None:
        self.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})

    @precondition(lambda self: [each for each in self.pending if each != "initialize"])
    @rule(data=st.data())
    def host_cancels(self, data: Any) -> None:
        id = data.draw(st.sampled_from([each for each in self.pending if each != "initialize"]))
        del self.pending[id]
        self.cancelled.add(id)
        self.perform(self.relay.receive_host(encoded(method="notifications/cancelled", params={"requestId": id})))

    @precondition(lambda self: any(each.requests for each in self.processes.values()))
    @rule(data=st.data())
    def a_process_answers(self, data: Any) -> None:
        found = [(key, each) for key, process in self.processes.items() for each in process.requests]
        self.answer(*data.draw(st.sampled_from(found)))

    @precondition(lambda self: self.is_ready and self.processes)
    @rule(data=st.data())
    def a_process_asks(self, data: Any) -> None:
        generation = data.draw(st.sampled_from(sorted(self.processes)))
        process = self.processes[generation]
        process.question += 1
        process.answers[process.question] = text = f"question {process.question} of {generation}"
        message = encoded(id=process.question, method="elicitation/create", params={"text": text})
        self.perform(self.relay.receive_process(generation, message))

    @precondition(lambda self: self.open_questions)
    @rule(data=st.data())
    def host_answers(self, data: Any) -> None:
        id = data.draw(st.sampled_from(list(self.open_questions)))
        self.perform(self.relay.receive_host(encoded(id=id, result={"text": self.open_questions.pop(id)})))

    @rule()
    def the_file_changes(self) -> None:
        for generation in sorted(self.starting):
            self.starting.discard(generation)
            self.processes.pop(generation, None)
            self.perform(self.relay.abandon(generation))
        self.start()

    @precondition(lambda self: self.active is not None and not self.starting)
    @rule()
    def the_old_process_stops_first(self) -> None:
        retired, self.active = self.active, None
        assert retired is not None
        self.retired.add(retired)
        self.perform(self.relay.retire())
        if retired in self.processes:
            self.processes.pop(retired)
            self.retired.discard(retired)
            self.perform(self.relay.expire(retired))
        self.start()

    @precondition(lambda self: self.processes)
    @rule(data=st.data())
    def a_process_crashes(self, data: Any) -> None:
        generation = data.draw(st.sampled_from(sorted(self.processes)))
        self.starting.discard(generation)
        self.perform(self.end(generation))

    @precondition(lambda self: self.retired)
    @rule(data=st.data())
    def the_grace_ends(self, data: Any) -> None:
        generation = data.draw(st.sampled_from(sorted(self.retired)))
        self.retired.discard(generation)
        self.processes.pop(generation, None)
        self.perform(self.relay.expire(generation))

    @precondition(lambda self: self.start_wanted and not self.starting)
    @rule()
    def the_driver_restarts(self) -> None:
        self.start()

    @invariant()
    def no_more_processes_than_needed(self) -> None:
        if hasattr(self, "processes"):
            assert set(self.processes) <= self.starting | self.retired | {self.active}

    def teardown(self) -> None:
        """Let the last version answer everything: then each request has its answer."""
        if not hasattr(self, "relay"):
            return
        if self.active is None and not self.starting:
            self.start()
        for _ in range(10_000):
            found = [(key, each) for key, process in self.processes.items() for each in process.requests]
            if not found:
                break
            self.answer(*found[0])
        assert self.pending == {}


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_request_has_exactly_one_answer(revision: str) -> None:
    machine = type("Machine", (RelayMachine,), {"revisions": (revision,)})
    run_state_machine_as_test(machine, settings=settings(max_examples=60, stateful_step_count=40))  # type: ignore[no-untyped-call]
