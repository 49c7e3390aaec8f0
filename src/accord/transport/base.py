"""What a transport is: it moves whole messages and knows nothing of what they say.

Write your own by having these methods; `accord.testing.check_transport` tells whether it holds the
contract. One task receives at a time; anyone may send.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeGuard, runtime_checkable

import msgspec

from accord.errors import AccordError, ConnectionLost
from accord.messages.envelope import RequestId
from accord.wire.headers import Mirrored
from accord.wire.lines import SkippedMessage

__all__ = ["Message", "MessageSink", "SkippedMessage", "Transport", "UnansweredRequest"]


class UnansweredRequest(msgspec.Struct, frozen=True):
    """In the place of an answer: one request of ours gets none, for this reason, though the connection goes on."""

    id: RequestId
    error: AccordError


Message = bytes | SkippedMessage | UnansweredRequest


class MessageSink(Protocol):
    """Where messages go out: a transport, or one stream of several to the same peer."""

    def send(self, message: bytes) -> None:
        """Queue one message. Never blocks, and never raises because the peer is gone."""

    def flush(self) -> None:
        """Begin to write what is queued."""

    async def drain(self) -> None:
        """Return when less than `Limits.pending_bytes` are unsent, or the peer is gone."""

    @property
    def name(self) -> str:
        """Who is on the other side, for errors and logs."""


@runtime_checkable
class ResumableSink(Protocol):
    """A way that can be left, and taken up again where it was."""

    def close_stream(self, retry: int | None) -> None:
        """Have the peer come back for the rest, after `retry` milliseconds; by default, when it likes."""


class Transport(Protocol):
    """Moves whole messages. The public contract for custom transports."""

    async def open(self) -> None:
        """Start. Raises `ConnectError`."""

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        """Every message that is there, at least one; `[]` once the connection has ended, and ever after.

        A cancelled `receive()` loses nothing.
        """

    def send(self, message: bytes) -> None:
        """Queue one message. Never blocks, and never raises because the peer is gone."""

    def flush(self) -> None:
        """Begin to write what is queued, now rather than at the end of this step of the loop.

        Whoever receives should call it after each batch, or never: a transport may hold what is sent while
        a batch is in hand until the `flush()`, or the next `receive()`.
        """

    async def drain(self) -> None:
        """Return when less than `Limits.pending_bytes` are unsent, or the peer is gone."""

    async def close(self) -> None:
        """End the connection: what was sent goes out first, in bounded time. Closing again does nothing."""

    def lost(self) -> ConnectionLost:
        """What to tell those who still wait for an answer, after `receive()` gave `[]`."""

    @property
    def name(self) -> str:
        """Who is on the other side, for errors and logs: `stdio`, `python weather.py`."""


class HeaderTransport(Transport, Protocol):
    """A transport that has headers for what stands in a message too: HTTP."""

    mirrors: Callable[[str], Mirrored] | None
    """The arguments that a tool of this name wants in headers; None where there are no such headers."""


class AnswerTransport(Transport, Protocol):
    """A transport that can hand over answers at once, for which nobody has to wait then."""

    on_answer: Callable[[bytes], None] | None
    """Takes the answer to a request of ours, unless something that came before it has not been received."""


class LossyTransport(Transport, Protocol):
    """A transport that may lose what the peer tells unasked, though the connection goes on."""

    on_missed: Callable[[str], None] | None
    """Is told so, and why, when it has happened and the peer can be heard again, or never will be."""


def delivers_answers(transport: Transport) -> TypeGuard[AnswerTransport]:
    """Whether this one does."""
    return hasattr(transport, "on_answer")


def answer_overhead(transport: Transport) -> int:
    """Return what each answer takes beside its own bytes; 0 for most transports."""
    found: int = getattr(transport, "answer_bytes", 0)
    return found


def is_lossy(transport: Transport) -> TypeGuard[LossyTransport]:
    """Whether this one may."""
    return hasattr(transport, "on_missed")


def has_headers(transport: Transport) -> TypeGuard[HeaderTransport]:
    """Whether this one has."""
    return hasattr(transport, "mirrors")
