"""Two connections over memory: what each side asks, tells and ends; a session under each, and nothing between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from accord.errors import (
    ConnectionLost,
    MissingClientCapability,
    NotConnected,
    NotSupported,
    RequestTimeout,
)
from accord.limits import Limits
from accord.messages.meta import SUBSCRIPTION_ID
from accord.messages.revision import RULES
from accord.session.events import NotificationReceived
from accord.session.pending_request import PendingRequest
from accord.transport import memory
from accord.transport.connection import Connection

from tests.session import pair as wired
from tests.session.pair import S26
from tests.waiting import turns, until

S25 = "2025-11-25"
UPDATED = "notifications/resources/updated"


class Heard(list[NotificationReceived]):
    """What was heard, and what to do at each."""

    def __init__(self, then: Callable[[], Any]) -> None:
        super().__init__()
        self._then = then

    def append(self, event: NotificationReceived) -> None:
        super().append(event)
        self._then()


class Ends:
    """A client and a server that are open. `asked` has what either was asked; `answer` is how both answer."""

    def __init__(self, revision: str, limits: Limits, says: Any) -> None:
        ours, theirs = memory.pair(limits)
        self.revision = revision
        self.asked: list[PendingRequest] = []
        self.ended: list[PendingRequest] = []
        self.heard: list[NotificationReceived] = []
        self.answer: Callable[[PendingRequest], Any] = lambda pending: Raw(b"{}")
        self.client = Connection(
            wired.client([revision], says=says, limits=limits),
            ours,
            self.handle,
            on_notification=self.hear,
            limits=limits,
        )
        self.server = Connection(wired.server([revision], limits=limits), theirs, self.handle, limits=limits)

    def hear(self, event: NotificationReceived) -> None:
        self.heard.append(event)

    async def handle(self, pending: PendingRequest, _: Connection) -> Any:
        self.asked.append(pending)
        try:
            answer = self.answer(pending)
            return await answer if asyncio.iscoroutine(answer) else answer
        finally:
            self.ended.append(pending)


@asynccontextmanager
async def connected(
    revision: str = S25, limits: Limits | None = None, says: Any = wired.CLIENT_SAYS
) -> AsyncIterator[Ends]:
    ends = Ends(revision, limits or Limits(), says)
    await ends.server.start()
    await ends.client.start()
    try:
        await ends.client.open_client()
        yield ends
    finally:
        await ends.client.close()
        await ends.server.close()


async def forever(pending: PendingRequest | None = None) -> Any:
    await asyncio.Event().wait()


# Asking from a server


async def test_a_server_sends_requests_when_the_client_is_ready() -> None:
    async with connected() as ends:
        await ends.server.ready.wait()
        assert ends.client.ready.is_set()
        assert await ends.server.request("roots/list") == Raw(b"{}")


@asynccontextmanager
async def half_open(limits: Limits | None = None) -> AsyncIterator[tuple[Connection, memory.MemoryTransport]]:
    """A server whose client has had the answer to `initialize`, and has not said `initialized`."""
    ours, theirs = memory.pair()
    server = Connection(wired.server([S25]), theirs, lambda pending, _: forever(pending), limits=limits or Limits())
    await server.start()
    ours.send(wired.initialize(S25))
    await ours.receive()
    try:
        yield server, ours
    finally:
        await server.close()


INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


async def test_an_early_request_of_a_server_waits_for_the_client_to_be_ready() -> None:
    async with half_open() as (server, client):
        asking = asyncio.ensure_future(server.request("roots/list", total_timeout=10))
        await turns(5)
        assert server.stats.requests_sent == 0
        client.send(INITIALIZED)
        (request,) = map(msgspec.json.decode, await client.receive())  # type: ignore[arg-type]
        assert request["method"] == "roots/list"
        client.send(wired.answer_to(request["id"]))
        assert await asking == Raw(b"{}")


@pytest.mark.parametrize("bound", [{"timeout": 0.01}, {"total_timeout": 0.01}, {"timeout": 5, "total_timeout": 0.01}])
async def test_waiting_for_the_client_to_be_ready_has_the_bound_of_the_request(bound: dict[str, float]) -> None:
    async with half_open() as (server, _):
        with pytest.raises(RequestTimeout, match="initialized"):
            await server.request("roots/list", **bound)  # type: ignore[arg-type]
        assert server.stats.requests_sent == 0


async def test_waiting_for_the_client_to_be_ready_ends_with_the_connection() -> None:
    async with half_open() as (server, client):
        asking = asyncio.ensure_future(server.request("roots/list"))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(ConnectionLost):
            await asking


async def test_before_the_handshake_a_server_sends_no_requests() -> None:
    _, theirs = memory.pair()
    server = Connection(wired.server([S25]), theirs, lambda pending, _: forever(pending))
    with pytest.raises(NotConnected):
        await server.request("roots/list")


async def test_what_the_client_lacks_is_reported_by_name() -> None:
    async with connected(says={"sampling": {}}) as ends:
        await ends.server.ready.wait()
        with pytest.raises(MissingClientCapability, match=r"sampling.tools"):
            await ends.server.request("sampling/createMessage", needs="sampling.tools")


# Notifications


async def test_a_notification_may_be_sent_from_any_thread() -> None:
    async with connected() as ends:
        ends.server.notify("notifications/tools/list_changed")
        thread = threading.Thread(target=ends.server.notify, args=(UPDATED, {"uri": "a:b"}))
        thread.start()
        await asyncio.to_thread(thread.join)
        await until(lambda: len(ends.heard) == 2)
        assert [event.method.name for event in ends.heard] == ["notifications/tools/list_changed", UPDATED]
        with pytest.raises(NotSupported):
            ends.server.notify("notifications/roots/list_changed")


async def test_async_callbacks_for_notifications_run_one_after_the_other() -> None:
    running: list[int] = []
    done: list[int] = []

    async def slowly(event: NotificationReceived) -> None:
        number = msgspec.json.decode(event.params)["data"]  # type: ignore[arg-type]
        running.append(number)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert running == [number]
        running.clear()
        done.append(number)

    ours, theirs = memory.pair()
    client = Connection(wired.opened_client(S25), ours, lambda pending, _: forever(), on_notification=slowly)
    await client.start()
    for number in range(5):
        theirs.send(wired.notification("notifications/message", {"level": "info", "data": number}))
    await until(lambda: done == [0, 1, 2, 3, 4])
    await client.close()


# Subscriptions


def tell(ends: Ends, pending: PendingRequest, uri: str) -> None:
    ends.server.notify(UPDATED, {"uri": uri}, meta={SUBSCRIPTION_ID: pending.id}, rules=RULES[S26])


async def test_what_belongs_to_a_subscription_goes_to_it_and_to_the_whole() -> None:
    async with connected(S26) as ends:
        ends.answer = forever
        first: list[NotificationReceived] = []
        second: list[NotificationReceived] = []
        asking = [
            asyncio.ensure_future(ends.client.request("subscriptions/listen", on_notification=each.append))
            for each in (first, second)
        ]
        await until(lambda: len(ends.asked) == 2)
        for pending, uri in zip(ends.asked, ("a:1", "a:2"), strict=True):
            tell(ends, pending, uri)
        await until(lambda: len(ends.heard) == 2)
        assert first == ends.heard[:1]
        assert second == ends.heard[1:]
        for each in asking:
            each.cancel()
        await until(lambda: len(ends.ended) == 2)


async def test_a_notification_for_an_ended_subscription_goes_to_the_client() -> None:
    async with connected(S26) as ends:
        ends.answer = forever
        asking = asyncio.ensure_future(ends.client.request("subscriptions/listen"))
        await until(lambda: ends.asked)
        tell(ends, ends.asked[0], "a:1")
        await until(lambda: ends.heard)
        asking.cancel()


async def test_a_callback_may_end_its_own_subscription() -> None:
    async with connected(S26) as ends:
        ends.answer = forever
        told: list[NotificationReceived] = []
        asking = asyncio.ensure_future(ends.client.request("subscriptions/listen", on_notification=told.append))
        await until(lambda: ends.asked)
        ends.heard = Heard(lambda: [*map(ends.client.session.cancel, list(ends.client.session.outgoing.values()))])
        for _ in range(2):
            tell(ends, ends.asked[0], "a:1")
        await until(lambda: ends.client.stats.ignored)
        assert not told
        assert not ends.client.ended.is_set()
        asking.cancel()


async def test_a_server_ends_a_subscription_and_the_handler_of_it() -> None:
    async with connected(S26) as ends:
        ends.answer = forever
        asking = asyncio.ensure_future(ends.client.request("subscriptions/listen"))
        await until(lambda: ends.asked)
        ends.server.end_subscription(ends.asked[0], "enough")
        assert await asking == Raw(b"{}")
        await until(lambda: ends.ended)
        assert ends.client.stats.late_answers == 1
        ends.server.end_subscription(ends.asked[0])  # has ended: nothing is sent
        assert ends.server.stats.dropped_results == 1


async def test_a_handler_may_end_its_own_subscription() -> None:
    async with connected(S26) as ends:

        async def briefly(pending: PendingRequest) -> Any:
            ends.server.end_subscription(pending)
            await asyncio.sleep(0)
            return Raw(b"{}")

        ends.answer = briefly
        assert await ends.client.request("subscriptions/listen") == Raw(b"{}")
        await until(lambda: ends.ended)
        ends.answer = lambda pending: Raw(b"{}")
        assert await ends.client.request("tools/list") == Raw(b"{}")


async def test_a_server_that_finishes_ends_its_subscriptions_and_waits_for_the_rest() -> None:
    async with connected(S26) as ends:
        release = asyncio.Event()

        async def wait(pending: PendingRequest) -> Any:
            await (forever() if pending.method.stays else release.wait())
            return Raw(b'{"late":true}')

        ends.answer = wait
        listening = asyncio.ensure_future(ends.client.request("subscriptions/listen"))
        calling = asyncio.ensure_future(ends.client.request("tools/call"))
        await until(lambda: len(ends.asked) == 2)
        finishing = asyncio.ensure_future(ends.server.finish(5))
        assert await listening == Raw(b"{}")
        release.set()
        assert await finishing
        assert await calling == Raw(b'{"late":true}')
