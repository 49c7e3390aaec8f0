"""Commands of the page about notifications: list them, set the log level, subscribe and unsubscribe."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from accord.inspector.commands import InspectorError, PageCommand, ServerParams
from accord.inspector.list_changes import ListDifference, ListKind
from accord.inspector.notifications import LEVELS, LogEntryOfServer, ReceivedNotification
from accord.inspector.open_subscriptions import MAX_URIS, SubscriptionView
from accord.messages.base import LoggingLevel

if TYPE_CHECKING:
    from accord.inspector.workspace import Workspace

_SHOWN = 100


class LogsOfLevel(msgspec.Struct, frozen=True):
    """The log messages of one level: their number, and the last ones."""

    level: LoggingLevel
    count: int
    entries: list[LogEntryOfServer]


class NotificationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The notifications of one server; the latest come first."""

    total: int
    counts: dict[str, int]
    recent: list[ReceivedNotification]
    level: LoggingLevel | None
    levels: tuple[LoggingLevel, ...]
    logs: list[LogsOfLevel]
    differences: list[ListDifference]
    subscriptions: list[SubscriptionView]


class SetLevelParamsOfPage(ServerParams, frozen=True):
    """A server and a log level."""

    level: LoggingLevel


class OpenSubscriptionParams(ServerParams, frozen=True):
    """The subjects of a subscription: URIs of resources, and lists."""

    uris: tuple[str, ...] = ()
    lists: tuple[ListKind, ...] = ()


class CloseSubscriptionParams(ServerParams, frozen=True):
    """The number of a subscription of a server."""

    id: int


async def list_notifications(workspace: Workspace, params: ServerParams) -> NotificationReport:
    """Return what is known of the notifications of a server."""
    own = workspace.notifications.of(workspace.server(params.server).name)
    return NotificationReport(
        total=own.total,
        counts=own.counts,
        recent=list(itertools.islice(reversed(own.recent), _SHOWN)),
        level=own.level,
        levels=LEVELS,
        logs=[
            LogsOfLevel(level, own.log_counts[level], list(reversed(own.logs[level])))
            for level in reversed(LEVELS)
            if level in own.logs
        ],
        differences=list(reversed(own.lists.differences)),
        subscriptions=list(reversed(workspace.subscriptions.of(params.server))),
    )


async def set_level(workspace: Workspace, params: SetLevelParamsOfPage) -> None:
    """Ask for log messages from a level on, also on later connections. Raises `NotSupported`."""
    await workspace.server(params.server).client.set_log_level(params.level)
    workspace.notifications.of(params.server).level = params.level
    workspace.notifications.publish()


async def open_subscription(workspace: Workspace, params: OpenSubscriptionParams) -> SubscriptionView:
    """Subscribe to resources and lists."""
    if len(params.uris) > MAX_URIS:
        raise InspectorError(f"these are more than {MAX_URIS} resources", "subscribe to fewer", status=400)
    client = workspace.server(params.server).client
    view = await workspace.subscriptions.open(params.server, client, params.uris, params.lists)
    for kind in params.lists:
        workspace.notifications.of(params.server).lists.watch(kind)
    workspace.notifications.publish()
    return view


async def close_subscription(workspace: Workspace, params: CloseSubscriptionParams) -> None:
    """End a subscription."""
    await workspace.subscriptions.close(params.server, params.id)
    workspace.notifications.publish()


COMMANDS: Mapping[str, PageCommand] = {
    "notifications/list": PageCommand(ServerParams, list_notifications),
    "notifications/set-level": PageCommand(SetLevelParamsOfPage, set_level),
    "subscriptions/open": PageCommand(OpenSubscriptionParams, open_subscription),
    "subscriptions/close": PageCommand(CloseSubscriptionParams, close_subscription),
}
