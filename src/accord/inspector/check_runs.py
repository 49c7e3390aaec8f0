"""Runs of `accord check` on servers of the inspector: their results while they run, and a session file for each.

A check works for seconds at a time, so it has a thread with an event loop of its own, and pages and connections do not
wait for it; only that of a server in this process runs in the loop of the server. All results are stored in the loop of
the inspector.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from accord.check.engine import baseline as baselines
from accord.check.engine.baseline import Baseline
from accord.check.engine.findings import build_findings
from accord.check.engine.report import Finding, Outcome, Report, Visit
from accord.check.engine.selection import select_rules
from accord.check.rules import server_rules
from accord.check.settings import CheckSettings
from accord.client.target import Command, InProcessServer, Remote
from accord.errors import AccordError, describe
from accord.inspector.check_views import CheckProgress, CheckState, OpenedSession, RuleOutcomes, VisitProgress
from accord.inspector.commands import InspectorError
from accord.inspector.repeat_command import repeatable_target
from accord.inspector.servers import InspectedServer, InspectedTarget
from accord.redaction import secret_values
from accord.transport.recording import SessionRecorder
from accord.transport.session_writer import SessionFileWriter

SESSION_BYTES = 256 << 20
"""The size limit of the session file of a check."""
_MOST_RUNS = 10
_MOST_RUNNING = 2
_CLOSE_SECONDS = 15.0


class CheckRun:
    """One check of a server. `on_change()` is called when a result is there."""

    def __init__(
        self,
        number: int,
        server: InspectedServer,
        settings: CheckSettings,
        file: Path,
        on_change: Callable[[], None],
        *,
        baseline: Baseline | None = None,
    ) -> None:
        self.number: int = number
        self.server: str = server.name
        self.file: Path = file
        """The session file with all messages."""
        self.label: str = repeatable_target(server)
        self.settings: CheckSettings = settings
        self.baseline: Baseline | None = baseline
        """The accepted findings, which the report marks."""
        self.state: CheckState = "running"
        self.error: str = ""
        self.report: Report | None = None
        self.visits: dict[tuple[str, str], VisitProgress] = {}
        self._target = without_login(server.target) if settings.tokens or settings.issuer else server.target
        self._outcomes: dict[str, list[Outcome]] = {}
        self._rules = {rule.id: rule for rule in server_rules()}
        self._on_change = on_change
        self.opened: OpenedSession = OpenedSession("")
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the check; None before it begins."""
        self._stop: asyncio.Event | None = None

    # --- the run -----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Check the server, and store the results; errors of the check become its state."""
        loop = asyncio.get_running_loop()
        checking = self._check(_LoopWatcher(loop, self))
        if isinstance(self._target, InProcessServer):
            work: asyncio.Future[Report] = asyncio.ensure_future(checking)
        else:
            work = asyncio.ensure_future(asyncio.to_thread(asyncio.run, checking))
        try:
            report = await asyncio.shield(work)
            self.report = report if self.baseline is None else baselines.apply(report, self.baseline)
            self.state = "stopped" if self.report.interrupted else "done"
        except asyncio.CancelledError:
            self.stop()
            await asyncio.wait([work], timeout=_CLOSE_SECONDS)
            raise
        except AccordError as exc:
            self.state, self.error = "failed", str(exc)
        except Exception as exc:  # a defect of the checker
            self.state, self.error = "failed", f"a defect in the checker: {describe(exc)}"
        self._on_change()

    async def _check(self, watcher: _LoopWatcher) -> Report:
        """Check the server, in the loop that runs this."""
        from accord.check.server import check_server

        self.loop = asyncio.get_running_loop()
        self._stop = stop = asyncio.Event()
        if self.state == "stopping":
            stop.set()
        writer = SessionFileWriter(self.file, limit=SESSION_BYTES)
        recorder = SessionRecorder(writer)
        recorder.begin(self.label or self.server)
        recorder.add_secrets([*_secrets_of(self._target), *self.settings.tokens])
        settings = msgspec.structs.replace(self.settings, record=recorder)
        try:
            return await check_server(self._target, settings, watcher, label=self.label or self.server, stop=stop)
        finally:
            writer.close()

    def stop(self, error: str = "") -> None:
        """End the run soon, because of an error if one is given; the findings so far stay."""
        if self.state == "running":
            self.state, self.error = "stopping", error
            self._on_change()
        if self.loop is not None and self._stop is not None:
            _call_soon(self.loop, self._stop.set)

    @property
    def is_running(self) -> bool:
        """Return whether the run has not ended."""
        return self.state in ("running", "stopping")

    # --- the watcher -------------------------------------------------------------------------------------------

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        """See `Watcher`."""
        self.visits[revision, transport] = VisitProgress(revision=revision, transport=transport, total=total)
        self._on_change()

    def case_done(self, outcome: Outcome) -> None:
        """See `Watcher`."""
        self._outcomes.setdefault(outcome.rule, []).append(outcome)
        visit = self.visits.get((outcome.revision, outcome.transport))
        if visit is not None:
            visit.done += 1
            visit.failed += outcome.verdict == "fail"
            visit.warned += outcome.verdict == "warn"
        self._on_change()

    def visit_ended(self, visit: Visit) -> None:
        """See `Watcher`."""
        progress = self.visits.get((visit.revision, visit.transport))
        if progress is not None:
            progress.visit = visit
        self._on_change()

    # --- results -----------------------------------------------------------------------------------------------

    def progress(self) -> CheckProgress:
        """Return the progress."""
        visits = self.visits.values()
        return CheckProgress(
            run=self.number,
            server=self.server,
            state=self.state,
            done=sum(each.done for each in visits),
            failed=sum(each.failed for each in visits),
            warned=sum(each.warned for each in visits),
        )

    def results(self) -> Iterator[RuleOutcomes]:
        """Yield the rules with an outcome, in the order of the rules."""
        for id, rule in self._rules.items():
            if id in self._outcomes:
                yield RuleOutcomes(rule, self._outcomes[id])

    def result(self, rule: str) -> RuleOutcomes:
        """Return the outcomes of a rule. Raises `InspectorError`."""
        if rule not in self._outcomes:
            raise InspectorError(f"the rule {rule!r:.100} has no result yet", "wait for it", status=404)
        return RuleOutcomes(self._rules[rule], self._outcomes[rule])

    def is_accepted(self, rule: str) -> bool:
        """Return whether the baseline accepts all findings about a rule; it is applied at the end."""
        if self.report is None or self.baseline is None:
            return False
        found = self.findings(rule)
        return bool(found) and all(each.known for each in found)

    def findings(self, rule: str) -> list[Finding]:
        """Return the findings that are about a rule; also those whose cause breaks others, too."""
        if self.report is not None:
            return [each for each in self.report.findings if rule in (each.rule, *each.also)]
        symptoms = {each.symptom for each in self.result(rule).outcomes if each.verdict in ("fail", "warn")}
        together = [each for found in self._outcomes.values() for each in found if each.symptom in symptoms]
        return list(build_findings(together, self._rules, self.label, self.settings, "server"))


class _LoopWatcher:
    """Passes the events of a check to its run, in the loop of the inspector."""

    def __init__(self, loop: asyncio.AbstractEventLoop, run: CheckRun) -> None:
        self._loop = loop
        self._run = run

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        _call_soon(self._loop, self._run.visit_began, revision, transport, total)

    def case_done(self, outcome: Outcome) -> None:
        _call_soon(self._loop, self._run.case_done, outcome)

    def visit_ended(self, visit: Visit) -> None:
        _call_soon(self._loop, self._run.visit_ended, visit)


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    """Call a function in the loop of another thread, unless that has ended."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)


class CheckRuns:
    """The last runs of an inspector. `publish` gets the progress of the last run of each server."""

    def __init__(self, publish: Callable[[list[CheckProgress]], None]) -> None:
        self._publish = publish
        self._runs: dict[int, CheckRun] = {}
        self._number = 0

    def start(
        self, server: InspectedServer, settings: CheckSettings, folder: Path, baseline: Baseline | None = None
    ) -> CheckRun:
        """Return a new run, which the caller runs; its session file is in a folder. Raises `InspectorError`."""
        running = [each for each in self._runs.values() if each.is_running]
        if any(each.server == server.name for each in running):
            raise InspectorError(f"{server.name} is being checked already", "stop that check, or wait for its end")
        if len(running) >= _MOST_RUNNING:
            raise InspectorError(f"{len(running)} servers are being checked already", "wait, or stop one of them")
        self._number += 1
        file = folder / f"check-{self._number}.jsonl"
        run = CheckRun(self._number, server, settings, file, self._changed, baseline=baseline)
        self._runs[run.number] = run
        self._forget_oldest()
        self._changed()
        return run

    def get(self, number: int) -> CheckRun:
        """Return a run by number. Raises `InspectorError`."""
        if number not in self._runs:
            raise InspectorError(f"there is no check {number}", "start one", status=404)
        return self._runs[number]

    def last(self, server: str) -> CheckRun | None:
        """Return the last run of a server."""
        return next((each for each in reversed(self._runs.values()) if each.server == server), None)

    def forget(self, server: str) -> None:
        """Stop the run of a server, and forget its results."""
        for number, run in list(self._runs.items()):
            if run.server == server:
                run.stop()
                del self._runs[number]
        self._changed()

    def _forget_oldest(self) -> None:
        ended = [number for number, each in self._runs.items() if not each.is_running]
        for number in ended[: max(0, len(self._runs) - _MOST_RUNS)]:
            self._runs.pop(number).file.unlink(missing_ok=True)

    def _changed(self) -> None:
        last = {each.server: each.progress() for each in self._runs.values()}
        self._publish(list(last.values()))


def check_settings(settings: CheckSettings) -> None:
    """Raise `TargetError` for settings that select no rules, or calls that are not valid."""
    select_rules(server_rules(), settings)
    if settings.sequence:
        _check_steps(settings.sequence)


def _check_steps(text: str) -> None:
    from accord.check.fuzz.sequences import decode_steps

    decode_steps(text)


def write_report(report: Report, format: str, beside: Path) -> Path:
    """Write a report in a format of `accord check --report` beside a file, and return its own. Raises `TargetError`."""
    from accord.check.reports.formats import REPORT_FORMATS, ReportFile, write_reports

    wanted = REPORT_FORMATS[format]
    file = beside.with_suffix(wanted.suffixes[0])
    write_reports(report, [ReportFile(wanted, file)])
    return file


def write_baseline(report: Report, baseline: Baseline | None, beside: Path) -> Path:
    """Write a baseline that accepts every finding of a report beside a file, and return its own. Raises
    `TargetError`.
    """
    file = beside.with_suffix(".baseline.json")
    baselines.save(baselines.update([report], baseline or Baseline()), file)
    return file


def without_login(target: InspectedTarget) -> InspectedTarget:
    """Return a target without the login of its configuration, in place of which a token is given."""
    return msgspec.structs.replace(target, auth=None) if isinstance(target, Remote) else target


def _secrets_of(target: InspectedTarget) -> list[str]:
    return secret_values(target.env or {}) if isinstance(target, Command) else []
