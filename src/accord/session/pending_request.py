"""A request in flight, until its response, its cancellation, or the loss of the connection."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.messages.capabilities import ClientCapabilities
from accord.messages.envelope import RequestId
from accord.messages.meta import RequestMeta
from accord.messages.methods import Method
from accord.messages.revision import Rules
from accord.session.rate import RequestLoad
from accord.session.states import REQUEST_TRANSITIONS, Stage


class Batch:
    """A message that is an array (2025-03-26): the responses to its requests are sent together, once all are there.

    `load` counts the bytes of the responses until then, if they are limited.
    """

    __slots__ = ("_load", "answers", "pending", "size")

    def __init__(self, load: RequestLoad | None = None) -> None:
        self._load = load
        self.pending: int = 0
        self.size: int = 0
        """Bytes of the responses."""
        self.answers: list[bytes] = []

    def add(self, answer: bytes | None) -> bytes | None:
        """Add one response (None for a message without one). Return the whole array after the last one, if it has any
        responses."""
        self.pending -= 1
        if answer is not None:
            self.answers.append(answer)
            self.size += len(answer)
            if self._load is not None:
                self._load.add_batch_bytes(len(answer))
        if self.pending:
            return None
        if self._load is not None:
            self._load.add_batch_bytes(-self.size)
        if not self.answers:
            return None
        return b"[" + b",".join(self.answers) + b"]"


class PendingRequest(msgspec.Struct, eq=False):
    """A request in flight, in either direction.

    `driver`, `sink`, `principal`, `headers`, `held`, `message_meta` and `on_resume` belong to the driver of the
    session; the session reads only `message_meta`.
    """

    id: RequestId
    method: Method
    rules: Rules
    params: Raw | UnsetType = UNSET
    meta: RequestMeta | None = None
    capabilities: ClientCapabilities | None = None
    """The capabilities in the request itself, in a revision that has them there."""
    batch: Batch | None = None
    stage: Stage = "active"
    last_progress: float | None = None
    """The value of the last progress notification, sent or received."""
    report_due: float = float("-inf")
    """The latest time at which the next progress notification may be sent."""
    held_report: bytes | None = None
    """A progress notification that waits for the rate limit."""
    key: Any = None
    """The key of a request of the peer while it is in flight: its id, unless it is a standalone request (HTTP)."""
    code: int = 0
    """The code of the error response."""
    driver: Any = None
    """The task or future that waits for the request."""
    sink: Any = None
    """The sink for messages of this request, if it is not that of the connection."""
    principal: Any = None
    """The authenticated principal of the request (HTTP): two requests of one peer may have different permissions."""
    headers: Any = None
    """The headers of the HTTP request, as bytes by their lower-case names."""
    held: Any = None
    """An `ExitStack` that closes when the handler has ended, if something is reserved for that long (HTTP)."""
    message_meta: Any = None
    """A mapping that is added to the `_meta` of the messages that belong to the request."""
    on_resume: Any = None
    """Called when a suspended handler continues, if telemetry is on."""

    def end(self, event: str) -> bool:
        """End the request by `answer`, `cancel` or `lose`; return False if it had already ended."""
        stage = REQUEST_TRANSITIONS.get((self.stage, event))
        if stage is None:
            return False
        self.stage = stage
        return True

    def __repr__(self) -> str:
        return f"<PendingRequest {self.method.name} id={self.id!r} {self.stage}>"


def headers_of(request: PendingRequest) -> dict[str, str]:
    """Return the headers of the HTTP request that carried a request, by their lower-case names; none over stdio."""
    headers: dict[bytes, bytes] = request.headers or {}
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
