"""The telemetry interface, which is called at the beginning and end of each request, and at the end of each session.

An `Operation` describes a request on either side: where it is served (`side="server"`), and where it is sent
("client"). A server that sends its client a request is the sending side of that one. A program implements `Telemetry`;
`OpenTelemetry` is one implementation.
"""

from __future__ import annotations

import time
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Raw

from accord.messages.envelope import RequestId
from accord.session.pending_request import PendingRequest

Side = Literal["server", "client"]


class TransportInfo(msgspec.Struct, frozen=True):
    """The transport and address of the peer; unknown values are empty."""

    transport: str = ""
    """"pipe" over stdio, "tcp" over HTTP, empty within one process."""
    protocol: str = ""
    """"http", or empty."""
    protocol_version: str = ""
    """The version of that protocol: "1.1", "2"."""
    address: str = ""
    """The peer's name or IP address."""
    port: int | None = None
    session: str = ""
    """The session: a digest, because the id itself is a secret (Streamable HTTP, Security)."""


UNKNOWN_TRANSPORT = TransportInfo()


class Operation:
    """One request, as one side sees it. The side that serves or sends it sets the fields; a telemetry reads them.

    `name` is that of a tool or prompt, `uri` that of a resource; both may come from the peer, unchecked.
    """

    __slots__ = (
        "arguments",
        "asks",
        "began",
        "carrier",
        "code",
        "error",
        "failed",
        "id",
        "method",
        "name",
        "place",
        "raised",
        "result",
        "revision",
        "side",
        "started",
        "state",
        "uri",
    )

    def __init__(
        self,
        side: Side,
        method: str,
        *,
        name: str = "",
        uri: str = "",
        id: RequestId | None = None,
        revision: str = "",
        place: TransportInfo = UNKNOWN_TRANSPORT,
        arguments: Any = None,
        carrier: dict[str, str] | None = None,
    ) -> None:
        self.side: Side = side
        self.method: str = method
        self.name: str = name
        self.uri: str = uri
        self.id: RequestId | None = id
        """The request id. For a sent request, None until it is sent, and the latest if it is sent again."""
        self.revision: str = revision
        self.place: TransportInfo = place
        self.arguments: Any = arguments
        """The arguments of a tool or a prompt: JSON (`Raw`), or values that are encoded later."""
        self.carrier: dict[str, str] = {} if carrier is None else carrier
        """The trace context (`traceparent`, `tracestate`, `baggage`) as received in `_meta`, or as it will be sent."""
        self.began: bool = side == "client"
        """Whether the request has reached its handler, so that this side knows its name."""
        self.asks: bool = False
        """Whether the result asks for input (2026-07-28)."""
        self.failed: bool = False
        """Whether the result reports a tool error (`isError`)."""
        self.result: Any = None
        """The result, encoded (`Raw`) or decoded."""
        self.raised: BaseException | None = None
        """The latest exception that a handler of the request raised."""
        self.error: BaseException | None = None
        """The exception that ended the request, or None after a result."""
        self.code: int | None = None
        """The code of a JSON-RPC error, as this revision has it."""
        self.started: float = time.perf_counter()
        self.state: Any = None
        """State that the telemetry may keep."""

    @property
    def seconds(self) -> float:
        """Return the seconds since the request began."""
        return time.perf_counter() - self.started

    def sent(self, pending: PendingRequest) -> None:
        """Record the id and revision of a request that is sent, perhaps again."""
        self.id, self.revision = pending.id, pending.rules.revision

    def answered(self, result: Any) -> None:
        """Record the result, and whether it reports a tool error."""
        self.result = result
        if isinstance(result, Raw):
            fields = _result_fields(result)
            self.failed, self.asks = fields.is_error is True, fields.result_type == "input_required"
        else:
            self.failed = getattr(result, "is_error", None) is True


class SessionOver(msgspec.Struct, frozen=True):
    """A session or connection that has ended."""

    side: Side
    seconds: float
    revision: str = ""
    place: TransportInfo = UNKNOWN_TRANSPORT
    error: BaseException | None = None
    """The exception that ended it, or None after a normal close."""


@runtime_checkable
class Telemetry(Protocol):
    """The interface of a telemetry, called on the event loop that serves the requests.

    `begin` and `end` run in the context (`contextvars`) of the work between them: the handler sees a variable that
    `begin` sets. An exception in any of these methods is logged once and has no other effect.
    """

    def begin(self, operation: Operation) -> None:
        """Handle the beginning of a request; for one that is to be sent, fill in the `carrier`."""

    def go_on(self, operation: Operation, before: Operation) -> None:
        """Handle a handler that continues for the request with its input responses (2026-07-28), in its context."""

    def raised(self, operation: Operation, error: BaseException) -> None:
        """Handle an exception of the handler; `end` reports how the request ends."""

    def end(self, operation: Operation) -> None:
        """Handle the end of a request."""

    def session(self, session: SessionOver) -> None:
        """Handle the end of a session."""


class _ResultFields(msgspec.Struct, rename="camel"):
    is_error: bool | None = None
    result_type: str | None = None


_decoder = msgspec.json.Decoder(_ResultFields)
_NOTHING = _ResultFields()


def _result_fields(result: Raw) -> _ResultFields:
    """Return the fields of a result that telemetry reads; an extension may use the same names for anything."""
    try:
        return _decoder.decode(result)
    except msgspec.MsgspecError:
        return _NOTHING
