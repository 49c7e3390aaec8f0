"""What a session says has happened. The driver acts on these and on nothing else."""

from __future__ import annotations

import msgspec
from msgspec import Raw, UnsetType

from accord.messages.envelope import RequestId
from accord.messages.methods import Method
from accord.messages.revision import Rules
from accord.session.pending_request import PendingRequest


class RequestReceived(msgspec.Struct, frozen=True):
    """The peer asks. Answer with `session.respond` or `session.fail`."""

    exchange: PendingRequest


class NotificationReceived(msgspec.Struct, frozen=True):
    """The peer tells, and the session has no business with it itself.

    `subscription` is the id of the request of ours that it belongs to, where it belongs to one (2026-07-28).
    """

    method: Method
    params: Raw | UnsetType
    rules: Rules
    subscription: RequestId | None = None


class ResultReceived(msgspec.Struct, frozen=True):
    """The answer to a request of ours."""

    exchange: PendingRequest
    result: Raw


class ErrorReceived(msgspec.Struct, frozen=True):
    """A request of ours has failed: by the peer's word, or because its answer is none."""

    exchange: PendingRequest
    error: Exception


class ProgressReceived(msgspec.Struct, frozen=True):
    """A request of ours is getting on."""

    exchange: PendingRequest
    progress: float
    total: float | None
    message: str | None


class CancelReceived(msgspec.Struct, frozen=True):
    """The peer does not want the answer any more; whatever is answered now is dropped.

    `reply` holds the rest of a batch that waited for it alone.
    """

    exchange: PendingRequest
    reason: str | None
    reply: bytes | None


class SubscriptionEnded(msgspec.Struct, frozen=True):
    """The server has ended a subscription of ours, with or without a result to follow."""

    exchange: PendingRequest
    reason: str | None


class ReplyReady(msgspec.Struct, frozen=True):
    """Bytes to send: an answer that the session gives itself, or the next step of the opening."""

    message: bytes
    code: int = 0
    """The code of the error that it is, if it is one."""


class ConnectionOpened(msgspec.Struct, frozen=True):
    """Both sides agree on a revision; `reply` holds bytes to send first, if any."""

    revision: str
    reply: bytes | None = None


class InitializedReceived(msgspec.Struct, frozen=True):
    """The client has said `notifications/initialized`: from now on a server may ask it."""


class HandshakeFailed(msgspec.Struct, frozen=True):
    """The peer cannot or will not be opened."""

    error: Exception


class MessageIgnored(msgspec.Struct, frozen=True):
    """Something was dropped, counted in `stats`. `first` is true once per kind: the time to log it."""

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
