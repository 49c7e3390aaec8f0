"""One subscription as its reader sees it: events to iterate over, typed, the same in every revision."""

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
    """A resource is another now; its URI may be that of a part of what was subscribed to."""

    uri: str


class ListChanged(msgspec.Struct, frozen=True):
    """A list is another now: "tools", "prompts" or "resources"."""

    kind: Kind


class Missed(msgspec.Struct, frozen=True):
    """Events may have been missed, for the reason given: look again at whatever you depend on."""

    why: str


SubscriptionEvent: TypeAlias = ResourceUpdated | ListChanged | Missed


def event_of(notice: Notice) -> ResourceUpdated | ListChanged | None:
    """What a notification says to a subscription, if it says anything."""
    if isinstance(notice.params, ResourceUpdatedParams):
        return ResourceUpdated(notice.params.uri)
    kind = _CHANGED.get(notice.method)
    return None if kind is None else ListChanged(kind)


class SubscriptionBackend(Protocol):
    """Who subscribes and unsubscribes."""

    async def subscribe(self, subscription: Subscription) -> None:
        """Subscribe."""

    async def unsubscribe(self, subscription: Subscription) -> None:
        """Unsubscribe."""


class Subscription:
    """Events to iterate over: `async with client.subscribe(...) as subscription`.

    The iteration ends when the server ends the subscription, or the client is closed. It raises `ConnectionLost` when
    the connection is lost for good, and what the server answers when it refuses to subscribe again on the next one.
    """

    def __init__(self, keeper: SubscriptionBackend, wish: SubscriptionFilter, most: int) -> None:
        self._backend = keeper
        self._queue: NotificationBuffer[SubscriptionEvent] = NotificationBuffer(most)
        self.wish: SubscriptionFilter = wish
        """What was asked for."""
        self.granted: SubscriptionFilter = SubscriptionFilter()
        """What of it the server has agreed to."""

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

    def tell(self, event: SubscriptionEvent) -> None:
        """Take an event. Where too many wait, all of them give way to the word that something was missed."""
        if not self._queue.put(event):
            self._queue.clear()
            self._queue.put(Missed("more came than was read in time"))

    def end(self, error: Exception | None = None) -> None:
        """No more will come."""
        self._queue.close(error)

    @property
    def ended(self) -> bool:
        """Whether no more will come."""
        return self._queue.ended

    @property
    def uris(self) -> list[str]:
        """The resources that the server has agreed to tell of."""
        return self.granted.resource_subscriptions or []

    def wants(self, kind: Kind) -> bool:
        """Whether the server has agreed to tell when that list changes."""
        return bool(getattr(self.granted, f"{kind}_list_changed"))


def subscription_filter(uris: Sequence[str], tools: bool, prompts: bool, resources: bool) -> SubscriptionFilter:
    """What a subscription asks for. Raises `LocalProtocolError` when that is nothing."""
    if not (uris or tools or prompts or resources):
        raise LocalProtocolError("nothing to subscribe to; give URIs, or tools=True, prompts=True, resources=True")
    return SubscriptionFilter(
        tools_list_changed=tools or None,
        prompts_list_changed=prompts or None,
        resources_list_changed=resources or None,
        resource_subscriptions=list(dict.fromkeys(uris)) or None,
    )
