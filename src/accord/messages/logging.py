"""Log messages of a server, and how much of them a client wants (server, Logging)."""

from __future__ import annotations

from .base import JSONValue, LoggingLevel, lives
from .bounds import Name
from .meta import NotificationParams, Params


@lives(until="2026-07-28")
class SetLevelParams(Params):
    """Params of `logging/setLevel`: the least severe level to send."""

    level: LoggingLevel


class LoggingMessageParams(NotificationParams):
    """Params of `notifications/message`."""

    level: LoggingLevel
    data: JSONValue
    logger: Name | None = None
