"""What changes on a server, told to everyone who is connected to it, from any thread.

The clients of one event loop are an `SubscriptionIndex` (see `audience`), which looks at them on that loop alone; a
server has as many of these as loops that serve it, however many ways it is reached on one of them, and before it is
served none. So there is nothing to lock.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from accord.server.subscription_index import SubscriptionIndex


class ChangeBus:
    """The audiences of one server."""

    def __init__(self) -> None:
        self.indexes: dict[AbstractEventLoop, SubscriptionIndex] = {}
        self._joined: Counter[AbstractEventLoop] = Counter()
        self._listeners: list[Callable[[str, str], None]] = []

    def add_listener(self, follower: Callable[[str, str], None]) -> None:
        """Have somebody else hear what has changed: a server that this one is mounted in. Of lists, `what`; of
        resources, the URI.
        """
        self._listeners.append(follower)

    def remove_listener(self, follower: Callable[[str, str], None]) -> None:
        """No more."""
        self._listeners.remove(follower)

    def join(self, make: Callable[[], SubscriptionIndex]) -> SubscriptionIndex:
        """The audience of the loop that runs, for one who serves there; the first makes it. `leave` it at the end."""
        loop = _running_loop()
        assert loop is not None
        audience = self.indexes.get(loop)
        if audience is None:
            audience = self.indexes[loop] = make()
        self._joined[loop] += 1
        return audience

    def leave(self, audience: SubscriptionIndex) -> None:
        """One serves no more; with the last, the audience goes. On its loop, or when that is closed."""
        self._joined[audience.loop] -= 1
        if not self._joined[audience.loop]:
            del self._joined[audience.loop]
            self.indexes.pop(audience.loop, None)

    def list_changed(self, what: str) -> None:
        """Its "tools", "prompts" or "resources" are no longer what they were. From any thread."""
        for follower in list(self._listeners):
            follower(what, "")
        self._notify(f"notifications/{what}/list_changed", "")

    def resource_updated(self, uri: str) -> None:
        """A resource is no longer what it was. From any thread."""
        for follower in list(self._listeners):
            follower("", uri)
        self._notify("notifications/resources/updated", uri)

    def _notify(self, method: str, uri: str) -> None:
        for audience in list(self.indexes.values()):
            with suppress(RuntimeError):  # that loop was closed
                if audience.loop is _running_loop():
                    audience.queue_change(method, uri)
                else:
                    audience.loop.call_soon_threadsafe(audience.queue_change, method, uri)


def _running_loop() -> AbstractEventLoop | None:
    """The loop of who asks. A thread may run several, one after the other, and its number is given again."""
    import asyncio

    return asyncio._get_running_loop()
