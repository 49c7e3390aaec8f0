"""Redaction of session files: secrets are replaced in each entry, and all other bytes stay as they are.

A secret is found by its name or form (`accord.redaction`), or because the same connection sent it as a credential: in
a header, in the query of a URL, or as a session id. A name in the `properties` of a JSON Schema is that of a parameter,
whose schema is no secret; only its default and its examples are.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import is_
from typing import Any
from urllib.parse import unquote_plus

import msgspec

from accord.redaction import REDACTED, json_splice, may_have_secret, redact
from accord.wire.session_file import (
    ConnectedEntry,
    Entry,
    HTTPEntry,
    LostEntry,
    MessageEntry,
    RemarkEntry,
    SkippedEntry,
    StderrEntry,
    UnansweredEntry,
    is_json_line,
    message_entry,
)

SESSION_ID = "mcp-session-id"

_LEAST_CHARACTERS = 8
"""A shorter value would occur in any text."""
_MOST_RECENT = 100
"""Limit of the secrets of requests that are known at a time; the least recently used is dropped."""
_PLAIN_HEADERS = re.compile(
    r"accept(-.*)?|cache-control|connection|content-(length|type|encoding)|host|last-event-id|mcp-(?!session-id).*"
    r"|origin|te|trace(parent|state)|transfer-encoding|user-agent"
).fullmatch
"""Headers of requests that are not secret; any other one was set by the user, and may be a key."""
_SECRET_HEADERS = re.compile(r"(proxy-)?authorization|(set-)?cookie|dpop").fullmatch
_DEPTH = 64
_SET_COOKIE = re.compile(r"(?:^|,)[ ]?[^=;,\s]{1,256}=([^;,]*)")
"""The values of the cookies of a response; their attributes follow after semicolons."""
_SESSION_PART = re.compile(r"\[?s?e?s?s?i?o?n?[ ]?\d*\]?").fullmatch
_ESCAPE = re.compile(r"\\(.)")
_UNESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_QUERY = re.compile(r"(?<==)[^&#]+")
_USER = re.compile(r"//[^/?#@]*@")


class SessionRedaction:
    """The redaction of one session file. Each session id has a placeholder of its own, `[session 1]`."""

    def __init__(self) -> None:
        self._permanent: set[str] = set()
        self._recent: OrderedDict[str, str] = OrderedDict()  # of requests and responses, with their placeholders
        self._replacements: list[tuple[str, str]] = []
        self._sessions = 0

    def add_secrets(self, values: Iterable[str]) -> None:
        """Add secrets: they are replaced wherever they occur from now on."""
        self._permanent.update(value for value in values if _is_distinct(value))
        self._update()

    def entry(self, entry: Entry) -> Entry:
        """Return an entry without secrets; the same one if it has none."""
        match entry:
            case MessageEntry():
                return self._message(entry)
            case HTTPEntry():
                return self._http(entry)
            case StderrEntry(text=text) | RemarkEntry(text=text):
                return msgspec.structs.replace(entry, text=self.text(text))
            case UnansweredEntry(reason=reason) | LostEntry(reason=reason) | SkippedEntry(reason=reason):
                return msgspec.structs.replace(entry, reason=self.text(reason))
            case ConnectedEntry(name=name):
                return msgspec.structs.replace(entry, name=self.text(name))
        return entry

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        redacted: str = redact(self._known(text))
        return redacted

    def data(self, data: bytes) -> bytes:
        """Return the bytes of a message without secrets; JSON stays JSON, in which only secret texts differ."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            plain = data.decode("latin-1")  # secrets are ASCII
            redacted = self.text(plain)
            return data if redacted == plain else redacted.encode("latin-1", errors="replace")
        if self._is_free(data, text):
            return data
        try:
            before = json_splice.decode(text)
        except (ValueError, RecursionError):
            return self.text(text).encode()
        may_be_known = "\\" in text or self._known(text) != text
        after = redact(self._replaced(before, 0) if may_be_known else before)
        return data if after is before else json_splice.splice(text, before, after).encode()

    def _is_free(self, data: bytes, text: str) -> bool:
        """Return whether a message has certainly no secret: the usual case, without looking at each of its values."""
        if "\\" in text:
            if "\\u" in text or "\\/" in text or not is_json_line(data):
                return False
            text = _ESCAPE.sub(_unescaped, text)  # all keys and texts are parts of it
        return not may_have_secret(text) and self._known(text) is text

    def _replaced(self, value: Any, depth: int) -> Any:
        """Return a JSON value without the added secrets; the same object if it has none."""
        if isinstance(value, str):
            text = self._known(value)
            return value if text == value else text
        if depth > _DEPTH or not isinstance(value, dict | list):
            return value  # redact() replaces what is nested deeper
        if isinstance(value, list):
            items = [self._replaced(item, depth + 1) for item in value]
            return value if all(map(is_, items, value)) else items
        members = {self._replaced(key, depth): self._replaced(item, depth + 1) for key, item in value.items()}
        same = len(members) == len(value) and all(map(is_, members, value))
        return value if same and all(map(is_, members.values(), value.values())) else members

    # --- HTTP --------------------------------------------------------------------------------------------------

    def _message(self, entry: MessageEntry) -> MessageEntry:
        data = entry.data
        redacted = self.data(data)
        if redacted is data or redacted == data:
            return entry
        return message_entry(
            redacted,
            entry.direction,
            at=entry.at,
            connection=entry.connection,
            request=entry.request,
            exchange=entry.exchange,
        )

    def _http(self, entry: HTTPEntry) -> HTTPEntry:
        is_request = entry.direction == "sent"
        for name, value in entry.headers.items():
            if name == SESSION_ID:
                self._add_session(value)
            elif _SECRET_HEADERS(name) or (is_request and not _PLAIN_HEADERS(name)):
                self._add_recent(_secrets_in(name, value))
        self._add_recent(unquote_plus(value) for value in _QUERY.findall(entry.url))
        return msgspec.structs.replace(
            entry,
            url=self.url(entry.url),
            headers={name: self._header(name, value, is_request) for name, value in entry.headers.items()},
        )

    def url(self, url: str) -> str:
        """Return a URL without name and password, and without the values of its query."""
        return self.text(_QUERY.sub(REDACTED, _USER.sub("//", url)))

    def _header(self, name: str, value: str, is_request: bool) -> str:
        if name == SESSION_ID:
            return self._recent.get(value, REDACTED)
        if _SECRET_HEADERS(name) or (is_request and not _PLAIN_HEADERS(name)):
            return REDACTED
        if name in ("location", "content-location"):
            value = self.url(value)
        redacted: str = redact({name: self._known(value)})[name]
        return redacted

    # --- known secrets -----------------------------------------------------------------------------------------

    def _known(self, text: str) -> str:
        for secret, placeholder in self._replacements:
            if secret in text:
                text = text.replace(secret, placeholder)
        return text

    def _add_session(self, id: str) -> None:
        if id not in self._recent and _is_distinct(id):
            self._sessions += 1
        self._add_recent([id], f"[session {self._sessions}]")

    def _add_recent(self, values: Iterable[str], placeholder: str = REDACTED) -> None:
        for value in values:
            if value in self._recent:
                self._recent.move_to_end(value)
            elif _is_distinct(value):
                self._recent[value] = placeholder
                if len(self._recent) > _MOST_RECENT:
                    self._recent.popitem(last=False)
                self._update()

    def _update(self) -> None:
        known = {**self._recent, **dict.fromkeys(self._permanent, REDACTED)}
        self._replacements = sorted(known.items(), key=_length, reverse=True)  # one may contain another


def _is_distinct(value: str) -> bool:
    """Return whether a text may be replaced wherever it occurs: it is long enough, and no part of a placeholder."""
    return len(value) >= _LEAST_CHARACTERS and value not in REDACTED and not _SESSION_PART(value)


def _unescaped(escape: re.Match[str]) -> str:
    return _UNESCAPED.get(escape[1], escape[1])


def _length(replacement: tuple[str, str]) -> int:
    return len(replacement[0])


def _secrets_in(name: str, value: str) -> Iterator[str]:
    """Yield the secrets in the value of a header: as a whole, without the scheme, each cookie, a password."""
    if name == "dpop":  # each request has another one, which is found by its form
        return
    if name == "set-cookie":
        yield from _SET_COOKIE.findall(value)
        return
    yield value
    scheme, _, credentials = value.partition(" ")
    yield credentials
    if scheme.lower() == "basic":
        with suppress(binascii.Error, UnicodeDecodeError):
            yield b64decode(credentials, validate=True).decode().partition(":")[2]
    if name == "cookie":
        for cookie in value.split(";"):
            yield cookie.partition("=")[2].strip()
