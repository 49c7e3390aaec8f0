"""The checker finds in published releases the faults that they are known for, and not where they were mended."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from accord.check.engine.report import Report
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.known_bad.releases import FAULTY, Command, Faulty
from tests.interop.serving import Serving, serving


async def check(faulty: Faulty, command: Command) -> Report:
    """Check only the rule in question."""
    bounds: dict[str, Any] = {"timeout": 2, "opening": 10, "jobs": 4, "whole_traffic": False}
    settings = CheckSettings(
        revisions=(faulty.revision,), only=(faulty.rule,), call_tools=True, tokens=faulty.tokens, **bounds
    )
    with serving(command()) if faulty.path else nullcontext() as served:
        target = f"{served.url}{faulty.path}" if isinstance(served, Serving) else command()
        return await check_server(target, settings)


@pytest.mark.parametrize("faulty", FAULTY, ids=lambda faulty: f"{faulty.name}: {faulty.rule}")
async def test_the_fault_of_a_release_is_found(faulty: Faulty) -> None:
    report = await check(faulty, faulty.command)
    assert [found.rule for found in report.findings] == [faulty.rule] * max(1, len(report.findings))


MENDED = [(faulty, faulty.mended) for faulty in FAULTY if faulty.mended is not None]


@pytest.mark.parametrize(("faulty", "mended"), MENDED, ids=[f"{faulty.name}: {faulty.rule}" for faulty, _ in MENDED])
async def test_it_is_not_found_where_it_was_mended(faulty: Faulty, mended: Command) -> None:
    later = faulty._replace(path=faulty.path.rstrip("/"))
    report = await check(later, mended)
    assert report.findings == ()
    assert report.score == 100
