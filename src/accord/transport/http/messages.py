"""Partial decoding of messages over HTTP: for their headers, and to match responses to requests."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from accord.errors import AccordError, RemoteProtocolError
from accord.messages.bounds import RESULT_NODES, has_more_nodes
from accord.messages.envelope import ErrorObject, RequestId, is_array, outlines
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.methods import METHODS
from accord.messages.tasks import NAMED_BY_ID

NAMED_BY = {row.name: row.named_by for row in METHODS if row.named_by is not None} | NAMED_BY_ID
"""Methods with a `Mcp-Name` header, and the field of the params that it repeats."""

CANCELLED = "notifications/cancelled"

SUBSCRIPTION_METHODS = frozenset(row.name for row in METHODS if row.stays)
"""Requests that stay open."""


class _Meta(msgspec.Struct):
    version: str | None = field(default=None, name=PROTOCOL_VERSION)


class _Params(msgspec.Struct):
    name: Any = None
    uri: Any = None
    task_id: Any = field(default=None, name="taskId")
    cancelled: Any = field(default=None, name="requestId")
    arguments: Raw = Raw()
    meta: _Meta | None = field(default=None, name="_meta")


class SentMessage(msgspec.Struct):
    """One message of this client: a request has an `id` and a `method`, a notification no id, a response no method."""

    id: RequestId | None = None
    method: str | None = None
    params: _Params | None = None

    @property
    def revision(self) -> str | None:
        """Return the revision in the message itself, which each request has from 2026-07-28 on."""
        meta = self.params.meta if self.params is not None else None
        return meta.version if meta is not None else None

    @property
    def name(self) -> str | None:
        """Return the subject for `Mcp-Name`, if the method has one: the name of a tool or prompt, a URI."""
        subject = getattr(self.params, NAMED_BY.get(self.method or "", ""), None)
        return subject if isinstance(subject, str) else None


class _Envelope(msgspec.Struct):
    id: RequestId | None = None
    method: str | None = None


_decode_sent = msgspec.json.Decoder(SentMessage).decode
_envelope = msgspec.json.Decoder(_Envelope).decode


def parse_sent(message: bytes) -> SentMessage:
    """Decode one message of this client. Params of extensions may have any shape and are not decoded.

    An array has the responses to a batch of the server (2025-03-26): it counts as a response.
    """
    try:
        return _decode_sent(message)
    except msgspec.ValidationError:
        if is_array(message):
            return SentMessage()
        plain = _envelope(message)
        return SentMessage(plain.id, plain.method)


class ReceivedMessage(msgspec.Struct):
    """One received message, as far as it could be decoded."""

    id: Any = UNSET
    method: Any = UNSET
    result: Raw | UnsetType = UNSET
    _error: Raw | UnsetType = field(default=UNSET, name="error")

    def is_answer_to(self, id: RequestId) -> bool:
        """Return whether the message is the response to request `id`."""
        return self.method is UNSET and type(self.id) is type(id) and bool(self.id == id)

    @property
    def has_no_id(self) -> bool:
        """Return whether the message has no id."""
        return self.id is UNSET or self.id is None

    @property
    def is_orphan(self) -> bool:
        """Return whether the message can only be a response, but has no readable id of a request."""
        return self.method is UNSET and type(self.id) is not int and type(self.id) is not str

    @property
    def is_request(self) -> bool:
        """Return whether the message is a request of the server."""
        return self.method is not UNSET and not self.has_no_id

    @property
    def error(self) -> AccordError | None:
        """Return the error in the message, whichever request it answers, or None."""
        if self.method is not UNSET or isinstance(self._error, UnsetType):
            return None
        try:
            error = _error(self._error)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            return RemoteProtocolError(f"the response has an invalid error object: {exc}")
        return error.to_exception()


class _Initialized(msgspec.Struct):
    version: str = field(default="", name="protocolVersion")


_decode_received = msgspec.json.Decoder(ReceivedMessage).decode
_error = msgspec.json.Decoder(ErrorObject).decode
_initialized = msgspec.json.Decoder(_Initialized).decode


def parse_received(data: bytes) -> ReceivedMessage:
    """Decode a received message; of one with too much structure only the id, in bounded time."""
    try:
        if not has_more_nodes(data, RESULT_NODES):
            return _decode_received(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    objects = outlines(data)
    answer = next((each for each in objects if not each.names_method), None)
    if answer is None:
        return ReceivedMessage(method="")
    return ReceivedMessage() if answer.id is None else ReceivedMessage(answer.id)


def negotiated_revision(data: bytes) -> str:
    """Return the revision in a response to `initialize`; empty if it has none."""
    received = parse_received(data)
    try:
        return "" if isinstance(received.result, UnsetType) else _initialized(received.result).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
