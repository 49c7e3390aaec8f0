"""JSON-RPC 2.0 around every message: what comes in, what goes out, and reading without trust.

`params`, `result` and `error` stay raw bytes until the method is known. An id keeps its JSON type: 7 is not "7".
What cannot be read is raised as `MalformedMessage`, which knows the error to answer with and whether there is one to
answer to: an answer, or a notification, is never answered, however broken it is. `outlines` reads the id of a message
whose JSON is invalid, so that the request it was meant for fails instead of waiting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.errors import InvalidRequest, ParseError, ProtocolError
from accord.messages.bounds import NAME_LENGTH, Name, Token
from accord.messages.duplicate_members import find_duplicate

RequestId = int | str


class Incoming(msgspec.Struct):
    """Any one message, unvalidated beyond its envelope."""

    jsonrpc: Literal["2.0"]
    id: Token | UnsetType | None = UNSET
    method: Name | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class Notification(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """A notification as it goes out."""

    method: str
    params: Any = None


class Response(msgspec.Struct, tag_field="jsonrpc", tag="2.0"):
    """A result as it goes out."""

    id: RequestId
    result: Any


class ErrorObject(msgspec.Struct, omit_defaults=True):
    """The `error` of an error response. `code` is an integer; `data` is any JSON value."""

    code: int
    message: str
    data: Any = UNSET


class ErrorResponse(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    """An error as it goes out; `id` is None (null) or UNSET (absent) where it could not be read."""

    id: RequestId | UnsetType | None
    error: ErrorObject


class Outline(msgspec.Struct):
    """What can be read of an object that is no message: the names of its members, and its id."""

    id: RequestId | None = None
    keys: set[str] = msgspec.field(default_factory=set)

    @property
    def names_method(self) -> bool:
        """Whether it was meant as a request or a notification."""
        return "method" in self.keys

    @property
    def is_answer(self) -> bool:
        """Whether it was meant as an answer: it has a result or an error, and no method."""
        return not self.names_method and not self.keys.isdisjoint(("result", "error"))

    @property
    def is_orphan(self) -> bool:
        """Whether it was meant as an answer, and to which request cannot be read."""
        return self.id is None and "jsonrpc" in self.keys and not self.names_method


def _known_id(id: Any) -> RequestId | None:
    """What may be repeated in an answer."""
    return id if type(id) is int or (type(id) is str and len(id) <= NAME_LENGTH) else None


class MalformedMessage(Exception):
    """Bytes that are no message.

    `error` is what to tell the sender, `id` the id to tell it with, if any. `answerable` is False for what must not
    be answered. `outlines` are the objects in it, which may have been meant as answers.
    """

    def __init__(
        self, error: ProtocolError, id: Any = None, *, answerable: bool = True, outlines: Sequence[Outline] = ()
    ) -> None:
        super().__init__(error.message)
        self.error = error
        self.id: RequestId | None = _known_id(id)
        self.answerable = answerable
        self.outlines = outlines


_TOKEN = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)(?:"(\s*+:\s*+)?|\\?\Z)|[{}\[\]]|[^"{}\[\]]++', re.DOTALL)
"""A text, a bracket, or what stands between them. It matches wherever it begins, also a text that does not end, so that
no byte is looked at twice."""

_ID = re.compile(rb'(-?\d{1,18})(?![\w.])|"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.DOTALL)
_TAIL = re.compile(
    rb'"id"\s*+:\s*+(?:(-?\d{1,18})|"((?:[^"\\]|\\.)*+)")\s*+(?:,\s*+"jsonrpc"\s*+:\s*+"2.0"\s*+)?}\s*+\Z'
)
"""How a message ends whose id stands at its end; the last brace is that of the message itself."""

_CLOSES = {b"{": b"}", b"[": b"]"}
_SHORTEST_MEMBER = len(b',"id":1')
_SHORTEST_REQUEST = len(b'{"jsonrpc":"2.0","id":1,"method":"","params":}') + _SHORTEST_MEMBER
_MAX_REST_BYTES = 64 << 10
"""Members that nobody here knows, and the id and the method, together."""
_MAX_TOKENS = 40_000
"""How many tokens of an invalid message are looked at from its beginning."""
_TAIL_BYTES = 2_048

_decode = msgspec.json.Decoder(Incoming).decode
_decode_items = msgspec.json.Decoder(list[Raw]).decode
_decode_any = msgspec.json.Decoder(dict[str, Any]).decode


def read(message: bytes | Raw) -> Incoming:
    """One message out of its bytes. Raises `MalformedMessage`."""
    try:
        incoming = _decode(message)
        # msgspec does not look into strings that it skips: raw params may hold bytes that are no UTF-8
        if type(message) is bytes and not message.isascii():
            message.decode()
    except msgspec.ValidationError as exc:
        raise _diagnose(message, str(exc)) from exc
    except RecursionError:
        raise _unreadable(message, "not readable: nested too deep") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise _invalid(bytes(message), exc) from exc
    method, params = incoming.method, incoming.params
    if method is UNSET:
        if incoming.result is UNSET and incoming.error is UNSET:
            id = None if isinstance(incoming.id, UnsetType) else incoming.id
            what = InvalidRequest("neither method, nor result, nor error")
            raise MalformedMessage(what, id, outlines=[Outline(id, {"jsonrpc"})])
    elif incoming.id is None:
        raise MalformedMessage(InvalidRequest("the id of a request must not be null"))
    elif (
        params is not UNSET
        and type(incoming.id) is int
        and len(message) - len(params) - len(method) < _SHORTEST_REQUEST
    ):
        return incoming  # as `_spare_bytes` would find: most requests are of this form
    if _spare_bytes(message, incoming) >= _SHORTEST_MEMBER:
        _check_members(message, incoming)
    return incoming


def _spare_bytes(message: bytes | Raw, incoming: Incoming) -> int:
    """How many bytes there are beyond the shortest message that says the same. Where another member has no room, none
    occurs twice; that costs a tenth of looking for them.
    """
    id, method, params = incoming.id, incoming.method, incoming.params
    if type(id) is int:
        length = 24  # with one digit
    elif type(id) is str:
        length = 25 + len(id)
    else:
        length = 17 if id is UNSET else 27
    if method is not UNSET:
        length += 12 + len(method) + (0 if params is UNSET else 10 + len(params))
    elif incoming.result is not UNSET:
        length += 10 + len(incoming.result)
    else:
        length += 9 + len(incoming.error)  # type: ignore[arg-type]  # read() saw one of the two
    return len(message) - length


def _check_members(message: bytes | Raw, incoming: Incoming) -> None:
    """Raise `MalformedMessage` where a member occurs twice: whoever reads the first of them would see another
    message."""
    content = next((each for each in (incoming.params, incoming.result, incoming.error) if each is not UNSET), Raw())
    rest = bytes(message).replace(bytes(content), b"0", 1) if len(content) else bytes(message)
    answer = incoming.method is UNSET
    outline = Outline(None if incoming.id is UNSET else incoming.id, {"jsonrpc", "result" if answer else "method"})
    if len(rest) > _MAX_REST_BYTES:
        why = f"more than {_MAX_REST_BYTES:,} bytes beside params, result or error"
    elif (problem := _repeats(rest)) is not None:
        why = problem
    else:
        return
    raise MalformedMessage(
        InvalidRequest(f"not a JSON-RPC 2.0 message: {why}"), outline.id, answerable=not answer, outlines=[outline]
    )


def _repeats(text: bytes) -> str | None:
    """What is wrong with the members of an envelope, if anything."""
    try:
        name = find_duplicate(text)
    except RecursionError:
        return "nested too deep"
    return None if name is None else f"the member {name!r:.100} occurs twice"


def items(message: bytes) -> list[Raw] | None:
    """The items of a message that is an array, else None. Their bytes are checked to be UTF-8."""
    try:
        found = _decode_items(message)
        if not message.isascii():
            message.decode()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def is_array(message: bytes) -> bool:
    """Whether the first thing in a message is `[`."""
    return message.lstrip(b" \t\r\n")[:1] == b"["


def outlines(message: bytes) -> list[Outline]:
    """The objects at the top of a message whose JSON is invalid: one, or several where it is an array.

    Looks at the beginning and at the end, in bounded time.
    """
    found: list[Outline] = []
    nesting: list[bytes] = []
    start = message.find(b"{")
    for token in islice(_TOKEN.finditer(message, start), _MAX_TOKENS) if start >= 0 else ():
        text = token[0]
        if text in _CLOSES:
            nesting.append(text)
            if len(nesting) == 1 and text == b"{":
                found.append(Outline())
        elif len(text) == 1:
            if nesting and _CLOSES[nesting[-1]] == text:
                nesting.pop()
        elif len(nesting) == 1 and token[2] is not None:
            _add_member(found[-1], token[1], message, token.end())
    if nesting and len(found) == 1 and found[0].id is None:
        found[0].id = id_at_end(message)
    return found


def id_at_end(message: bytes) -> RequestId | None:
    """The id of a message whose id stands at its end; None where it does not."""
    found = _TAIL.search(message[-_TAIL_BYTES:])
    return None if found is None else _id(found)


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


def _invalid(message: bytes, exc: Exception) -> MalformedMessage:
    """What is wrong with bytes that are no JSON, or JSON whose text is no Unicode."""
    # The same with other escapes in the place of surrogates: valid now if these were all that was wrong.
    mended = [message.replace(rb"\ud", other).replace(rb"\uD", other) for other in (rb"\u0", rb"\u1")]
    try:
        message.decode()
        first, second = map(_decode, mended)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _unreadable(message, f"not JSON: {exc}")
    error = InvalidRequest(r"a text has half of a surrogate pair (such as \ud83d alone), which is no character")
    id = first.id if first.id is not UNSET and first.id == second.id else None
    if first.method is UNSET:
        return MalformedMessage(error, answerable=False, outlines=[Outline(id, {"jsonrpc", "result"})])
    notifies = first.id is UNSET and first.method.startswith("notifications/")
    return MalformedMessage(error, id, answerable=not notifies)


def _unreadable(message: bytes | Raw, what: str) -> MalformedMessage:
    """A message that is no JSON. It is answered without an id, unless all that is in it are answers."""
    found = outlines(bytes(message))
    return MalformedMessage(
        ParseError(what), answerable=not found or not all(each.is_answer for each in found), outlines=found
    )


def _diagnose(message: bytes | Raw, reason: str) -> MalformedMessage:
    """What is wrong with JSON that is no message; nothing here is on the way of a good one."""
    try:
        value = _decode_any(message)
    except RecursionError:
        return _unreadable(message, "not readable: nested too deep")
    except msgspec.ValidationError:
        return MalformedMessage(InvalidRequest("not a JSON object"))
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        return _unreadable(message, f"not JSON: {exc}")
    method, id = value.get("method"), value.get("id")
    outline = Outline(_known_id(id), {key for key in value if value[key] is not None})
    notifies = "id" not in value and isinstance(method, str) and method.startswith("notifications/")
    error = InvalidRequest(f"not a JSON-RPC 2.0 message: {reason}")
    return MalformedMessage(error, id, answerable=not (outline.is_answer or notifies), outlines=[outline])
