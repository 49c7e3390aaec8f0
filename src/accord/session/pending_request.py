"""One request and what belongs to it, until it is answered, cancelled or lost."""

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
    """A message that is an array (2025-03-26): the answers to its requests leave together, when all are there.

    `load` counts the bytes of the answers until then, where something bounds them.
    """

    __slots__ = ("_load", "answers", "pending", "size")

    def __init__(self, load: RequestLoad | None = None) -> None:
        self._load = load
        self.pending: int = 0
        self.size: int = 0
        """Bytes of the answers."""
        self.answers: list[bytes] = []

    def add(self, answer: bytes | None) -> bytes | None:
        """Add one answer (None for a request that gets none); the whole array when it was the last, if it says
        something.
        """
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

    `driver`, `sink`, `principal`, `headers`, `held` and `on_resume` belong to whoever drives the session; the session
    never looks at them.
    """

    id: RequestId
    method: Method
    rules: Rules
    params: Raw | UnsetType = UNSET
    meta: RequestMeta | None = None
    capabilities: ClientCapabilities | None = None
    """What the client declared in this very request, where the revision has it do so."""
    batch: Batch | None = None
    stage: Stage = "active"
    last_progress: float | None = None
    """The last progress, sent or received."""
    report_due: float = float("-inf")
    """When the next report may go, at the latest."""
    held_report: bytes | None = None
    """A report of progress that waits."""
    key: Any = None
    """What it is found by while it is in flight: its id, but for a request that is alone on its way (HTTP)."""
    code: int = 0
    """The code of the error that it was answered with."""
    driver: Any = None
    """What waits for it: a task, a future."""
    sink: Any = None
    """Where what belongs to it goes, if not where everything goes."""
    principal: Any = None
    """Who asks, where somebody found out (HTTP): two requests of one peer may differ in what they may do."""
    headers: Any = None
    """The headers of the HTTP request that brought it, as bytes by their names in small letters."""
    held: Any = None
    """An `ExitStack` that is closed when its handler has ended, where something is held for that long (HTTP)."""
    on_resume: Any = None
    """Called when a handler that waited for it goes on, where a telemetry is told."""

    def end(self, how: str) -> bool:
        """End it by `answer`, `cancel` or `lose`; False when it had ended before."""
        stage = REQUEST_TRANSITIONS.get((self.stage, how))
        if stage is None:
            return False
        self.stage = stage
        return True

    def __repr__(self) -> str:
        return f"<PendingRequest {self.method.name} id={self.id!r} {self.stage}>"


def headers_of(exchange: PendingRequest) -> dict[str, str]:
    """Return the headers of the HTTP request that brought a request, by their names in lower case; none over stdio."""
    brought: dict[bytes, bytes] = exchange.headers or {}
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in brought.items()}
