"""A request of ours, from its sending to its end: callbacks, back-pressure, and an end of its own for each."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from accord.errors import ConnectionLost, NotConnected, ProtocolError, RequestTimeout, copy_error
from accord.limits import ClientLimits, Limits
from accord.session.pending_request import PendingRequest
from accord.transport import memory
from accord.transport.connection import Connection

from tests.session import pair as wired
from tests.transport.test_connection import connected, forever, until
from tests.waiting import turns

S25 = "2025-11-25"


async def hand_made(limits: Limits | None = None) -> tuple[Connection, memory.MemoryTransport]:
    """A client whose server is the test."""
    ours, theirs = memory.pair(limits or Limits())
    client = Connection(wired.opened_client(S25), ours, lambda pending, _: forever(pending), limits=limits or Limits())
    await client.start()
    return client, theirs


def progress(token: Any, value: float) -> bytes:
    return wired.notification("notifications/progress", {"progressToken": token, "progress": value})


def id_of(message: Any) -> Any:
    return msgspec.json.decode(message)["id"]


async def asked(server: memory.MemoryTransport) -> Any:
    """The id of the request that comes next."""
    (message,) = await server.receive()
    assert isinstance(message, bytes)
    return id_of(message)


# Writing


class ImmediateTransport(memory.MemoryTransport):
    """An end of a pair that notes which messages it should write at once."""

    def __init__(self) -> None:
        super().__init__()
        self.sent_now: list[bytes] = []

    def send_now(self, message: bytes) -> None:
        self.sent_now.append(message)


async def test_a_request_is_written_at_once_unless_others_are_in_flight() -> None:
    transport = ImmediateTransport()
    client = Connection(wired.opened_client(S25), transport, lambda pending, _: forever(pending))
    asking = [asyncio.ensure_future(client.request("tools/list")) for _ in range(3)]
    await asyncio.sleep(0)
    (first,) = map(id_of, transport.sent_now)
    assert [id_of(message) for message in await transport.receive()] == [first + 1, first + 2]  # its own peer
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
    await client.close()


# Callbacks


async def test_reports_arrive_in_order_and_all_of_them_before_the_answer() -> None:
    client, server = await hand_made()
    told: list[float] = []

    async def slowly(value: float, total: float | None, message: str | None) -> None:
        for _ in range(int(5 - value)):  # the first take longest
            await asyncio.sleep(0)
        told.append(value)

    asking = asyncio.ensure_future(client.request("tools/list", on_progress=slowly))
    id = await asked(server)
    for value in range(5):
        server.send(progress(id, value))
    server.send(wired.answer_to(id))
    await asking
    assert told == [0, 1, 2, 3, 4]
    await client.close()


async def test_a_callback_that_does_not_end_holds_up_the_answer_for_a_bounded_time() -> None:
    client, server = await hand_made(Limits(client=ClientLimits(callback_seconds=0.01)))
    asking = asyncio.ensure_future(client.request("tools/list", on_progress=lambda *_: forever()))
    id = await asked(server)
    server.send(progress(id, 1))
    server.send(wired.answer_to(id))
    async with asyncio.timeout(100):
        assert await asking == Raw(b"{}")
    await client.close()


async def test_a_call_that_is_cancelled_cancels_its_callbacks() -> None:
    client, server = await hand_made()
    ended = asyncio.Event()

    async def endless(*_: Any) -> None:
        try:
            await forever()
        finally:
            ended.set()

    running = asyncio.Event()
    asking = asyncio.ensure_future(client.request("tools/list", on_progress=lambda *_: (running.set(), endless())[1]))
    server.send(progress(await asked(server), 1))
    await running.wait()
    await asyncio.sleep(0)
    asking.cancel()
    async with asyncio.timeout(100):
        await ended.wait()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await client.close()


# Back-pressure


async def test_a_fast_sender_waits_for_its_peer() -> None:
    client, server = await hand_made(Limits(pending_bytes=2_000))
    calls = [asyncio.ensure_future(client.request("tools/call", {"name": "x" * 900})) for _ in range(10)]
    answered = 0
    while answered < len(calls):
        await until(lambda: client.session.outgoing)
        await turns(20)
        assert 1 <= len(client.session.outgoing) <= 3, "no more is sent than the bound, and the one that passes it"
        for message in await server.receive():
            server.send(wired.answer_to(msgspec.json.decode(message)["id"]))  # type: ignore[arg-type]
            answered += 1
    assert await asyncio.gather(*calls) == [Raw(b"{}")] * 10
    await client.close()


@pytest.mark.parametrize("bound", [{"timeout": 0.01}, {"total_timeout": 0.01}])
async def test_a_peer_that_takes_nothing_does_not_hold_up_the_timeout(bound: dict[str, float]) -> None:
    client, _ = await hand_made(Limits(pending_bytes=1_000))
    for why in ("no answer|is over", "has not read earlier messages"):
        async with asyncio.timeout(100):
            with pytest.raises(RequestTimeout, match=why):
                await client.request("tools/call", {"name": "x" * 2_000}, **bound)  # type: ignore[arg-type]
    await client.close()


async def test_a_call_that_waits_for_the_peer_to_read_can_be_cancelled_and_lost() -> None:
    client, _ = await hand_made(Limits(pending_bytes=1_000))
    params = {"name": "x" * 2_000}
    sent, cancelled, lost = (asyncio.ensure_future(client.request("tools/call", params)) for _ in range(3))
    await turns(10)
    assert len(client.session.outgoing) == 1
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    assert client.stats.cancels_sent == 0
    await client.close()
    for each in (sent, lost):
        with pytest.raises(NotConnected):
            await each


# The end


@pytest.mark.parametrize("by", ["peer", "us"])
async def test_each_call_that_is_lost_has_an_exception_of_its_own(by: str) -> None:
    client, server = await hand_made()
    calls = [asyncio.ensure_future(client.request("tools/list")) for _ in range(3)]
    await until(lambda: len(client.session.outgoing) == 3)
    await (server.close() if by == "peer" else client.close())
    errors: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
    errors += await asyncio.gather(*(client.request("tools/list") for _ in range(2)), return_exceptions=True)
    assert {type(error) for error in errors} == {ConnectionLost if by == "peer" else NotConnected}
    assert len({str(error) for error in errors}) == 1
    assert len({id(error) for error in errors}) == 5
    await client.close()


def test_an_error_again_is_the_same_in_all_that_it_says() -> None:
    lost = ConnectionLost("gone", exit_code=3, stderr="bye")
    lost.__cause__ = OSError("x")
    other = copy_error(lost)
    assert isinstance(other, ConnectionLost)
    assert other is not lost
    assert (str(other), other.exit_code, other.stderr, other.__cause__) == ("gone", 3, "bye", lost.__cause__)
    refused = copy_error(ProtocolError("m", code=7, data={"a": 1}))
    assert (str(refused), vars(refused)) == ("m (7)", {"code": 7, "message": "m", "data": {"a": 1}})


async def test_closing_waits_for_handlers_to_clean_up() -> None:
    cleaned = asyncio.Event()

    async def careful(pending: PendingRequest) -> Any:
        try:
            await forever()
        finally:
            await turns(10)
            cleaned.set()

    async with connected() as ends:
        ends.answer = careful
        asking = asyncio.ensure_future(ends.client.request("tools/list"))
        await until(lambda: ends.asked)
        await ends.server.close()
        assert cleaned.is_set()
        with pytest.raises(ConnectionLost):
            await asking


async def test_closing_does_not_wait_for_ever() -> None:
    released = asyncio.Event()

    async def stubborn(pending: PendingRequest) -> Any:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    async with connected(limits=Limits(close_seconds=0.02)) as ends:
        ends.answer = stubborn
        asking = asyncio.ensure_future(ends.client.request("tools/list"))
        await until(lambda: ends.asked)
        async with asyncio.timeout(100):
            await ends.server.close()
        assert ends.server.ended.is_set()
        released.set()
        await asyncio.gather(asking, return_exceptions=True)


async def test_closing_that_is_cancelled_has_closed_all_the_same() -> None:
    async def slow(pending: PendingRequest) -> Any:
        try:
            await forever()
        finally:
            await turns(20)

    async with connected() as ends:
        ends.answer = slow
        asking = asyncio.ensure_future(ends.client.request("tools/list"))
        await until(lambda: ends.asked)
        closing = asyncio.ensure_future(ends.server.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert ends.server.ended.is_set()
        with pytest.raises(ConnectionLost):
            await asking
        gc.collect()


# Reports of ours


async def test_a_report_that_is_held_goes_out_while_the_handler_still_runs() -> None:
    heard: list[float] = []
    async with connected(limits=Limits(progress_per_second=50)) as ends:
        ends.answer = forever
        asking = asyncio.ensure_future(
            ends.client.request("tools/call", on_progress=lambda value, *_: heard.append(value))
        )
        await until(lambda: ends.asked)
        for value in range(200):
            ends.server.report(ends.asked[0], value, None, None)
        assert ends.asked[0].held_report is not None
        await until(lambda: 199 in heard)
        assert heard == sorted(set(heard))
        assert heard[:50] == [*range(50)]  # one second's worth at once; how many follow depends on the machine
        assert len(heard) < 200
        asking.cancel()


async def test_with_a_rate_of_nothing_what_is_held_waits_for_the_answer() -> None:
    heard: list[float] = []
    release = asyncio.Event()

    async def wait(pending: PendingRequest) -> Any:
        await release.wait()
        return Raw(b"{}")

    async with connected(limits=Limits(progress_per_second=0)) as ends:
        ends.answer = wait
        asking = asyncio.ensure_future(
            ends.client.request("tools/call", on_progress=lambda value, *_: heard.append(value))
        )
        await until(lambda: ends.asked)
        for value in range(3):
            ends.server.report(ends.asked[0], value, None, None)
        assert not heard
        release.set()
        await asking
        assert heard == [2]
