"""Topics: a page that was away gets what is true now, and no number of changes makes a long stream."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from accord.inspector import topics as module
from accord.inspector.topics import Topics


async def lines(topics: Topics, number: int) -> list[Any]:
    """Return the topics of the first lines of a stream."""
    found = []
    async for line in topics.stream():
        found.append(json.loads(line)["topics"])
        if len(found) == number:
            break
    return found


async def test_a_new_stream_begins_with_all_topics() -> None:
    topics = Topics()
    topics.changed("traffic", {"rows": 1})
    topics.changed("servers", {"states": {}})
    topics.changed("traffic", {"rows": 2})
    assert await lines(topics, 1) == [{"traffic": {"rows": 2}, "servers": {"states": {}}}]
    assert await lines(topics, 1) == [{"traffic": {"rows": 2}, "servers": {"states": {}}}]


async def test_a_million_changes_are_a_few_lines() -> None:
    topics = Topics()
    reading = asyncio.create_task(lines(topics, 2))
    await asyncio.sleep(0)
    for number in range(1_000_000):
        topics.changed("notifications", {"count": number})
    assert await reading == [{}, {"notifications": {"count": 999_999}}]


async def test_each_page_gets_each_change() -> None:
    topics = Topics()
    reading = [asyncio.create_task(lines(topics, 2)) for _ in range(5)]
    await asyncio.sleep(0.1)
    topics.changed("calls", {"open": 1})
    assert await asyncio.gather(*reading) == [[{}, {"calls": {"open": 1}}]] * 5


async def test_a_stream_ends_after_a_while_and_when_the_inspector_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for pause in (0, 0.1):  # between two lines, and waiting for a change
        reading = asyncio.create_task(lines(topics := Topics(), 100))
        await asyncio.sleep(pause)
        topics.close()
        assert await asyncio.wait_for(reading, 100) == [{}]
    monkeypatch.setattr(module, "_STREAM_SECONDS", 0.1)
    assert await lines(Topics(), 100) == [{}]
