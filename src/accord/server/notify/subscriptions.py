"""The subscription methods: `resources/subscribe` and `resources/unsubscribe` through 2025-11-25,
`subscriptions/listen` from 2026-07-28 on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, NamedTuple

import msgspec

from accord.errors import ResourceNotFound
from accord.messages import codec
from accord.messages.meta import SUBSCRIPTION_ID, EmptyResult
from accord.messages.notifications import ListenParams, SubscriptionFilter, SubscriptionsAcknowledgedParams
from accord.messages.resources import SubscribeParams, UnsubscribeParams
from accord.server.core.peer import Peer
from accord.server.core.resolver import Resolver
from accord.server.middleware.request import Request, RunMiddleware
from accord.server.notify.subscriber import Subscriber
from accord.server.notify.subscription_index import LIST_CHANGES, SubscriptionIndex
from accord.session.pending_request import PendingRequest


class FilterGrant(NamedTuple):
    """The part of a subscription filter that an extension grants."""

    members: dict[str, Any]
    """The granted members."""
    keys: list[str]
    """Their keys in the index."""
    send_missed: Callable[[Subscriber], Awaitable[None]]
    """Sends the notifications of what happened before the subscription began."""


FilterExtension = Callable[[PendingRequest, Peer], Awaitable[FilterGrant | None]]
"""Returns what an extension grants, or None if the request has none of its members. Raises `ProtocolError`."""


class SubscriptionHandler:
    """The handler of the subscription methods for one running server."""

    def __init__(
        self, resolver: Resolver, subscription_index: SubscriptionIndex, run_middleware: RunMiddleware
    ) -> None:
        self._resolver = resolver
        self._subscription_index = subscription_index
        self._run_middleware = run_middleware
        self.filter_extensions: list[FilterExtension] = []
        """What extensions add to the filter of `subscriptions/listen`."""

    async def subscribe(self, pending: PendingRequest, peer: Peer) -> EmptyResult:
        """Subscribe the session to a resource. Raises `InvalidParams` for a long URI, `ResourceNotFound`, and
        `InternalError` beyond the limit.
        """
        params = codec.decode_params(SubscribeParams, pending.params)
        self._subscription_index.check_length(params.uri)
        await self._check(params.uri, pending, peer)
        self._subscription_index.subscribe(peer, params.uri)
        return EmptyResult()

    async def unsubscribe(self, pending: PendingRequest, peer: Peer) -> EmptyResult:
        """Unsubscribe the session from a resource, also from one that no longer exists or has no subscription."""
        self._subscription_index.unsubscribe(peer, codec.decode_params(UnsubscribeParams, pending.params).uri)
        return EmptyResult()

    async def listen(self, pending: PendingRequest, peer: Peer) -> None:
        """Keep a subscription open until the client cancels it, or the connection ends. Raises `InvalidParams` for a
        long URI, and `InternalError` beyond the limit.

        "The server MUST send `notifications/subscriptions/acknowledged` as the first message carrying the
        subscription's ID": until then nothing awaits, so that no notification is lost or sent before it.
        """
        granted = await self._granted(codec.decode_params(ListenParams, pending.params).notifications, pending, peer)
        grants = await self._granted_by_extensions(pending, peer)
        methods = [LIST_CHANGES[what] for what in LIST_CHANGES if getattr(granted, f"{what}_list_changed")]
        uris = [*(granted.resource_subscriptions or ()), *(key for grant in grants for key in grant.keys)]
        self._subscription_index.check_capacity(peer, uris)  # again: others may have begun while these were looked up
        more = {name: value for grant in grants for name, value in grant.members.items()}
        with self._subscription_index.with_subscription(pending, peer, methods, uris) as subscriber:
            peer.channel.notify(
                "notifications/subscriptions/acknowledged",
                {"notifications": {**msgspec.to_builtins(granted), **more}}
                if more
                else SubscriptionsAcknowledgedParams(notifications=granted),
                meta={SUBSCRIPTION_ID: pending.id},
                rules=pending.rules,
                of=pending,
            )
            for grant in grants:
                await grant.send_missed(subscriber)
            await asyncio.get_running_loop().create_future()

    async def _granted_by_extensions(self, pending: PendingRequest, peer: Peer) -> list[FilterGrant]:
        found = [await extend(pending, peer) for extend in self.filter_extensions]
        return [grant for grant in found if grant is not None]

    async def _granted(self, wanted: SubscriptionFilter, pending: PendingRequest, peer: Peer) -> SubscriptionFilter:
        """Return the part of a filter that the server grants: "Notification types the server does not support are
        omitted", and so are unknown resources.
        """
        profile = peer.channel.session.local_info
        lists = {f"{what}_list_changed" for what in LIST_CHANGES if profile.declares(f"{what}.list_changed")}
        uris: Collection[str] = dict.fromkeys(wanted.resource_subscriptions or ())
        self._subscription_index.check_capacity(peer, uris)
        for uri in uris:
            self._subscription_index.check_length(uri)
        known = [uri for uri in uris if await self._is_known(uri, pending, peer)]
        return SubscriptionFilter(
            **{name: True for name in lists if getattr(wanted, name)},
            resource_subscriptions=known or None,
        )

    async def _is_known(self, uri: str, pending: PendingRequest, peer: Peer) -> bool:
        try:
            await self._check(uri, pending, peer)
        except ResourceNotFound:
            return False
        return True

    async def _check(self, uri: str, pending: PendingRequest, peer: Peer) -> None:
        """Raise `ResourceNotFound` unless this client, and the middleware, allow notifications of the resource."""
        registration, variables = await self._resolver.resolve_resource(uri, pending, peer)
        await self._run_middleware(_no_op, uri, registration, variables, pending, peer)


async def _no_op(request: Request) -> None:
    """Return nothing: the request only has to pass the middleware."""
