"""The life of one configured server, as a state machine without I/O: events go in, and say what to do next.

    idle ──use──▶ connecting ──▶ connected ◀──▶ reconnecting
                    │  ▲                            │
                    ▼  │ after a pause, or a use    ▼
                   failed ◀─────────────────────────┘

`reconnecting` is the client's own (`Reconnect`). A server that failed is tried again after pauses that double up to
`Reconnect.most_seconds`, and at once when somebody uses it, but not before the shortest pause is over.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Literal

from accord.client.reconnecting import ConnectionState
from accord.client.retry import Backoff, Reconnect

ServerState = Literal["invalid", "unapproved", "idle", "connecting", "connected", "reconnecting", "failed", "closed"]
"""`invalid`: its entry has an error. `unapproved`: its command waits for an approval. `idle`: it starts when used."""

Action = Literal["connect", "wait", "nothing"]
"""What the host does next: connect now, connect at `Supervision.retry_at`, or nothing."""

_UNLIMITED = 1 << 30
_MIN_PAUSE = 0.5
"""Seconds after a failure in which a use does not start the server again."""


class Supervision:
    """The state of one server. `now` is in seconds of any one clock; `pick(0, bound)` returns a random number."""

    def __init__(
        self, *, lazy: bool, reconnect: Reconnect, pick: Callable[[float, float], float] = random.uniform
    ) -> None:
        self.state: ServerState = "idle"
        self.reason: str = ""
        """Why the server is not connected: its error, with its last lines on stderr."""
        self.retry_at: float | None = None
        """When a failed server is tried again."""
        self._lazy = lazy
        self._failed_at = 0.0
        self._backoff = Backoff(_endless(reconnect), pick)

    def refuse(self, state: Literal["invalid", "unapproved"], reason: str) -> None:
        """Do not start the server, for this reason."""
        if self.state != "closed":
            self.state, self.reason, self.retry_at = state, reason, None

    def allow(self) -> None:
        """Take the approval of an unapproved server."""
        if self.state == "unapproved":
            self.state, self.reason = "idle", ""

    def start(self) -> Action:
        """The host starts."""
        return self._connect() if self.state == "idle" and not self._lazy else "nothing"

    def use(self, now: float) -> Action:
        """Somebody uses the server."""
        if self.state == "idle" or (self.state == "failed" and now >= self._failed_at + _MIN_PAUSE):
            return self._connect()
        return "nothing"

    def wake(self, now: float) -> Action:
        """The time `retry_at` has come."""
        if self.state != "failed" or self.retry_at is None or now < self.retry_at:
            return "nothing"
        return self._connect()

    def change(self, state: ConnectionState, reason: str, now: float, lived: float = 0) -> Action:
        """The connection changed its state; it was connected for `lived` seconds."""
        if self.state in ("closed", "invalid", "unapproved"):
            return "nothing"
        if state in ("connecting", "connected", "reconnecting"):
            self.state, self.reason, self.retry_at = state, reason, None
            return "nothing"
        if self.state == "failed":  # the error was reported before
            return "nothing"
        pause = self._backoff.after(lived)
        self.state, self.reason, self._failed_at = "failed", reason, now
        self.retry_at = None if self._lazy or pause is None else now + max(pause, _MIN_PAUSE)
        return "nothing" if self.retry_at is None else "wait"

    def close(self) -> None:
        """The host stops."""
        self.state, self.reason, self.retry_at = "closed", "the host is closed", None

    def _connect(self) -> Action:
        self.state, self.retry_at = "connecting", None
        return "connect"


def _endless(reconnect: Reconnect) -> Reconnect:
    """Return settings for pauses without a last attempt."""
    return Reconnect(
        attempts=_UNLIMITED,
        first_seconds=max(reconnect.first_seconds, _MIN_PAUSE),
        most_seconds=reconnect.most_seconds,
        settled_seconds=reconnect.settled_seconds,
    )
