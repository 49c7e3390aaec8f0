"""The table of methods: one row per method and sender, with the types of its params and its result.

`table(revision, sender)` is what a client or a server may send in a revision. A missing key means "method not
found". Dispatch, the client's methods, the checker and a page of the documentation read only this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from accord.messages.base import Life
from accord.messages.completion import CompleteParams, CompleteResult
from accord.messages.elicitation import ElicitationCompleteParams, ElicitParams, ElicitResult
from accord.messages.input_required import ListRootsParams, ListRootsResult
from accord.messages.lifecycle import DiscoverResult, InitializeParams, InitializeResult
from accord.messages.meta import EmptyNotificationParams, EmptyParams, EmptyResult, PaginatedParams
from accord.messages.notifications import (
    CancelledParams,
    ListenParams,
    ListenResult,
    LoggingMessageParams,
    ProgressParams,
    SetLevelParams,
    SubscriptionsAcknowledgedParams,
)
from accord.messages.prompts import GetPromptParams, GetPromptResult, ListPromptsResult
from accord.messages.resources import (
    ListResourcesResult,
    ListResourceTemplatesResult,
    ReadResourceParams,
    ReadResourceResult,
    ResourceUpdatedParams,
    SubscribeParams,
    UnsubscribeParams,
)
from accord.messages.revision import REVISIONS, is_in_revision
from accord.messages.sampling import CreateMessageParams, CreateMessageResult
from accord.messages.tasks import (
    CancelTaskResult,
    GetTaskPayloadResult,
    GetTaskResult,
    ListTasksResult,
    TaskParams,
    TaskStatusParams,
)
from accord.messages.tools import CallToolParams, CallToolResult, ListToolsResult

Sender: TypeAlias = Literal["client", "server"]

CLIENT: Literal["client"] = "client"
SERVER: Literal["server"] = "server"
BOTH: Literal["both"] = "both"


class Method(msgspec.Struct, frozen=True):
    """One method as a client or a server may send it.

    `needs` is the capability that the receiver must have declared, `offers` the one that the sender must have declared,
    each as a path of attributes. `may_ask`: the response may be `input_required` instead of `result`. `stays`: the
    request stays open until one side ends it, and notifications that carry its id belong to it. `named_by` is the field
    of its params that a header repeats ("name"; 2026-07-28, Standard Request Headers).
    """

    name: str
    sender: Literal["client", "server", "both"]
    params: Any
    result: Any = None
    needs: str | None = None
    offers: str | None = None
    may_ask: bool = False
    stays: bool = False
    named_by: str | None = None
    life: Life = Life()

    @property
    def notification(self) -> bool:
        """Return whether the method is a notification."""
        return self.result is None


def _row(
    name: str,
    sender: Literal["client", "server", "both"],
    params: Any,
    result: Any = None,
    *,
    since: str | None = None,
    until: str | None = None,
    **rest: Any,
) -> Method:
    return Method(name, sender, params, result, life=Life(since, until), **rest)


METHODS: tuple[Method, ...] = (
    # Lifecycle
    _row("initialize", CLIENT, InitializeParams, InitializeResult, until="2026-07-28"),
    _row("notifications/initialized", CLIENT, EmptyNotificationParams, until="2026-07-28"),
    _row("server/discover", CLIENT, EmptyParams, DiscoverResult, since="2026-07-28"),
    _row("ping", BOTH, EmptyParams, EmptyResult, until="2026-07-28"),
    # Requests in flight
    _row("notifications/cancelled", BOTH, CancelledParams),
    _row("notifications/progress", SERVER, ProgressParams),
    _row("notifications/progress", CLIENT, ProgressParams, until="2026-07-28"),
    # Features of a server
    _row("tools/list", CLIENT, PaginatedParams, ListToolsResult, needs="tools"),
    _row("tools/call", CLIENT, CallToolParams, CallToolResult, needs="tools", may_ask=True, named_by="name"),
    _row("notifications/tools/list_changed", SERVER, EmptyNotificationParams, offers="tools.list_changed"),
    _row("resources/list", CLIENT, PaginatedParams, ListResourcesResult, needs="resources"),
    _row("resources/templates/list", CLIENT, PaginatedParams, ListResourceTemplatesResult, needs="resources"),
    _row(
        "resources/read",
        CLIENT,
        ReadResourceParams,
        ReadResourceResult,
        needs="resources",
        may_ask=True,
        named_by="uri",
    ),
    _row(
        "resources/subscribe",
        CLIENT,
        SubscribeParams,
        EmptyResult,
        needs="resources.subscribe",
        until="2026-07-28",
    ),
    _row(
        "resources/unsubscribe",
        CLIENT,
        UnsubscribeParams,
        EmptyResult,
        needs="resources.subscribe",
        until="2026-07-28",
    ),
    _row("notifications/resources/updated", SERVER, ResourceUpdatedParams, offers="resources.subscribe"),
    _row(
        "notifications/resources/list_changed",
        SERVER,
        EmptyNotificationParams,
        offers="resources.list_changed",
    ),
    _row("prompts/list", CLIENT, PaginatedParams, ListPromptsResult, needs="prompts"),
    _row("prompts/get", CLIENT, GetPromptParams, GetPromptResult, needs="prompts", may_ask=True, named_by="name"),
    _row("notifications/prompts/list_changed", SERVER, EmptyNotificationParams, offers="prompts.list_changed"),
    # 2024-11-05 has completion without a capability for it
    _row("completion/complete", CLIENT, CompleteParams, CompleteResult, until="2025-03-26"),
    _row("completion/complete", CLIENT, CompleteParams, CompleteResult, needs="completions", since="2025-03-26"),
    _row("logging/setLevel", CLIENT, SetLevelParams, EmptyResult, needs="logging", until="2026-07-28"),
    _row("notifications/message", SERVER, LoggingMessageParams, offers="logging"),
    _row("subscriptions/listen", CLIENT, ListenParams, ListenResult, stays=True, since="2026-07-28"),
    _row(
        "notifications/subscriptions/acknowledged",
        SERVER,
        SubscriptionsAcknowledgedParams,
        since="2026-07-28",
    ),
    # Features of a client; from 2026-07-28 on they are input requests inside `input_required`
    _row(
        "sampling/createMessage",
        SERVER,
        CreateMessageParams,
        CreateMessageResult,
        needs="sampling",
        until="2026-07-28",
    ),
    _row(
        "elicitation/create",
        SERVER,
        ElicitParams,
        ElicitResult,
        needs="elicitation",
        since="2025-06-18",
        until="2026-07-28",
    ),
    _row(
        "notifications/elicitation/complete",
        SERVER,
        ElicitationCompleteParams,
        needs="elicitation.url",
        since="2025-11-25",
        until="2026-07-28",
    ),
    _row("roots/list", SERVER, ListRootsParams, ListRootsResult, needs="roots", until="2026-07-28"),
    _row(
        "notifications/roots/list_changed",
        CLIENT,
        EmptyNotificationParams,
        offers="roots.list_changed",
        until="2026-07-28",
    ),
    # Tasks of the core
    *(
        _row(name, BOTH, params, result, since="2025-11-25", until="2026-07-28", **capability)
        for name, params, result, capability in (
            ("tasks/get", TaskParams, GetTaskResult, {"needs": "tasks"}),
            ("tasks/result", TaskParams, GetTaskPayloadResult, {"needs": "tasks"}),
            ("tasks/list", PaginatedParams, ListTasksResult, {"needs": "tasks.list"}),
            ("tasks/cancel", TaskParams, CancelTaskResult, {"needs": "tasks.cancel"}),
            ("notifications/tasks/status", TaskStatusParams, None, {"offers": "tasks"}),
        )
    ),
)


@cache
def table(revision: str, sender: Sender) -> Mapping[str, Method]:
    """Return the methods that `sender` may send in `revision`, by name."""
    return MappingProxyType({row.name: row for row in _rows_of_revision(METHODS, revision, sender)})


Table: TypeAlias = Callable[[str, Sender], Mapping[str, Method]]
"""`table`, or an extended table."""


def extended_table(extra: Sequence[Method]) -> Table:
    """Return `table` with the methods of extensions. Raise `ValueError` for a name that is already used."""
    if not extra:
        return table
    tables: dict[tuple[str, Sender], dict[str, Method]] = {}
    for revision in REVISIONS:
        for sender in (CLIENT, SERVER):
            rows = tables[revision, sender] = dict(table(revision, sender))
            for row in _rows_of_revision(extra, revision, sender):
                if row.name in rows:
                    raise ValueError(f"{row.name!r} of a {sender} is taken in {revision}")
                rows[row.name] = row
    return lambda revision, sender: tables[revision, sender]


def _rows_of_revision(rows: Sequence[Method], revision: str, sender: Sender) -> Iterator[Method]:
    return (row for row in rows if row.sender in (sender, BOTH) and is_in_revision(revision, *row.life))
