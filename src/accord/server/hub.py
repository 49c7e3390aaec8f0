"""What changes on a server, told to everyone who is connected to it, from any thread.

The clients of one event loop are an `Audience` (see `audience`), which looks at them on that loop alone; a server has
as many of these as loops that serve it, however many ways it is reached on one of them, and before it is served none.
So there is nothing to lock.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

    from accord.server.audience import Audience


class Hub:
    """The audiences of one server."""

    def __init__(self) -> None:
        self.audiences: dict[AbstractEventLoop, Audience] = {}
        self._joined: Counter[AbstractEventLoop] = Counter()
        self._followers: list[Callable[[str, str], None]] = []

    def follow(self, follower: Callable[[str, str], None]) -> None:
        """Have somebody else hear what has changed: a server that this one is mounted in. Of lists, `what`; of
        resources, the URI.
        """
        self._followers.append(follower)

    def unfollow(self, follower: Callable[[str, str], None]) -> None:
        """No more."""
        self._followers.remove(follower)

    def join(self, make: Callable[[], Audience]) -> Audience:
        """The audience of the loop that runs, for one who serves there; the first makes it. `leave` it at the end."""
        loop = _running()
        assert loop is not None
        audience = self.audiences.get(loop)
        if audience is None:
            audience = self.audiences[loop] = make()
        self._joined[loop] += 1
        return audience

    def leave(self, audience: Audience) -> None:
        """One serves no more; with the last, the audience goes. On its loop, or when that is closed."""
        self._joined[audience.loop] -= 1
        if not self._joined[audience.loop]:
            del self._joined[audience.loop]
            self.audiences.pop(audience.loop, None)

    def changed(self, what: str) -> None:
        """Its "tools", "prompts" or "resources" are no longer what they were. From any thread."""
        for follower in list(self._followers):
            follower(what, "")
        self._tell(f"notifications/{what}/list_changed", "")

    def updated(self, uri: str) -> None:
        """A resource is no longer what it was. From any thread."""
        for follower in list(self._followers):
            follower("", uri)
        self._tell("notifications/resources/updated", uri)

    def _tell(self, method: str, uri: str) -> None:
        for audience in list(self.audiences.values()):
            with suppress(RuntimeError):  # that loop was closed
                if audience.loop is _running():
                    audience.note(method, uri)
                else:
                    audience.loop.call_soon_threadsafe(audience.note, method, uri)


def _running() -> AbstractEventLoop | None:
    """The loop of who asks. A thread may run several, one after the other, and its number is given again."""
    import asyncio

    return asyncio._get_running_loop()
