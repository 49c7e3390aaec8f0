"""The limit of each field that a peer controls, in one table; the decoder of the message enforces it, on both sides.

Lengths of texts are in characters, lengths of lists and objects in members. No honest peer reaches them. They bound
the cost of what is done with a field: lookup, comparison, a copy in an error or a log. Content (texts, blobs,
descriptions, arguments of a tool, structured results) has no limit here: the size of the message limits it
(`Limits.line_bytes`, `HTTPLimits.body_bytes`), and over HTTP `HTTPLimits.body_nodes` limits its structure.

A field beyond its limit is an error that names both: "Expected `str` of length <= 8192 - at `$.uri`". The strict
views of a revision, which the checker uses, do not have these limits, because the specification has none.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from accord.lazy_patterns import lazy_pattern

NAME_LENGTH = 1_024
URI_LENGTH = 8_192
CURSOR_LENGTH = 16_384
STATE_LENGTH = 65_536
REMARK_LENGTH = 65_536
MEMBERS = 1_000
ITEMS = 10_000

Name: TypeAlias = Annotated[str, Meta(max_length=NAME_LENGTH)]
"""The name of a tool, prompt, argument, logger, method, revision, program or MIME type."""

URI: TypeAlias = Annotated[str, Meta(max_length=URI_LENGTH)]
"""The URI of a resource, root or website. A URI inside content (`data:`) is content."""

Cursor: TypeAlias = Annotated[str, Meta(max_length=CURSOR_LENGTH)]
"""The position in a list at which a page begins."""

Token: TypeAlias = int | Annotated[str, Meta(max_length=NAME_LENGTH)]
"""The id of a request, and the token of its progress."""

State: TypeAlias = Annotated[str, Meta(max_length=STATE_LENGTH)]
"""The state that a server stores with its client (`requestState`), and the trace context (`baggage`)."""

Remark: TypeAlias = Annotated[str, Meta(max_length=REMARK_LENGTH)]
"""A short text: the reason of a cancellation, the message of a progress notification, the typed part of an argument."""

Names: TypeAlias = Annotated[list[Name], Meta(max_length=MEMBERS)]
URIs: TypeAlias = Annotated[list[URI], Meta(max_length=ITEMS)]
Texts: TypeAlias = Annotated[dict[Name, str], Meta(max_length=MEMBERS)]
"""Arguments of a prompt: their values are content."""

Remarks: TypeAlias = Annotated[dict[Name, Remark], Meta(max_length=MEMBERS)]
Answers: TypeAlias = Annotated[dict[Name, dict[str, Any]], Meta(max_length=MEMBERS)]
"""`inputResponses`: the answers of a client, by key."""

META_BYTES = 256 << 10
"""Limit of the `_meta` of a request, in bytes of JSON."""

UnicodeForm: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]

RESULT_NODES = 1_000_000
"""Arrays, objects and members in a message of a server, and twice as many items of arrays: 64 MiB of them would take
more than a gigabyte of memory."""

DECODED_NODES = 100_000
"""The same for JSON inside of a text."""

MAX_EXTREMES = 1_000
"""Limit of the numbers with an exponent of three digits in one message: msgspec takes a hundred times as long to decode
1e300 as 1e30."""

MEASURED_BYTES = 5 * MAX_EXTREMES
"""Messages up to this size are not measured, because decoding them is always fast."""
_NODES_BYTES = 64 << 10
"""Up to this size, any structure is decoded fast."""

INVISIBLE: re.Pattern[str] = lazy_pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0d\U000e0100-\U000e01ef]"
)
"""Characters that Python counts as printable but that are invisible, except those that choose the form of an emoji."""

_NORMALIZED_TOGETHER = lazy_pattern(r"[\x00-\x7f]*[^\x00-\x7f]{0,64}")
"""A part of a text that ends before an ASCII character, which does not combine with the character before it."""

_QUOTED = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TEXT = lazy_pattern(_QUOTED, re.DOTALL)
"""It also matches an unterminated text: otherwise each of its quotes would be tried as the beginning of a text."""


def normalize(form: UnicodeForm, text: str) -> str:
    """Return a text in a normal form of Unicode, in linear time. `unicodedata` sorts a run of combining characters in
    quadratic time, so more than 64 non-ASCII characters in a row are normalized in parts."""
    if text.isascii():
        return text
    import unicodedata

    if len(text) <= 64:
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, part) for part in _NORMALIZED_TOGETHER.findall(text))


_TEXT_OR_NAME = lazy_pattern(_QUOTED + rb"([ \t\r\n]*+:)?", re.DOTALL)

NODE_BYTES = 64
"""Approximate memory of a value in addition to its text."""

FIELD_BYTES = 256
"""Memory of a header field of a request, about."""


_WIDE = bytes(range(0xF0, 0xF8))
"""The first bytes of characters that take 4 bytes in UTF-8, and so does each other character of the same string."""


def memory_of(message: bytes, most_nodes: int) -> int:
    """Return the estimated memory of a message together with its decoded value, in bytes.

    `most_nodes` is `HTTPLimits.body_nodes`: what exceeds it is text, or the message is refused (see `has_more_nodes`).
    """
    nodes = len(message) - len(message.translate(None, b",:[{"))  # one pass: faster than four counts
    return (1 + _character_bytes(message)) * len(message) + NODE_BYTES * min(nodes, 3 * most_nodes)


def _character_bytes(message: bytes) -> int:
    """Return the bytes that each character of a decoded text takes at most: Python stores all characters of a string
    as wide as the widest."""
    if not message.isascii() and len(message.translate(None, _WIDE)) < len(message):
        return 4
    if b"\\" in message and b"\\u" in message:
        return 4 if b"\\ud" in message or b"\\uD" in message else 2
    return 1 if message.isascii() else 2


_FEW = 256
_VERY_FEW = 8_192


def largest_share(total: int, most: int) -> int:
    """Return how much of a total one account may have: all of it up to `most`, a 256th of that beyond it, and an
    8192nd beyond twice as much: honest clients have little, and hostile ones may have many accounts."""
    if total <= most:
        return most
    return most // (_FEW if total <= 2 * most else _VERY_FEW)


class AccountMemory:
    """Memory in bytes, by account: `most_of_one` for each, and of `most` for all together its `largest_share`."""

    def __init__(self, most: int, most_of_one: int) -> None:
        self.most: int = most
        self.most_of_one: int = most_of_one
        self.by_account: dict[str, int] = {}
        """Only accounts that have some."""
        self.total: int = 0

    def of_one(self, account: str) -> int:
        """Return the bytes of an account."""
        return self.by_account.get(account, 0)

    def has_room(self, account: str, size: int) -> bool:
        """Return whether an account may have `size` more bytes."""
        share = largest_share(self.total + size, self.most)
        return self.of_one(account) + size <= min(self.most_of_one, share)

    def add(self, account: str, size: int) -> None:
        """Count `size` more bytes, or fewer if it is negative."""
        self.total += size
        of_one = self.by_account[account] = self.of_one(account) + size
        if not of_one:
            del self.by_account[account]


_SHAPE = bytes.maketrans(b"123456789E+", b"000000000e-")
_EXTREME = lazy_pattern(rb'e(?<=[0-9.]e)[+-]?0*+[1-9][0-9]{2,}+"?[ \t\r\n]*+[,:}\]]')
"""The end of a number, or of a name that is one, with an exponent of at least three digits."""


def has_more_nodes(message: bytes, limit: int) -> bool:
    """Return whether a message has more than `limit` arrays, objects and members of objects, more than twice as many
    items of arrays, or more than `MAX_EXTREMES` numbers with an exponent of three digits.

    Characters inside texts do not count, unless the message has more than twice as many texts. Names may be numbers.
    """
    if len(message) <= MEASURED_BYTES:
        return False
    return _has_many_nodes(message, limit) or _has_many_extremes(message)


def _has_many_nodes(message: bytes, limit: int) -> bool:
    if len(message) <= _NODES_BYTES or not _exceeds(message, limit):
        return False
    texts = (message.count(b'"') - message.count(rb"\"")) // 2
    return texts > 2 * limit or _exceeds(_TEXT.sub(b"", message), limit)


def _has_many_extremes(message: bytes) -> bool:
    if message.count(b",") + message.count(b":") < MAX_EXTREMES:
        return False
    shape = message.translate(_SHAPE)  # counts fast what may be such a number
    if shape.count(b"e000") + shape.count(b"e-000") <= MAX_EXTREMES:
        return False
    if not _exceeds_extremes(message):
        return False
    return _exceeds_extremes(_TEXT_OR_NAME.sub(lambda found: found[0] if found[1] else b"", message))


def _exceeds_extremes(message: bytes) -> bool:
    return next(islice(_EXTREME.finditer(message.lower()), MAX_EXTREMES, None), None) is not None


def _exceeds(message: bytes, limit: int) -> bool:
    nodes = message.count(b"[") + message.count(b"{") + message.count(b":")
    return nodes > limit or message.count(b",") > 2 * limit
