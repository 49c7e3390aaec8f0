"""Asking by a request of our own, and waiting for its answer (through 2025-11-25)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from accord.errors import AnswerError, InvalidResult, Mismatch, MissingClientCapability, NotSupported, ProtocolError
from accord.messages.methods import table
from accord.server.input.base import OnceCache
from accord.server.input.question import InputQuestion
from accord.server.input.questions import ElicitUrl
from accord.server.input.url_elicitations import URLElicitations
from accord.server.peer import Peer
from accord.session.pending_request import PendingRequest


class DirectInput:
    """Sends each question as a request, all of them at once."""

    def __init__(self, exchange: PendingRequest, peer: Peer, seconds: float, visits: URLElicitations) -> None:
        self._exchange = exchange
        self._peer = peer
        self._seconds = seconds
        self._url_elicitations = visits
        self.once_cache: OnceCache = OnceCache()

    is_interrupted = False
    outlives = False

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""
        self._params(question)

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """The answers, in order; the first that fails ends the others."""
        params = [self._params(question) for question in questions]  # nothing is sent that cannot be asked
        if len(questions) == 1:
            return [await self._request_one(questions[0], params[0])]
        asking = [asyncio.ensure_future(self._request_one(*both)) for both in zip(questions, params, strict=True)]
        try:
            return await asyncio.gather(*asking)
        finally:
            for task in asking:
                task.cancel()

    def _params(self, question: InputQuestion[Any]) -> Any:
        rules = self._exchange.rules
        if question.method not in table(rules.revision, "server"):
            raise NotSupported(f"{rules.revision} has no {question.method}")
        params = question.params(rules)  # what the revision has not is said first: nobody could declare it
        self._peer.channel.session.require_client_capability(self._exchange, question.needs)
        return params

    async def _request_one(self, question: InputQuestion[Any], params: Any) -> Any:
        if isinstance(question, ElicitUrl):
            self._url_elicitations.add(question.elicitation_id, self._peer)
        try:
            raw = await self._peer.channel.request(
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
