"""All that a client has subscribed to, on whichever connection it has just then.

When the connection dies and is opened again, every subscription is made anew ("the client MUST re-send
`subscriptions/listen`"), in the way of the revision that holds now, and its reader gets a `Missed`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from accord.client.eras import Listening, Untagged
from accord.client.notices import Notice, Notices
from accord.client.subscription import Missed, Subscription
from accord.errors import AccordError, ConnectionLost
from accord.messages.methods import table
from accord.transport.base import has_gaps
from accord.transport.connection import Connection

Ready = Callable[[float | None], Awaitable[Connection]]
"""The connection, once there is one; it takes the seconds to wait."""


class Subscriptions:
    """The subscriptions of one client. `seconds` is the time for each answer, `None` for any.

    `forget` is called where something may have been missed, though the connection goes on.
    """

    def __init__(self, ready: Ready, notices: Notices, seconds: float | None, forget: Callable[[], None]) -> None:
        self._ready = ready
        self._notices = notices
        self._seconds = seconds
        self._forget = forget
        self._way: Untagged | Listening | None = None
        self._open: dict[Subscription, Untagged | Listening] = {}

    async def use(self, connection: Connection) -> None:
        """Subscribe anew on this connection. Raises `ConnectionLost` when it dies meanwhile."""
        listens = "subscriptions/listen" in table(connection.revision, "client")
        self._way = (Listening if listens else Untagged)(connection, self._notices, self._seconds)
        if has_gaps(connection.transport):
            connection.transport.on_missed = self._missed
        self._open = {each: way for each, way in self._open.items() if not each.ended}
        for subscription in list(self._open):
            if subscription not in self._open:  # its reader has left while another was made anew
                continue
            subscription.tell(Missed("the connection was lost and opened again"))
            await self._again(subscription, self._way)

    async def _again(self, subscription: Subscription, way: Untagged | Listening) -> None:
        self._open[subscription] = way
        try:
            await way.begin(subscription)
        except ConnectionLost:
            raise
        except AccordError as exc:  # the others may fare better; its own reader is told
            self._open.pop(subscription, None)
            subscription.end(exc)

    async def begin(self, subscription: Subscription) -> None:
        """Subscribe. Raises `NotConnected`, `NotSupported` when nothing is granted, and what the server answers."""
        while True:
            connection = await self._ready(self._seconds)
            try:
                return await self._begin(subscription)
            except ConnectionLost:
                if await self._ready(self._seconds) is connection:  # there is no other
                    raise

    async def _begin(self, subscription: Subscription) -> None:
        way = self._way
        assert way is not None, "a connection is ready when `use` is done with it"
        await way.begin(subscription)
        self._open[subscription] = way

    async def finish(self, subscription: Subscription) -> None:
        """Unsubscribe."""
        subscription.end()
        way = self._open.pop(subscription, None)
        if way is not None and way is self._way:
            await way.finish(subscription)

    def heard(self, notice: Notice) -> None:
        """Pass on what the server tells on the connection; a subscription that has an id hears by itself."""
        if isinstance(self._way, Untagged):
            self._way.heard(notice)

    def _missed(self, why: str) -> None:
        self._forget()
        for subscription in self._open:
            subscription.tell(Missed(why))

    def end(self, error: ConnectionLost | None = None) -> None:
        """There is no connection any more; the readers are told, by an error if there is one."""
        for subscription in self._open:
            subscription.end(error)
        self._open.clear()
        if self._way is not None:
            self._way.end()
