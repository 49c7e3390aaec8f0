"""A call is recorded before it is sent, approved as it is sent, and can be cancelled at any of its steps."""

from __future__ import annotations

import asyncio
import json
import types
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accord import Server
from accord.errors import AccordError, StoreError
from accord.host.approvers import ApprovalQueue, GrantRequest, PromptAnswer, QueuedPrompt
from accord.host.audit.event import AuditEvent
from accord.host.audit.log import AuditLog
from accord.host.consent import NotApproved
from accord.host.host import Host
from accord.host.policy.policy import Policy
from accord.host.prompts import CallPrompt, DefinitionsPrompt, Prompt
from accord.host.state import HostState

from tests.waiting import turns, until


def policy(decision: str) -> Policy:
    return Policy.from_settings([{"name": decision, "decision": decision}])


class Shop:
    """A server whose tool says which version of it was executed, with which argument."""

    def __init__(self) -> None:
        self.server = Server("shop")
        self.executed: list[tuple[int, int]] = []
        self.version = 0
        self.define()

    def define(self) -> None:
        version = self.version

        async def price(n: int) -> int:
            self.executed.append((version, n))
            return n

        self.server.tool(price, description=f"The price, version {version}.")

    def change(self) -> None:
        self.version += 1
        self.server.remove_tool("price")
        self.define()


class MemoryLog(AuditLog):
    """A log without a file, and so without a thread: each step of a call is one of the event loop."""

    def __init__(self, fails_at: str = "") -> None:
        super().__init__("unused")
        self.events: list[AuditEvent] = []
        self.fails_at = fails_at

    async def open(self) -> None:
        self._open = True

    async def close(self) -> None:
        self._open = False

    async def append(self, event: AuditEvent) -> str:
        if not self._open:
            raise StoreError("the audit log is not open")
        if event.kind == self.fails_at:
            raise StoreError("the disk is full")
        self.events.append(event)
        await asyncio.sleep(0)
        return ""

    def kinds(self, call: str) -> list[str]:
        return [event.kind for event in self.events if event.call == call]


class _Inline:
    """Runs the work of a `DatabaseThread` in the event loop."""

    def __init__(self, connect: Any) -> None:
        self._connect = connect
        self._db: Any = None

    async def start(self) -> None:
        self._db = self._connect()

    async def stop(self) -> None:
        self._db.close()

    async def run(self, work: Any) -> Any:
        await asyncio.sleep(0)
        return work(self._db)


def in_event_loop(state: HostState) -> HostState:
    state._thread = _Inline(state._connect)  # type: ignore[assignment]
    return state


def host(shop: Shop, approve: Any, log: AuditLog | None = None, **options: Any) -> Host:
    made = Host({"shop": shop.server}, approve=approve, state=":memory:", audit=log, **options)
    in_event_loop(made._state)
    return made


async def agree(prompt: Prompt) -> bool:
    await asyncio.sleep(0)
    return True


# --- the audit log -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["proposal", "decision", "sending"])
@pytest.mark.parametrize("decision", ["ask", "allow"])
async def test_a_call_that_cannot_be_recorded_is_not_sent(kind: str, decision: str) -> None:
    shop, log = Shop(), MemoryLog(kind)
    async with host(shop, agree, log, policy=policy(decision)) as one:
        with pytest.raises(StoreError, match="disk is full"):
            await one.call_tool("shop_price", {"n": 1})
        assert shop.executed == []
        assert not one._calls._consent._open


async def test_a_lapsed_approval_is_recorded_as_not_sent() -> None:
    shop, log, queue = Shop(), MemoryLog(), ApprovalQueue()
    async with host(shop, queue, log) as one:
        await until(lambda: queue.waiting != [])
        queue.answer(queue.waiting[0].id, PromptAnswer(approved=True))
        await until(lambda: one.servers["shop"].unapproved == 0)
        calling = asyncio.create_task(one.call_tool("shop_price", {"n": 1}))
        await until(lambda: queue.waiting != [])
        one._calls.policy = policy("ask")
        queue.answer(queue.waiting[0].id, PromptAnswer(approved=True))
        assert (await calling).is_error
    assert [event.kind for event in log.events] == ["proposal", "decision", "outcome"]
    assert log.events[-1].outcome == "not sent"
    assert shop.executed == []


@pytest.mark.parametrize("error", [ValueError("broken"), StoreError("gone")])
async def test_a_failing_approver_is_recorded_and_leaves_nothing(error: Exception) -> None:
    async def fail(prompt: Prompt) -> bool:
        if isinstance(prompt, CallPrompt):
            raise error
        return True

    shop, log = Shop(), MemoryLog()
    async with host(shop, fail, log) as one:
        with pytest.raises(type(error)):
            await one.call_tool("shop_price", {"n": 1})
        assert not one._calls._consent._open
    assert [event.kind for event in log.events] == ["proposal", "outcome"]
    assert shop.executed == []


async def test_the_outcome_of_a_call_is_recorded_when_the_host_is_closed(tmp_path: Path) -> None:
    started = asyncio.Event()
    server = Server("slow")

    @server.tool
    async def wait() -> None:
        """Wait."""
        started.set()
        await asyncio.Event().wait()

    audit = tmp_path / "audit.jsonl"
    one = Host({"slow": server}, approve=agree, state=":memory:", audit=audit)
    await one.__aenter__()
    calling = asyncio.create_task(one.call_tool("slow_wait"))
    await started.wait()
    await one.close()
    with pytest.raises(AccordError):
        await calling
    kinds = [json.loads(line).get("event", {}).get("kind") for line in audit.read_text("utf-8").splitlines()]
    assert [kind for kind in kinds if kind] == ["proposal", "decision", "sending", "outcome"]


async def test_a_call_that_waits_for_an_approval_ends_with_the_host() -> None:
    shop, queue = Shop(), ApprovalQueue()
    one = host(shop, queue)
    await one.__aenter__()
    await until(lambda: queue.waiting != [])
    queue.answer(queue.waiting[0].id, PromptAnswer(approved=True))
    await until(lambda: one.servers["shop"].unapproved == 0)
    calling = asyncio.create_task(one.call_tool("shop_price", {"n": 1}))
    await until(lambda: queue.waiting != [])
    await one.close()
    assert "the host is closed" in (await calling).text
    assert queue.waiting == []
    assert shop.executed == []


def contents(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.iterdir())


async def test_secrets_in_arguments_are_not_stored(tmp_path: Path) -> None:
    server = Server("login")

    @server.tool
    async def login(user: str, password: str) -> None:
        """Log in."""

    prompts: list[CallPrompt] = []

    async def approve(prompt: Prompt) -> bool:
        if isinstance(prompt, CallPrompt):
            prompts.append(prompt)
        return True

    file = tmp_path / "host.db"
    async with Host({"login": server}, approve=approve, state=file, audit=tmp_path / "audit.jsonl") as one:
        for _ in range(2):
            await one.call_tool("login_login", {"user": "ann", "password": "hunter2hunter2"})
    stored = contents(tmp_path)
    assert b"hunter2" not in stored
    assert b"ann" in stored
    assert "hunter2" in prompts[-1].text()  # the person sees what is sent


async def test_the_policy_that_decides_is_the_one_that_is_checked() -> None:
    """It may change while the proposal is recorded."""
    shop = Shop()

    class Log(MemoryLog):
        async def append(self, event: AuditEvent) -> str:
            if event.kind == "proposal":
                one._calls.policy = policy("deny")
            return await super().append(event)

    one = host(shop, agree, Log(), policy=policy("allow"))
    async with one:
        assert (await one.call_tool("shop_price", {"n": 1})).is_error
    assert shop.executed == []


@pytest.mark.parametrize("kind", ["proposal", "decision", "sending"])
async def test_a_change_while_an_entry_is_written_is_noticed(kind: str) -> None:
    shop = Shop()

    class Log(MemoryLog):
        async def append(self, event: AuditEvent) -> str:
            if event.kind == kind:
                shop.change()
                await until(lambda: one.servers["shop"].unapproved == 1)
            return await super().append(event)

    log, queue = Log(), ApprovalQueue()
    one = host(shop, queue, log, policy=policy("allow"))
    async with one:
        await until(lambda: queue.waiting != [])
        queue.answer(queue.waiting[0].id, PromptAnswer(approved=True))
        await until(lambda: one.servers["shop"].unapproved == 0)
        assert (await one.call_tool("shop_price", {"n": 1})).is_error
    assert shop.executed == []
    assert log.events[-1].outcome == "not sent"


LINK_RULES = {
    "allow": {"name": "notes", "decision": "allow", "arguments": {"path": {"under": "FOLDER/notes"}}},
    "ask": {"name": "secrets", "decision": "deny", "arguments": {"path": {"under": "FOLDER/secrets"}}},
}


@pytest.mark.parametrize(("decision", "kind"), [("allow", "sending"), ("ask", "decision"), ("ask", "sending")])
@pytest.mark.parametrize("moves", [True, False])
async def test_a_link_that_leads_elsewhere_after_the_decision_is_noticed(
    tmp_path: Path, decision: str, kind: str, moves: bool
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "secrets").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "notes")
    server, read = Server("files"), []

    @server.tool
    async def read_text(path: str) -> str:
        """Read a file."""
        read.append(path)
        return path

    class Log(MemoryLog):
        async def append(self, event: AuditEvent) -> str:
            if moves and event.kind == kind:
                link.unlink()
                link.symlink_to(tmp_path / "secrets")
            return await super().append(event)

    rule = json.loads(json.dumps(LINK_RULES[decision]).replace("FOLDER", tmp_path.as_posix()))
    log, rules = Log(), Policy.from_settings([rule])
    async with Host({"files": server}, approve=agree, state=":memory:", audit=log, policy=rules) as one:
        result = await one.call_tool("files_read_text", {"path": str(link / "a.txt")})
    assert bool(read) is not moves
    assert log.events[-1].outcome == ("not sent" if moves else "result")
    if moves:
        assert "decides differently" in result.text


# --- cancellation --------------------------------------------------------------------------------------------------


class Steps:
    """Counts the steps of a coroutine, and cancels its task at one of them."""

    def __init__(self, cancel_at: set[int]) -> None:
        self.count = 0
        self._cancel_at = cancel_at

    @types.coroutine
    def run(self, inner: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            try:
                waited = inner.send(None) if error is None else inner.throw(error)
            except StopIteration as exc:
                return exc.value
            self.count += 1
            if self.count in self._cancel_at:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                yield waited
                error = None
            except BaseException as exc:
                error = exc


async def cancelled_at(one: Host, n: int, places: set[int]) -> int:
    """Make a call that is cancelled at these steps; return how many steps it had."""
    steps = Steps(places)

    async def call() -> Any:
        return await steps.run(one.call_tool("shop_price", {"n": n}, on_progress=lambda *_: None))  # type: ignore[misc]

    await asyncio.wait([asyncio.create_task(call())])
    return steps.count


@pytest.mark.parametrize("decision", ["ask", "allow"])
@pytest.mark.parametrize("times", [1, 3])
async def test_a_call_may_be_cancelled_at_every_step(decision: str, times: int) -> None:
    shop, log = Shop(), MemoryLog()
    async with host(shop, agree, log, policy=policy(decision)) as one:
        steps = await cancelled_at(one, 0, set())
        assert steps > 3
        for place in range(1, steps + 1):
            await cancelled_at(one, place, set(range(place, place + times)))
            await turns(50)
            assert not one._calls._consent._open, place
            assert not one._servers["shop"].active_principals, place
        assert (await one.call_tool("shop_price", {"n": 1_000})).data == 1_000
    numbers = [n for _, n in shop.executed]
    assert len(numbers) == len(set(numbers))
    calls = {event.call: log.kinds(event.call) for event in log.events}
    for kinds in calls.values():
        assert kinds[0] == "proposal"
        assert kinds[-1] == "outcome"
        assert kinds.count("outcome") == 1
    assert len([kinds for kinds in calls.values() if "sending" in kinds]) >= len(shop.executed)


# --- state machine -------------------------------------------------------------------------------------------------

POLICIES = {decision: policy(decision) for decision in ("allow", "ask", "deny")}
SECONDS = 300.0


class Clock:
    """Replaces the module `time` in the code under test."""

    now = 1_000_000.0

    def time(self) -> float:
        return self.now

    monotonic = time


class CallsMachine(RuleBasedStateMachine):
    """Calls, answers, changes and cancellations in any order; each execution is compared with what was approved."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.clock = Clock()
        for module in ("calls", "reviews"):
            self.patch.setattr(f"accord.host.{module}.time", self.clock)
        self.loop = asyncio.new_event_loop()
        self.shop, self.queue = Shop(), ApprovalQueue()
        self.servers: dict[str, Any] = {"shop": self.shop.server}
        self.host = Host(self.servers, approve=self.queue, state=":memory:", policy=POLICIES["ask"], audit=MemoryLog())
        in_event_loop(self.host._state)
        self.decision = "ask"
        self.calls: dict[int, dict[str, Any]] = {}
        self.definitions: set[str] = set()
        """The descriptions that the person approved."""
        self.granted: set[str] = set()
        """The principals that had a grant for the tool."""
        self.checked = 0
        self.run(self.host.__aenter__())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def turn(self, count: int) -> None:
        self.run(turns(count))

    @rule(count=st.integers(1, 60))
    def go_on(self, count: int) -> None:
        self.turn(count)

    @rule(principal=st.sampled_from(["", "ann"]))
    def propose(self, principal: str) -> None:
        n = len(self.calls)
        work = self.host.call_tool("shop_price", {"n": n}, principal=principal)
        task = self.loop.create_task(work)
        self.calls[n] = {
            "task": task,
            "principal": principal,
            "decision": self.decision,
            "approved": False,
        }
        self.turn(1)  # the policy decides

    def answer(self, place: int, answer: PromptAnswer) -> None:
        waiting = self.queue.waiting
        if not waiting:
            return
        chosen: QueuedPrompt = waiting[place % len(waiting)]
        prompt = chosen.prompt
        try:
            self.queue.answer(chosen.id, answer)
        except NotApproved:  # its call was cancelled in this turn
            return
        if answer.approved and isinstance(prompt, CallPrompt):
            call = self.calls[prompt.arguments["n"]]
            call["approved"] = self.clock.now < call["shown at"] + SECONDS
            assert prompt.principal == call["principal"]
            if answer.grant is not None and answer.grant.tool != "other":
                self.granted.add(prompt.principal)
        elif answer.approved and isinstance(prompt, DefinitionsPrompt):
            self.definitions |= {change.definition.json.decode() for change in prompt.changes}

    @rule(place=st.integers(0, 9))
    def approve(self, place: int) -> None:
        self.answer(place, PromptAnswer(approved=True))

    @rule(place=st.integers(0, 9))
    def deny(self, place: int) -> None:
        self.answer(place, PromptAnswer(approved=False))

    @rule(place=st.integers(0, 9), pattern=st.sampled_from(["price", "p*", "other"]))
    def grant(self, place: int, pattern: str) -> None:
        self.answer(place, PromptAnswer(approved=True, grant=GrantRequest(tool=pattern, seconds=SECONDS)))

    @rule(place=st.integers(0, 9))
    def answer_twice(self, place: int) -> None:
        waiting = self.queue.waiting
        if waiting:
            id = waiting[place % len(waiting)].id
            self.answer(place, PromptAnswer(approved=False))
            with pytest.raises(AccordError):
                self.queue.answer(id, PromptAnswer(approved=True))

    @rule()
    def revoke(self) -> None:
        async def each() -> None:
            for grant in await self.host._state.grants(json.loads):
                await self.host._state.revoke_grant(grant["id"])

        self.run(each())

    @rule()
    def change_definition(self) -> None:
        self.shop.change()

    @rule(decision=st.sampled_from(["allow", "ask", "deny"]))
    def change_policy(self, decision: str) -> None:
        self.decision = decision
        self.host._given_policy = self.host._calls.policy = POLICIES[decision]

    @rule(is_there=st.booleans())
    def reload(self, is_there: bool) -> None:
        self.servers.clear()
        if is_there:
            self.servers["shop"] = self.shop.server
        else:
            self.servers["other"] = Server("other")
        self.run(self.host.reload())

    @precondition(lambda self: self.calls)
    @rule(place=st.integers(0, 99))
    def cancel(self, place: int) -> None:
        self.calls[place % len(self.calls)]["task"].cancel()

    @rule(seconds=st.sampled_from([1.0, SECONDS / 2, SECONDS + 1]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @invariant()
    def each_execution_was_approved(self) -> None:
        executed = self.shop.executed
        assert len({n for _, n in executed}) == len(executed), "a call was executed twice"
        for _, n in executed[self.checked :]:
            call = self.calls[n]
            assert call["decision"] != "deny", "the policy denies it"
            is_granted = call["principal"] in self.granted
            assert call["approved"] or is_granted or call["decision"] == "allow", "not approved"
        self.checked = len(executed)

    @invariant()
    def what_is_listed_was_approved(self) -> None:
        """A change that the server has not announced yet is unknown to the host."""
        for server in self.host._servers.values():
            assert {pin.definition.decode() for pin in server.definitions.listed.values()} <= self.definitions

    @invariant()
    def remember_when_prompts_were_shown(self) -> None:
        for waiting in self.queue.waiting:
            if isinstance(waiting.prompt, CallPrompt):
                self.calls[waiting.prompt.arguments["n"]].setdefault("shown at", self.clock.now)

    def teardown(self) -> None:
        async def end() -> None:
            await self.host.close()
            tasks = [call["task"] for call in self.calls.values()]
            if tasks:
                _, late = await asyncio.wait(tasks, timeout=30)
                assert not late, "a call hangs"
            for task in tasks:
                if not task.cancelled():
                    task.exception()

        try:
            self.run(end())
            log: Any = self.host._calls.audit
            for call in {event.call for event in log.events}:
                assert log.kinds(call)[0] == "proposal"
                assert ("sending" not in log.kinds(call)) or log.kinds(call)[-1] == "outcome", "an outcome is lost"
            assert not self.host._calls._consent._open
        finally:
            self.loop.close()
            self.patch.undo()


CallsMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestCallsMachine = CallsMachine.TestCase
