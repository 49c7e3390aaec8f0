"""Notifications of inspected servers: counts by method, the last ones, log messages by level, and changed lists.

A server may send a million of them: each is counted, the last few are stored as shortened text, and pages learn only
that the number changed. A flood of one log level does not displace the messages of another.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, get_args

import msgspec

from accord.client.notifications import Notice
from accord.inspector.list_changes import FetchList, ListKind, ListWatch, StartTask
from accord.inspector.topics import Topics
from accord.messages.base import LoggingLevel
from accord.messages.notifications import LoggingMessageParams

LEVELS: tuple[LoggingLevel, ...] = get_args(LoggingLevel)
"""The log levels, from the least severe to the most."""
RECENT = 300
"""The notifications of one server that are stored."""
LOGS_PER_LEVEL = 200
"""The log messages of one server and level that are stored."""
TEXT_CHARACTERS = 2_000
"""The length of a stored text."""
_MAX_METHODS = 200
_OTHER = "(other methods)"

_KINDS: dict[str, ListKind] = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}

_encode = msgspec.json.Encoder().encode


class ReceivedNotification(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A notification as the page shows it."""

    number: int
    """Its number among those of the server, from 1."""
    at: float
    """Seconds since 1970."""
    method: str
    params_json: str
    length: int
    """The characters of the whole params."""
    subscription: str = ""


class LogEntryOfServer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A log message as the page shows it."""

    number: int
    at: float
    level: LoggingLevel
    logger: str
    data_json: str
    length: int


class ServerNotifications:
    """The notifications of one server."""

    def __init__(self, fetch: FetchList, on_change: Callable[[], None], start: StartTask) -> None:
        self.total: int = 0
        self.counts: dict[str, int] = {}
        self.recent: deque[ReceivedNotification] = deque(maxlen=RECENT)
        self.log_counts: dict[LoggingLevel, int] = {}
        self.logs: dict[LoggingLevel, deque[LogEntryOfServer]] = {}
        self.level: LoggingLevel | None = None
        """The level that the user set; None for that of the server."""
        self.lists: ListWatch = ListWatch(fetch, on_change, start)
        self._on_change = on_change

    def receive(self, notice: Notice) -> None:
        """Count and store a notification."""
        self.total += 1
        method = notice.method
        if method not in self.counts and len(self.counts) >= _MAX_METHODS:
            method = _OTHER
        self.counts[method] = self.counts.get(method, 0) + 1
        if isinstance(notice.params, LoggingMessageParams):
            self._log(notice.params)
        else:
            text, length = _shortened(notice.params)
            self.recent.append(
                ReceivedNotification(
                    number=self.total,
                    at=time.time(),
                    method=notice.method,
                    params_json=text,
                    length=length,
                    subscription="" if notice.subscription is None else str(notice.subscription)[:100],
                )
            )
            kind = _KINDS.get(method)
            if kind is not None:
                self.lists.changed(kind)
        self._on_change()

    def _log(self, params: LoggingMessageParams) -> None:
        text, length = _shortened(params.data)
        self.log_counts[params.level] = self.log_counts.get(params.level, 0) + 1
        entry = LogEntryOfServer(
            number=self.total,
            at=time.time(),
            level=params.level,
            logger=(params.logger or "")[:200],
            data_json=text,
            length=length,
        )
        self.logs.setdefault(params.level, deque(maxlen=LOGS_PER_LEVEL)).append(entry)


def _shortened(value: Any) -> tuple[str, int]:
    """Return the beginning of the JSON of a value, and the length of all of it."""
    text = "" if value is None else _encode(value).decode(errors="replace")
    return text[:TEXT_CHARACTERS], len(text)


class NotificationStore:
    """The notifications of all servers. `fetch(server, kind)` requests a list of a server, in a task of `start`."""

    def __init__(
        self, topics: Topics, fetch: Callable[[str, ListKind], Awaitable[Sequence[Any]]], start: StartTask
    ) -> None:
        self._topics = topics
        self._fetch = fetch
        self._start = start
        self._servers: dict[str, ServerNotifications] = {}
        self._total = 0

    def options(self, server: str) -> dict[str, Any]:
        """Return the options of the `Client` of a server."""
        own = self.of(server)
        return {"on_notification": own.receive, "log_level": own.level}

    def of(self, server: str) -> ServerNotifications:
        """Return the notifications of a server."""
        found = self._servers.get(server)
        if found is None:
            found = self._servers[server] = ServerNotifications(partial(self._fetch, server), self.publish, self._start)
        return found

    def forget(self, server: str) -> None:
        """Drop what is stored about a server."""
        self._servers.pop(server, None)

    def publish(self) -> None:
        """Tell pages that something changed."""
        self._total += 1
        self._topics.changed("notifications", {"changes": self._total})
