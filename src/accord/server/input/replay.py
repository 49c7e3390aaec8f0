"""Asking by ending the run: the retry runs the handler again from the top, with the answers so far at hand.

For what may run twice: prompts, resources, tools marked read-only or idempotent, and questions that are declared and
so are asked before the body runs. Nothing is remembered between two requests but what the client carries.
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
    """Ends a run at a question. Not an `Exception`: a handler that catches those must not swallow it."""


class ReplayInput:
    """Answers from what the state and the retry hold; what is missing ends the run.

    A question is known by its key (its name if it was declared, its place in the order of calls if not) and its
    digest: when the handler asks something else on its second run, the old answer is dropped and it is asked again.
    """

    outlives = False

    def __init__(self, exchange: PendingRequest, peer: Peer, state: RequestState, answers: Mapping[str, bytes]) -> None:
        self.state: RequestState = state
        self.once_cache: OnceCache = OnceCache(state.once_values)
        self._exchange = exchange
        self._peer = peer
        self._received = answers
        self._count = 0
        self._missing: dict[str, EncodedQuestion] = {}
        self._refused: InvalidParams | None = None

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """The answers, in order. Raises `RunInterrupted` when one is missing, or none."""
        named = keys or [self._next_key() for _ in questions]
        asked = [encode_question(question, self._exchange, self._peer) for question in questions]
        answers = [self._answer(key, one) for key, one in zip(named, asked, strict=True)]
        if None in answers:
            raise RunInterrupted
        return answers

    @property
    def is_interrupted(self) -> bool:
        """Whether a question has ended the run."""
        return bool(self._missing) or self._refused is not None

    def missing(self) -> dict[str, EncodedQuestion]:
        """What ended the run. Raises `InvalidParams` where that was an answer which is none."""
        if self._refused is not None:
            raise self._refused
        return self._missing

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""
        encode_question(question, self._exchange, self._peer)

    def _next_key(self) -> str:
        self._count += 1
        return f"ask-{self._count}"

    def _answer(self, key: str, asked: EncodedQuestion) -> Any:
        """The answer to this very question: an earlier one, or one that has just come for what was outstanding, or
        may come unasked.
        """
        known, answer = self.state.answers.get(key, (b"", b""))
        if known != asked.digest:
            outstanding = self.state.outstanding.get(key, asked.digest if asked.question.unasked else b"")
            if outstanding != asked.digest or key not in self._received:
                self._missing[key] = asked
                return None
            answer = self._received[key]
        try:
            value = decode_answer(key, asked.question, answer)
        except InvalidParams as error:  # for the client: a handler that catches errors must not swallow it
            self._refused = error
            raise RunInterrupted from error
        self.state.answers[key] = (asked.digest, answer)
        return value
