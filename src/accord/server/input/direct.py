"""Input by requests of the server to the client (through 2025-11-25).

URL elicitations, and the notifications of their completion (2025-11-25, Elicitation, URL mode).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import msgspec

from accord.errors import AnswerError, InvalidResult, Mismatch, MissingClientCapability, NotSupported, ProtocolError
from accord.messages.elicitation import ElicitationCompleteParams
from accord.messages.methods import table
from accord.server.core.peer import Peer
from accord.server.input.base import OnceCache
from accord.server.input.question import InputQuestion
from accord.server.input.questions import ElicitUrl
from accord.session.pending_request import PendingRequest

_COMPLETE = "notifications/elicitation/complete"
_REMEMBERED = 10_000
"""The maximum number of stored elicitations; the oldest is dropped for a new one."""


class URLElicitations:
    """The client of each URL elicitation, by the id of the elicitation."""

    def __init__(self) -> None:
        self._peers: OrderedDict[str, Peer] = OrderedDict()

    def add(self, elicitation_id: str, peer: Peer) -> None:
        """Store the client of an elicitation."""
        self._peers[elicitation_id] = peer
        if len(self._peers) > _REMEMBERED:
            self._peers.popitem(last=False)

    def complete(self, elicitation_id: str) -> bool:
        """Notify the client that the elicitation is complete, if its revision has the notification. Return whether it
        was sent.
        """
        peer = self._peers.pop(elicitation_id, None)
        if peer is None:
            return False
        rules = peer.channel.session.rules
        if _COMPLETE not in table(rules.revision, "server"):
            return False
        peer.channel.notify(_COMPLETE, ElicitationCompleteParams(elicitation_id=elicitation_id))
        return True

    def forget(self, peer: Peer) -> None:
        """Drop the elicitations of a client that has disconnected."""
        for id in [id for id, other in list(self._peers.items()) if other is peer]:  # other loops may add theirs
            self._peers.pop(id, None)


class DirectInput:
    """An `InputRequester` that sends each question as a request, all of them at once."""

    def __init__(self, pending: PendingRequest, peer: Peer, seconds: float, url_elicitations: URLElicitations) -> None:
        self._exchange = pending
        self._peer = peer
        self._seconds = seconds
        self._url_elicitations = url_elicitations

    is_interrupted = False
    outlives = False

    @cached_property
    def once_cache(self) -> OnceCache:
        """Created by the first use: most calls have none."""
        return OnceCache()

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Raise `NotSupported` or `MissingClientCapability` if the question cannot be asked."""
        checked_params(question, self._exchange, self._peer)

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Return the answers in order; the first failure cancels the other requests."""
        params = [checked_params(each, self._exchange, self._peer) for each in questions]  # before anything is sent
        if len(questions) == 1:
            return [await self._request_one(questions[0], params[0])]
        asking = [asyncio.ensure_future(self._request_one(*pair)) for pair in zip(questions, params, strict=True)]
        try:
            return await asyncio.gather(*asking)
        finally:
            for task in asking:
                task.cancel()

    async def _request_one(self, question: InputQuestion[Any], params: Any) -> Any:
        if isinstance(question, ElicitUrl):
            self._url_elicitations.add(question.elicitation_id, self._peer)
        of, peer, seconds = self._exchange, self._peer, self._seconds
        return read_response(
            question, await request_response(question.method, params, question.needs, of, peer, seconds)
        )


def checked_params(question: InputQuestion[Any], pending: PendingRequest, peer: Peer) -> Any:
    """Return the params of the request for a question. Raises `NotSupported`, `MissingClientCapability`."""
    rules = pending.rules
    if question.method not in table(rules.revision, "server"):
        raise NotSupported(f"{rules.revision} has no {question.method}")
    params = question.params(rules)  # `NotSupported` first: no client could declare the capability
    peer.channel.session.require_client_capability(pending, question.needs)
    return params


async def request_response(
    method: str, params: Any, needs: str, of: PendingRequest, peer: Peer, seconds: float
) -> bytes:
    """Send the request for a question as part of the peer's request `of`, and return the result.

    Raises `MissingClientCapability`, `AnswerError` for an error of the client, and the errors of a connection.
    """
    try:
        return bytes(await peer.channel.request(method, params, timeout=seconds, needs=needs, of=of))
    except MissingClientCapability:
        raise
    except ProtocolError as error:
        raise AnswerError(f"the client answered {method} with an error: {error}", error) from error


def read_response(question: InputQuestion[Any], response: bytes) -> Any:
    """Return the answer in the result of a request for a question. Raises `InvalidResult`."""
    try:
        return question.read(response)
    except (msgspec.ValidationError, msgspec.DecodeError, Mismatch) as exc:
        raise InvalidResult(f"the response to {question.method} is invalid: {exc}", raw=response) from exc
