"""Asking by ending the run: the retry runs the handler again from the top, with the answers so far at hand.

For what may run twice: prompts, resources, tools marked read-only or idempotent, and questions that are declared and
so are asked before the body runs. Nothing is remembered between two requests but what the client carries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accord.errors import InvalidParams
from accord.server.asking.asker import Asked, Kept, inside, read
from accord.server.asking.question import Question
from accord.server.asking.state import State
from accord.server.peer import Peer
from accord.session.exchange import Exchange


class RunEnded(BaseException):
    """Ends a run at a question. Not an `Exception`: a handler that catches those must not swallow it."""


class Journal:
    """Answers from what the state and the retry hold; what is missing ends the run.

    A question is known by its key (its name if it was declared, its place in the order of calls if not) and its
    digest: when the handler asks something else on its second run, the old answer is dropped and it is asked again.
    """

    outlives = False

    def __init__(self, exchange: Exchange, peer: Peer, state: State, answers: Mapping[str, bytes]) -> None:
        self.state: State = state
        self.kept: Kept = Kept(state.kept)
        self._exchange = exchange
        self._peer = peer
        self._came = answers
        self._count = 0
        self._missing: dict[str, Asked] = {}
        self._refused: InvalidParams | None = None

    async def ask(self, questions: Sequence[Question[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """The answers, in order. Raises `RunEnded` when one is missing, or none."""
        named = keys or [self._next_key() for _ in questions]
        asked = [inside(question, self._exchange, self._peer) for question in questions]
        answers = [self._answer(key, one) for key, one in zip(named, asked, strict=True)]
        if None in answers:
            raise RunEnded
        return answers

    @property
    def over(self) -> bool:
        """Whether a question has ended the run."""
        return bool(self._missing) or self._refused is not None

    def missing(self) -> dict[str, Asked]:
        """What ended the run. Raises `InvalidParams` where that was an answer which is none."""
        if self._refused is not None:
            raise self._refused
        return self._missing

    def check(self, question: Question[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""
        inside(question, self._exchange, self._peer)

    def _next_key(self) -> str:
        self._count += 1
        return f"ask-{self._count}"

    def _answer(self, key: str, asked: Asked) -> Any:
        """The answer to this very question: an earlier one, or one that has just come for what was outstanding, or
        may come unasked.
        """
        known, answer = self.state.answers.get(key, (b"", b""))
        if known != asked.digest:
            outstanding = self.state.asked.get(key, asked.digest if asked.question.unasked else b"")
            if outstanding != asked.digest or key not in self._came:
                self._missing[key] = asked
                return None
            answer = self._came[key]
        try:
            value = read(key, asked.question, answer)
        except InvalidParams as error:  # for the client: a handler that catches errors must not swallow it
            self._refused = error
            raise RunEnded from error
        self.state.answers[key] = (asked.digest, answer)
        return value
