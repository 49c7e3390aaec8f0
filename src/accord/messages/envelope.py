"""The JSON-RPC 2.0 envelope of every message: decoding without trust, and encoding.

`params`, `result` and `error` stay raw bytes until the method is known. An id keeps its JSON type: 7 is not "7".
Invalid input raises `MalformedMessage`, which has the error to send and says whether to send it: a response or a
notification is never answered, however malformed it is. `outlines` reads the id of a message whose JSON is invalid,
so that the request it responds to fails instead of waiting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.errors import InvalidRequest, ParseError, ProtocolError, from_wire
from accord.lazy_patterns import lazy_pattern
from accord.messages.bounds import NAME_LENGTH, Name, Token
from accord.messages.duplicate_members import find_duplicate

RequestId = int | str


class Incoming(msgspec.Struct):
    """Any one message, not validated beyond its envelope."""

    jsonrpc: Literal["2.0"]
    id: Token | UnsetType | None = UNSET
    method: Name | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Notification(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """An outgoing notification."""

    method: str
    params: Any = None


class Response(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    """An outgoing result."""

    id: RequestId
    result: Any


class ErrorObject(msgspec.Struct, omit_defaults=True):
    """The `error` of an error response. `code` is an integer; `data` is any JSON value."""

    code: int
    message: str
    data: Any = UNSET

    def to_exception(self) -> ProtocolError:
        """Return the exception for this error, as it was received."""
        return from_wire(self.code, self.message, None if self.data is UNSET else self.data)


class ErrorResponse(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """An outgoing error; `id` is None (null) or UNSET (absent) if the id of the request could not be read."""

    id: RequestId | UnsetType | None
    error: ErrorObject


class Outline(msgspec.Struct):
    """The readable part of an object that is not a valid message: the names of its members, and its id."""

    id: RequestId | None = None
    keys: set[str] = msgspec.field(default_factory=set)

    @property
    def names_method(self) -> bool:
        """Return whether the object was meant as a request or a notification."""
        return "method" in self.keys

    @property
    def is_answer(self) -> bool:
        """Return whether the object was meant as a response: it has a result or an error, and no method."""
        return not self.names_method and not self.keys.isdisjoint(("result", "error"))

    @property
    def is_orphan(self) -> bool:
        """Return whether the object was meant as a response, but the id of its request cannot be read."""
        return self.id is None and "jsonrpc" in self.keys and not self.names_method


def _known_id(id: Any) -> RequestId | None:
    """Return an id if it may be repeated in a response, else None."""
    return id if type(id) is int or (type(id) is str and len(id) <= NAME_LENGTH) else None


class MalformedMessage(Exception):
    """Bytes that are not a valid message.

    `error` is the error to send, with `id` if there is one. `answerable` is False if no error may be sent. `outlines`
    are the objects in the bytes, which may have been meant as responses.
    """

    def __init__(
        self, error: ProtocolError, id: Any = None, *, answerable: bool = True, outlines: Sequence[Outline] = ()
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.id: RequestId | None = _known_id(id)
        self.answerable = answerable
        self.outlines = outlines


_TOKEN = lazy_pattern(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"(\s*+:\s*+)?|\\?\Z)|[{}\[\]]|[^"{}\[\]]++', re.DOTALL)
"""A text, a bracket, or the characters between them. It matches at every position, at an unterminated text too, so that
no byte is read twice."""

_ID = lazy_pattern(rb'(-?\d{1,18})(?![\w.])|"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_TAIL = lazy_pattern(
    rb'"id"\s*+:\s*+(?:(-?\d{1,18})|"((?:[^"\\]|\\.)*+)")\s*+(?:,\s*+"jsonrpc"\s*+:\s*+"2.0"\s*+)?}\s*+\Z'
)
"""The end of a message whose id is its last member; the last brace is that of the message itself."""

_CLOSES = {b"{": b"}", b"[": b"]"}
_SHORTEST_MEMBER = len(b',"id":1')
_SHORTEST_REQUEST = len(b'{"jsonrpc":"2.0","id":1,"method":"","params":}') + _SHORTEST_MEMBER
_SHORTEST_RESULT = len(b'{"jsonrpc":"2.0","id":1,"result":}') + _SHORTEST_MEMBER
_MAX_REST_BYTES = 64 << 10
"""Limit of the unknown members together with the id and the method."""
_MAX_TOKENS = 40_000
"""Number of tokens that are read from the beginning of an invalid message."""
_TAIL_BYTES = 2_048

_decode = msgspec.json.Decoder(Incoming).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


def read(message: bytes | Raw) -> Incoming:
    """Decode one message. Raises `MalformedMessage`."""
    try:
        incoming = _decode(message)
        # msgspec does not check strings that it skips: raw params may contain invalid UTF-8
        if type(message) is bytes and not message.isascii():
            message.decode()
    except msgspec.ValidationError as exc:
        raise _diagnose(message, str(exc)) from exc
    except RecursionError:
        raise _unreadable_error(message, "not readable: nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise _invalid_error(bytes(message), exc) from exc
    method = incoming.method
    # A message without room for a second member of any name has none: most requests and results return at once.
    if method is UNSET:
        result = incoming.result
        if result is not UNSET:
            if type(incoming.id) is int and len(message) - len(result) < _SHORTEST_RESULT:
                return incoming
        elif incoming.error is UNSET:
            id = None if isinstance(incoming.id, UnsetType) else incoming.id
            what = InvalidRequest("neither method, nor result, nor error")
            raise MalformedMessage(what, id, outlines=[Outline(id, {"jsonrpc"})])
    elif incoming.id is None:
        raise MalformedMessage(InvalidRequest("the id of a request must not be null"))
    elif (
        type(incoming.id) is int
        and (params := incoming.params) is not UNSET
        and len(message) - len(params) - len(method) < _SHORTEST_REQUEST
    ):
        return incoming
    _check_members(message, incoming)
    return incoming


def _check_members(message: bytes | Raw, incoming: Incoming) -> None:
    """Raise `MalformedMessage` for a duplicate member: a reader that takes the first of them would see another
    message."""
    content = incoming.params or incoming.result or incoming.error or Raw()
    colons = bytes(message).count(b":") - bytes(content).count(b":")
    fields = msgspec.structs.astuple(incoming)
    if colons == len(fields) - fields.count(UNSET):
        return  # outside of texts each colon follows the name of one member: there are no others
    rest = bytes(message).replace(bytes(content), b"0", 1) if len(content) else bytes(message)
    is_response = incoming.method is UNSET
    outline = Outline(None if incoming.id is UNSET else incoming.id, {"jsonrpc", "result" if is_response else "method"})
    if len(rest) > _MAX_REST_BYTES:
        reason = f"more than {_MAX_REST_BYTES:,} bytes beside params, result or error"
    elif (problem := _member_problem(rest)) is not None:
        reason = problem
    else:
        return
    raise MalformedMessage(
        InvalidRequest(f"not a JSON-RPC 2.0 message: {reason}"),
        outline.id,
        answerable=not is_response,
        outlines=[outline],
    )


def _member_problem(text: bytes) -> str | None:
    """Return what is wrong with the members of an envelope, or None."""
    try:
        name = find_duplicate(text)
    except RecursionError:
        return "nested too deep"
    return None if name is None else f"the member {name!r:.100} occurs twice"


def items(message: bytes) -> list[Raw] | None:
    """Return the items of a message that is an array, else None. Their bytes are checked to be UTF-8; an item may have
    half of a surrogate pair, which `read` refuses."""
    try:
        raw_items = _decode_items(message)
        if not message.isascii():
            message.decode()
    except (UnicodeDecodeError, RecursionError):
        return None
    except msgspec.DecodeError:
        return _items_with_surrogates(message)
    return raw_items


def _items_with_surrogates(message: bytes) -> list[Raw] | None:
    repaired = _without_surrogates(message, rb"\u0")
    try:
        message.decode()
        repaired_items = _decode_items(repaired)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    raw_items, end = [], 0
    for item in map(bytes, repaired_items):
        start = repaired.index(item, end)  # only blanks and commas are before it
        end = start + len(item)
        raw_items.append(Raw(message[start:end]))
    return raw_items


def _without_surrogates(message: bytes, other: bytes) -> bytes:
    """Return JSON of the same length with other escapes in place of surrogates."""
    return message.replace(rb"\ud", other).replace(rb"\uD", other)


def is_array(message: bytes) -> bool:
    """Return whether the first character of a message is `[`."""
    return message.lstrip(b" \t\r\n")[:1] == b"["


def outlines(message: bytes) -> list[Outline]:
    """Return the objects at the top of a message whose JSON is invalid: one, or several if it is an array.

    It reads the beginning and the end, in bounded time.
    """
    objects: list[Outline] = []
    nesting: list[bytes] = []
    start = message.find(b"{")
    for token in islice(_TOKEN.finditer(message, start), _MAX_TOKENS) if start >= 0 else ():
        text = token[0]
        if text in _CLOSES:
            nesting.append(text)
            if len(nesting) == 1 and text == b"{":
                objects.append(Outline())
        elif len(text) == 1:
            if nesting and _CLOSES[nesting[-1]] == text:
                nesting.pop()
        elif len(nesting) == 1 and token[2] is not None:
            _add_member(objects[-1], token[1], message, token.end())
    if nesting and len(objects) == 1 and objects[0].id is None:
        objects[0].id = id_at_end(message)
    return objects


def id_at_end(message: bytes) -> RequestId | None:
    """Return the id of a message whose id is its last member, else None."""
    match = _TAIL.search(message[-_TAIL_BYTES:])
    return None if match is None else _id(match)


def _add_member(outline: Outline, key: bytes, message: bytes, at: int) -> None:
    outline.keys.add(key.decode(errors="replace"))
    if key == b"id" and (value := _ID.match(message, at)):
        outline.id = _id(value)


def _id(value: re.Match[bytes]) -> RequestId | None:
    if value[1] is not None:
        return int(value[1])
    try:
        return str(msgspec.json.decode(b'"%b"' % value[2]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _invalid_error(message: bytes, exc: Exception) -> MalformedMessage:
    """Return the error for bytes that are not JSON, or JSON whose text is not Unicode."""
    # Replace surrogates by other escapes: if the result is valid JSON, the surrogates were the only problem.
    repaired = [_without_surrogates(message, other) for other in (rb"\u0", rb"\u1")]
    try:
        message.decode()
        first, second = map(_decode, repaired)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _unreadable_error(message, f"not JSON: {exc}")
    error = InvalidRequest(r"a text has half of a surrogate pair (such as \ud83d alone), which is no character")
    id = first.id if first.id is not UNSET and first.id == second.id else None
    if first.method is UNSET:
        return MalformedMessage(error, answerable=False, outlines=[Outline(id, {"jsonrpc", "result"})])
    notifies = first.id is UNSET and first.method.startswith("notifications/")
    return MalformedMessage(error, id, answerable=not notifies)


def _unreadable_error(message: bytes | Raw, what: str) -> MalformedMessage:
    """Return the error for a message that is not JSON. It is sent without an id, unless all objects in the message are
    responses."""
    objects = outlines(bytes(message))
    return MalformedMessage(
        ParseError(what), answerable=not objects or not all(each.is_answer for each in objects), outlines=objects
    )


def _diagnose(message: bytes | Raw, reason: str) -> MalformedMessage:
    """Return the error for JSON that is not a message. Valid messages never reach this function."""
    try:
        value = _decode_any(message)
    except RecursionError:
        return _unreadable_error(message, "not readable: nested too deep")
    except msgspec.ValidationError:
        return MalformedMessage(InvalidRequest("not a JSON object"))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        return _unreadable_error(message, f"not JSON: {exc}")
    method, id = value.get("method"), value.get("id")
    outline = Outline(_known_id(id), {key for key in value if value[key] is not None})
    notifies = "id" not in value and isinstance(method, str) and method.startswith("notifications/")
    error = InvalidRequest(f"not a JSON-RPC 2.0 message: {reason}")
    return MalformedMessage(error, id, answerable=not (outline.is_answer or notifies), outlines=[outline])
