"""A look at messages on their way through HTTP: what their headers repeat, and which answer is whose."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, field

from accord.errors import AccordError, RemoteProtocolError, from_wire
from accord.messages.bounds import RESULT_NODES, has_more_nodes
from accord.messages.envelope import ErrorObject, RequestId, is_array, outlines
from accord.messages.meta import PROTOCOL_VERSION
from accord.messages.methods import METHODS

NAMED_BY = {row.name: row.named_by for row in METHODS if row.named_by is not None}
"""Methods whose subject stands in `Mcp-Name`, and which field of the params that is."""

CANCELLED = "notifications/cancelled"

SUBSCRIPTION_METHODS = frozenset(row.name for row in METHODS if row.stays)
"""Requests that stay open."""


class _Meta(msgspec.Struct):
    version: str | None = field(default=None, name=PROTOCOL_VERSION)


class _Params(msgspec.Struct):
    name: Any = None
    uri: Any = None
    cancelled: Any = field(default=None, name="requestId")
    arguments: Raw = Raw()
    meta: _Meta | None = field(default=None, name="_meta")


class SentMessage(msgspec.Struct):
    """One message of ours: a request has an `id` and a `method`, a notification no id, an answer no method."""

    id: RequestId | None = None
    method: str | None = None
    params: _Params | None = None

    @property
    def revision(self) -> str | None:
        """The revision that it names itself, as each request does from 2026-07-28 on."""
        meta = self.params.meta if self.params is not None else None
        return meta.version if meta is not None else None

    @property
    def name(self) -> str | None:
        """What it is about: the name of a tool or prompt, a URI; where `Mcp-Name` has to say so."""
        found = getattr(self.params, NAMED_BY.get(self.method or "", ""), None)
        return found if isinstance(found, str) else None


class _Envelope(msgspec.Struct):
    id: RequestId | None = None
    method: str | None = None


_decode_sent = msgspec.json.Decoder(SentMessage).decode
_envelope = msgspec.json.Decoder(_Envelope).decode


def parse_sent(message: bytes) -> SentMessage:
    """What one message of ours is. Params of extensions may have any shape: nothing is read of those.

    An array has the answers to a batch of the server (2025-03-26): it is an answer.
    """
    try:
        return _decode_sent(message)
    except msgspec.ValidationError:
        if is_array(message):
            return SentMessage()
        plain = _envelope(message)
        return SentMessage(plain.id, plain.method)


class ReceivedMessage(msgspec.Struct):
    """One message that came, as far as it could be read."""

    id: Any = UNSET
    method: Any = UNSET
    result: Raw | UnsetType = UNSET
    _error: Raw | UnsetType = field(default=UNSET, name="error")

    def is_answer_to(self, id: RequestId) -> bool:
        """Whether it is the answer to request `id`."""
        return self.method is UNSET and type(self.id) is type(id) and bool(self.id == id)

    @property
    def has_no_id(self) -> bool:
        """Whether it has no id."""
        return self.id is UNSET or self.id is None

    @property
    def is_orphan(self) -> bool:
        """Whether it can only be an answer, and to which request cannot be read."""
        return self.method is UNSET and type(self.id) is not int and type(self.id) is not str

    @property
    def is_request(self) -> bool:
        """Whether the server asks."""
        return self.method is not UNSET and not self.has_no_id

    @property
    def error(self) -> AccordError | None:
        """What it says has gone wrong, whichever request it answers; None if it is no error."""
        if self.method is not UNSET or isinstance(self._error, UnsetType):
            return None
        try:
            error = _error(self._error)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            return RemoteProtocolError(f"the answer has an error that is none: {exc}")
        return from_wire(error.code, error.message, None if error.data is UNSET else error.data)


class _Initialized(msgspec.Struct):
    version: str = field(default="", name="protocolVersion")


_decode_received = msgspec.json.Decoder(ReceivedMessage).decode
_error = msgspec.json.Decoder(ErrorObject).decode
_initialized = msgspec.json.Decoder(_Initialized).decode


def parse_received(data: bytes) -> ReceivedMessage:
    """What one message is that came; of one with too much structure, as much as can be read in a moment."""
    try:
        if not has_more_nodes(data, RESULT_NODES):
            return _decode_received(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    found = outlines(data)
    answer = next((each for each in found if not each.names_method), None)
    if answer is None:
        return ReceivedMessage(method="")
    return ReceivedMessage() if answer.id is None else ReceivedMessage(answer.id)


def negotiated_revision(data: bytes) -> str:
    """The revision that an answer to `initialize` names; nothing if it names none."""
    found = parse_received(data)
    try:
        return "" if isinstance(found.result, UnsetType) else _initialized(found.result).version
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
