"""HTTP exchanges for an observer: a request and its response have a number, and the messages in them belong to it.

A message is reported with the first request that carries it; a redirect, or a request with other credentials, repeats
that exchange.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from accord.transport.base import TransportObserver
from accord.wire.lines import SkippedMessage

if TYPE_CHECKING:
    from types import SimpleNamespace

    from aiohttp import ClientResponse, TraceConfig


class RepeatableBody(bytes):
    """The body of one or more requests: a message, with the number of the first exchange."""

    first_exchange: int = 0


class ObservedExchange:
    """One request, from before it is sent."""

    __slots__ = ("body", "is_sent", "number")

    def __init__(self, number: int, body: bytes | None) -> None:
        self.number: int = number
        self.body: bytes | None = body
        self.is_sent: bool = False


class ObservedExchanges:
    """The exchanges of one connection."""

    def __init__(self, observer: TransportObserver) -> None:
        self._observer = observer
        self._last = 0
        self._numbers: WeakKeyDictionary[ClientResponse, int] = WeakKeyDictionary()

    def trace_config(self) -> TraceConfig:
        """Return what makes an HTTP session report its requests when they are sent, with all their headers."""
        from aiohttp import TraceConfig

        config = TraceConfig()
        config.on_request_headers_sent.append(self._on_headers_sent)
        return config

    def begin(self, body: bytes | None) -> ObservedExchange:
        """Return a new exchange."""
        self._last += 1
        return ObservedExchange(self._last, body)

    async def _on_headers_sent(self, session: object, context: SimpleNamespace, params: Any) -> None:
        exchange: ObservedExchange = context.trace_request_ctx
        if exchange.is_sent:  # on a new connection, because the server had closed the old one
            return
        exchange.is_sent = True
        body, repeats = exchange.body, 0
        if isinstance(body, RepeatableBody):
            repeats = body.first_exchange
            body.first_exchange = repeats or exchange.number
        message = None if repeats else body
        headers = _joined(params.headers)
        self._observer.on_request(exchange.number, params.method, str(params.url), headers, message, repeats)

    def responded(self, exchange: ObservedExchange, response: ClientResponse) -> None:
        """Report the head of a response."""
        self._numbers[response] = exchange.number
        self._observer.on_response(exchange.number, response.status, _joined(response.headers))

    def received(self, response: ClientResponse, message: bytes | SkippedMessage) -> None:
        """Report a message in a response, or its body; an empty one is not reported."""
        if message:
            self._observer.on_message(self._numbers.get(response, 0), message)


def _joined(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by their lower-case names, with the values of repeated ones joined by commas."""
    joined: dict[str, str] = {}
    for name, value in headers.items():
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined
