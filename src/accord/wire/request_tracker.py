"""The request of the client that a message of a connection belongs to.

A response has its id, progress its token, a cancellation its id, a subscription's notification the id of the
subscription; over HTTP, the server's other messages belong to the request whose response carries them. Over stdio, the
server's requests and log messages do not show to which request they belong.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import field

from accord.messages.bounds import NAME_LENGTH
from accord.wire.session_file import MessageDirection

_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_MOST = 10_000
"""Limit of the requests that are remembered; the oldest is dropped."""


class _TrackedMeta(msgspec.Struct):
    token: Any = field(default=None, name="progressToken")
    subscription: Any = field(default=None, name=_SUBSCRIPTION)


class _TrackedParams(msgspec.Struct):
    token: Any = field(default=None, name="progressToken")
    cancelled: Any = field(default=None, name="requestId")
    meta: _TrackedMeta | None = field(default=None, name="_meta")


class _TrackedMessage(msgspec.Struct):
    id: Any = None
    method: str | None = None
    params: _TrackedParams | None = None


_decode = msgspec.json.Decoder(_TrackedMessage).decode
RequestKey = int | str | None


class RequestTracker:
    """The requests of one connection. `client` says in which direction its requests go."""

    def __init__(self, client: MessageDirection = "sent") -> None:
        self._client = client
        self._tokens: dict[object, RequestKey] = {}
        self._exchanges: dict[int, RequestKey] = {}
        self._server_requests: dict[object, RequestKey] = {}

    def request_of(self, data: bytes, direction: MessageDirection, exchange: int = 0) -> RequestKey:
        """Return the id of the client's request that a message belongs to, or None if that is not known."""
        try:
            message = _decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # such as a batch
            return self._exchanges.get(exchange)
        if direction == self._client:
            return self._of_client(message, exchange)
        return self._of_server(message, exchange)

    def _of_client(self, message: _TrackedMessage, exchange: int) -> RequestKey:
        params = message.params or _TrackedParams()
        if message.method is None:
            return self._server_requests.pop(request_key(message.id), None)
        id = _request_id(message.id)
        if id is None:
            return _request_id(params.cancelled)
        if params.meta is not None and params.meta.token is not None:
            _remember(self._tokens, request_key(params.meta.token), id)
        if exchange:
            _remember(self._exchanges, exchange, id)
        return id

    def _of_server(self, message: _TrackedMessage, exchange: int) -> RequestKey:
        params = message.params or _TrackedParams()
        if message.method is None:
            return _request_id(message.id)
        if message.id is None:
            return self._of_notification(params, exchange)
        request = self._exchanges.get(exchange)
        _remember(self._server_requests, request_key(message.id), request)
        return request

    def _of_notification(self, params: _TrackedParams, exchange: int) -> RequestKey:
        if params.token is not None:
            return self._tokens.get(request_key(params.token))
        if params.cancelled is not None:
            return self._server_requests.get(request_key(params.cancelled))
        if params.meta is not None and params.meta.subscription is not None:
            return _request_id(params.meta.subscription)
        return self._exchanges.get(exchange)


def request_key(id: object) -> object:
    """Return a key that distinguishes 1 from True and "1"; all values that are no id have the same one.

    It stays as long as a request has no response, perhaps for ever: that of a long text is short.
    """
    if isinstance(id, str) and len(id) > NAME_LENGTH:
        return str, len(id), hash(id)
    return (type(id), id) if isinstance(id, int | str | float) else (type(None), None)


def _request_id(value: object) -> RequestKey:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def _remember(table: dict[Any, RequestKey], key: object, id: RequestKey) -> None:
    table[key] = id
    if len(table) > _MOST:
        del table[next(iter(table))]
