"""`Recording`: the messages between a client and its server, to be replayed.

The messages of a transcript as JSON, with their sender and their kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from accord.messages.base import JSONObject
from accord.testing.files import read_expected, write_expected
from accord.transport.base import Transport
from accord.transport.recording import RecordingTransport
from accord.wire.transcript import SENT, Transcript, parse


class Recording:
    """The recording of a client: `Client(target, record=recording)`, and afterwards `recording.save(file)`.

    When the client reconnects, the recording starts again; the messages of the previous connection are dropped.
    """

    def __init__(self) -> None:
        self.transcript: Transcript = Transcript()
        """The messages of the last connection."""

    def __call__(self, inner: Transport) -> Transport:
        self.transcript = Transcript()
        return RecordingTransport(inner, self.transcript)

    def save(self, file: str | Path) -> None:
        """Write the transcript. Raises `ValueError` if there are no messages, or so many that some were dropped."""
        if not len(self.transcript):
            raise ValueError("nothing was recorded; create the client with record=recording, and connect it")
        if self.transcript.dropped:
            raise ValueError(f"too long to replay: {self.transcript.dropped:,} messages were dropped")
        write_expected(Path(file), self.transcript.render())


PROGRESS = "notifications/progress"


class TranscriptMessage(msgspec.Struct, frozen=True):
    """One message, its number in the transcript from 1 on, and whether the client sent it."""

    number: int
    by_client: bool
    message: JSONObject

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
    """Return the messages of a transcript. Raises `AssertionError` for a missing file, `ValueError` for an invalid
    one.
    """
    try:
        entries = list(parse(read_expected(file)))
    except ValueError as exc:
        raise ValueError(f"{file}: {exc}") from exc
    messages = [
        TranscriptMessage(number, entry.direction == SENT, message)
        for number, entry in enumerate(entries, 1)
        for message in decode_messages(entry.message)
    ]
    for message in messages:
        if problem := _problem(message.message):
            raise ValueError(f"{file}: message {message.number} {problem}")
    return messages


def _problem(message: JSONObject) -> str | None:
    """Return why a message cannot be replayed, or None."""
    if not isinstance(message.get("method", ""), str):
        return "has a method that is not a string"
    if isinstance(message.get("id"), dict | list):
        return "has an id that is neither a string nor a number"
    params = message.get("params") or {}
    if not isinstance(params, dict) or not isinstance(params.get("_meta") or {}, dict):
        return "has params, or a _meta in them, that are not an object"
    return None


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
    params = message.message.get("params") or {}
    return f"{message.method} {params.get('name') or params.get('uri') or ''}".rstrip()


def replace_texts(value: Any, replacements: dict[str, str]) -> Any:
    """Return a JSON value with texts replaced."""
    if isinstance(value, dict):
        return {key: replace_texts(item, replacements) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_texts(item, replacements) for item in value]
    return replacements.get(value, value) if isinstance(value, str) else value
