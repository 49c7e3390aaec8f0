"""Notifications about a request in flight: progress and cancellation.

Log messages of a server, and the log level that a client sets (server, Logging).

Subscriptions: a request that stays open, and the notifications that belong to it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from accord.messages.base import (
    JSONValue,
    LoggingLevel,
    Meta,
    Model,
    Number,
    ProgressToken,
    RequestId,
    lives,
    open_ended,
    required,
    seen_as,
    since,
)
from accord.messages.bounds import Name, Remark, URIs
from accord.messages.meta import SUBSCRIPTION_ID, NotificationParams, Params, Result, ResultMeta


class ProgressParams(NotificationParams):
    """Params of `notifications/progress` (basic, Progress)."""

    progress_token: ProgressToken
    progress: Number
    total: Number | None = None
    message: Annotated[Remark | None, since("2025-03-26")] = None


class CancelledParams(NotificationParams):
    """Params of `notifications/cancelled` (basic, Cancellation).

    In 2025-11-25 the id may be absent, since a task is cancelled by `tasks/cancel` instead.
    """

    request_id: Annotated[RequestId | None, required(until="2025-11-25"), required(since="2026-07-28")] = None
    reason: Remark | None = None


@lives(until="2026-07-28")
class SetLevelParams(Params):
    """Params of `logging/setLevel`: the least severe level to send."""

    level: LoggingLevel


class LoggingMessageParams(NotificationParams):
    """Params of `notifications/message`."""

    level: LoggingLevel
    data: JSONValue
    logger: Name | None = None


@lives(since="2026-07-28")
class SubscriptionFilter(Model):
    """The notifications that a client requests, or that a server grants."""

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
    """Params of `notifications/subscriptions/acknowledged`: the granted part of the requested subscription."""

    notifications: SubscriptionFilter


@open_ended
@lives(since="2026-07-28")
class ListenResultMeta(ResultMeta):
    """The known keys of a listen result's `_meta`."""

    subscription_id: RequestId = field(name=SUBSCRIPTION_ID)


@lives(since="2026-07-28")
class ListenResult(Result):
    """Result of `subscriptions/listen`, sent at its end."""

    meta: Annotated[Meta | None, required(), seen_as(ListenResultMeta)] = field(default=None, name="_meta")
