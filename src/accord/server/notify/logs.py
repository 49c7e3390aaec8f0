"""Log messages to one client: filtered by level, rate-limited, and redacted (server, Logging).

After a handshake the client's level is that of `logging/setLevel`, and "debug" before. In 2026-07-28 each request has a
level of its own: "The server MUST NOT emit `notifications/message` for a request that does not include this field", nor
after its response. Neither level affects the other.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, get_args

import msgspec
from msgspec import Raw

from accord.errors import NotSupported
from accord.messages.base import JSONValue, LoggingLevel
from accord.messages.notifications import LoggingMessageParams
from accord.redaction import redact, redact_beginning
from accord.schema.json_values import to_json
from accord.session.pending_request import PendingRequest
from accord.session.rate import RateLimiter

if TYPE_CHECKING:
    from accord.messages.revision import Rules

log: logging.Logger = logging.getLogger("accord.server")

SEVERITY: dict[str, int] = {level: severity for severity, level in enumerate(get_args(LoggingLevel))}
"""The levels of RFC 5424, the least severe is 0."""
_MOST_BYTES = 16_000
"""Limit of the data of a message; of longer data, the beginning is sent."""


class LogChannel(Protocol):
    """The channel to a client, as its log uses it."""

    def notify(
        self, name: str, params: Any = None, *, rules: Rules | None = None, of: PendingRequest | None = None
    ) -> None:
        """Send a notification."""


class LogPeer(Protocol):
    """A client as its log uses it."""

    loop: asyncio.AbstractEventLoop
    thread: int
    log_level: LoggingLevel

    @property
    def channel(self) -> LogChannel:
        """The channel to the client."""


class ClientLog:
    """The log messages of one client. `log` may be called from any thread; everything else runs on the event loop."""

    def __init__(self, peer: LogPeer, per_second: float) -> None:
        self._peer = peer
        self._per_second = per_second
        self._rate = RateLimiter(per_second)
        self._dropped = 0

    def log(self, pending: PendingRequest, level: LoggingLevel, data: Any, logger: str | None) -> None:
        """Send a log message of a request, if the client's level includes it. Never waits.

        Raises `ValueError` for an unknown level.
        """
        if level not in SEVERITY:
            raise ValueError(f"{level!r} is not a log level; use one of {', '.join(SEVERITY)}")
        if not self._wants(pending, level):
            return
        params = LoggingMessageParams(
            level=level, data=encode_data(data), logger=None if logger is None else escape_surrogates(logger)
        )
        if threading.get_ident() == self._peer.thread:
            self._send(pending, params)
        else:
            with suppress(RuntimeError):  # the loop has ended, and the client is gone with it
                self._peer.loop.call_soon_threadsafe(self._send, pending, params)

    def _wants(self, pending: PendingRequest, level: LoggingLevel) -> bool:
        if pending.rules.handshake:
            return SEVERITY[level] >= SEVERITY[self._peer.log_level]
        wanted = pending.meta.log_level if pending.meta is not None else None
        return wanted is not None and pending.stage == "active" and SEVERITY[level] >= SEVERITY[wanted]

    def _send(self, pending: PendingRequest, params: LoggingMessageParams) -> None:
        if not self._wants(pending, params.level):  # answered since a thread scheduled it
            return
        if self._rate.allow(self._peer.loop.time()):
            with suppress(
                NotSupported
            ):  # a handler that can log was just added, and the capability is not declared yet
                self._peer.channel.notify("notifications/message", params, rules=pending.rules, of=pending)
            return
        if not self._dropped:
            self._peer.loop.call_later(self._rate.delay(self._peer.loop.time()), self._report_dropped, pending)
        self._dropped += 1

    def _report_dropped(self, pending: PendingRequest) -> None:
        """Log the number of dropped messages when the rate allows messages again, here and to the client."""
        dropped, self._dropped = self._dropped, 0
        text = f"{dropped} log messages were dropped: the limit is {self._per_second:g} a second"
        log.warning("accord: %s", text)
        self.log(pending, "warning", text, "accord")


def encode_data(data: JSONValue) -> Raw:
    """Return logged data as JSON without secrets; of data that is not JSON, the `repr`; of long data, the beginning as
    a text. Raises nothing.
    """
    try:
        encoded = to_json(data)
        is_long = len(encoded) > _MOST_BYTES
        plain = redact_beginning(encoded.decode(), _MOST_BYTES) if is_long else redact(msgspec.json.decode(encoded))
    except Exception:  # the methods of an object may raise anything
        plain = redact_beginning(escape_surrogates(_safe_repr(data)))
    return Raw(msgspec.json.encode(plain))


def _safe_repr(data: object) -> str:
    try:
        return data if isinstance(data, str) else repr(data)
    except Exception:
        return f"<{type(data).__name__} that cannot be shown>"


def escape_surrogates(text: str) -> str:
    """Return the text with lone surrogates escaped, so that UTF-8 can encode it."""
    return text.encode(errors="backslashreplace").decode()
