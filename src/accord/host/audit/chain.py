"""The hash chain of an audit log: how a header and entries are encoded, and read.

    {"accord":"audit log","version":1,"id":"5d0c…","time":"2026-…Z","hash":"…"}
    {"number":1,"previous":"…","time":"2026-…Z","event":{"kind":"proposal",…},"hash":"…"}

The hash is the SHA-256 of all bytes of the line before `,"hash":`, and `previous` the hash of the line before. So the
bytes themselves are what counts, not a JSON value that could be written in another way.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime
from typing import Any, TypeAlias

import msgspec

MAX_ENTRY_BYTES = 128 << 10
"""No entry is longer."""

Record: TypeAlias = tuple[float, bytes]
"""The time of an event in seconds since 1970, and the event as JSON."""

HEADER_START = b'{"accord":"audit log","version":1,"id":"'
ENTRY_END: re.Pattern[bytes] = re.compile(rb',"hash":"([0-9a-f]{64})"}')
_END_BYTES = len(',"hash":""}') + 64


class BrokenEntry(Exception):
    """Bytes that are not an entry, or not as they were written."""


class Link(msgspec.Struct, frozen=True):
    """One line of the chain; the header has the number 0."""

    number: int
    previous: str
    hash: str
    content: dict[str, Any]


def new_header(now: float, **facts: int) -> bytes:
    """Return the line of a new header, with a random id. `facts` are further members."""
    head = {"accord": "audit log", "version": 1, "id": secrets.token_hex(16), "time": _time(now), **facts}
    return _sealed(msgspec.json.encode(head)[:-1])


def new_entry(last: Link, now: float, event: bytes, **facts: int) -> bytes:
    """Return the line after `last` for an encoded event. `facts` are further members."""
    further = "".join(f',"{name}":{value}' for name, value in facts.items())
    start = entry_start(last.number + 1, last.hash)
    return _sealed(b'%b%b"%b,"event":%b' % (start, _time(now).encode(), further.encode(), event))


def entry_start(number: int, previous: str) -> bytes:
    """Return the first bytes of an entry."""
    return f'{{"number":{number},"previous":"{previous}","time":"'.encode()


def read_link(line: bytes) -> Link:
    """Return the content of a line, without its line break. Raises `BrokenEntry`."""
    end = ENTRY_END.fullmatch(line, max(0, len(line) - _END_BYTES))
    if end is None or len(line) > MAX_ENTRY_BYTES:
        raise BrokenEntry("it is not a whole entry")
    found = end[1].decode()
    if hashlib.sha256(line[: end.start()]).hexdigest() != found:
        raise BrokenEntry("its hash does not fit its content")
    try:
        content = msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError) as exc:
        raise BrokenEntry("it is not JSON") from exc
    if not isinstance(content, dict):
        raise BrokenEntry("it is not an entry")
    if content.get("accord") == "audit log" and content.get("version") == 1 and isinstance(content.get("id"), str):
        return Link(0, "", found, content)
    number, previous = content.get("number"), content.get("previous")
    if type(number) is not int or number < 1 or not isinstance(previous, str) or "event" not in content:
        raise BrokenEntry("it is not an entry")
    return Link(number, previous, found, content)


def _sealed(start: bytes) -> bytes:
    line = b'%b,"hash":"%b"}' % (start, hashlib.sha256(start).hexdigest().encode())
    if len(line) > MAX_ENTRY_BYTES:
        raise ValueError("the entry is too long")
    return line


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
