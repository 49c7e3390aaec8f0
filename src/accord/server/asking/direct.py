"""Asking by a request of our own, and waiting for its answer (through 2025-11-25)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from accord.errors import AnswerError, InvalidResult, Mismatch, MissingClientCapability, NotSupported, ProtocolError
from accord.messages.methods import table
from accord.server.asking.asker import Kept
from accord.server.asking.question import Question
from accord.server.asking.questions import ElicitUrl
from accord.server.asking.visits import Visits
from accord.server.peer import Peer
from accord.session.exchange import Exchange


class Direct:
    """Sends each question as a request, all of them at once."""

    def __init__(self, exchange: Exchange, peer: Peer, seconds: float, visits: Visits) -> None:
        self._exchange = exchange
        self._peer = peer
        self._seconds = seconds
        self._visits = visits
        self.kept: Kept = Kept()

    over = False
    outlives = False

    def check(self, question: Question[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""
        self._params(question)

    async def ask(self, questions: Sequence[Question[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """The answers, in order; the first that fails ends the others."""
        params = [self._params(question) for question in questions]  # nothing is sent that cannot be asked
        if len(questions) == 1:
            return [await self._one(questions[0], params[0])]
        asking = [asyncio.ensure_future(self._one(*both)) for both in zip(questions, params, strict=True)]
        try:
            return await asyncio.gather(*asking)
        finally:
            for task in asking:
                task.cancel()

    def _params(self, question: Question[Any]) -> Any:
        rules = self._exchange.rules
        if question.method not in table(rules.revision, "server"):
            raise NotSupported(f"{rules.revision} has no {question.method}")
        params = question.params(rules)  # what the revision has not is said first: nobody could declare it
        self._peer.line.session.check_client(self._exchange, question.needs)
        return params

    async def _one(self, question: Question[Any], params: Any) -> Any:
        if isinstance(question, ElicitUrl):
            self._visits.add(question.elicitation_id, self._peer)
        try:
            raw = await self._peer.line.ask(
                question.method, params, timeout=self._seconds, needs=question.needs, of=self._exchange
            )
        except MissingClientCapability:
            raise
        except ProtocolError as error:
            raise AnswerError(f"the client answered {question.method} with an error: {error}", error) from error
        try:
            return question.read(raw)
        except (msgspec.ValidationError, msgspec.DecodeError, Mismatch) as exc:
            raise InvalidResult(f"the answer to {question.method} is none: {exc}", raw=bytes(raw)) from exc
