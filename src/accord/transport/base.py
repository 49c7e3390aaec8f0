"""The contract of a transport: it moves whole messages, and does not know their content.

A custom transport has these methods; `accord.testing.check_transport` checks whether it fulfils the contract. One task
receives at a time; any task may send.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any, Protocol, TypeGuard, runtime_checkable

import msgspec

from accord.errors import AccordError, ConnectionLost
from accord.messages.envelope import RequestId
from accord.wire.headers import Mirrored
from accord.wire.lines import SkippedMessage

__all__ = ["Message", "MessageSink", "SkippedMessage", "Transport", "TransportObserver", "UnansweredRequest"]


class UnansweredRequest(msgspec.Struct, frozen=True):
    """In place of a response: one request of this side gets none, with the reason, although the connection goes on."""

    id: RequestId
    error: AccordError


Message = bytes | SkippedMessage | UnansweredRequest


class MessageSink(Protocol):
    """A destination of messages: a transport, or one stream of several to the same peer."""

    def send(self, message: bytes) -> None:
        """Queue one message. Never blocks, and never raises if the peer is gone."""

    def flush(self) -> None:
        """Start to write the queued messages."""

    async def drain(self) -> None:
        """Wait until less than `Limits.pending_bytes` are unsent, or the peer is gone."""

    @property
    def name(self) -> str:
        """Return the name of the peer, for errors and logs."""


class NullSink:
    """A sink for messages that belong to no stream: it drops them."""

    name = "none"

    def send(self, message: bytes) -> None:
        """Drop the message."""

    def flush(self) -> None:
        """Do nothing: messages are not buffered."""

    async def drain(self) -> None:
        """Return at once: no message is pending."""


@runtime_checkable
class ResumableSink(Protocol):
    """A sink that can be closed, and resumed later."""

    def close_stream(self, retry: int | None) -> None:
        """Close the stream, so that the peer reconnects for the rest after `retry` milliseconds, or at its default."""


class Transport(Protocol):
    """A mover of whole messages. The public contract for custom transports."""

    async def open(self) -> None:
        """Open the connection. Raises `ConnectError`."""

    def receive(self) -> Coroutine[Any, Any, list[Message]]:
        """Return all messages that have arrived, at least one; `[]` once the connection has ended, and ever after.

        A cancelled `receive()` loses no message.
        """

    def send(self, message: bytes) -> None:
        """Queue one message. Never blocks, and never raises if the peer is gone."""

    def flush(self) -> None:
        """Start to write the queued messages now, rather than at the end of this step of the event loop.

        The receiver should call it after each batch, or never: a transport may hold sent messages during a batch until
        `flush()`, or the next `receive()`.
        """

    async def drain(self) -> None:
        """Wait until less than `Limits.pending_bytes` are unsent, or the peer is gone."""

    async def close(self) -> None:
        """Close the connection, in bounded time, after the queued messages are sent. Further calls have no effect."""

    def lost(self) -> ConnectionLost:
        """Return the error for pending requests, after `receive()` returned `[]`."""

    @property
    def name(self) -> str:
        """Return the name of the peer, for errors and logs: `stdio`, `python weather.py`."""


class HeaderTransport(Transport, Protocol):
    """A transport with headers that repeat parts of a message: HTTP."""

    mirrors: Callable[[str], Mirrored] | None
    """Returns the mirrored arguments of a tool, by its name; None if there are no such headers."""


class ImmediateSink(MessageSink, Protocol):
    """A sink that can write one message at once, which costs less than `send` and `flush`."""

    def send_now(self, message: bytes) -> None:
        """Send one message, and start to write it with all queued ones."""


class AnswerTransport(Transport, Protocol):
    """A transport that can deliver responses at once, without a wait for `receive()`."""

    on_answer: Callable[[bytes], None] | None
    """Called with the response to a request of this side, unless an earlier message has not been received."""


class LossyTransport(Transport, Protocol):
    """A transport that may lose notifications and requests of the peer, although the connection goes on."""

    on_missed: Callable[[str], None] | None
    """Called with the reason after such a loss, once the peer is reachable again, or will never be."""


class TransportObserver(Protocol):
    """A receiver of what a transport really sends and receives, and when: for recordings."""

    def on_request(
        self, exchange: int, method: str, url: str, headers: Mapping[str, str], message: bytes | None, repeats: int
    ) -> None:
        """Receive the head of an HTTP request, and the message that it carries; `repeats` is the exchange whose message
        it sends again, or 0.
        """

    def on_response(self, exchange: int, status: int, headers: Mapping[str, str]) -> None:
        """Receive the head of an HTTP response."""

    def on_message(self, exchange: int, message: bytes | SkippedMessage) -> None:
        """Receive one message of an HTTP response, or a body in its place."""


class ObservableTransport(Transport, Protocol):
    """A transport that reports its messages itself, because it sends them later, or several times: HTTP."""

    observer: TransportObserver | None
    """Set before `open`."""


class ProcessTransport(Transport, Protocol):
    """A transport to a process of its own."""

    on_stderr: Callable[[str], None] | None
    """Called with each line that the process writes to stderr."""

    @property
    def secrets(self) -> Collection[str]:
        """Return the values of its environment whose names are those of secrets."""


def is_observable(transport: Transport) -> TypeGuard[ObservableTransport]:
    """Return whether a transport is an `ObservableTransport`."""
    return hasattr(transport, "observer")


def has_process(transport: Transport) -> TypeGuard[ProcessTransport]:
    """Return whether a transport is a `ProcessTransport`."""
    return hasattr(transport, "on_stderr")


def sends_now(sink: MessageSink) -> TypeGuard[ImmediateSink]:
    """Return whether a sink is an `ImmediateSink`."""
    return hasattr(sink, "send_now")


def delivers_answers(transport: Transport) -> TypeGuard[AnswerTransport]:
    """Return whether a transport is an `AnswerTransport`."""
    return hasattr(transport, "on_answer")


def answer_overhead(transport: Transport) -> int:
    """Return the number of bytes that a response takes in addition to its own; 0 for most transports."""
    overhead: int = getattr(transport, "answer_bytes", 0)
    return overhead


def is_lossy(transport: Transport) -> TypeGuard[LossyTransport]:
    """Return whether a transport is a `LossyTransport`."""
    return hasattr(transport, "on_missed")


def has_headers(transport: Transport) -> TypeGuard[HeaderTransport]:
    """Return whether a transport is a `HeaderTransport`."""
    return hasattr(transport, "mirrors")
