"""Whatever clients do, and whenever they leave: what is counted is what is held, and nothing is counted in the end."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from accord import Context, Server
from accord.server.http.endpoint import HTTPEndpoint
from accord.store.memory import MemoryEvents

from tests.server.http.http_clients import Legacy, Modern, Stateful, encode, notification, quick, request
from tests.server.http.raw import Answer, Direct

LIMITS = quick(
    answer_seconds=50,
    kept_bytes=40_000,
    state_bytes=1_000,
    http_sessions=8,
    http_sessions_per_address=5,
    http_requests=12,
    http_requests_per_address=8,
    http_parked=5,
    http_parked_per_address=4,
    http_bodies_bytes=400_000,
    http_bodies_bytes_per_address=250_000,
    http_events_bytes=12_000,
    http_events_total_bytes=30_000,
    http_patience_seconds=0,
    http_unsent_bytes=200_000,
)

ADDRESSES = ["192.0.2.1", "192.0.2.2", "2001:db8::1"]
LARGE = {"experimental": {"more": {"text": "x" * 2_000}}, "elicitation": {"form": {}}}

addresses = st.sampled_from(ADDRESSES)
turns = st.integers(0, 12)
tools = st.sampled_from(["echo", "waits", "reports", "asks"])
sizes = st.sampled_from([10, 2_000, 20_000])
numbers = st.integers(0, 30)


class Machine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.release = asyncio.Event()
        self.server = make_server(self)
        self.app = self.server.asgi()
        self.sessions: list[Stateful] = []
        self.streams: list[Legacy] = []
        self.answers: list[Answer] = []
        self.asked: list[tuple[Modern, str, int, Any]] = []
        self.number = 0
        self.run(self.app.start())

    def run(self, what: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(what)

    async def turn(self, count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    def raw(self, address: str) -> Direct:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await self.app({**scope, "client": (address, 1)}, receive, send)

        return Direct(app)

    async def begin(self, answer: Coroutine[Any, Any, Answer], count: int) -> Answer:
        self.answers.append(await answer)
        await self.turn(count)
        return self.answers[-1]

    def calling(self, tool: str, size: int) -> Any:
        self.number += 1
        return request("tools/call", {"name": tool, "arguments": {"text": "x" * size}}, self.number)

    # --- clients -----------------------------------------------------------------------------------------------

    @rule(address=addresses, large=st.booleans())
    def open_session(self, address: str, large: bool) -> None:
        client = Stateful(self.raw(address), "2025-03-26", LARGE if large else {})

        async def open() -> None:
            answer = await client.post(client.hello())
            if answer.status == 200:
                self.sessions.append(client.join(answer.headers["mcp-session-id"]))
                await client.post(notification("notifications/initialized"))

        self.run(open())

    @rule(address=addresses, large=st.booleans())
    def open_stream(self, address: str, large: bool) -> None:
        async def open() -> None:
            raw = self.raw(address)
            stream = await raw.send("GET", "/sse", {"host": "localhost", "accept": "text/event-stream"})
            if stream.status == 200:
                client = Legacy(raw, stream, (await stream.event()).data)
                self.streams.append(await client.open(capabilities=LARGE if large else {}))

        self.run(open())

    @rule(number=numbers, tool=tools, size=sizes, count=turns)
    def call_in_session(self, number: int, tool: str, size: int, count: int) -> None:
        if self.sessions:
            client = pick(self.sessions, number)
            self.run(self.begin(client.begin("POST", encode(self.calling(tool, size))), count))

    @rule(number=numbers, called=st.lists(tools, min_size=1, max_size=4), size=sizes, count=turns)
    def call_in_batch(self, number: int, called: list[str], size: int, count: int) -> None:
        if self.sessions:
            batch = [self.calling(tool, size) for tool in called]
            self.run(self.begin(pick(self.sessions, number).begin("POST", encode(batch)), count))

    @rule(number=numbers, count=turns)
    def listen(self, number: int, count: int) -> None:
        if self.sessions:
            self.run(self.begin(pick(self.sessions, number).begin("GET"), count))

    @rule(number=numbers, count=turns)
    def delete(self, number: int, count: int) -> None:
        if self.sessions:
            client = self.sessions.pop(number % len(self.sessions))
            self.run(self.begin(client.begin("DELETE"), count))

    @rule(number=numbers, tool=tools, size=sizes, count=turns)
    def call_on_stream(self, number: int, tool: str, size: int, count: int) -> None:
        """A request of 2026-07-28, as through a bridge."""
        if self.streams:
            client = pick(self.streams, number)
            self.number += 1
            call = Modern(client.raw, LARGE).calling(tool, {"text": "x" * size}, id=self.number)
            self.run(self.begin(client.raw.begin("POST", client.address, client.headers, encode(call)), count))

    @rule(number=numbers, count=turns)
    def cancel_on_stream(self, number: int, count: int) -> None:
        if self.streams:
            client = pick(self.streams, number)
            cancel = encode(notification("notifications/cancelled", {"requestId": self.number}))
            self.run(self.begin(client.raw.begin("POST", client.address, client.headers, cancel), count))

    @rule(number=numbers, count=turns)
    def leave_stream(self, number: int, count: int) -> None:
        if self.streams:
            self.run(self.streams.pop(number % len(self.streams)).stream.leave())
            self.run(self.turn(count))

    @rule(address=addresses, tool=tools, size=sizes, count=turns)
    def call(self, address: str, tool: str, size: int, count: int) -> None:
        client = Modern(self.raw(address), LARGE)
        self.run(self.begin(client.begin(client.calling(tool, {"text": "x" * size})), count))

    @rule(address=addresses, size=sizes)
    def ask(self, address: str, size: int) -> None:
        async def ask() -> None:
            client = Modern(self.raw(address), LARGE)
            answer = await client.call("asks", {"text": "x" * size})
            if answer.status == 200 and "inputRequests" in (found := await answer.json()).get("result", {}):
                self.asked.append((client, "asks", size, found["result"]))

        self.run(ask())

    @rule(number=numbers, size=sizes, count=turns)
    def answer(self, number: int, size: int, count: int) -> None:
        """Perhaps not for the first time."""
        if self.asked:
            client, tool, asked_size, asked = pick(self.asked, number)
            given = {key: {"action": "accept", "content": {"text": "y" * size}} for key in asked["inputRequests"]}
            params = {"name": tool, "arguments": {"text": "x" * asked_size}, "requestState": asked["requestState"]}
            call = client.request("tools/call", {**params, "inputResponses": given})
            self.run(self.begin(client.begin(call), count))

    # --- what happens meanwhile --------------------------------------------------------------------------------

    @rule(number=numbers, count=turns)
    def leave(self, number: int, count: int) -> None:
        if self.answers:
            self.run(self.answers.pop(number % len(self.answers)).leave())
            self.run(self.turn(count))

    @rule(number=numbers, count=turns)
    def cancel_task(self, number: int, count: int) -> None:
        """As some servers and middlewares do."""
        if self.answers:
            self.answers.pop(number % len(self.answers)).task.cancel()  # type: ignore[attr-defined]
            self.run(self.turn(count))

    @rule(count=turns)
    def finish_calls(self, count: int) -> None:
        self.release.set()
        self.run(self.turn(count))
        self.release.clear()

    @rule(seconds=st.sampled_from([10, 100, 5_000]))
    def sweep(self, seconds: int) -> None:
        for table in (self.endpoint.sessions, self.endpoint.sse):
            for session in table:
                session.last_used_at -= seconds
            self.run(table.sweep())

    @rule(count=st.integers(1, 50))
    def pass_turns(self, count: int) -> None:
        self.run(self.turn(count))

    # --- what is held ------------------------------------------------------------------------------------------

    @property
    def endpoint(self) -> HTTPEndpoint:
        (endpoint,) = self.app._endpoints.values()
        return endpoint

    @invariant()
    def what_is_counted_is_what_is_held(self) -> None:
        check(self.server, self.endpoint)

    def teardown(self) -> None:
        self.run(self.end())
        left = asyncio.all_tasks(self.loop)
        self.loop.close()
        assert not left

    async def end(self) -> None:
        """Let all clients leave, and end all sessions and calls: nothing is counted any more."""
        self.release.set()
        for each in [*self.answers, *(client.stream for client in self.streams)]:
            await each.leave()
        await self.turn(500)
        check(self.server, self.endpoint)
        context, endpoint = self.endpoint.context, self.endpoint
        for session in endpoint.sessions:
            await endpoint.sessions.end(session, "the test ends")
        assert not len(endpoint.sse)
        calls = self.server.round_trips.suspended_calls
        assert {call for own in calls.waiting.values() for call in own} == calls._running
        for call in list(calls._running):
            call.cancel()
        await self.turn(100)
        assert not calls._running | calls.waiting.keys() | calls._memory.by_account.keys()
        assert calls._anonymous == 0
        assert not context.subscription_index._clients
        for budget in (context.body_budget, context.handshake_budget):
            assert budget.total == budget.requests == len(budget._memory.by_account) == 0
        assert context._load.running == context._load.held_bytes == 0
        assert context.slow_streams.unsent == len(context.slow_streams._readers) == 0
        assert not context.events._events.bytes  # type: ignore[attr-defined]
        await self.app.drain(1)
        await self.app.close()
        await self.turn(10)


def make_server(machine: Machine) -> Server:
    server = Server("shop", "1", limits=LIMITS)

    @server.tool
    def echo(text: str) -> str:
        return text

    @server.tool
    async def waits(text: str) -> str:
        await machine.release.wait()
        return text

    @server.tool
    async def reports(ctx: Context, text: str) -> str:
        for _ in range(3):
            await ctx.info("x" * 3_000)
            await asyncio.sleep(0)
        return text

    @server.tool
    async def asks(ctx: Context, text: str) -> str:
        await ctx.elicit("text?", str)
        await machine.release.wait()
        return text + str(await ctx.elicit("more?", str))

    return server


def check(server: Server, endpoint: HTTPEndpoint) -> None:
    """Compare what is counted with what is held."""
    context = endpoint.context
    for budget in (context.body_budget, context.handshake_budget):
        assert budget.total == sum(budget._memory.by_account.values())
        assert all(size > 0 for size in budget._memory.by_account.values())
    sessions = [*endpoint.sessions, *endpoint.sse]
    held = sum_by(lambda each: each.account, lambda each: each._handshake_bytes + each._roots_bytes, sessions)
    assert all(context.handshake_budget._memory.by_account.get(account, 0) >= size for account, size in held.items())
    for table in (endpoint.sessions, endpoint.sse):
        counts = Counter(session.account for session in table)
        assert counts == {account: len(own) for account, own in table._by_account.items()}
        assert all(count <= LIMITS.http.sessions_per_address for count in counts.values())
        assert len(table) <= LIMITS.http.sessions
    loads = list(context._loads.values())
    assert context._load.running == sum(load.running for load in loads) >= 0
    assert context._load.held_bytes == sum(load.held_bytes for load in loads) >= 0
    check_calls(server)
    events = context.events._events  # type: ignore[attr-defined]
    check_events(events)
    slow = context.slow_streams
    assert slow.unsent == sum(size for _, size in slow._readers.values()) <= LIMITS.http.unsent_bytes
    assert slow._by_account == sum_by(lambda each: each[0], lambda each: each[1], slow._readers.values())


def check_calls(server: Server) -> None:
    calls = server.round_trips._suspended_by_loop
    for table in calls.values():
        assert table._memory.by_account == sum_by(lambda call: call.account, lambda call: call.memory, table._running)
        assert table._anonymous == sum(len(own) for own in table.waiting.values()) <= LIMITS.http.parked
        assert all(0 < len(own) <= LIMITS.http.parked_per_address for own in table.waiting.values())
        assert all(call in table._running for own in table.waiting.values() for call in own)
        assert table._held == {tag: sum(own.values()) for tag, own in table._ended.items()}
        assert table._held.total() <= LIMITS.kept_bytes
        assert sorted(table._nonces) == sorted(nonce for own in table._nonces_by_account.values() for nonce in own)
        assert all(table._nonces_by_account.values())


def check_events(events: MemoryEvents) -> None:
    assert events.bytes == sum(session.bytes for session in events._sessions.values()) <= 30_000
    sizes = sum_by(lambda each: each.account, lambda each: each.bytes, events._sessions.values())
    assert sizes == {name: account.bytes for name, account in events._accounts.items()}


def sum_by(account: Callable[[Any], str], size: Callable[[Any], int], items: Iterable[Any]) -> Counter[str]:
    """The sizes of items by account, of those that have any."""
    sums = Counter[str]()
    for item in items:
        if size(item):
            sums[account(item)] += size(item)
    return sums


def pick(items: list[Any], number: int) -> Any:
    return items[number % len(items)]


Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=40, deadline=None)
TestBudgets = Machine.TestCase
