"""A rule has the verdict of a whole run, whatever other rules are tried beside it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from accord.check.engine.report import Report, TransportName, Verdict, by_rule, worst_verdict
from accord.check.rules import server_rules
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.change import Change, Changed
from tests.check.mutants.correct_server import right

DECIDING = [sys.executable, str(Path(__file__).with_name("deciding.py"))]
AREAS = tuple(dict.fromkeys(rule.area for rule in server_rules()))


def wrong() -> Any:
    """A server that answers every error with a code of its own, and lists a tool twice."""
    change = Change()

    @change.every
    def _(message: Any) -> Any:
        if "error" in message:
            message["error"] = {"code": -32050, "message": "It went wrong.\nNobody knows why."}
        result = message.get("result")
        if isinstance(result, dict) and "tools" in result:
            result["tools"] *= 2
        return message

    return Changed(right(), change)


class Checked(NamedTuple):
    """A server, and the revision in which it is checked."""

    name: str
    make: Callable[[], Any]
    revision: str


SERVERS = (
    Checked("deciding", lambda: DECIDING, "2026-07-28"),
    Checked("right", lambda: Changed(right(), Change()), "2025-11-25"),
    Checked("wrong", wrong, "2026-07-28"),
    Checked("wrong", wrong, "2025-11-25"),
)


def check(server: Checked, **more: Any) -> Report:
    settings = CheckSettings(revisions=(server.revision,), timeout=4, **more)
    return asyncio.run(check_server(server.make(), settings))


def verdicts(report: Report) -> dict[str, Verdict]:
    """The worst verdict on each rule."""
    return {rule: worst_verdict(each.verdict for each in found) for rule, found in by_rule(report.outcomes).items()}


@cache
def whole(server: Checked) -> dict[str, Verdict]:
    return verdicts(check(server))


@pytest.mark.parametrize(("number", "area"), [*enumerate(AREAS)], ids=AREAS)
def test_an_area_alone_has_the_verdicts_of_the_whole_run(number: int, area: str) -> None:
    servers = [server for server in SERVERS if _lives(area, server)]
    if not servers:  # of HTTP, whose cases all have conversations of their own
        return
    server = servers[number % len(servers)]
    wanted = {rule: verdict for rule, verdict in whole(server).items() if rule.startswith(f"{area}/")}
    assert verdicts(check(server, only=(area,))) == wanted


def _lives(area: str, server: Checked) -> bool:
    over: TransportName = "stdio" if server.name == "deciding" else "memory"
    return any(rule.cases_in(server.revision, over) for rule in server_rules() if rule.area == area)


def test_a_server_that_decides_by_its_first_request_has_the_same_score_alone_and_in_company() -> None:
    deciding = SERVERS[0]
    report = check(deciding, only=("discover",))
    assert [finding.rule for finding in report.findings] == ["discover/initialize-names-versions"]
    assert verdicts(report)["discover/missing-meta"] == "pass"
