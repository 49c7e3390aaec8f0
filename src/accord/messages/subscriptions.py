"""Subscriptions: a request that stays open, and the notifications that belong to it."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from .base import Meta, Model, RequestId, lives, open_ended, required, seen_as
from .bounds import URIs
from .meta import SUBSCRIPTION_ID, NotificationParams, Params, Result, ResultMeta


@lives(since="2026-07-28")
class SubscriptionFilter(Model):
    """Which notifications are wanted, or granted."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: URIs | None = None


@lives(since="2026-07-28")
class ListenParams(Params):
    """Params of `subscriptions/listen`."""

    notifications: SubscriptionFilter


@lives(since="2026-07-28")
class SubscriptionsAcknowledgedParams(NotificationParams):
    """Params of `notifications/subscriptions/acknowledged`: what of the wish is granted."""

    notifications: SubscriptionFilter


@open_ended
@lives(since="2026-07-28")
class ListenResultMeta(ResultMeta):
    """The known keys of a listen result's `_meta`."""

    subscription_id: RequestId = field(name=SUBSCRIPTION_ID)


@lives(since="2026-07-28")
class ListenResult(Result):
    """Result of `subscriptions/listen`, once it ends."""

    meta: Annotated[Meta | None, required(), seen_as(ListenResultMeta)] = field(default=None, name="_meta")
