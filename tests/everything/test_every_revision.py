"""One server program that uses every feature, with a client of each revision, in one process and over stdio.

What the handlers on both sides see is the same in each, but for what the revisions force (see expected), and every
message between them has the shape that its revision prescribes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from accord import REVISIONS, Client
from accord.messages.methods import table
from accord.transport.base import Transport
from accord.transport.recording import TranscriptTransport
from accord.wire.transcript import SENT, Transcript

from tests.conformance.shapes import check
from tests.everything import program
from tests.everything.expected import expected
from tests.everything.story import play

ELSEWHERE = {
    "server ping": "a server has no reason to ask for a sign of life: tests/session",
    "client notifications/progress": "what a host's handlers have to report: tests/session",
    "server notifications/cancelled": "a server takes back a question, or ends a subscription: tests/server",
    "tasks": "the tasks of 2025-11-25 are not served",
}
"""What the story leaves out, and why."""

TARGETS: dict[str, Callable[[], Any]] = {
    "in-memory": program.program,
    "over-stdio": lambda: [sys.executable, program.__file__],
}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_handlers_see_the_same_in_every_revision_but_for_what_it_forces(target: str, revision: str) -> None:
    ends: list[TranscriptTransport] = []

    def record(inner: Transport) -> Transport:
        ends.append(TranscriptTransport(inner, Transcript()))
        return ends[-1]

    def connect(**options: Any) -> Client:
        return Client(TARGETS[target](), revisions=[revision], timeout=20, record=record, **options)

    assert asyncio.run(asyncio.wait_for(play(connect), 150)) == expected(revision)
    (end,) = ends
    check(end.transcript, revision)
    assert said(end.transcript) == says_all_but_what_is_told_elsewhere(revision)


def said(transcript: Transcript) -> set[str]:
    """The methods in a transcript of a client's, each with who said it."""
    heard: set[str] = set()
    for entry in transcript:
        assert isinstance(entry.message, bytes)
        message = json.loads(entry.message)
        if "method" in message:
            heard.add(f"{'client' if entry.direction == SENT else 'server'} {message['method']}")
    return heard


def says_all_but_what_is_told_elsewhere(revision: str) -> set[str]:
    rows = [f"{sender} {name}" for sender in ("client", "server") for name in table(revision, sender)]
    return {row for row in rows if row not in ELSEWHERE and "tasks/" not in row}
