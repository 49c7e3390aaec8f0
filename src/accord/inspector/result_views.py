"""The result of a call as the page shows it: blocks of content, and its exact JSON.

Images and audio are shown only if their first bytes are those of a format that a browser shows without running
anything; SVG and HTML are text. What is too long for the page is shortened with a note; the result is complete as a
file.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

import msgspec
from msgspec import Raw

from accord.inspector.forms.check import FieldError, check_value
from accord.visible_text import truncate

MOST_JSON = 2 << 20
"""Characters of JSON that the page gets."""
_SHORTENED = 100_000
"""Characters of a shortened text."""
_MOST_DATA = 8 << 20
"""Characters of Base64 in all blocks together."""
_MOST_BLOCKS = 500
_NAME = 1_000

_IMAGES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_AUDIO = {b"ID3": "audio/mpeg", b"OggS": "audio/ogg", b"fLaC": "audio/flac", b"\x1aE\xdf\xa3": "audio/webm"}


class ResultBlock(msgspec.Struct, rename="camel", omit_defaults=True):
    """One block of content, one content of a resource, or one message of a prompt."""

    kind: str
    """"text", "image", "audio", "link", "resource", or the unknown type of the block."""
    text: str = ""
    role: str = ""
    """Of a message."""
    uri: str = ""
    title: str = ""
    mime_type: str = ""
    data: str = ""
    """Base64 of an image or of audio that the page may show."""
    media_type: str = ""
    """The type of `data`, by its first bytes."""
    note: str = ""
    """What is left out."""
    block_json: str = ""
    """The block, if it is of another kind."""


class ResultView(msgspec.Struct, rename="camel", omit_defaults=True):
    """The result of a call."""

    blocks: list[ResultBlock]
    result_json: str
    """The result, unchanged; its beginning if it is longer than `MOST_JSON`."""
    size: int
    is_shortened: bool = False
    structured_json: str = ""
    errors: list[FieldError] = []
    """Where the structured content does not match the output schema."""
    problem: str = ""
    """Why it was not checked, or what is missing."""


def view_result(result: bytes, output_schema: str = "") -> ResultView:
    """Return a result for the page; structured content is checked against `output_schema`, if there is one."""
    text = result[: MOST_JSON * 4].decode(errors="replace")
    is_long = len(text) > MOST_JSON
    view = ResultView(
        blocks=list(_blocks(result)),
        result_json=text[:_SHORTENED] if is_long else text,
        size=len(result),
        is_shortened=is_long,
    )
    structured = _members(result).get("structuredContent")
    if structured is not None:
        view.structured_json = truncate(bytes(structured[: MOST_JSON * 4]).decode(errors="replace"), MOST_JSON)
    if output_schema:
        _check(view, result, structured, output_schema)
    return view


def _check(view: ResultView, result: bytes, structured: bytes | None, schema: str) -> None:
    if structured is None:
        if _members(result).get("isError") != b"true":
            view.problem = "the tool declares an output schema, and the result has no structured content"
        return
    found = check_value(schema, structured)
    view.errors, view.problem = found.errors, found.problem or ""


def _members(value: bytes) -> dict[str, bytes]:
    """Return the members of an object as JSON; none for another value."""
    try:
        return {name: bytes(each) for name, each in msgspec.json.decode(value, type=dict[str, Raw]).items()}
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}


def _items(value: bytes | None) -> list[bytes]:
    try:
        return [bytes(each) for each in msgspec.json.decode(value or b"[]", type=list[Raw])]
    except (msgspec.MsgspecError, RecursionError):
        return []


def _blocks(result: bytes) -> Iterator[ResultBlock]:
    """Yield the blocks of any result: of a tool, a resource or a prompt."""
    members = _members(result)
    parts = [("", each) for each in _items(members.get("content"))]
    parts += [("contents", each) for each in _items(members.get("contents"))]
    for message in _items(members.get("messages")):
        fields = _members(message)
        content = fields.get("content", b"null")
        role = _string(fields.get("role")) or "no role"
        parts += [(f"role {role}", each) for each in (_items(content) if content[:1] == b"[" else [content])]
    data_left = _MOST_DATA
    for where, part in parts[:_MOST_BLOCKS]:
        block = _content(part) if where == "contents" else _block(part)
        block.role = truncate(where[5:], _NAME) if where.startswith("role ") else ""
        if len(block.data) > data_left:
            block.data, block.note = "", f"{len(block.data) * 3 // 4:,} bytes, too large for the page: save the result"
        data_left -= len(block.data)
        yield block
    if len(parts) > _MOST_BLOCKS:
        yield ResultBlock("text", note=f"{len(parts) - _MOST_BLOCKS:,} more blocks; they are in the JSON")


def _block(part: bytes) -> ResultBlock:
    fields = _members(part)
    kind = _string(fields.get("type"))
    if kind == "text" and fields.get("text", b"")[:1] == b'"':
        return _text_block("text", _string(fields["text"]))
    if kind in ("image", "audio"):
        return _media(_string(fields.get("data")), _string(fields.get("mimeType")), ResultBlock(kind))
    if kind == "resource":
        return _content(fields.get("resource", b"null"))
    if kind == "resource_link":
        title = _string(fields.get("title")) or _string(fields.get("name"))
        block = _text_block("link", _string(fields.get("description")))
        block.uri, block.title = truncate(_string(fields.get("uri")), _NAME), truncate(title, _NAME)
        block.mime_type = truncate(_string(fields.get("mimeType")), _NAME)
        return block
    shown = truncate(part[: _SHORTENED * 4].decode(errors="replace"), _SHORTENED)
    return ResultBlock(truncate(kind, _NAME) or "invalid", block_json=shown)


def _content(part: bytes) -> ResultBlock:
    """Return the content of a resource."""
    fields = _members(part)
    mime_type = _string(fields.get("mimeType"))
    block = _text_block("resource", _string(fields.get("text")))
    block.uri, block.mime_type = truncate(_string(fields.get("uri")), _NAME), truncate(mime_type, _NAME)
    return _media(_string(fields["blob"]), mime_type, block) if "blob" in fields else block


def _text_block(kind: str, text: str) -> ResultBlock:
    if len(text) <= _SHORTENED:
        return ResultBlock(kind, text)
    return ResultBlock(kind, text[:_SHORTENED], note=f"the first {_SHORTENED:,} of {len(text):,} characters")


def _media(data: str, mime_type: str, block: ResultBlock) -> ResultBlock:
    block.mime_type = truncate(mime_type, _NAME)
    try:
        head = base64.b64decode(data[:64], validate=True)
    except (binascii.Error, ValueError):
        block.note = "its data is not valid Base64"
        return block
    block.media_type = media_type(head)
    if block.media_type:
        block.data = data
        if block.media_type != mime_type and not _same_format(block.media_type, mime_type):
            block.note = f"the server says {block.mime_type or 'nothing of its type'}; the data is {block.media_type}"
    else:
        block.note = f"{len(data) * 3 // 4:,} bytes of a format that the page does not show: save the result"
    return block


def media_type(head: bytes) -> str:
    """Return the type of an image or of audio by its first bytes; empty for all other formats."""
    for formats in (_IMAGES, _AUDIO):
        for signature, found in formats.items():
            if head.startswith(signature):
                return found
    if head[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(head[8:12], "")
    if head[4:8] == b"ftyp" and head[8:11] in (b"M4A", b"mp4", b"iso"):
        return "audio/mp4"
    is_frame = len(head) > 1 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0
    return "audio/mpeg" if is_frame else ""


def _same_format(found: str, said: str) -> bool:
    kind, _, name = said.partition("/")
    return found.partition("/")[0] == kind and name in (
        "x-wav",
        "wave",
        "vnd.wave",
        "mp3",
        "jpg",
        "x-m4a",
        "aac",
        "x-flac",
    )


def _string(raw: bytes | None) -> str:
    try:
        return "" if raw is None else msgspec.json.decode(raw, type=str)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
