"""Subscriptions of the page to resources and lists of servers, with their last events."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence

import msgspec

from accord.client.client import Client
from accord.client.subscription import ListChanged, Missed, ResourceUpdated, Subscription, SubscriptionEvent
from accord.errors import AccordError, log_line
from accord.inspector.commands import InspectorError
from accord.inspector.list_changes import ListKind, StartTask

MAX_URIS = 100
"""The resources of one subscription."""
_MAX_SUBSCRIPTIONS = 50
"""The subscriptions of one server, with those that ended."""
_RECENT_EVENTS = 50
_URI_CHARACTERS = 500
_KINDS: tuple[ListKind, ...] = ("tools", "prompts", "resources")


class SubscriptionView(msgspec.Struct, kw_only=True, rename="camel"):
    """A subscription as the page shows it."""

    id: int
    requested: list[str]
    granted: list[str]
    events: int = 0
    recent: list[str] = []
    """The last events, each with its time."""
    is_open: bool = True
    reason: str = ""
    """Why it ended."""


class OpenSubscriptions:
    """The subscriptions of all servers. `start` runs the tasks that read them; `on_change()` follows each event."""

    def __init__(self, start: StartTask, on_change: Callable[[], None]) -> None:
        self._start = start
        self._on_change = on_change
        self._numbers = itertools.count(1)
        self._subscriptions: dict[str, dict[int, tuple[SubscriptionView, Subscription]]] = {}

    def of(self, server: str) -> list[SubscriptionView]:
        """Return the subscriptions of a server."""
        return [view for view, _ in self._subscriptions.get(server, {}).values()]

    async def open(
        self, server: str, client: Client, uris: Sequence[str], kinds: Sequence[ListKind]
    ) -> SubscriptionView:
        """Open a subscription, and read its events in the background. Raises `InspectorError`, errors of the server."""
        own = self._subscriptions.setdefault(server, {})
        if len(own) >= _MAX_SUBSCRIPTIONS:
            ended = next((id for id, (view, _) in own.items() if not view.is_open), None)
            own.pop(ended or 0, None)
        if len(own) >= _MAX_SUBSCRIPTIONS:
            raise InspectorError(f"there are {_MAX_SUBSCRIPTIONS} subscriptions already", "close some")
        subscription = client.subscribe(*uris, **dict.fromkeys(kinds, True))
        await subscription.__aenter__()
        granted = [*(kind for kind in _KINDS if subscription.wants(kind)), *subscription.uris]
        view = SubscriptionView(
            id=next(self._numbers),
            requested=[*kinds, *uris],
            granted=[each[:_URI_CHARACTERS] for each in granted[: MAX_URIS + len(_KINDS)]],
        )
        own[view.id] = view, subscription
        self._start(self._read(view, subscription))
        return view

    async def _read(self, view: SubscriptionView, subscription: Subscription) -> None:
        try:
            async for event in subscription:
                view.events += 1
                view.recent = [*view.recent[1 - _RECENT_EVENTS :], f"{time.strftime('%H:%M:%S')} {_describe(event)}"]
                self._on_change()
            view.reason = view.reason or "the server or the connection ended it"
        except AccordError as exc:
            view.reason = log_line(exc)[:_URI_CHARACTERS]
        finally:
            view.is_open = False
            self._on_change()

    async def close(self, server: str, id: int) -> None:
        """Close a subscription. Raises `InspectorError`."""
        found = self._subscriptions.get(server, {}).get(id)
        if found is None:
            raise InspectorError(f"there is no subscription {id}", "reload the list", status=404)
        view, subscription = found
        if view.is_open:
            view.reason = "closed here"
            await subscription.__aexit__(None, None, None)
            subscription.end()


def _describe(event: SubscriptionEvent) -> str:
    match event:
        case ResourceUpdated(uri=uri):
            return f"updated: {uri[:_URI_CHARACTERS]}"
        case ListChanged(kind=kind):
            return f"the list of {kind} changed"
        case Missed(why=why):
            return f"events may be missing: {why[:_URI_CHARACTERS]}"
