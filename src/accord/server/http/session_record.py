"""What the store has of a session, for the next process."""

from __future__ import annotations

import logging
from collections.abc import Container

import msgspec

from accord.messages.base import LoggingLevel
from accord.messages.capabilities import ClientCapabilities
from accord.messages.identity import Implementation
from accord.messages.revision import RULES
from accord.server.compose.visibility import VisibilityRules

log: logging.Logger = logging.getLogger("accord")


class SessionRecord(msgspec.Struct):
    """A session, as the store keeps it for the next process."""

    principal: str
    revision: str
    ready: bool
    begun: float
    """When it began, in seconds since 1970: a restart makes it no younger."""
    info: Implementation | None
    capabilities: ClientCapabilities
    log_level: LoggingLevel = "debug"
    subscriptions: list[str] = []
    view: VisibilityRules | None = None
    """What its session hides from it."""


_record = msgspec.json.Decoder(SessionRecord)


def read_record(kept: bytes, revisions: Container[str]) -> SessionRecord | None:
    """A session that was kept; None for one that is not understood, or of a revision that is not spoken any more."""
    try:
        record = _record.decode(kept)
    except msgspec.DecodeError as exc:
        log.error("accord: a session that was kept cannot be read, and is taken for gone: %s", exc)
        return None
    return record if record.revision in revisions and record.revision in RULES else None
