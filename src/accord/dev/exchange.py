"""A request of the host that waits for its answer, over stdio and over HTTP."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from accord.dev.rewriting import LIST_METHODS, members
from accord.messages.base import RequestId

LISTENING = "subscriptions/listen"

REPEATABLE = frozenset(
    {"initialize", "server/discover", "ping", "prompts/get", "resources/read", "completion/complete", LISTENING}
    | {"logging/setLevel", "resources/subscribe", "resources/unsubscribe", *LIST_METHODS}
)
"""Requests that may be sent to a second process, because they change nothing that outlives the first."""

_CALLS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Exchange(msgspec.Struct):
    """A request of the host that waits for its answer."""

    id: RequestId
    method: str
    message: bytes
    params: Raw
    per_request: bool
    """Whether the request carries its revision."""
    owner: int | None = None
    """The generation of the process that answers it; None while it waits for one."""
    cancelled: bool = False
    acknowledged: bool = False
    """Whether the host has received the acknowledgement of a subscription."""
    batch: HostBatch | None = None

    @property
    def is_listening(self) -> bool:
        """Return whether it is a subscription, which stays open."""
        return self.method == LISTENING

    @property
    def is_repeatable(self) -> bool:
        """Return whether it may be sent to a second process."""
        return self.method in REPEATABLE

    @property
    def is_call(self) -> bool:
        """Return whether the developer sees it as a call."""
        return self.method in _CALLS

    @property
    def title(self) -> str:
        """Return the method and the name of a call: `tools/call forecast`."""
        return f"{self.method} {members(self.params).get(_CALLS[self.method])}"


class HostBatch(msgspec.Struct):
    """A batch of the host, whose answers are sent together."""

    missing: int
    answers: list[bytes] = []
