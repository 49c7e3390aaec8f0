"""Topics of changes with one small value each, and the stream that tells a page of them.

A topic is a counter or a state, never a list of events: a page that was away, or reads slowly, gets the current values,
and requests what it shows. So a million notifications are a few lines, and the inspected server waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import msgspec

_PAUSE_SECONDS = 0.05
"""The least time between two lines of a stream."""
_STREAM_SECONDS = 10.0
"""How long a stream is open."""


class Topics:
    """The topics of one inspector."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._versions: dict[str, int] = {}
        self._version = 0
        self._changed = asyncio.Event()
        self._is_closed = False

    def changed(self, topic: str, value: Any = None) -> None:
        """Set the value of a topic, which `msgspec` can encode; it costs no more than this."""
        self._version += 1
        self._versions[topic] = self._version
        self._values[topic] = value
        self._changed.set()

    def interrupt(self) -> None:
        """Let all streams look whether they may go on."""
        self._version += 1
        self._changed.set()

    def close(self) -> None:
        """End all streams."""
        self._is_closed = True
        self.interrupt()

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield lines of JSON with the topics that changed, at first all of them, for some seconds.

        The page then opens another stream: a server that shuts down, and waits for its responses, does not wait long.
        """
        loop = asyncio.get_running_loop()
        end, seen = loop.time() + _STREAM_SECONDS, -1
        while not self._is_closed and loop.time() < end:
            found = {topic: self._values[topic] for topic, version in self._versions.items() if version > seen}
            seen = self._version
            yield msgspec.json.encode({"topics": found}) + b"\n"
            await asyncio.sleep(_PAUSE_SECONDS)
            if self._version == seen:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(end):  # around nothing that is yielded
                        await self._changed.wait()
            if self._version == seen:
                return
