"""The server that uses every feature is right: in each revision, over both transports, with its tools called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.messages.revision import LATEST, REVISIONS

EXAMPLES = Path(__file__).parents[2] / "examples"
EVERYTHING = EXAMPLES / "everything.py"
TASKS = EXAMPLES / "tasks.py"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_it_scores_100(revision: str) -> None:
    cases = 200 if revision == LATEST else 0
    settings = CheckSettings(revisions=(revision,), call_tools=True, timeout=20, cases=cases)
    report = await check_server(str(EVERYTHING), settings)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    assert [visit.error for visit in report.visits] == ["", ""]
    assert report.score == 100
    assert report.generated >= cases
    assert not report.failed


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("revision", "family"), [("2025-11-25", "tasks"), ("2026-07-28", "ext-tasks")])
async def test_its_tasks_score_100(revision: str, family: str) -> None:
    """All rules about tasks observe something: tools that take a while, ask and fail are called."""
    bounds: dict[str, Any] = {"call_tools": True, "timeout": 20, "cases": 0, "whole_traffic": False}
    report = await check_server(str(TASKS), CheckSettings(revisions=(revision,), only=(family,), **bounds))
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    assert [visit.error for visit in report.visits] == ["", ""]
    assert report.score == 100
    assert not report.failed
