"""A request in flight, and its response."""

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
"""A server that sends other messages has this many times as long for a response."""
_STARVED = 12
"""A server that runs, but gets too little processor time, has this many times as long."""
_ENOUGH = 0.8
"""A server with this share of the processor is not delayed by other processes."""
_LOOK_SECONDS = 0.5
NO_ANSWER, CONNECTION_LOST, UNREADABLE_ANSWER = "silent", "gone", "garbled"
_NO_ANSWER_CAUSE = "The request is lost, or its handler waits forever. If the server is slow, increase --timeout."


class Answer(msgspec.Struct, kw_only=True):
    """The response to a request. Over HTTP, a refusal without a JSON-RPC message is an error with code 0."""

    request: JSONObject
    id: RequestId | None
    message: JSONObject
    raw: bytes = b""
    result: Any = UNSET
    error: JSONObject | None = None
    other_messages: list[JSONObject] = msgspec.field(default_factory=list)
    """Other messages that were received before it."""
    status: int | None = None
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    seconds: float = 0.0

    @property
    def code(self) -> int | None:
        """The code of the error; None for a result."""
        return None if self.error is None else self.error.get("code")


class PendingOwner(Protocol):
    """The part of a session that a `PendingAnswer` needs."""

    @property
    def answer_timeout(self) -> float:
        """The timeout of a response, in seconds."""
        ...

    @property
    def last_received_at(self) -> float:
        """The time of the last message from the peer, by the clock of the loop."""
        ...

    def processor_use(self) -> ProcessorUse | None:
        """Return the processor time of the peer; None if it is not a process of the checker."""
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
        """The number of entries in the log when it was sent."""
        self.resumptions: int = 0
        """Over HTTP: how often its stream was resumed."""
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._owner = probe
        self._began = asyncio.get_running_loop().time()

    @property
    def is_done(self) -> bool:
        """Whether the response was received."""
        return self.future.done()

    def fail_with_http(self, text: str, status: int, headers: Mapping[str, str]) -> None:
        """End the wait with an HTTP response that has no JSON-RPC response."""
        if not self.future.done():
            error = {"code": 0, "message": text}
            self.future.set_result(
                Answer(request=self.request, id=self.id, message={}, error=error, status=status, headers=headers)
            )

    async def wait(self, seconds: float | None = None) -> Answer:
        """Wait for the response. Raises `Violation`: after a timeout, or when the server ends."""
        limit = self._owner.answer_timeout if seconds is None else seconds
        if not await arrives(self.future, self._owner, limit, limit * _BUSY_FACTOR if seconds is None else limit):
            what = self.request.get("method", "the message")
            text, symptom = f"no response to {what} in {limit:g} s", f"{NO_ANSWER}:{what}"
            raise self._owner.violation(text, since=self.since, symptom=symptom, cause=_NO_ANSWER_CAUSE)
        answer = self.future.result()
        answer.seconds = asyncio.get_running_loop().time() - self._began
        answer.other_messages = self._owner.other_messages(self.since, self.id)
        return answer


async def arrives(future: asyncio.Future[Any], peer: PendingOwner, limit: float, most: float) -> bool:
    """Wait `limit` seconds since the last message from the peer, `most` in total.

    After that, wait as long as the process runs and others use the processor. Returns whether the future is done.
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
    """Return whether a process is running, but got less than these seconds of processor time."""
    if before is None or now is None:
        return False
    return now.is_runnable and now.seconds - before.seconds < _ENOUGH * seconds
