"""The rules of the protocol as tests, one per rule:

    from accord.testing import check_rules

    test_protocol = check_rules("weather.py")        # test_protocol[tools/unknown-name], ...

The first test checks the server once; each test then reports the outcome of its rule.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from accord.check.engine import baseline as baselines
from accord.check.engine.findings import repeat_command, spec_urls
from accord.check.engine.report import Outcome, Report, by_rule, worst_verdict
from accord.check.engine.rule import Rule
from accord.check.engine.selection import select_rules
from accord.check.rules import server_rules
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.client.target import Target
from accord.errors import AccordError
from accord.visible_text import visible


class RuleWarning(UserWarning):
    """A violation of a rule that is not a MUST."""


def check_rules(
    target: Target | None = None, *, baseline: str | Path | None = None, strict: bool = False, **settings: Any
) -> Callable[..., None]:
    """Return a parametrized test with one case per rule; assign it to a name that pytest collects.

    `target` is a target of `accord check`, or a `Server`; by default the fixture `accord_server`. A relative file name
    starts at the test's folder. `settings` are those of `accord.check.settings.CheckSettings`: `revisions`,
    `transports`, `only`, `skip`, `level`, `call_tools`. A violation of a MUST fails; one of a SHOULD is a
    `RuleWarning`, or fails too with `strict`. A rule that was not judged is skipped, with the reason. A violation
    listed in the file `baseline` is an expected failure.

    Raises `TargetError` for settings that select no rule.
    """
    check_settings = CheckSettings(**settings)
    check = _ServerCheck(target, check_settings, baseline, strict)

    @pytest.mark.parametrize("rule", select_rules(server_rules(), check_settings), ids=lambda rule: rule.id)
    def test_rule(rule: Rule, request: pytest.FixtureRequest) -> None:
        check.report(rule, request)

    return test_rule


class _ServerCheck:
    """The check of one server, which the first test runs: once in each process."""

    def __init__(
        self, target: Target | None, settings: CheckSettings, baseline: str | Path | None, strict: bool
    ) -> None:
        self._target = target
        self._settings = settings
        self._baseline = baseline
        self._strict = strict
        self._report: Report | None = None
        self._error = ""

    def report(self, rule: Rule, request: pytest.FixtureRequest) -> None:
        """Pass, fail, warn or skip the test by the outcome of its rule."""
        report = self._get_report(request)
        if stale := [entry for entry in report.stale if entry.split(" ")[0] == rule.id]:
            pytest.fail(f"{stale[0]} no longer fails; remove it from {self._baseline}", pytrace=False)
        outcomes = by_rule(report.outcomes).get(rule.id)
        if not outcomes:
            pytest.skip("not checked: the rule applies to no revision and transport of the server")
        verdict = worst_verdict(each.verdict for each in outcomes)
        if verdict in ("not-applicable", "not-observed"):
            pytest.skip(visible("; ".join(dict.fromkeys(each.text for each in outcomes if each.text))) or verdict)
        if verdict != "pass":
            self._fail(rule, verdict, report)

    def _fail(self, rule: Rule, verdict: str, report: Report) -> None:
        findings = [each for each in report.findings if rule.id in (each.rule, *each.also)]
        if findings and all(each.known for each in findings):
            pytest.xfail(f"{self._baseline} accepts it")
        violations = [each for each in report.outcomes if each.rule == rule.id and each.verdict in ("fail", "warn")]
        rules = {each.id: each for each in server_rules()}
        command = repeat_command(violations[0], rules, report.target, self._settings, "server")
        text = visible("\n".join(_lines(rule, violations, command)))
        if verdict == "fail" or self._strict:
            pytest.fail(text, pytrace=False)
        warnings.warn(RuleWarning(text), stacklevel=2)

    def _get_report(self, request: pytest.FixtureRequest) -> Report:
        if self._report is None and not self._error:
            target = request.getfixturevalue("accord_server") if self._target is None else self._target
            try:
                self._report = self._run(_relative_to_test(target, request.path.parent), request.path.parent)
            except AccordError as exc:
                self._error = visible(f"the server could not be checked: {exc}")
        if self._report is None:
            pytest.fail(self._error, pytrace=False)
        return self._report

    def _run(self, target: Any, folder: Path) -> Report:
        """Check the server in a thread, because this thread may already run an event loop."""
        with ThreadPoolExecutor(1, "accord check") as thread:
            report = thread.submit(lambda: asyncio.run(check_server(target, self._settings))).result()
        if self._baseline is None:
            return report
        return baselines.apply(report, baselines.load(folder / self._baseline))


def _relative_to_test(target: Any, folder: Path) -> Any:
    """Return a relative file name below the test's folder, if that file exists."""
    if not isinstance(target, str) or ".py" not in target:
        return target
    file = folder / target
    return str(file) if Path(str(file).partition(".py:")[0].removesuffix(".py") + ".py").is_file() else target


def _lines(rule: Rule, violations: list[Outcome], command: str) -> Iterator[str]:
    """Yield the report of a violation: where, what was seen, the rule, the cause, and how to repeat the check."""
    places = dict.fromkeys(f"{each.revision} over {each.transport}" for each in violations)
    yield f"{rule.id} ({rule.level}), in {', '.join(places)}"
    yield from (f"  seen:   {text}" for text in dict.fromkeys(each.text for each in violations))
    yield f"  wanted: {rule.says}"
    if cause := violations[0].cause or rule.cause:
        yield f"  cause:  {cause}"
    yield from (f"  {line}" for line in violations[0].evidence)
    yield from (f"  see:    {url}" for url in spec_urls(rule.at, violations[0].revision))
    if command:
        yield f"  repeat: {command}"
