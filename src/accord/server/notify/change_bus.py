"""Passes the changes of a server, from any thread, to the `SubscriptionIndex` of each event loop that serves it.

It is apart from the index because a server that is only declared, and not run, does not load asyncio.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from accord.server.notify.subscription_index import SubscriptionIndex


class ChangeBus:
    """The subscription indexes of one server, by event loop."""

    def __init__(self) -> None:
        self.indexes: dict[AbstractEventLoop, SubscriptionIndex] = {}
        self._joined: Counter[AbstractEventLoop] = Counter()
        self._listeners: list[Callable[[str, str], None]] = []

    def add_listener(self, listener: Callable[[str, str], None]) -> None:
        """Call `listener(what, uri)` after each change, such as for the outer server of a mounted one: `what` for
        lists, the URI for resources.
        """
        self._listeners.append(listener)

    def remove_listener(self, listener: Callable[[str, str], None]) -> None:
        """Remove a listener."""
        self._listeners.remove(listener)

    def join(self, make: Callable[[], SubscriptionIndex]) -> SubscriptionIndex:
        """Return the index of the running loop for one more connection; the first creates it. Pair with `leave`."""
        loop = _running_loop()
        assert loop is not None
        index = self.indexes.get(loop)
        if index is None:
            index = self.indexes[loop] = make()
        self._joined[loop] += 1
        return index

    def leave(self, index: SubscriptionIndex) -> None:
        """Remove a connection; the last one removes the index. Call on its loop, or after that has closed."""
        self._joined[index.loop] -= 1
        if not self._joined[index.loop]:
            del self._joined[index.loop]
            self.indexes.pop(index.loop, None)

    def list_changed(self, what: str) -> None:
        """Notify of a change of "tools", "prompts" or "resources"; callable from any thread."""
        for listener in list(self._listeners):
            listener(what, "")
        self._notify(f"notifications/{what}/list_changed", "")

    def resource_updated(self, uri: str) -> None:
        """Notify of a change of a resource; callable from any thread."""
        for listener in list(self._listeners):
            listener("", uri)
        self._notify("notifications/resources/updated", uri)

    def _notify(self, method: str, uri: str) -> None:
        for index in list(self.indexes.values()):
            with suppress(RuntimeError):  # that loop was closed
                if index.loop is _running_loop():
                    index.queue_change(method, uri)
                else:
                    index.loop.call_soon_threadsafe(index.queue_change, method, uri)


def _running_loop() -> AbstractEventLoop | None:
    """Return the running loop of the caller. A thread may run several, one after the other, and its number is
    reused.
    """
    import asyncio

    return asyncio._get_running_loop()
