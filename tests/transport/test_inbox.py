"""Where messages wait for the one who receives: bounded, whatever they are."""

from __future__ import annotations

import asyncio

from accord.transport.inbox import Inbox


def test_a_few_large_messages_fill_an_inbox() -> None:
    inbox = Inbox(10_000, lambda: None)
    inbox.put([b"x" * 9_000], 9_000)
    assert not inbox.full
    inbox.put([b"x" * 1_000], 1_000)
    assert inbox.full


def test_many_small_messages_fill_an_inbox_too() -> None:
    inbox = Inbox(10_000, lambda: None)
    inbox.put([b"{}"] * 100, 200)
    assert inbox.full


async def test_an_inbox_that_was_emptied_has_room() -> None:
    told: list[bool] = []
    inbox = Inbox(10_000, lambda: told.append(True))
    inbox.put([b"{}"] * 100, 200)
    assert await inbox.get() == [b"{}"] * 100
    assert told
    assert not inbox.full


async def test_other_work_has_its_turn_between_many_messages() -> None:
    """A peer that floods this process with messages must not hold up the calls to others."""
    inbox = Inbox(1 << 20, lambda: None)
    sent = [b"%d" % number for number in range(1_000)]
    inbox.put(sent, 3_000)
    received, turns = list[bytes](), list[int]()
    while len(received) < len(sent):
        asyncio.get_running_loop().call_soon(turns.append, len(received))
        received += await inbox.get()
    assert received == sent
    assert len(set(turns)) > 4


async def test_the_rest_of_many_messages_is_received_after_the_end() -> None:
    inbox = Inbox(10_000, lambda: None)
    inbox.put([b"{}"] * 300, 600)
    inbox.end()
    assert sum([len(await inbox.get()) for _ in range(3)]) == 300
    assert await inbox.get() == []
