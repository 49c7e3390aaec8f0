"""`Recording`: the traffic between a client and its server, to be replayed, and the messages of a recorded file.

A file is a session file (`accord.wire.session_file`) or a transcript (`accord.wire.transcript`), its short form; its
content shows which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from accord.messages.base import JSONObject
from accord.testing.files import open_expected, write_expected
from accord.transport.base import Transport
from accord.transport.recording import SessionRecorder
from accord.transport.session_writer import SESSION_FILE_BYTES, SessionFileWriter
from accord.wire.session_file import (
    LINE_BYTES,
    VERSION,
    Entry,
    HTTPEntry,
    MessageEntry,
    SessionFile,
    SessionHeader,
    encode_line,
    message_entry,
    read_session,
)
from accord.wire.transcript import SENT, Transcript, parse

_MAX_LEVELS = 256
"""Levels of a message that can be replayed: its texts are replaced by functions that call themselves."""


class Recording:
    """The recording of a client: `Client(target, record=recording)`, and afterwards `recording.save(file)`.

    It is limited to 64 MB; what follows is not recorded.
    """

    def __init__(self) -> None:
        self._memory = _EntryList()
        self._recorder = SessionRecorder(self._memory)

    def __call__(self, inner: Transport) -> Transport:
        """Return a transport that records `inner`."""
        return self._recorder(inner)

    @property
    def transcript(self) -> Transcript:
        """The messages of the last connection."""
        transcript = Transcript()
        last = max((entry.connection for entry in self._memory.entries), default=0)
        for entry in self._memory.entries:
            if entry.connection == last:
                transcript.write(entry)
        return transcript

    def save(self, file: str | Path, *, unredacted: bool = False) -> None:
        """Write a session file, or, if the suffix is `.transcript`, the messages of the last connection.

        Secrets are replaced in a session file, unless it is `unredacted`; a transcript has the messages as they are.
        Raises `ValueError` if nothing was recorded, or more than the limit, and `ConnectError` if the file cannot be
        written.
        """
        path = Path(file)
        self.write(path, short=path.suffix == ".transcript", redacted=not unredacted)

    def write(self, file: Path, *, short: bool, redacted: bool = True) -> None:
        """Write a transcript if it is `short`, or else a session file."""
        transcript = self.transcript
        if self._memory.header is None or not len(transcript):
            raise ValueError("nothing was recorded; create the client with record=recording, and connect it")
        if self._memory.is_full:
            raise ValueError(f"too long to replay: more than {SESSION_FILE_BYTES:,} bytes were recorded")
        if short:
            write_expected(file, transcript.render())
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        writer = SessionFileWriter(file, redacted=redacted, limit=2 * SESSION_FILE_BYTES)
        writer.add_secrets(self._memory.secrets)
        writer.begin(self._memory.header)
        for entry in self._memory.entries:
            writer.write(entry)
        writer.close()


class _EntryList:
    """The entries of a recording in memory."""

    def __init__(self) -> None:
        self.header: SessionHeader | None = None
        self.entries: list[Entry] = []
        self.secrets: list[str] = []
        self.is_full: bool = False
        self._size = 0

    def begin(self, header: SessionHeader) -> None:
        """See `SessionSink`."""
        self.header = header

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """See `SessionSink`."""
        self.secrets += secrets

    def write(self, entry: Entry) -> None:
        """See `SessionSink`."""
        self._size += len(encode_line(entry))
        self.is_full = self.is_full or self._size > SESSION_FILE_BYTES
        if not self.is_full:
            self.entries.append(entry)


PROGRESS = "notifications/progress"


class TranscriptMessage(msgspec.Struct, frozen=True):
    """One message, its number in the file from 1 on, and whether the client sent it."""

    number: int
    by_client: bool
    message: JSONObject
    connection: int = 1
    request: int | str | None = None
    """The id of the client's request that it belongs to, if the file has it."""
    status: int = 200
    """Over HTTP, the status of the response that had it."""

    @property
    def method(self) -> str:
        """Return the method, or an empty string for a response."""
        return str(self.message.get("method", ""))

    @property
    def is_request(self) -> bool:
        """Return whether the message is a request."""
        return "method" in self.message and "id" in self.message

    @property
    def is_answer(self) -> bool:
        """Return whether the message is a response."""
        return "method" not in self.message

    @property
    def kind(self) -> tuple[str, Any]:
        """Return what identifies the same message in another run: the id of a response, or the method."""
        return ("response", self.message.get("id")) if self.is_answer else ("", self.method)


def read_messages(file: Path) -> list[TranscriptMessage]:
    """Return the messages of a recorded file. Raises `AssertionError` for a missing file, `ValueError` for an invalid
    one.
    """
    session = read_recorded(file)
    recorded = [entry for entry in session.entries if isinstance(entry, MessageEntry)]
    statuses = {
        (entry.connection, entry.exchange): entry.status
        for entry in session.entries
        if isinstance(entry, HTTPEntry) and entry.status
    }
    messages = [
        TranscriptMessage(
            number,
            entry.direction == "sent",
            message,
            entry.connection,
            entry.request,
            statuses.get((entry.connection, entry.exchange), 200),
        )
        for number, entry in enumerate(recorded, 1)
        for message in decode_messages(entry.data)
    ]
    for message in messages:
        if problem := _problem(message.message):
            raise ValueError(f"{file}: message {message.number} {problem}")
    return messages


def read_recorded(file: Path) -> SessionFile:
    """Return the content of a session file; of a transcript, its messages. Raises as `read_messages` does."""
    try:
        with open_expected(file) as stream:
            is_short = is_transcript(stream.peek(1))
            if is_short:
                return _of_transcript(parse(stream.read().decode()))
            return read_session(iter(partial(stream.readline, LINE_BYTES + 2), b""))
    except ValueError as exc:
        raise ValueError(f"{file}: {exc}") from exc


def is_transcript(start: bytes) -> bool:
    """Return whether a file that begins so is a transcript; each line of a session file is a JSON object."""
    return not start.lstrip().startswith(b"{")


def _of_transcript(transcript: Transcript) -> SessionFile:
    entries: list[Entry] = [
        message_entry(entry.message, "sent" if entry.direction == SENT else "received", connection=1)
        for entry in transcript
        if isinstance(entry.message, bytes)
    ]
    return SessionFile(SessionHeader(version=VERSION, at=""), entries)


def _problem(message: JSONObject) -> str | None:
    """Return why a message cannot be replayed, or None."""
    if not isinstance(message.get("method", ""), str):
        return "has a method that is not a string"
    if isinstance(message.get("id"), dict | list):
        return "has an id that is neither a string nor a number"
    params = message.get("params") or {}
    if not isinstance(params, dict) or not isinstance(params.get("_meta") or {}, dict):
        return "has params, or a _meta in them, that are not an object"
    return f"is nested more than {_MAX_LEVELS} levels deep" if is_deep(message) else None


def is_deep(value: Any) -> bool:
    """Return whether a JSON value has so many levels that functions which call themselves could not read it."""
    level = [value]
    for _ in range(_MAX_LEVELS):
        nested = [each for each in level if isinstance(each, dict | list)]
        level = [item for each in nested for item in (each.values() if isinstance(each, dict) else each)]
        if not level:
            return False
    return True


def decode_messages(message: object) -> Iterator[JSONObject]:
    """Yield the message, or those of a batch, as JSON objects; anything else is skipped."""
    if isinstance(message, bytes):
        try:
            decoded = msgspec.json.decode(message)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        yield from (item for item in (decoded if isinstance(decoded, list) else [decoded]) if isinstance(item, dict))


def request_label(message: TranscriptMessage) -> str:
    """Return a short description of a request: `tools/call forecast`."""
    params = message.message.get("params")
    if not isinstance(params, dict):
        return message.method
    return f"{message.method} {params.get('name') or params.get('uri') or ''}".rstrip()


def replace_texts(value: Any, replacements: dict[str, str]) -> Any:
    """Return a JSON value with texts replaced."""
    if isinstance(value, dict):
        return {key: replace_texts(item, replacements) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_texts(item, replacements) for item in value]
    return replacements.get(value, value) if isinstance(value, str) else value
