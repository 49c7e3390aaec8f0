"""One server program that uses every feature, with a client of each revision, in one process and over stdio.

What the handlers on both sides see is the same in each, but for what the revisions force (see expected), and every
message between them has the shape that its revision prescribes.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from accord import REVISIONS, Client
from accord.transport.base import Transport
from accord.transport.recorded import RecordedTransport
from accord.wire.transcript import Transcript

from tests.conformance.shapes import check
from tests.everything import program
from tests.everything.expected import expected
from tests.everything.story import play

TARGETS = {"in-memory": program.program, "over-stdio": lambda: [sys.executable, program.__file__]}


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("target", TARGETS)
def test_handlers_see_the_same_in_every_revision_but_for_what_it_forces(target: str, revision: str) -> None:
    ends: list[RecordedTransport] = []

    def record(inner: Transport) -> Transport:
        ends.append(RecordedTransport(inner, Transcript()))
        return ends[-1]

    def connect(**options: Any) -> Client:
        return Client(TARGETS[target](), revisions=[revision], timeout=20, record=record, **options)

    assert asyncio.run(asyncio.wait_for(play(connect), 50)) == expected(revision)
    (end,) = ends
    assert check(end.transcript, revision) > 100
