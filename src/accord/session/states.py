"""The two machines of a session, as tables. A missing key is the error.

*Connection.* A client knocks with `server/discover` (PROBING) or with `initialize` (SHAKING), and may do the second
while still waiting for the first; whichever answer comes opens it. A server is NEW until it has answered `initialize`
(SHAKING: the client's requests are served, our own wait) and OPEN after `notifications/initialized`. Requests that
carry their revision (2026-07-28) need no phase at all: they are served in each but CLOSED.

*Exchange.* One request and its end. Whoever ends it first wins: an answer after a cancel is dropped, and a cancel
after the answer changes nothing.
"""

from __future__ import annotations

from enum import Enum


class Phase(Enum):
    """Where a connection stands."""

    NEW = "new"
    PROBING = "probing"
    SHAKING = "shaking"
    OPEN = "open"
    CLOSED = "closed"


CLIENT: dict[tuple[Phase, str], Phase] = {
    (Phase.NEW, "probe"): Phase.PROBING,
    (Phase.NEW, "initialize"): Phase.SHAKING,
    (Phase.NEW, "assume"): Phase.OPEN,
    (Phase.PROBING, "probe"): Phase.PROBING,
    (Phase.PROBING, "initialize"): Phase.SHAKING,
    (Phase.PROBING, "discovered"): Phase.OPEN,
    (Phase.SHAKING, "probe"): Phase.PROBING,
    (Phase.SHAKING, "discovered"): Phase.OPEN,
    (Phase.SHAKING, "initialized"): Phase.OPEN,
}

SERVER: dict[tuple[Phase, str], Phase] = {
    (Phase.NEW, "initialize"): Phase.SHAKING,
    (Phase.SHAKING, "initialized"): Phase.OPEN,
}


class Stage(Enum):
    """Where an exchange stands."""

    ACTIVE = "active"
    ANSWERED = "answered"
    CANCELLED = "cancelled"
    LOST = "lost"


EXCHANGE: dict[tuple[Stage, str], Stage] = {
    (Stage.ACTIVE, "answer"): Stage.ANSWERED,
    (Stage.ACTIVE, "cancel"): Stage.CANCELLED,
    (Stage.ACTIVE, "lose"): Stage.LOST,
}
