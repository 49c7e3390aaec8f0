"""Events: what a message meant to the session. The driver acts only on these."""

from __future__ import annotations

import msgspec
from msgspec import Raw, UnsetType

from accord.messages.envelope import RequestId
from accord.messages.methods import Method
from accord.messages.revision import Rules
from accord.session.pending_request import PendingRequest


class RequestReceived(msgspec.Struct, frozen=True):
    """A request of the peer. Answer it with `session.respond` or `session.fail`."""

    pending: PendingRequest


class NotificationReceived(msgspec.Struct, frozen=True):
    """A notification of the peer that the session does not process itself.

    `subscription` is the id of this side's subscription request to which it belongs, if any (2026-07-28).
    """

    method: Method
    params: Raw | UnsetType
    rules: Rules
    subscription: RequestId | None = None


class ResultReceived(msgspec.Struct, frozen=True):
    """The response to a request of this side."""

    pending: PendingRequest
    result: Raw


class ErrorReceived(msgspec.Struct, frozen=True):
    """A request of this side has failed: the peer sent an error, or its response is invalid."""

    pending: PendingRequest
    error: Exception


class ProgressReceived(msgspec.Struct, frozen=True):
    """The peer reported progress of a request of this side."""

    pending: PendingRequest
    progress: float
    total: float | None
    message: str | None


class CancelReceived(msgspec.Struct, frozen=True):
    """The peer cancelled a request; the session drops a later response.

    `reply` holds the responses of a batch that waited only for this request.
    """

    pending: PendingRequest
    reason: str | None
    reply: bytes | None


class SubscriptionEnded(msgspec.Struct, frozen=True):
    """The server has ended a subscription of this side, possibly with a result to follow."""

    pending: PendingRequest
    reason: str | None


class ReplyReady(msgspec.Struct, frozen=True):
    """Bytes to send: a response of the session itself, or the next message of the handshake."""

    message: bytes
    code: int = 0
    """The code of the error in `message`, or 0."""


class ConnectionOpened(msgspec.Struct, frozen=True):
    """The two sides have agreed on a revision; `reply` holds bytes to send first, if any."""

    revision: str
    reply: bytes | None = None


class InitializedReceived(msgspec.Struct, frozen=True):
    """The client has sent `notifications/initialized`: from now on the server may send requests."""


class HandshakeFailed(msgspec.Struct, frozen=True):
    """The handshake has failed."""

    error: Exception


class MessageIgnored(msgspec.Struct, frozen=True):
    """A message was dropped, and counted in `stats`. `first` is true once per kind: then log it."""

    kind: str
    detail: str
    first: bool


Event = (
    RequestReceived
    | NotificationReceived
    | ResultReceived
    | ErrorReceived
    | ProgressReceived
    | CancelReceived
    | SubscriptionEnded
    | ReplyReady
    | ConnectionOpened
    | InitializedReceived
    | HandshakeFailed
    | MessageIgnored
)
