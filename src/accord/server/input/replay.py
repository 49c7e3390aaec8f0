"""Input by replay: a question ends the run, and the retry runs the handler again from the top with the answers so far.

For handlers that may run again: prompts, resources, tools marked read-only or idempotent, and for declared questions,
which are asked before the handler runs. The server keeps nothing between two requests; the client carries the state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accord.errors import InvalidParams
from accord.server.core.peer import Peer
from accord.server.input.base import EncodedQuestion, OnceCache, decode_answer, encode_question
from accord.server.input.question import InputQuestion
from accord.server.input.request_state import RequestState
from accord.session.pending_request import PendingRequest


class RunInterrupted(BaseException):
    """The signal that ends a run at a question. Not an `Exception`: a handler that catches those must not swallow
    it.
    """


class ReplayInput:
    """An `InputRequester` that reads answers from the state and the retry; a missing answer ends the run.

    A question is identified by its key (its parameter, or its number in the order of calls) and its digest: if the
    handler asks another question when it runs again, the old answer is dropped and the new question is asked.
    """

    outlives = False

    def __init__(self, pending: PendingRequest, peer: Peer, state: RequestState, answers: Mapping[str, bytes]) -> None:
        self.state: RequestState = state
        self.once_cache: OnceCache = OnceCache(state.once_values)
        self._exchange = pending
        self._peer = peer
        self._received = answers
        self._count = 0
        self._missing: dict[str, EncodedQuestion] = {}
        self._refused: InvalidParams | None = None

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Return the answers in order. Raises `RunInterrupted` for a missing or invalid answer."""
        named = keys or [self._next_key() for _ in questions]
        encoded = [encode_question(question, self._exchange, self._peer) for question in questions]
        answers = [self._answer(key, one) for key, one in zip(named, encoded, strict=True)]
        if None in answers:
            raise RunInterrupted
        return answers

    @property
    def is_interrupted(self) -> bool:
        """Whether a question ended the run."""
        return bool(self._missing) or self._refused is not None

    def missing(self) -> dict[str, EncodedQuestion]:
        """Return the questions that ended the run. Raises `InvalidParams` if an invalid answer did."""
        if self._refused is not None:
            raise self._refused
        return self._missing

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Raise `NotSupported` or `MissingClientCapability` if the question cannot be asked."""
        encode_question(question, self._exchange, self._peer)

    def _next_key(self) -> str:
        self._count += 1
        return f"ask-{self._count}"

    def _answer(self, key: str, encoded: EncodedQuestion) -> Any:
        """Return the answer to this question: a stored one, or one in the retry for a question that was outstanding or
        may be answered unasked.
        """
        known, answer = self.state.answers.get(key, (b"", b""))
        if known != encoded.digest:
            outstanding = self.state.outstanding.get(key, encoded.digest if encoded.question.unasked else b"")
            if outstanding != encoded.digest or key not in self._received:
                self._missing[key] = encoded
                return None
            answer = self._received[key]
        try:
            value = decode_answer(key, encoded.question, answer)
        except InvalidParams as error:  # for the client: a handler that catches errors must not swallow it
            self._refused = error
            raise RunInterrupted from error
        self.state.answers[key] = (encoded.digest, answer)
        return value
