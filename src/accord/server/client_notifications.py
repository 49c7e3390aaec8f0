"""What a client tells that belongs to no request. What the server remembers of it goes for all that comes behind it;
only handlers of the program wait for each other, and nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Collection

from accord.limits import Limits
from accord.session.events import NotificationReceived
from accord.transport.callbacks import Callback
from accord.transport.request_sender import NotificationCallback, size_of


class ClientNotifications:
    """The notifications of one client; the program hears those in `offered`."""

    def __init__(self, take: NotificationCallback, offered: Collection[str], limits: Limits) -> None:
        self._extension_methods = offered
        self._deliver = take
        self._callback = Callback(take, limits.notices, limits.notice_bytes)

    def receive(self, event: NotificationReceived) -> None:
        """Take one."""
        if event.method.name in self._extension_methods:
            self._callback.call(event, size=size_of(event))
        else:
            self._deliver(event)

    async def finish(self, seconds: float) -> None:
        """Wait for what still runs, at most so long; then it is cancelled."""
        await self._callback.finish(seconds)
