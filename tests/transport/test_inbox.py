"""Where messages wait for the one who receives: bounded, whatever they are."""

from __future__ import annotations

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
