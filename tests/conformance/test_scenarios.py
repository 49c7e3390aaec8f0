"""The scenarios of the official conformance suite that do not need HTTP, played with a server of ours.

What passes is kept as a transcript: tests/conformance/transcripts/REVISION/SCENARIO.txt, which `pytest --update` writes
anew. docs/conformance.md lists the scenarios, with the reason where one is played elsewhere.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from accord.messages.revision import REVISIONS
from accord.wire.transcript import Transcript, parse

from tests.conformance import basics, input_requests, stateless  # noqa: F401  each declares its scenarios
from tests.conformance.peer import peer_of, readable
from tests.conformance.scenario import SCENARIOS, Scenario
from tests.conformance.server import server
from tests.conformance.shapes import Misshapen, check

TRANSCRIPTS = Path(__file__).parent / "transcripts"

PLAYED = [
    pytest.param(scenario, revision, id=f"{name}-in-{revision}")
    for name, scenario in SCENARIOS.items()
    for revision in scenario.revisions
]


def file_of(scenario: Scenario, revision: str) -> Path:
    return TRANSCRIPTS / revision / f"{scenario.name}.txt"


async def played(scenario: Scenario, revision: str) -> str:
    """What passes in a scenario."""
    async with peer_of(server, revision) as peer:
        if scenario.opens:
            await peer.open()
            peer.transport.transcript = Transcript()
        await scenario.play(peer)
        return readable(peer.transport.transcript)


@pytest.mark.parametrize(("scenario", "revision"), PLAYED)
def test_the_scenario_is_played_as_written(scenario: Scenario, revision: str, update: bool) -> None:
    text = asyncio.run(played(scenario, revision))
    file = file_of(scenario, revision)
    if update:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("revision", REVISIONS)
def test_there_is_no_transcript_without_a_scenario(revision: str) -> None:
    played = {file_of(scenario, revision) for scenario in SCENARIOS.values() if revision in scenario.revisions}
    assert set((TRANSCRIPTS / revision).glob("*.txt")) == played


@pytest.mark.parametrize(("scenario", "revision"), PLAYED)
def test_what_the_server_says_has_the_shape_that_the_revision_prescribes(scenario: Scenario, revision: str) -> None:
    text = file_of(scenario, revision).read_text(encoding="utf-8")
    assert check(parse(text), revision, client=False) or '"error"' in text


@pytest.mark.parametrize(
    ("message", "wrong"),
    [
        ('← {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"no schema"}]}}', "inputSchema"),
        ('← {"jsonrpc":"2.0","id":2,"method":"elicitation/create"}', "no such method"),
        ('→ {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}', "progressToken"),
    ],
)
def test_what_has_another_shape_is_noticed(message: str, wrong: str) -> None:
    asked = '→ {"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    assert check(parse(asked + '← {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'), "2025-03-26") == 2
    with pytest.raises(Misshapen, match=wrong):
        check(parse(asked + message), "2025-03-26")
