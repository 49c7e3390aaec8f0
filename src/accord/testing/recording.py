"""`Recording`: what a client and its server say to each other, to be played again.

The messages of a transcript as JSON: who said what, and what belongs together.
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
    """Records a client: `Client(target, record=recording)`, and after it `recording.save(file)`.

    A connection that is opened again is recorded from its beginning; what the one before it said is dropped.
    """

    def __init__(self) -> None:
        self.transcript: Transcript = Transcript()
        """What was said, on the last connection."""

    def __call__(self, inner: Transport) -> Transport:
        self.transcript = Transcript()
        return RecordingTransport(inner, self.transcript)

    def save(self, file: str | Path) -> None:
        """Write the transcript. Raises `ValueError` where nothing was said, or so much that not all was kept."""
        if not len(self.transcript):
            raise ValueError("nothing was recorded; make the client with record=recording, and connect it")
        if self.transcript.dropped:
            raise ValueError(f"too long to replay: {self.transcript.dropped:,} messages were dropped")
        write_expected(Path(file), self.transcript.render())


PROGRESS = "notifications/progress"


class TranscriptMessage(msgspec.Struct, frozen=True):
    """One message, its number in the transcript from 1 on, and whether the client said it."""

    number: int
    by_client: bool
    message: JSONObject

    @property
    def method(self) -> str:
        """Its method; empty for an answer."""
        return str(self.message.get("method", ""))

    @property
    def is_request(self) -> bool:
        """Whether it wants an answer."""
        return "method" in self.message and "id" in self.message

    @property
    def is_answer(self) -> bool:
        """Whether it is one."""
        return "method" not in self.message

    @property
    def kind(self) -> tuple[str, Any]:
        """What it has in common with the one that says the same another time."""
        return ("the answer to", self.message.get("id")) if self.is_answer else ("", self.method)


def read_messages(file: Path) -> list[TranscriptMessage]:
    """The messages of a transcript. Raises `AssertionError` where there is no file, `ValueError` for what is none."""
    try:
        entries = list(parse(read_expected(file)))
    except ValueError as exc:
        raise ValueError(f"{file}: {exc}") from exc
    return [
        TranscriptMessage(number, entry.direction == SENT, message)
        for number, entry in enumerate(entries, 1)
        for message in decode_messages(entry.message)
    ]


def decode_messages(message: object) -> Iterator[JSONObject]:
    """The message, or those of a batch; what is no JSON object counts as nothing said."""
    if isinstance(message, bytes):
        try:
            found = msgspec.json.decode(message)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        yield from (each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict))


def request_label(said: TranscriptMessage) -> str:
    """A request as a person would call it: `tools/call forecast`."""
    params = said.message.get("params") or {}
    return f"{said.method} {params.get('name') or params.get('uri') or ''}".rstrip()


def replace_texts(value: Any, by: dict[str, str]) -> Any:
    """A JSON value with texts in it replaced."""
    if isinstance(value, dict):
        return {key: replace_texts(each, by) for key, each in value.items()}
    if isinstance(value, list):
        return [replace_texts(each, by) for each in value]
    return by.get(value, value) if isinstance(value, str) else value
