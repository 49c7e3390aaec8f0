"""How a handler's question travels: three ways to ask, with one face.

`Asker` is what `Context` and declared parameters talk to. `direct` sends requests and waits (through 2025-11-25);
`journal` ends the run and begins it again with the answers; `parked` keeps the handler waiting (both 2026-07-28).
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
from accord.schema.values import to_json
from accord.server.asking.question import Question
from accord.server.asking.state import digest
from accord.server.peer import Peer
from accord.session.exchange import Exchange


class Asker(Protocol):
    """Asks on behalf of one call."""

    kept: Kept
    """What was made once for the call, however often its handler runs."""

    @property
    def over(self) -> bool:
        """Whether the run was ended at a question: whatever it returns or raises now does not count."""

    @property
    def outlives(self) -> bool:
        """Whether the handler waits for answers while no request of its call is in flight."""

    def check(self, question: Question[Any]) -> None:
        """Whether it can be asked. Raises `NotSupported`, `MissingClientCapability`."""

    async def ask(self, questions: Sequence[Question[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """The answers, in order. `keys` name declared questions; others are counted.

        Raises `NotSupported`, `MissingClientCapability`, `AnswerError`.
        """


class Kept:
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
            raise ValueError(f"once({key!r}) is made from itself")
        async with self._making.setdefault(key, asyncio.Lock()):
            if key not in self._values:
                self._makers[key] = me
                try:
                    value = make()
                    self._values[key] = to_json(await value if inspect.isawaitable(value) else value)
                finally:
                    del self._makers[key]
        return self._values[key]


class Refusing:
    """Where nothing may be asked."""

    over = False
    outlives = False

    def __init__(self, exchange: Exchange) -> None:
        self.kept: Kept = Kept()
        rules = exchange.rules
        self._why = f"{exchange.method.name} may not ask for input in {rules.revision}"
        if rules.handshake:
            self._why = f"the client cannot be asked for input: {NO_SESSIONS}"

    def check(self, question: Question[Any]) -> None:
        """Nothing may be asked. Raises `NotSupported`."""
        raise NotSupported(self._why)

    async def ask(self, questions: Sequence[Question[Any]], keys: Sequence[str] = ()) -> list[Any]:
        """Nothing may be asked. Raises `NotSupported`."""
        raise NotSupported(self._why)


class Asked(msgspec.Struct, frozen=True):
    """A question that travels inside a result, in the words of one revision."""

    question: Question[Any]
    wire: Raw
    digest: bytes


def inside(question: Question[Any], exchange: Exchange, peer: Peer) -> Asked:
    """A question for a result. Raises `NotSupported`, `MissingClientCapability`.

    "Servers MUST NOT send an `inputRequests` that the client has not declared support for."
    """
    peer.line.session.check_client(exchange, question.needs)
    rules = exchange.rules
    asked = question.said.get(rules.revision)
    if asked is None:
        wire = codec.encode(codec.narrow(question.inside(rules), rules.revision))
        asked = question.said[rules.revision] = Asked(question, Raw(wire), digest(wire))
    return asked


def read(key: str, question: Question[Any], answer: bytes) -> Any:
    """An answer that came in a retry. Raises `InvalidParams` for what is none."""
    try:
        return question.read(answer)
    except (msgspec.ValidationError, msgspec.DecodeError, Mismatch) as exc:
        raise InvalidParams(f"inputResponses[{key!r}] is no answer to what was asked: {exc}") from exc
