"""The interface for requesting input from the client, with three implementations.

`Context` and declared parameters use `InputRequester`. `direct` sends requests and waits (through 2025-11-25); `replay`
ends the run and runs the handler again with the answers; `suspended_call` keeps the handler waiting (both 2026-07-28).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from accord.errors import InvalidParams, Mismatch, NotSupported
from accord.messages import codec
from accord.messages.revision import NO_SESSIONS
from accord.schema.json_values import to_json
from accord.server.core.peer import Peer
from accord.server.input.question import InputQuestion
from accord.server.input.request_state import digest
from accord.session.pending_request import PendingRequest


class InputRequester(Protocol):
    """The interface that requests input from the client for one call."""

    @property
    def once_cache(self) -> OnceCache:
        """The values of `ctx.once`, created once per call even if its handler runs again."""

    @property
    def is_interrupted(self) -> bool:
        """Whether a question ended the run: its return value or exception is then ignored."""

    @property
    def outlives(self) -> bool:
        """Whether the handler may wait for answers while no request of its call is in flight."""

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Raise `NotSupported` or `MissingClientCapability` if the question cannot be asked."""

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Return the answers in order. `keys` are those of declared questions; other questions are numbered.

        Raises `NotSupported`, `MissingClientCapability`, `AnswerError`.
        """


class OnceCache:
    """The values of `ctx.once` as JSON, by key."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self._values: dict[str, bytes] = {} if values is None else values
        self._making: dict[str, asyncio.Lock] = {}
        self._makers: dict[str, object] = {}

    async def once(self, key: str, make: Callable[[], Any]) -> bytes:
        """Return the result of `make` (plain or async), called once even if several tasks wait for it.

        Raises what `make` raises, and then stores nothing; `ValueError` for a value that is not JSON, and for a `make`
        that waits for itself.
        """
        me = asyncio.current_task()
        if self._makers.get(key) is me:
            raise ValueError(f"once({key!r}) calls itself")
        async with self._making.setdefault(key, asyncio.Lock()):
            if key not in self._values:
                self._makers[key] = me
                try:
                    value = make()
                    self._values[key] = to_json(await value if inspect.isawaitable(value) else value)
                finally:
                    del self._makers[key]
        return self._values[key]


class UnavailableInput:
    """An `InputRequester` that rejects all questions, where the method or the revision allows none."""

    is_interrupted = False
    outlives = False

    def __init__(self, pending: PendingRequest) -> None:
        rules = pending.rules
        self._why = f"{pending.method.name} may not ask for input in {rules.revision}"
        if rules.handshake:
            self._why = f"the client cannot be asked for input: {NO_SESSIONS}"

    @cached_property
    def once_cache(self) -> OnceCache:
        return OnceCache()

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Raise `NotSupported`."""
        raise NotSupported(self._why)

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Raise `NotSupported`."""
        raise NotSupported(self._why)


class EncodedQuestion(msgspec.Struct, frozen=True):
    """A question inside an `input_required` result, encoded for one revision."""

    question: InputQuestion[Any]
    wire: Raw
    digest: bytes


def encode_question(question: InputQuestion[Any], pending: PendingRequest, peer: Peer) -> EncodedQuestion:
    """Encode a question for a result. Raises `NotSupported`, `MissingClientCapability`.

    "Servers MUST NOT send an `inputRequests` that the client has not declared support for."
    """
    peer.channel.session.require_client_capability(pending, question.needs)
    rules = pending.rules
    encoded = question.encoded_by_revision.get(rules.revision)
    if encoded is None:
        wire = codec.encode(codec.narrow(question.inside(rules), rules.revision))
        encoded = question.encoded_by_revision[rules.revision] = EncodedQuestion(question, Raw(wire), digest(wire))
    return encoded


def decode_answer(key: str, question: InputQuestion[Any], answer: bytes) -> Any:
    """Decode an answer of a retry. Raises `InvalidParams` for an invalid one."""
    try:
        return question.read(answer)
    except (msgspec.ValidationError, msgspec.DecodeError, Mismatch) as exc:
        raise InvalidParams(f"inputResponses[{key!r}] is not a valid response to its request: {exc}") from exc
