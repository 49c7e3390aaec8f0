"""The requests of processes to the host: sampling, elicitation, roots, ping.

Two processes may use the same ids, and the same progress tokens, so that the host sees those of the relay instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import msgspec
from msgspec import UNSET

from accord.dev.rewriting import members, notification, progress_token_of, with_id, with_progress_token
from accord.messages.base import RequestId
from accord.messages.envelope import Incoming
from accord.messages.meta import PROGRESS_TOKEN

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"

Addressed = tuple[int, bytes]
"""The generation of a process, and a message for it."""


class ProcessQuestion(msgspec.Struct, frozen=True):
    """A request of a process: the id and the progress token that the process knows."""

    generation: int
    id: RequestId
    token: RequestId | None


class ProcessQuestions:
    """The requests that wait for an answer of the host, by the id that the host knows."""

    def __init__(self) -> None:
        self._by_id: dict[object, ProcessQuestion] = {}
        self._ids = count(1)

    def ask(self, generation: int, id: RequestId, incoming: Incoming) -> bytes:
        """Return a request of a process as the host receives it."""
        own = next(self._ids)
        params: Any = incoming.params
        token = progress_token_of(params)
        self._by_id[own] = ProcessQuestion(generation, id, token)
        return with_id(incoming, own, UNSET if token is None else with_progress_token(params, own))

    def answer(self, incoming: Incoming) -> Addressed | None:
        """Return the answer of the host as the process receives it, or None if nobody waits for it."""
        question = self._by_id.pop(incoming.id, None) if type(incoming.id) is int else None
        return None if question is None else (question.generation, with_id(incoming, question.id))

    def progress(self, incoming: Incoming) -> Addressed | None:
        """Return the progress that the host reports as the process receives it."""
        params = members(incoming.params)
        question = self._by_id.get(params.get(PROGRESS_TOKEN)) if params else None
        if question is None or question.token is None:
            return None
        return question.generation, notification(PROGRESS, {**params, PROGRESS_TOKEN: question.token})

    def cancel(self, generation: int, incoming: Incoming) -> bytes:
        """Return the cancellation of a process as the host receives it, or nothing if the request is not known."""
        params = members(incoming.params)
        for own, question in self._by_id.items():
            if question.generation == generation and question.id == params.get("requestId"):
                del self._by_id[own]
                return notification(CANCELLED, {**params, "requestId": own})
        return b""

    def release(self, generation: int, reason: str) -> Iterator[bytes]:
        """Yield a cancellation for each request of a process that is gone."""
        for own in [each for each, question in self._by_id.items() if question.generation == generation]:
            del self._by_id[own]
            yield notification(CANCELLED, {"requestId": own, "reason": reason})
