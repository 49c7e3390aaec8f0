"""The outcome of each case in a visit: a verdict, from the exception of the case."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Protocol

from accord.check.engine.report import Outcome, TransportName, Verdict, Visit
from accord.check.engine.rule import (
    Case,
    EvidenceLine,
    NotApplicable,
    NotObserved,
    Rule,
    UnsupportedRevision,
    Violation,
)
from accord.errors import AccordError, describe
from accord.redaction import redact_beginning

log: logging.Logger = logging.getLogger("accord.check")

NO_AUTHORIZATION = "the server requires no authorization"
"""Why the rules about authorization do not apply."""
_MAX_ENTRIES = 100
"""The number of entries of a session file that an outcome names: the last ones."""
_QUOTATION = re.compile(r"""["'`{\[=]|://|eyJ|-----|^[→←]""").search


class Watcher(Protocol):
    """Is notified of the progress of a check."""

    def visit_began(self, revision: str, transport: str, total: int) -> None: ...

    def case_done(self, outcome: Outcome) -> None: ...

    def visit_ended(self, visit: Visit) -> None: ...


class NullWatcher:
    """A watcher that does nothing."""

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        return

    def case_done(self, outcome: Outcome) -> None:
        return

    def visit_ended(self, visit: Visit) -> None:
        return


class OutcomeCollector:
    """The outcomes of one visit; the watcher gets each."""

    def __init__(self, revision: str, transport: TransportName, watcher: Watcher) -> None:
        self._revision = revision
        self._transport: TransportName = transport
        self._watcher = watcher
        self.outcomes: list[Outcome] = []
        self.defects: list[str] = []
        """Errors of the checker itself."""

    def add_exception(
        self, rule: Rule, case: Case, exc: Exception, evidence: tuple[str, ...] = (), seconds: float = 0.0
    ) -> None:
        """Add the exception of a case; `evidence` are the messages of the attempt, if the exception has none."""
        match exc:
            case NotApplicable():
                self.add(rule, case, "not-applicable", str(exc), seconds=seconds)
            case NotObserved():
                self.add(rule, case, "not-observed", str(exc), seconds=seconds)
            case Violation():
                self.add(
                    rule,
                    case,
                    failing_verdict(rule),
                    str(exc),
                    symptom=exc.symptom,
                    cause=exc.cause,
                    evidence=exc.evidence or evidence,
                    again=exc.again,
                    during=exc.during,
                    seconds=seconds,
                )
            case TimeoutError():
                self.add(rule, case, failing_verdict(rule), f"not done after {seconds:.0f} s", seconds=seconds)
            case UnsupportedRevision():
                text = f"a second session cannot be opened: {exc}"
                self.add(rule, case, failing_verdict(rule), text, symptom="reopened", seconds=seconds)
            case AccordError():
                self.add(rule, case, failing_verdict(rule), describe(exc), symptom="unreachable", seconds=seconds)
            case _:
                self.defects.append(f"{rule.id} ({case.says}): {describe(exc)}")
                self.add(rule, case, "not-observed", f"a defect in the checker: {describe(exc)}", seconds=seconds)
                log.error("accord: the rule %s failed by itself", rule.id, exc_info=exc)

    def add(
        self, rule: Rule, case: Case, verdict: Verdict, text: str = "", evidence: Sequence[str] = (), **more: Any
    ) -> None:
        """Add one verdict; `more` are fields of an `Outcome`."""
        numbers = {number for line in evidence if isinstance(line, EvidenceLine) for number in line.entries}
        outcome = Outcome(
            rule=rule.id,
            case=case.says,
            verdict=verdict,
            level=rule.level,
            revision=self._revision,
            transport=self._transport,
            text=redact_quotations(text),
            symptom=redact_quotations(more.pop("symptom", "")) or rule.id,
            cause=redact_quotations(more.pop("cause", "")) or (rule.cause if verdict in ("fail", "warn") else ""),
            evidence=tuple(redact_quotations(str(line)) for line in evidence),
            entries=tuple(sorted(numbers)[-_MAX_ENTRIES:]),
            seconds=round(more.pop("seconds", 0.0), 3),
            **more,
        )
        self.outcomes.append(outcome)
        self._watcher.case_done(outcome)


def redact_quotations(text: str) -> str:
    """Return a text of the checker without what looks secret in its quotations of the peer, which begin with a quote, a
    bracket or a form of secrets. What stands before is of the checker: "without a token: HTTP 200" has no secret.
    """
    found = _QUOTATION(text)
    if found is None:
        return text
    start = 1 + max(text.rfind(" ", 0, found.start()), text.rfind("\n", 0, found.start()))
    return text[:start] + redact_beginning(text[start:])


def failing_verdict(rule: Rule) -> Verdict:
    """Return the verdict on a broken rule."""
    return "fail" if rule.level == "must" else "warn"
