"""A failure becomes a verdict when it happens again alone; a start that fails does not hide a revision."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.change import Change, Changed
from tests.check.mutants.correct_server import right
from tests.clock import Clock, without_waiting

FAILS = """
import pathlib, sys
log = pathlib.Path(sys.argv[1])
log.write_text(log.read_text() + "x" if log.exists() else "x")
if len(log.read_text()) in {failing}:
    sys.exit("this start has failed")
import json
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "server/discover":
        said = {{"error": {{"code": -32601, "message": "unknown"}}}}
    elif method == "initialize":
        result = {{"capabilities": {{}}, "serverInfo": {{"name": "flaky", "version": "1"}}}}
        wanted = message["params"]["protocolVersion"]
        spoken = wanted if wanted in ("2025-06-18", "2025-11-25") else "2025-11-25"
        said = {{"result": result | {{"protocolVersion": spoken}}}}
    else:
        said = {{"result": {{}}}}
    if id is not None:
        print(json.dumps({{"jsonrpc": "2.0", "id": id, **said}}), flush=True)
"""


def silent_at(times: set[int]) -> Any:
    """A server that says nothing to some of the pings that it gets."""
    change = Change()
    seen: list[Any] = []

    @change.answers("ping")
    def _(request: Any, answer: Any) -> Any:
        seen.append(request)
        return None if len(seen) in times else answer

    return Changed(right(), change)


SETTINGS = CheckSettings(revisions=("2025-11-25",), only=("ping/answered",), whole_traffic=False, timeout=3)


@without_waiting
async def test_a_silence_that_does_not_come_again_is_no_finding_and_is_reported() -> None:
    report = await check_server(silent_at({1}), SETTINGS)
    assert report.findings == ()
    assert report.score == 100
    ((told,),) = [visit.unconfirmed for visit in report.visits]
    assert told.startswith("ping/answered (")


async def test_a_failure_is_repeated_after_the_server_has_recovered() -> None:
    """An earlier case, for example one that leaves connections half open, may hold the server up for a while."""
    change, clock, seen = Change(), Clock(), []

    @change.answers("ping")
    def _(request: Any, answer: Any) -> Any:
        seen.append(request)
        if len(seen) in (2, 3):
            clock.move(1)  # while it is slow, it goes on failing
        busy = {"jsonrpc": "2.0", "id": answer["id"], "error": {"code": -32603, "message": "busy"}}
        return busy if len(seen) <= 3 else answer

    report = await check_server(Changed(right(), change), SETTINGS)
    assert report.findings == ()
    assert len(report.visits[0].unconfirmed) == 1


@without_waiting
async def test_a_silence_that_comes_again_is_a_finding() -> None:
    report = await check_server(silent_at(set(range(100))), SETTINGS)
    assert [finding.rule for finding in report.findings] == ["ping/answered"]
    assert [visit.unconfirmed for visit in report.visits] == [()]


@pytest.mark.parametrize("failing", [{1}, {2}], ids=["the first", "the second"])
async def test_a_start_that_fails_once_does_not_hide_a_revision(failing: set[int], tmp_path: Path) -> None:
    program = FAILS.format(failing=failing)
    settings = CheckSettings(revisions=("2025-06-18", "2025-11-25"), only=("ping",), whole_traffic=False)
    report = await check_server([sys.executable, "-c", program, str(tmp_path / "starts")], settings)
    assert {visit.revision for visit in report.visits} == {"2025-06-18", "2025-11-25"}
    assert report.untested == ()
    assert report.score == 100


async def test_a_revision_that_cannot_be_opened_twice_is_not_tested_and_says_so(tmp_path: Path) -> None:
    refuses = 'if method == "initialize" and wanted == "2025-06-18":\n        sys.exit("not this one")\n    '
    program = FAILS.format(failing=set()).replace("if id is not None", f"{refuses}if id is not None")
    settings = CheckSettings(full=True, only=("ping",), whole_traffic=False)
    report = await check_server([sys.executable, "-c", program, str(tmp_path / "starts")], settings)
    assert [each.revision for each in report.untested] == ["2025-06-18"]
    assert "not this one" in report.untested[0].text
    assert report.score == 99
    assert report.failed
