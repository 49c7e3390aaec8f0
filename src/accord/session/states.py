"""The two state machines of a session, as tables. A missing key is the error.

*Connection.* A client sends `server/discover` (DISCOVERING) or `initialize` (INITIALIZING), and may send the second
while it still waits for the response to the first; either response opens the connection. A server is NEW until it has
answered `initialize` (INITIALIZING: it serves requests of the client, its own requests wait) and OPEN after
`notifications/initialized`; another `initialize` begins the handshake again. Requests that carry their revision
(2026-07-28) need no phase: the server serves them in each. In CLOSED no new requests are sent; accepted requests are
still answered.

*Request.* One request and its end. The first event that ends it counts: a response after a cancellation is dropped, and
a cancellation after the response changes nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal


class Phase(Enum):
    """The phase of a connection."""

    NEW = "new"
    DISCOVERING = "discovering"
    INITIALIZING = "initializing"
    OPEN = "open"
    CLOSED = "closed"


CLIENT_TRANSITIONS: dict[tuple[Phase, str], Phase] = {
    (Phase.NEW, "probe"): Phase.DISCOVERING,
    (Phase.NEW, "initialize"): Phase.INITIALIZING,
    (Phase.NEW, "assume"): Phase.OPEN,
    (Phase.DISCOVERING, "probe"): Phase.DISCOVERING,
    (Phase.DISCOVERING, "initialize"): Phase.INITIALIZING,
    (Phase.DISCOVERING, "discovered"): Phase.OPEN,
    (Phase.INITIALIZING, "probe"): Phase.DISCOVERING,
    (Phase.INITIALIZING, "discovered"): Phase.OPEN,
    (Phase.INITIALIZING, "initialized"): Phase.OPEN,
}

SERVER_TRANSITIONS: dict[tuple[Phase, str], Phase] = {
    (Phase.NEW, "initialize"): Phase.INITIALIZING,
    (Phase.INITIALIZING, "initialize"): Phase.INITIALIZING,
    (Phase.INITIALIZING, "initialized"): Phase.OPEN,
    (Phase.OPEN, "initialize"): Phase.INITIALIZING,
}


Stage = Literal["active", "answered", "cancelled", "lost"]
"""The stage of a request."""

REQUEST_TRANSITIONS: dict[tuple[Stage, str], Stage] = {
    ("active", "answer"): "answered",
    ("active", "cancel"): "cancelled",
    ("active", "lose"): "lost",
}
