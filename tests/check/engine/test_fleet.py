"""Many servers are checked side by side: none touches another, and no secret is told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from accord.check.engine.fleet import CheckedServer, Fleet, check_fleet
from accord.check.engine.fleet_history import FleetRun, fleet_changes, read_history, server_status
from accord.check.engine.outcomes import Watcher
from accord.check.engine.report import Finding, Level, Outcome, Place, Report, Visit
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.client.target import entries
from accord.errors import ConnectError, TargetError

SECRET = 'hush"hush-hush'
QUICK = CheckSettings(revisions=("2025-11-25",), only=("envelope",), timeout=10.0)

PLACE = Place(revision="2025-11-25", transport="stdio")


def report(*failing: str, score: int = 100, text: str = "", warning: Sequence[str] = ()) -> Report:
    """A report in which these rules fail."""
    return Report(
        role="server",
        target="it",
        name="it 1.0",
        version="0",
        started="2026-01-01T00:00:00Z",
        seconds=0,
        score=score,
        visits=(Visit(revision="2025-11-25", transport="stdio", score=score, seconds=0, counts={}, error=text),),
        findings=(*(finding(rule, "must", text) for rule in failing), *(finding(rule, "should") for rule in warning)),
        outcomes=(),
    )


def finding(rule: str, level: Level, text: str = "") -> Finding:
    verdict: Any = "fail" if level == "must" else "warn"
    more: Any = {"says": "", "sources": (), "cause": "", "places": (PLACE,)}
    return Finding(rule=rule, verdict=verdict, level=level, text=text, evidence=(f"← {text}",), **more)


class Checks:
    """Stands for the checker of one server: what it gives, raises or never gives, by the command."""

    def __init__(self, **results: Report | Exception | None) -> None:
        self._results = results
        self.at_once = 0
        self.most = 0

    async def __call__(
        self, target: Any, settings: CheckSettings | None = None, watcher: Watcher | None = None, *, label: str = ""
    ) -> Report:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await asyncio.sleep(0)
            found = self._results[target.argv[0]]
            if found is None:
                await asyncio.Event().wait()
        finally:
            self.at_once -= 1
        if isinstance(found, Exception):
            raise found
        assert isinstance(found, Report)
        if watcher is not None:
            watcher.case_done(outcome(found.visits[0].error))
        return found


def outcome(text: str) -> Outcome:
    return Outcome(
        rule="a/b", case="", verdict="fail", level="must", revision="2025-11-25", transport="stdio", text=text
    )


class Watching:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.ended: list[CheckedServer] = []
        self.outcomes: list[Outcome] = []

    def server_began(self, name: str) -> Watcher:
        self.began.append(name)
        return self

    def server_ended(self, checked: CheckedServer) -> None:
        self.ended.append(checked)

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        return

    def case_done(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)

    def visit_ended(self, visit: Visit) -> None:
        return


def named(*commands: str) -> dict[str, Any]:
    return {name: {"command": name} for name in commands}


async def test_a_server_that_fails_hangs_or_is_no_entry_touches_no_other() -> None:
    checks = Checks(good=report(), lost=ConnectError("nobody is there"), odd=RuntimeError("a defect"), slow=None)
    wanted = {**named("slow", "good", "lost", "odd"), "wrong": 3, "empty": {}}
    fleet = await check_fleet(wanted, jobs=2, check=checks, seconds=0.2)
    assert [each.name for each in fleet.servers] == [*wanted]
    errors = {each.name: each.error for each in fleet.servers}
    assert errors["good"] == ""
    assert errors["slow"] == "timed out after 0.2 s"
    assert errors["lost"] == "nobody is there"
    assert errors["odd"] == "RuntimeError: a defect"
    assert 'needs "command"' in errors["wrong"]
    assert 'needs "command"' in errors["empty"]
    assert fleet.failed


@pytest.mark.parametrize("jobs", [1, 3])
async def test_as_many_are_checked_at_once_as_is_wished(jobs: int) -> None:
    checks = Checks(**{f"s{number}": report() for number in range(9)})
    fleet = await check_fleet(named(*(f"s{number}" for number in range(9))), jobs=jobs, check=checks)
    assert (checks.most, len(fleet.servers), fleet.failed) == (jobs, 9, False)


async def test_secrets_of_an_entry_are_in_no_output(tmp_path: Path) -> None:
    leaking = report("a/b", text=f"it said {SECRET} and {json.dumps(SECRET)}")
    entry = {"env": {"KEY": SECRET}, "headers": {"Authorization": "Bearer abcdefghijkl"}}
    fails = ConnectError(f"refused {SECRET} and abcdefghijkl")
    watching = Watching()
    fleet = await check_fleet(
        {"leaks": {"command": "leaks", **entry}, "fails": {"command": "fails", **entry}},
        check=Checks(leaks=leaking, fails=fails),
        history=tmp_path / "history",
        watcher=watching,
    )
    told = msgspec.json.encode([fleet, watching.ended, watching.outcomes]).decode() + (tmp_path / "history").read_text()
    assert "it said [redacted] and" in told
    assert "refused [redacted] and [redacted]" in told
    assert "hush-hush" not in told
    assert "abcdefghijkl" not in told


async def test_the_observer_learns_of_each_server() -> None:
    watching = Watching()
    await check_fleet(named("a", "b"), check=Checks(a=report(), b=report()), watcher=watching)
    assert sorted(watching.began) == sorted(each.name for each in watching.ended) == ["a", "b"]


async def test_rules_are_listed_by_how_many_break_them() -> None:
    checks = Checks(a=report("x/2", warning=["x/3"]), b=report("x/1", "x/2"))
    fleet = await check_fleet(named("a", "b"), check=checks)
    assert fleet.by_rule() == {"x/2": ("a", "b"), "x/1": ("b",), "x/3": ("a",)}
    assert [*fleet.by_rule()] == ["x/2", "x/1", "x/3"]


# --- history -------------------------------------------------------------------------------------------------------


async def told(tmp_path: Path, **checks: Report | Exception) -> Fleet:
    return await check_fleet(named(*checks), check=Checks(**checks), history=tmp_path / "history.jsonl")


async def test_changes_of_each_server_since_its_last_check_are_reported(tmp_path: Path) -> None:
    first = await told(tmp_path, a=report("x/1", score=90), b=report(), gone=report())
    assert (first.news, first.history) == ((), ())
    second = await told(tmp_path, a=report("x/2", score=95), b=ConnectError("nobody"), new=report())
    assert [(each.server, each.kind, each.text) for each in second.news] == [
        ("a", "better", "score 90 → 95"),
        ("a", "worse", "x/2 now fails"),
        ("a", "better", "x/1 no longer fails"),
        ("b", "worse", "can no longer be checked: nobody"),
        ("new", "new", "checked for the first time"),
        ("gone", "gone", "no longer in the fleet"),
    ]
    third = await told(tmp_path, a=report("x/2", score=95), b=report(score=80), gone=report())
    assert [(each.server, each.text) for each in third.news] == [
        ("b", "can be checked again: 80"),
        ("new", "no longer in the fleet"),
    ]
    assert third.history == (first.run, second.run)


def test_a_rule_that_only_warns_now_is_better_and_not_worse() -> None:
    stands = {"a": server_status(report("x/1"))}
    run = FleetRun(started="", version="", servers=stands)
    found = fleet_changes([run], {"a": server_status(report(warning=["x/1"]))})
    assert [(each.kind, each.text) for each in found] == [("better", "x/1 no longer fails")]


async def test_a_history_that_cannot_be_read_is_an_error_before_anything_is_checked(tmp_path: Path) -> None:
    (tmp_path / "history.jsonl").write_text('{"started": "", "version": "", "servers": {}}\n{"sta\n')
    with pytest.raises(TargetError, match="line 2: invalid run"):
        await told(tmp_path, a=report())
    assert read_history(tmp_path / "none") == []


# --- files and real servers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"), [("<", "is not JSON"), ("{}", 'no "mcpServers"'), ("[]", 'no "mcpServers"')]
)
def test_an_invalid_configuration_is_an_error(content: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "servers.json").write_text(content)
    with pytest.raises(TargetError, match=text):
        entries(tmp_path / "servers.json")


async def test_real_servers_are_checked_by_their_entries(tmp_path: Path) -> None:
    weather = Path(__file__).parents[3] / "examples" / "weather.py"
    file = tmp_path / "servers.json"
    good = {"command": sys.executable, "args": ["-m", "accord", "run", str(weather)], "env": {"KEY": SECRET}}
    file.write_text(json.dumps({"mcpServers": {"good": good, "gone": {"command": "/no/such/program"}}}))
    fleet = await check_fleet(entries(file), QUICK, file=str(file), check=check_server, watcher=None)
    one, other = fleet.servers
    assert one.report is not None, one.error
    assert (one.report.target, one.report.score, one.failed) == (f"{file}#good", 100, False)
    assert "gone" in other.error
    assert other.failed
