"""The two machines of a session, as tables. A missing key is the error.

*Connection.* A client knocks with `server/discover` (PROBING) or with `initialize` (SHAKING), and may do the second
while still waiting for the first; whichever answer comes opens it. A server is NEW until it has answered `initialize`
(SHAKING: the client's requests are served, our own wait) and OPEN after `notifications/initialized`; another
`initialize` begins the handshake again. Requests that carry their revision (2026-07-28) need no phase at all: they are
served in each. CLOSED means that nothing more is asked; what was accepted is still answered.

*Exchange.* One request and its end. Whoever ends it first wins: an answer after a cancel is dropped, and a cancel
after the answer changes nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal


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
    (Phase.SHAKING, "initialize"): Phase.SHAKING,
    (Phase.SHAKING, "initialized"): Phase.OPEN,
    (Phase.OPEN, "initialize"): Phase.SHAKING,
}


Stage = Literal["active", "answered", "cancelled", "lost"]
"""Where an exchange stands."""

EXCHANGE: dict[tuple[Stage, str], Stage] = {
    ("active", "answer"): "answered",
    ("active", "cancel"): "cancelled",
    ("active", "lose"): "lost",
}
