"""How a handler's question travels: three ways to ask, with one face.

`InputRequester` is what `Context` and declared parameters talk to. `direct` sends requests and waits (through
2025-11-25); `journal` ends the run and begins it again with the answers; `parked` keeps the handler waiting (both
2026-07-28).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
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
    """Asks on behalf of one call."""

    once_cache: OnceCache
    """What was made once for the call, however often its handler runs."""

    @property
    def is_interrupted(self) -> bool:
        """Whether the run was ended at a question: whatever it returns or raises now does not count."""

    @property
    def outlives(self) -> bool:
        """Whether the handler waits for answers while no request of its call is in flight."""

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """The answers, in order. `keys` name declared questions; others are counted.

        Raises `NotSupported`, `MissingClientCapability`, `AnswerError`.
        """


class OnceCache:
    """What `ctx.once` keeps, as JSON, by its key."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self._values: dict[str, bytes] = {} if values is None else values
        self._making: dict[str, asyncio.Lock] = {}
        self._makers: dict[str, object] = {}

    async def once(self, key: str, make: Callable[[], Any]) -> bytes:
        """What `make` (plain or async) returned; it is called once, even where several wait for it together.

        Raises what `make` raises, and then nothing is kept; `ValueError` for what JSON cannot hold, and for a `make`
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
    """Where nothing may be asked."""

    is_interrupted = False
    outlives = False

    def __init__(self, exchange: PendingRequest) -> None:
        self.once_cache: OnceCache = OnceCache()
        rules = exchange.rules
        self._why = f"{exchange.method.name} may not ask for input in {rules.revision}"
        if rules.handshake:
            self._why = f"the client cannot be asked for input: {NO_SESSIONS}"

    def require_available(self, question: InputQuestion[Any]) -> None:
        """Nothing may be asked. Raises `NotSupported`."""
        raise NotSupported(self._why)

    async def request(self, questions: Sequence[InputQuestion[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Nothing may be asked. Raises `NotSupported`."""
        raise NotSupported(self._why)


class EncodedQuestion(msgspec.Struct, frozen=True):
    """A question that travels inside a result, in the words of one revision."""

    question: InputQuestion[Any]
    wire: Raw
    digest: bytes


def encode_question(question: InputQuestion[Any], exchange: PendingRequest, peer: Peer) -> EncodedQuestion:
    """A question for a result. Raises `NotSupported`, `MissingClientCapability`.

    "Servers MUST NOT send an `inputRequests` that the client has not declared support for."
    """
    peer.channel.session.require_client_capability(exchange, question.needs)
    rules = exchange.rules
    asked = question.encoded_by_revision.get(rules.revision)
    if asked is None:
        wire = codec.encode(codec.narrow(question.inside(rules), rules.revision))
        asked = question.encoded_by_revision[rules.revision] = EncodedQuestion(question, Raw(wire), digest(wire))
    return asked


def decode_answer(key: str, question: InputQuestion[Any], answer: bytes) -> Any:
    """An answer that came in a retry. Raises `InvalidParams` for what is none."""
    try:
        return question.read(answer)
    except (msgspec.ValidationError, msgspec.DecodeError, Mismatch) as exc:
        raise InvalidParams(f"inputResponses[{key!r}] is not a valid response to its request: {exc}") from exc
