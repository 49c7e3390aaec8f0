"""One subscription for its reader: typed events to iterate over, the same in every revision."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Literal, Protocol, TypeAlias

import msgspec

from accord.client.notifications import Notice, NotificationBuffer
from accord.errors import LocalProtocolError
from accord.messages.notifications import SubscriptionFilter
from accord.messages.resources import ResourceUpdatedParams

Kind: TypeAlias = Literal["tools", "prompts", "resources"]

_CHANGED: dict[str, Kind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}


class ResourceUpdated(msgspec.Struct, frozen=True):
    """An update of a resource; its URI may be that of a sub-resource of a subscribed one."""

    uri: str


class ListChanged(msgspec.Struct, frozen=True):
    """A change of a list: "tools", "prompts" or "resources"."""

    kind: Kind


class Missed(msgspec.Struct, frozen=True):
    """Events may have been missed, for the reason in `why`: refresh everything that depends on them."""

    why: str


SubscriptionEvent: TypeAlias = ResourceUpdated | ListChanged | Missed


def event_of(notice: Notice) -> ResourceUpdated | ListChanged | None:
    """Return the subscription event of a notification, or None."""
    if isinstance(notice.params, ResourceUpdatedParams):
        return ResourceUpdated(notice.params.uri)
    kind = _CHANGED.get(notice.method)
    return None if kind is None else ListChanged(kind)


class SubscriptionBackend(Protocol):
    """The sender of subscribe and unsubscribe requests."""

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe."""

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe."""


class Subscription:
    """Events to iterate over: `async with client.subscribe(...) as subscription`.

    The iteration ends when the server ends the subscription, or the client is closed. It raises `ConnectionLost` when
    the connection is lost for good, and the server's error when it refuses to subscribe again after a reconnect.
    """

    def __init__(self, backend: SubscriptionBackend, requested: SubscriptionFilter, most: int) -> None:
        self._backend = backend
        self._queue: NotificationBuffer[SubscriptionEvent] = NotificationBuffer(most)
        self.wish: SubscriptionFilter = requested
        """The requested notifications."""
        self.granted: SubscriptionFilter = SubscriptionFilter()
        """The notifications that the server granted."""

    async def __aenter__(self) -> Subscription:
        if self.ended:
            raise LocalProtocolError("this subscription has ended; call subscribe() for a new one")
        await self._backend.subscribe(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._backend.unsubscribe(self)

    def __aiter__(self) -> AsyncIterator[SubscriptionEvent]:
        return self

    async def __anext__(self) -> SubscriptionEvent:
        return await self._queue.get()

    def add(self, event: SubscriptionEvent) -> None:
        """Add an event. When too many wait, one `Missed` replaces all of them."""
        if not self._queue.put(event):
            self._queue.clear()
            self._queue.put(Missed("more came than was read in time"))

    def end(self, error: Exception | None = None) -> None:
        """Close the subscription."""
        self._queue.close(error)

    @property
    def ended(self) -> bool:
        """Return whether the subscription has ended."""
        return self._queue.ended

    @property
    def uris(self) -> list[str]:
        """Return the resources that the server granted."""
        return self.granted.resource_subscriptions or []

    def wants(self, kind: Kind) -> bool:
        """Return whether the server granted notifications for this list."""
        return bool(getattr(self.granted, f"{kind}_list_changed"))


def subscription_filter(uris: Sequence[str], tools: bool, prompts: bool, resources: bool) -> SubscriptionFilter:
    """Return the filter of a subscription. Raises `LocalProtocolError` if it is empty."""
    if not (uris or tools or prompts or resources):
        raise LocalProtocolError("nothing to subscribe to; give URIs, or tools=True, prompts=True, resources=True")
    return SubscriptionFilter(
        tools_list_changed=tools or None,
        prompts_list_changed=prompts or None,
        resources_list_changed=resources or None,
        resource_subscriptions=list(dict.fromkeys(uris)) or None,
    )
