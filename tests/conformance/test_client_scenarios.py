"""The scenarios of the official conformance suite for clients that do not need HTTP, played by our client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from accord import Client, Implementation
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.recording import TranscriptTransport
from accord.wire.transcript import Transcript, parse

from tests.client.raw import RawServer
from tests.conformance.clients import CLIENT_SCENARIOS, ClientScenario, Host
from tests.conformance.shapes import check
from tests.conformance.test_scenarios import TRANSCRIPTS

PLAYED = [
    pytest.param(scenario, revision, id=f"{name}-in-{revision}")
    for name, scenario in CLIENT_SCENARIOS.items()
    for revision in scenario.revisions
]


def recording(ends: list[TranscriptTransport]) -> Callable[[Transport], Transport]:
    def record(inner: Transport) -> Transport:
        ends.append(TranscriptTransport(inner, Transcript()))
        return ends[-1]

    return record


async def played(scenario: ClientScenario, revision: str) -> str:
    """What passes in a scenario, seen from the client."""
    ends: list[TranscriptTransport] = []
    ours, theirs = memory.pair()
    raw = RawServer(ours, revision)
    info = Implementation(name="host", version="1.0")
    client = Client(theirs, revisions=[revision], info=info, record=recording(ends), **scenario.options)
    await asyncio.gather((scenario.opening or RawServer.open)(raw), client.connect())
    if scenario.opening is None:
        ends[0].transcript = Transcript()
    host = Host(raw)
    serving = asyncio.ensure_future(host.serve())
    try:
        await scenario.play(host, client)
    finally:
        serving.cancel()
        await client.close()
    return ends[0].transcript.render().replace(host.address, "(address)")


@pytest.mark.parametrize(("scenario", "revision"), PLAYED)
def test_the_client_plays_the_scenario_as_written(scenario: ClientScenario, revision: str, update: bool) -> None:
    text = asyncio.run(asyncio.wait_for(played(scenario, revision), 60))
    file = TRANSCRIPTS / revision / "client" / f"{scenario.name}.txt"
    if update:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize(("scenario", "revision"), PLAYED)
def test_what_the_client_says_has_the_shape_that_the_revision_prescribes(
    scenario: ClientScenario, revision: str
) -> None:
    file = TRANSCRIPTS / revision / "client" / f"{scenario.name}.txt"
    assert check(parse(file.read_text(encoding="utf-8")), revision, server=False)


def test_there_is_no_transcript_of_a_client_without_a_scenario() -> None:
    played = {(revision, f"{each.name}.txt") for each in CLIENT_SCENARIOS.values() for revision in each.revisions}
    assert {(file.parent.parent.name, file.name) for file in TRANSCRIPTS.glob("*/client/*.txt")} == played
