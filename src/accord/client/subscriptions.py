"""All that a client has subscribed to, on whichever connection it has just then.

When the connection dies and is opened again, every subscription is made anew ("the client MUST re-send
`subscriptions/listen`"), in the way of the revision that holds now, and its reader gets a `Missed`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from accord.client.notifications import Notice, NotificationRouter
from accord.client.subscription import Missed, Subscription
from accord.client.subscription_backends import ListenSubscriptions, SharedSubscriptions
from accord.errors import AccordError, ConnectionLost
from accord.messages.methods import table
from accord.transport.base import is_lossy
from accord.transport.connection import Connection

Ready = Callable[[float | None], Awaitable[Connection]]
"""The connection, once there is one; it takes the seconds to wait."""


class SubscriptionManager:
    """The subscriptions of one client. `seconds` is the time for each answer, `None` for any.

    `forget` is called where something may have been missed, though the connection goes on.
    """

    def __init__(
        self, ready: Ready, notices: NotificationRouter, seconds: float | None, forget: Callable[[], None]
    ) -> None:
        self._ready = ready
        self._notices = notices
        self._timeout = seconds
        self._invalidate = forget
        self._backend: SharedSubscriptions | ListenSubscriptions | None = None
        self._open: dict[Subscription, SharedSubscriptions | ListenSubscriptions] = {}

    async def use(self, connection: Connection) -> None:
        """Subscribe anew on this connection. Raises `ConnectionLost` when it dies meanwhile."""
        listens = "subscriptions/listen" in table(connection.revision, "client")
        self._backend = (ListenSubscriptions if listens else SharedSubscriptions)(
            connection, self._notices, self._timeout
        )
        if is_lossy(connection.transport):
            connection.transport.on_missed = self._on_gap
        self._open = {each: way for each, way in self._open.items() if not each.ended}
        for subscription in list(self._open):
            if subscription not in self._open:  # its reader has left while another was made anew
                continue
            subscription.tell(Missed("the connection was lost and opened again"))
            await self._resubscribe(subscription, self._backend)

    async def _resubscribe(self, subscription: Subscription, way: SharedSubscriptions | ListenSubscriptions) -> None:
        self._open[subscription] = way
        try:
            await way.subscribe(subscription)
        except ConnectionLost:
            raise
        except AccordError as exc:  # the others may fare better; its own reader is told
            self._open.pop(subscription, None)
            subscription.end(exc)

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe. Raises `NotConnected`, `NotSupported` when nothing is granted, and what the server answers."""
        while True:
            connection = await self._ready(self._timeout)
            try:
                return await self._subscribe(subscription)
            except ConnectionLost:
                if await self._ready(self._timeout) is connection:  # there is no other
                    raise

    async def _subscribe(self, subscription: Subscription) -> None:
        way = self._backend
        assert way is not None, "a connection is ready when `use` is done with it"
        await way.subscribe(subscription)
        self._open[subscription] = way

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe."""
        subscription.end()
        way = self._open.pop(subscription, None)
        if way is not None and way is self._backend:
            await way.unsubscribe(subscription)

    def on_notification(self, notice: Notice) -> None:
        """Pass on what the server tells on the connection; a subscription that has an id hears by itself."""
        if isinstance(self._backend, SharedSubscriptions):
            self._backend.on_notification(notice)

    def _on_gap(self, why: str) -> None:
        self._invalidate()
        for subscription in self._open:
            subscription.tell(Missed(why))

    def close(self, error: ConnectionLost | None = None) -> None:
        """There is no connection any more; the readers are told, by an error if there is one."""
        for subscription in self._open:
            subscription.end(error)
        self._open.clear()
        if self._backend is not None:
            self._backend.close()
