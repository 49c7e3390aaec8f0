"""`check_transport`: the tests that every transport must pass, accord's and yours.

Each scenario opens a fresh pair of connected transports, so that a failure names one promise of
`accord.transport.base.Transport`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from accord.transport.base import Transport

MakePair = Callable[[], Awaitable[tuple[Transport, Transport]]]
Scenario = Callable[[Transport, Transport], Awaitable[None]]

_LARGE = 10 << 20
_PIECE = 64 << 10
_MAX_UNREAD = 64 << 20
_IDLE_SECONDS = 0.3
"""The time after which an operation that has not completed counts as waiting."""


async def check_transport(make_pair: MakePair, *, seconds: float = 30) -> None:
    """Run every scenario on a pair from `await make_pair()`, not yet opened. Each may take `seconds`.

    Raises `AssertionError` with the name of the scenario.
    """
    for scenario in SCENARIOS:
        try:
            async with asyncio.timeout(seconds):
                await _run(scenario, make_pair)
        except TimeoutError:
            raise AssertionError(f"{scenario.__name__}: not finished after {seconds:g} s") from None
        except AssertionError as exc:
            raise AssertionError(f"{scenario.__name__}: {exc}") from exc


async def _run(scenario: Scenario, make_pair: MakePair) -> None:
    here, there = await make_pair()
    async with AsyncExitStack() as stack:
        for end in (here, there):
            stack.push_async_callback(end.close)
        await asyncio.gather(here.open(), there.open())
        await scenario(here, there)


async def messages_arrive_in_order(here: Transport, there: Transport) -> None:
    await _passes(here, there, [b'{"n":%d}' % n for n in range(5_000)])
    await _passes(there, here, [b'{"n":%d}' % n for n in range(5_000)])


async def a_large_message_passes_whole(here: Transport, there: Transport) -> None:
    large = b'"' + bytes(range(97, 123)) * (_LARGE // 26) + b'"'
    await _passes(here, there, [b'"before"', large, b'"after"'])
    await _passes(there, here, [large])


async def concurrent_senders_do_not_mix(here: Transport, there: Transport) -> None:
    async def sender(letter: bytes) -> None:
        for _ in range(50):
            here.send(b'"' + letter * 5_000 + b'"')
            await here.drain()
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for letter in b"abcdefgh":
            group.create_task(sender(bytes([letter])))
        messages = await _receive_messages(there, 8 * 50)
    assert all(len(message) == 5_002 and len(set(message)) == 2 for message in messages), "messages were mixed"


async def unicode_passes_untouched(here: Transport, there: Transport) -> None:
    texts = ['"é ☃ 𝄞"', '"a\u2028b\u2029c\x85d"', '"\\u0000\\n\\r\\u2028"', '"\ufeff"', '"\u202e"']
    await _passes(here, there, [text.encode() for text in texts])


async def an_end_that_closes_is_seen(here: Transport, there: Transport) -> None:
    here.send(b'"last words"')
    await here.close()
    assert await _receive_messages(there, 1) == [b'"last words"'], "what was sent before the close did not arrive"
    assert await there.receive() == [], "the close was not seen"
    assert await there.receive() == [], "receive() after the end returned messages"
    there.send(b'"too late"')
    there.flush()
    await there.drain()
    assert there.lost() is not None, "lost() returned no reason"


async def the_other_end_can_close_as_well(here: Transport, there: Transport) -> None:
    there.send(b'"last words"')
    await there.close()
    assert await _receive_messages(here, 1) == [b'"last words"'], "what was sent before the close did not arrive"
    assert await here.receive() == [], "the close was not seen"


async def a_closed_end_is_harmless(here: Transport, there: Transport) -> None:
    waiting = asyncio.create_task(_receive(here))
    await asyncio.sleep(0)
    await here.close()
    assert await waiting == [], "a waiting receive() was not ended by close()"
    assert await here.receive() == [], "receive() on a closed end returned messages"
    here.send(b'"nobody"')
    here.flush()
    await here.drain()
    await asyncio.gather(here.close(), here.close())


async def a_slow_receiver_holds_the_sender(here: Transport, there: Transport) -> None:
    sent = 0
    while await _returns(here.drain()):
        here.send(b'"' + b"x" * _PIECE + b'"')
        sent += 1
        assert sent * _PIECE < _MAX_UNREAD, f"{_MAX_UNREAD:,} bytes were accepted without a receiver"
    draining = asyncio.create_task(here.drain())
    messages = await _receive_messages(there, sent)
    await draining
    assert len(messages) == sent, "messages were lost"
    await _passes(here, there, [b'"and on"'])


async def a_cancelled_receive_loses_nothing(here: Transport, there: Transport) -> None:
    for n in range(200):
        waiting = asyncio.create_task(_receive(there))
        await asyncio.sleep(0)
        message = b'{"n":%d}' % n
        here.send(message)
        here.flush()
        if n % 2:
            await asyncio.sleep(0)  # on some transports, long enough for the message to wake the receiver
        waiting.cancel()
        result = (await asyncio.gather(waiting, return_exceptions=True))[0]
        messages = result if isinstance(result, list) else await _receive_messages(there, 1)
        assert messages == [message], f"message {n} was lost by a cancelled receive()"


async def closing_with_unread_messages_is_bounded(here: Transport, there: Transport) -> None:
    for _ in range(100):
        here.send(b'"' + b"x" * _PIECE + b'"')
    await here.close()
    await there.close()


SCENARIOS: tuple[Scenario, ...] = (
    messages_arrive_in_order,
    a_large_message_passes_whole,
    concurrent_senders_do_not_mix,
    unicode_passes_untouched,
    an_end_that_closes_is_seen,
    the_other_end_can_close_as_well,
    a_closed_end_is_harmless,
    a_slow_receiver_holds_the_sender,
    a_cancelled_receive_loses_nothing,
    closing_with_unread_messages_is_bounded,
)


async def _passes(sender: Transport, receiver: Transport, messages: list[bytes]) -> None:
    async def send() -> None:
        for message in messages:
            sender.send(message)
            await sender.drain()

    received, _ = await asyncio.gather(_receive_messages(receiver, len(messages)), send())
    for n, (expected, actual) in enumerate(zip(messages, received, strict=True)):
        # Compared outside of the assertion, which would print megabytes.
        same = expected == actual
        assert same, f"message {n}: sent {expected[:60]!r}, received {actual[:60]!r}"


async def _receive_messages(transport: Transport, count: int) -> list[bytes]:
    """Return the next `count` messages, and check that they are bytes."""
    received: list[bytes] = []
    while len(received) < count:
        messages = await transport.receive()
        assert messages, f"the connection ended after {len(received)} of {count} messages"
        for message in messages:
            assert isinstance(message, bytes), f"{message!r} is not a message"
            received.append(message)
    assert len(received) == count, f"received {len(received)} messages instead of {count}"
    return received


async def _receive(end: Transport) -> object:
    return await end.receive()


async def _returns(operation: Awaitable[None]) -> bool:
    try:
        async with asyncio.timeout(_IDLE_SECONDS):
            await operation
    except TimeoutError:
        return False
    return True
