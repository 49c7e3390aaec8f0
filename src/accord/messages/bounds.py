"""The bound of each field that a peer controls, in one table; the decoder of the message applies it, on both sides.

Lengths of texts are in characters, lengths of lists and objects in members. No honest peer comes near them: they keep
what is done with a field (looked up, compared, repeated in an error, written to a log) cheap whatever was sent. What
has no bound here is content (texts, blobs, descriptions, arguments of a tool, structured results): the size of a
message bounds it (`Limits.line_bytes`, `Limits.http_body_bytes`), and over HTTP `Limits.http_nodes` how much structure
it may have.

A field outside of its bound is an error that names both: "Expected `str` of length <= 8192 - at `$.uri`". The strict
views of a revision, with which the checker looks, do not have these bounds, for the specification has none.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

NAME_LENGTH = 1_024
URI_LENGTH = 8_192
CURSOR_LENGTH = 16_384
STATE_LENGTH = 65_536
REMARK_LENGTH = 65_536
MEMBERS = 1_000
ITEMS = 10_000

Name: TypeAlias = Annotated[str, Meta(max_length=NAME_LENGTH)]
"""What something is called: a tool, a prompt, an argument, a logger, a method, a revision, a program, a MIME type."""

URI: TypeAlias = Annotated[str, Meta(max_length=URI_LENGTH)]
"""Where something is. A URI inside content (`data:`) is content."""

Cursor: TypeAlias = Annotated[str, Meta(max_length=CURSOR_LENGTH)]
"""Where a page of a list begins."""

Token: TypeAlias = int | Annotated[str, Meta(max_length=NAME_LENGTH)]
"""The id of a request, and the token of its progress."""

State: TypeAlias = Annotated[str, Meta(max_length=STATE_LENGTH)]
"""What a server leaves with its client (`requestState`), and what traces carry (`baggage`)."""

Remark: TypeAlias = Annotated[str, Meta(max_length=REMARK_LENGTH)]
"""A sentence beside the matter: the reason of a cancel, the message of a progress report, what was typed so far."""

Names: TypeAlias = Annotated[list[Name], Meta(max_length=MEMBERS)]
URIs: TypeAlias = Annotated[list[URI], Meta(max_length=ITEMS)]
Texts: TypeAlias = Annotated[dict[Name, str], Meta(max_length=MEMBERS)]
"""Arguments of a prompt: their values are content."""

Remarks: TypeAlias = Annotated[dict[Name, Remark], Meta(max_length=MEMBERS)]
Answers: TypeAlias = Annotated[dict[Name, dict[str, Any]], Meta(max_length=MEMBERS)]
"""`inputResponses`: what a client was asked, by key."""

META_BYTES = 256 << 10
"""`_meta` of a request, in bytes of JSON."""

UnicodeForm: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD"]

RESULT_NODES = 1_000_000
"""Arrays, objects and members in a message of a server, and twice as many items of arrays: 64 MiB of them would take
more than a gigabyte."""

MEASURED_BYTES = 64 << 10
"""Messages up to this size are not measured: whatever is in them is read in a moment."""

INVISIBLE: re.Pattern[str] = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufe00-\ufe0d\U000e0100-\U000e01ef]"
)
"""Characters that Python counts as printable and that nobody sees; without those that choose the form of an emoji."""

_NORMALIZED_TOGETHER = re.compile(r"[\x00-\x7f]*[^\x00-\x7f]{0,64}")
"""A part of a text that ends before a character of ASCII, which does not combine with what stands before it."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
"""It also matches a text that does not end: else each of the quotes in it would be tried as the beginning of one."""


def normalize(form: UnicodeForm, text: str) -> str:
    """Return a text in a normal form of Unicode, in linear time: `unicodedata` sorts a run of combining characters in
    the square of its length. More than 64 characters beyond ASCII in a row are normalized in parts.
    """
    if len(text) <= 64 or text.isascii():
        return unicodedata.normalize(form, text)
    return "".join(unicodedata.normalize(form, part) for part in _NORMALIZED_TOGETHER.findall(text))


NODE_BYTES = 64
"""Memory of a value beside its text, about."""

FIELD_BYTES = 256
"""Memory of a header field of a request, about."""


def memory_of(message: bytes) -> int:
    """Estimate the bytes that a message takes, with what it is decoded to."""
    nodes = message.count(b",") + message.count(b":") + message.count(b"[") + message.count(b"{")
    return 2 * len(message) + NODE_BYTES * nodes


def has_more_nodes(message: bytes, most: int) -> bool:
    """Return whether a message has more arrays, objects and members of objects than that, or more than twice as many
    items of arrays.

    Texts are left out of the count, but for a message with more than twice as many texts.
    """
    if len(message) <= MEASURED_BYTES or not _exceeds(message, most):
        return False
    texts = (message.count(b'"') - message.count(rb"\"")) // 2
    return texts > 2 * most or _exceeds(_TEXT.sub(b"", message), most)


def _exceeds(message: bytes, most: int) -> bool:
    marks = message.count(b"[") + message.count(b"{") + message.count(b":")
    return marks > most or message.count(b",") > 2 * most
