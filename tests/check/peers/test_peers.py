"""The checker on servers that people really use: it finds their faults, all of them known, and cries no wolf."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

from accord.check.engine.report import Outcome, Report
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.peers.expected import PEERS, Found, Peer
from tests.interop.peers import npm_server, peer_server
from tests.interop.serving import Serving, free_port, serving
from tests.measure import slowness

COMMANDS: dict[tuple[str, str], Callable[[], list[str]]] = {
    ("everything", "http"): lambda: [*npm_server("everything"), "streamableHttp"],
    ("mcp1", "http"): lambda: [*peer_server("mcp1"), "mcp"],
    ("mcp2", "http"): lambda: [*peer_server("mcp2"), "mcp"],
    ("memory", "stdio"): lambda: npm_server("memory"),
}


async def check(peer: Peer, memory: Path) -> Report:
    """Check it in the revisions in question; what stands only as MAY is left out."""
    command = COMMANDS[peer.name, peer.over]()
    timeout = CheckSettings().timeout * slowness()  # nothing tells how much processor a server over HTTP gets
    settings = CheckSettings(revisions=peer.revisions, level="should", call_tools=peer.calls, timeout=timeout)
    with serving(command, free_port()) if peer.over == "http" else nullcontext() as served:
        if isinstance(served, Serving):
            return await check_server(f"{served.url}/mcp", settings)
        env = {"MEMORY_FILE_PATH": str(memory)}
        return await check_server({"command": command[0], "args": command[1:], "env": env}, settings)


def broken(outcomes: tuple[Outcome, ...], rules: set[str]) -> Found:
    """Rules with findings, each with a revision in which it fails."""
    bad = [each for each in outcomes if each.verdict in ("fail", "warn")]
    return frozenset((each.rule, each.revision) for each in bad if each.rule in rules)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: f"{peer.name} over {peer.over}")
async def test_the_findings_are_the_known_faults_and_no_others(peer: Peer, tmp_path: Path) -> None:
    report = await check(peer, tmp_path / "memory.jsonl")
    assert {visit.revision for visit in report.visits} == set(peer.revisions)
    found = broken(report.outcomes, {finding.rule for finding in report.findings})
    texts = {(each.rule, each.text, each.evidence) for each in report.findings if each.rule not in peer.broken}
    assert texts == set()
    assert found == peer.found
    assert report.sdk == peer.sdk
