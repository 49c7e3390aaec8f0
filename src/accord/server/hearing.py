"""What a client tells that belongs to no request. What the server remembers of it goes for all that comes behind it;
only handlers of the program wait for each other, and nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Collection

from accord.limits import Limits
from accord.session.events import NotificationReceived
from accord.transport.asking import NotificationCallback, size_of
from accord.transport.callbacks import Callback


class Hearing:
    """The notifications of one client; the program hears those in `offered`."""

    def __init__(self, take: NotificationCallback, offered: Collection[str], limits: Limits) -> None:
        self._offered = offered
        self._take = take
        self._in_turn = Callback(take, limits.notices, limits.notice_bytes)

    def hear(self, event: NotificationReceived) -> None:
        """Take one."""
        if event.method.name in self._offered:
            self._in_turn.call(event, size=size_of(event))
        else:
            self._take(event)

    async def finish(self, seconds: float) -> None:
        """Wait for what still runs, at most so long; then it is cancelled."""
        await self._in_turn.finish(seconds)
