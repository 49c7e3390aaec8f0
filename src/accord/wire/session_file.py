"""Session files: the traffic of one or more connections, as JSON lines.

    {"kind":"session","version":1,"at":"2026-11-23T15:40:02.000Z","program":"accord 1.0","target":"python shop.py"}
    {"kind":"connected","at":0.012,"connection":1,"name":"python shop.py","transport":"SubprocessTransport"}
    {"kind":"message","at":0.013,"connection":1,"direction":"sent","request":1,"message":{"jsonrpc":"2.0",...}}

The first line is the header; each further line is one event, in the order of time. A message that is one line of JSON
stands in the file as it was sent, byte by byte; any other one is a `text` or `base64`. Readers ignore fields that they
do not know. `docs/session-files.md` describes all kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from accord.visible_text import encodable

VERSION = 1
"""The version of the format."""
LINE_BYTES = 64 << 20
"""The maximum length of a line; a longer message is recorded as skipped."""
HEADER_START = b'{"kind":"session"'
"""The first bytes of each session file that accord writes."""

MessageDirection: TypeAlias = Literal["sent", "received"]


class SessionFileError(ValueError):
    """A line of a session file is invalid; the text names the line."""


class _Entry(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind"):
    at: float = 0.0
    """Seconds since the header."""
    connection: int = 0
    """The number of the connection, from 1 on."""


class SessionHeader(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="kind", tag="session"):
    """The first line: what was recorded, when, and by which program."""

    version: int
    at: str
    """The date and time of the beginning, ISO 8601 in UTC."""
    program: str = ""
    target: str = ""
    """The name of the peer, without credentials."""
    redacted: bool = False
    """Whether secrets were replaced."""


class ConnectedEntry(_Entry, frozen=True, kw_only=True, tag="connected"):
    """A connection is being opened."""

    name: str = ""
    transport: str = ""


class MessageEntry(_Entry, frozen=True, kw_only=True, tag="message"):
    """One message, or a body that a peer sent in its place; exactly one of the last three fields is set."""

    direction: MessageDirection
    request: int | str | None = None
    """The id of the client's request that it belongs to, if that is known."""
    exchange: int = 0
    """Over HTTP, the number of the exchange that carried it."""
    message: Raw | UnsetType = UNSET
    text: str | None = None
    base64: bytes | None = None

    @property
    def data(self) -> bytes:
        """Return the bytes of the message."""
        if self.base64 is not None:
            return self.base64
        return self.text.encode() if self.text is not None else bytes(self.message or b"")


class SkippedEntry(_Entry, frozen=True, kw_only=True, tag="skipped"):
    """A message that was too long to be received, or to be recorded."""

    direction: MessageDirection
    reason: str
    size: int = 0
    """Its size in bytes, as far as it is known."""
    exchange: int = 0


class UnansweredEntry(_Entry, frozen=True, kw_only=True, tag="unanswered"):
    """A request of the client gets no response, although the connection goes on."""

    request: int | str
    reason: str


class HTTPEntry(_Entry, frozen=True, kw_only=True, tag="http"):
    """The head of one HTTP request, which has a method and a URL, or of its response, which has a status."""

    direction: MessageDirection
    exchange: int
    method: str = ""
    url: str = ""
    status: int = 0
    headers: Mapping[str, str] = {}
    """Names in lower case; values of repeated headers are joined by commas."""
    repeats: int = 0
    """The exchange whose message this request sends again, after a redirect or with other credentials."""


class StderrEntry(_Entry, frozen=True, kw_only=True, tag="stderr"):
    """One line that a server process wrote to stderr."""

    text: str


class LostEntry(_Entry, frozen=True, kw_only=True, tag="lost"):
    """The connection could not be opened, the peer ended it, or it broke."""

    reason: str


class ClosedEntry(_Entry, frozen=True, kw_only=True, tag="closed"):
    """This side closed the connection."""


class RemarkEntry(_Entry, frozen=True, kw_only=True, tag="remark"):
    """A remark of the program that records."""

    text: str


class LimitEntry(_Entry, frozen=True, kw_only=True, tag="limit"):
    """The file reached its maximum size in bytes; nothing was recorded after this line."""

    size: int


Entry: TypeAlias = (
    ConnectedEntry
    | MessageEntry
    | SkippedEntry
    | UnansweredEntry
    | HTTPEntry
    | StderrEntry
    | LostEntry
    | ClosedEntry
    | RemarkEntry
    | LimitEntry
)
"""One line of a session file, except the header."""

_decoder: msgspec.json.Decoder[SessionHeader | Entry] = msgspec.json.Decoder(SessionHeader | Entry)
_grammar = msgspec.json.Decoder(Raw).decode
_encode = msgspec.json.Encoder().encode


def message_entry(
    data: bytes,
    direction: MessageDirection,
    *,
    at: float = 0.0,
    connection: int = 0,
    request: int | str | None = None,
    exchange: int = 0,
) -> MessageEntry:
    """Return the entry of a message, in the form that preserves its bytes."""
    message: Raw | UnsetType = UNSET
    text, binary = None, None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        binary = data
    if text is not None and is_json_line(data):
        message, text = Raw(data), None
    return MessageEntry(
        at=at,
        connection=connection,
        direction=direction,
        request=request,
        exchange=exchange,
        message=message,
        text=text,
        base64=binary,
    )


def is_json_line(data: bytes) -> bool:
    """Return whether valid UTF-8 is one JSON value in one line, without white space around it."""
    if not data or b"\n" in data or b"\r" in data or data[:1].isspace() or data[-1:].isspace():
        return False
    try:
        _grammar(data)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def encode_line(entry: SessionHeader | Entry) -> bytes:
    """Return an entry as one line, with its line break."""
    try:
        return _encode(entry) + b"\n"
    except UnicodeEncodeError:  # a header of a peer that is no UTF-8
        return _encode(_encodable(entry)) + b"\n"


def _encodable(entry: SessionHeader | Entry) -> SessionHeader | Entry:
    """Return an entry whose texts and headers UTF-8 can encode."""
    changed = {name: encodable(getattr(entry, name)) for name in entry.__struct_fields__ if name != "message"}
    return msgspec.structs.replace(entry, **changed)


class SessionFile(msgspec.Struct, frozen=True):
    """The content of a session file."""

    header: SessionHeader
    entries: list[Entry]
    incomplete: bool = False
    """Whether the last line is incomplete, because the program that recorded was ended; the line is left out."""

    @property
    def limit_reached(self) -> bool:
        """Return whether the end is missing, because the file reached its maximum size."""
        return bool(self.entries) and isinstance(self.entries[-1], LimitEntry)


def read_session(lines: Iterable[bytes]) -> SessionFile:
    """Return the content of a session file, from its lines with their line breaks.

    Raises `SessionFileError` for an invalid line, but for the last one only if it has a line break.
    """
    header: SessionHeader | None = None
    entries: list[Entry] = []
    incomplete = False
    for number, entry in _numbered(lines):
        if entry is None:
            incomplete = True
        elif isinstance(entry, SessionHeader):
            if header is not None:
                raise SessionFileError(f"line {number} is a second header")
            header = entry
        elif header is None:
            raise SessionFileError(f"line {number} stands before the header, which begins with {HEADER_START.decode()}")
        else:
            entries.append(entry)
    if header is None:
        raise SessionFileError("it has no header")
    return SessionFile(header, entries, incomplete)


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, SessionHeader | Entry | None]]:
    """Yield the number and the entry of each line; None for an incomplete last line."""
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_BYTES + 1:
            raise SessionFileError(f"line {number} is longer than {LINE_BYTES:,} bytes")
        if not line.strip():
            continue
        try:
            yield number, decode_line(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, SessionFileError) as exc:
            if not line.endswith(b"\n"):
                yield number, None
                return
            raise SessionFileError(f"line {number} is invalid: {exc}") from None


def decode_line(line: bytes) -> SessionHeader | Entry:
    """Return the entry of one line. Raises `msgspec.DecodeError`, `UnicodeDecodeError`, `RecursionError`, and
    `SessionFileError` for another version or a message without its bytes.
    """
    line.decode()  # a message is not decoded further
    entry = _decoder.decode(line)
    if isinstance(entry, SessionHeader) and entry.version != VERSION:
        raise SessionFileError(f"version {entry.version} of the format; this program reads version {VERSION}")
    if isinstance(entry, MessageEntry):
        contents = (entry.message is not UNSET, entry.text is not None, entry.base64 is not None)
        if sum(contents) != 1:
            raise SessionFileError("a message has exactly one of message, text and base64")
    return entry
