"""Build the report of a check."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from accord import __version__
from accord.check.engine.findings import build_findings
from accord.check.engine.report import Outcome, PeerRole, Report, Visit, score
from accord.check.engine.rule import Rule
from accord.check.settings import CheckSettings
from accord.redaction import redact


class ReportBuilder:
    """The builder of a report, created when the check begins. `target` is the name of the peer in the report."""

    def __init__(self, role: PeerRole, target: str, rules: Iterable[Rule], settings: CheckSettings) -> None:
        self._role: PeerRole = role
        self._target = target
        self._rules = {rule.id: rule for rule in rules}
        self._settings = settings
        self._began = time.monotonic()
        self._started = datetime.now(UTC)

    def build(self, name: str, visits: Sequence[Visit], outcomes: Sequence[Outcome], **more: Any) -> Report:
        """Return the report of a check that ends now. `name` is what the peer calls itself; `more` are other fields."""
        whole = not (more.get("untested") or more.get("interrupted") or any(visit.error for visit in visits))
        return Report(
            role=self._role,
            target=self._target,
            name=str(redact(name)),
            version=__version__,
            started=self._started.strftime("%Y-%m-%dT%H:%M:%SZ"),
            seconds=round(time.monotonic() - self._began, 3),
            score=score(outcomes, whole=whole),
            visits=tuple(visits),
            findings=build_findings(outcomes, self._rules, self._target, self._settings, self._role),
            outcomes=tuple(outcomes),
            **more,
        )
