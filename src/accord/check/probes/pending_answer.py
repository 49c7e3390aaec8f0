"""A request in flight, and the answer that came for it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from accord.check.engine.rule import Violation
from accord.check.wires.base import ProcessorUse
from accord.messages.base import JSONObject, RequestId

_BUSY_FACTOR = 6
"""A server that goes on saying other things has so many times as long for an answer."""
_STARVED = 12
"""So many times as long has one that is at work on a machine that leaves it too little of the processor."""
_ENOUGH = 0.8
"""A server that got this share of the processor was not kept from its work."""
_LOOK_SECONDS = 0.5
NO_ANSWER, CONNECTION_LOST, UNREADABLE_ANSWER = "silent", "gone", "garbled"
_NO_ANSWER_CAUSE = (
    "The request gets lost, or its handler waits for what does not come. A server that is just slow is given more time "
    "by --timeout."
)


class Answer(msgspec.Struct, kw_only=True):
    """What came for one request. Over HTTP a refusal without a JSON-RPC message counts as an error with code 0."""

    request: JSONObject
    id: RequestId | None
    message: JSONObject
    raw: bytes = b""
    result: Any = UNSET
    error: JSONObject | None = None
    other_messages: list[JSONObject] = msgspec.field(default_factory=list)
    """What else the server sent meanwhile."""
    status: int | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    seconds: float = 0.0

    @property
    def code(self) -> int | None:
        """The code of the error; None for a result."""
        return None if self.error is None else self.error.get("code")


class PendingOwner(Protocol):
    """What a `PendingAnswer` needs of its conversation."""

    @property
    def answer_timeout(self) -> float:
        """How long to wait for an answer, in seconds."""
        ...

    @property
    def last_received_at(self) -> float:
        """When the peer last said anything, by the clock of the loop."""
        ...

    def processor_use(self) -> ProcessorUse | None:
        """Return what the process of the peer has used of the processor; None where it is not a process of ours."""
        ...

    def other_messages(self, since: int, id: Any) -> list[JSONObject]: ...

    def violation(self, text: str, *, since: int | None = None, symptom: str = "", cause: str = "") -> Violation: ...


class PendingAnswer:
    """A request in flight."""

    def __init__(self, probe: PendingOwner, request: JSONObject, stream: int, since: int) -> None:
        self.request: JSONObject = request
        self.id: Any = request.get("id")
        self.stream: int = stream
        self.since: int = since
        """How many entries the record had when it was sent."""
        self.resumptions: int = 0
        """Over HTTP: how often the stream that ended without it was taken up again."""
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._owner = probe
        self._began = asyncio.get_running_loop().time()

    @property
    def is_done(self) -> bool:
        """Whether the answer has come."""
        return self.future.done()

    def fail_with_http(self, text: str, status: int, headers: Mapping[str, str]) -> None:
        """End the wait with an HTTP response that holds no answer."""
        if not self.future.done():
            error = {"code": 0, "message": text}
            self.future.set_result(
                Answer(request=self.request, id=self.id, message={}, error=error, status=status, headers=headers)
            )

    async def wait(self, seconds: float | None = None) -> Answer:
        """Wait for it. Raises `Violation`: `silent` when none comes in time, `gone` when the server ends before."""
        limit = self._owner.answer_timeout if seconds is None else seconds
        if not await arrives(self.future, self._owner, limit, limit * _BUSY_FACTOR if seconds is None else limit):
            what = self.request.get("method", "the message")
            text, symptom = f"no answer to {what} in {limit:g} s", f"{NO_ANSWER}:{what}"
            raise self._owner.violation(text, since=self.since, symptom=symptom, cause=_NO_ANSWER_CAUSE)
        answer = self.future.result()
        answer.seconds = asyncio.get_running_loop().time() - self._began
        answer.other_messages = self._owner.other_messages(self.since, self.id)
        return answer


async def arrives(future: asyncio.Future[Any], peer: PendingOwner, limit: float, most: float) -> bool:
    """Wait `limit` seconds since the peer last said anything, `most` in all: it may have much to do.

    Beyond that, wait as long as it is at work and others use the processor. Returns whether the future is done.
    """
    clock = asyncio.get_running_loop().time
    began = clock()
    half: ProcessorUse | None = None  # after half of the time
    while not future.done():
        left = min(max(began, peer.last_received_at) + limit, began + most) - clock()
        if left > limit / 2:
            left -= limit / 2
        elif left > 0:
            half = half or peer.processor_use()
        elif clock() < began + _STARVED * limit and _is_starved(half, peer.processor_use(), limit / 2):
            left = _LOOK_SECONDS
        else:
            return False
        await asyncio.wait([future], timeout=left)
    return True


def _is_starved(before: ProcessorUse | None, now: ProcessorUse | None, seconds: float) -> bool:
    """Whether a process is at work, and has got less than these seconds of the processor since then."""
    if before is None or now is None:
        return False
    return now.is_runnable and now.seconds - before.seconds < _ENOUGH * seconds
