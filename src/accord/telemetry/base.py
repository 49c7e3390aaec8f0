"""What a telemetry is told: of each request its beginning and its end, of each session its end.

Both sides speak of an `Operation`: who serves a request (`side="server"`), and who has sent it ("client"). A server
that asks its client something is the sender of that. `Telemetry` is what to implement to be told; `OpenTelemetry` does.
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
    """How the peer is reached; what is not known, or does not apply, is empty."""

    transport: str = ""
    """"pipe" over stdio, "tcp" over HTTP, empty within one process."""
    protocol: str = ""
    """"http", or empty."""
    protocol_version: str = ""
    """Of that: "1.1", "2"."""
    address: str = ""
    """Of the peer: a name or an IP address."""
    port: int | None = None
    session: str = ""
    """What tells this session from others: a digest, as the id itself is a secret (Streamable HTTP, Security)."""


UNKNOWN_TRANSPORT = TransportInfo()


class Operation:
    """One request, as one side sees it. Whoever serves or sends it fills it in; a telemetry reads it.

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
        """Of the request; of one of ours None until it is sent, and the last where it is sent more than once."""
        self.revision: str = revision
        self.place: TransportInfo = place
        self.arguments: Any = arguments
        """Of a tool or a prompt: JSON (`Raw`), or what is to become it."""
        self.carrier: dict[str, str] = {} if carrier is None else carrier
        """The trace context (`traceparent`, `tracestate`, `baggage`): as it came in `_meta`, or as it will go out."""
        self.began: bool = side == "client"
        """Whether it came as far as its handler: then its name is one that this side knows."""
        self.asks: bool = False
        """Whether it was answered with questions (2026-07-28)."""
        self.failed: bool = False
        """Whether the result says that the tool failed (`isError`)."""
        self.result: Any = None
        """The result, as `Raw` or as its type."""
        self.raised: BaseException | None = None
        """The last that a handler of it has raised."""
        self.error: BaseException | None = None
        """What ended it, if not a result."""
        self.code: int | None = None
        """Of the JSON-RPC error, where that is one: as this revision has it."""
        self.started: float = time.perf_counter()
        self.state: Any = None
        """Belongs to the telemetry."""

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.perf_counter() - self.started

    def sent(self, exchange: PendingRequest) -> None:
        """A request of ours goes out, perhaps once more."""
        self.id, self.revision = exchange.id, exchange.rules.revision

    def answered(self, result: Any) -> None:
        """There is a result; of a tool it says whether that has failed."""
        self.result = result
        if isinstance(result, Raw):
            told = _result_fields(result)
            self.failed, self.asks = told.is_error is True, told.result_type == "input_required"
        else:
            self.failed = getattr(result, "is_error", None) is True


class SessionOver(msgspec.Struct, frozen=True):
    """A session or connection that has ended."""

    side: Side
    seconds: float
    revision: str = ""
    place: TransportInfo = UNKNOWN_TRANSPORT
    error: BaseException | None = None
    """Why, where nobody wanted it to."""


@runtime_checkable
class Telemetry(Protocol):
    """Is told of requests and sessions, on the event loop that serves them.

    `begin` and `end` are called in the context (`contextvars`) of what happens between them: a variable that `begin`
    sets is seen by the handler. What any of them raises is logged, once, and changes nothing.
    """

    def begin(self, operation: Operation) -> None:
        """A request begins; of one that is about to be sent, the `carrier` is to be filled in."""

    def go_on(self, operation: Operation, before: Operation) -> None:
        """A handler goes on for the request that brought its answers (2026-07-28), in the context that it began in."""

    def raised(self, operation: Operation, error: BaseException) -> None:
        """The handler has raised; how the request ends is told by `end`."""

    def end(self, operation: Operation) -> None:
        """A request has ended."""

    def session(self, session: SessionOver) -> None:
        """A session has ended."""


class _ResultFields(msgspec.Struct, rename="camel"):
    is_error: bool | None = None
    result_type: str | None = None


_decoder = msgspec.json.Decoder(_ResultFields)
_NOTHING = _ResultFields()


def _result_fields(result: Raw) -> _ResultFields:
    """What a result says of itself; what an extension has in these places does not matter."""
    try:
        return _decoder.decode(result)
    except msgspec.MsgspecError:
        return _NOTHING
