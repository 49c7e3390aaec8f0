"""The rules of the protocol as tests, one for each:

    from accord.testing import check_rules

    test_protocol = check_rules("weather.py")        # test_protocol[tools/unknown-name], ...

The server is checked once, by the first test that is run; each test then tells what came of its rule.
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


class RuleWarning(UserWarning):
    """A server breaks a rule that is no MUST."""


def check_rules(
    target: Target | None = None, *, baseline: str | Path | None = None, strict: bool = False, **settings: Any
) -> Callable[..., None]:
    """A test for each rule, to be given a name that pytest collects.

    `target` is what `accord check` takes, or a `Server`; without one it is the fixture `accord_server`. The name of a
    file counts from the test's folder. `settings` are those of `accord.check.settings.CheckSettings`: `revisions`,
    `transports`, `only`, `skip`, `level`, `call_tools`. What breaks a MUST fails; what breaks a SHOULD is a
    `RuleWarning`, or fails too with `strict`. A rule that was not judged is skipped, with the reason. Of what stands in
    the file `baseline`, a failure is expected.

    Raises `TargetError` for settings that fit no rule.
    """
    chosen = CheckSettings(**settings)
    check = _ServerCheck(target, chosen, baseline, strict)

    @pytest.mark.parametrize("rule", select_rules(server_rules(), chosen), ids=lambda rule: rule.id)
    def test_rule(rule: Rule, request: pytest.FixtureRequest) -> None:
        check.report(rule, request)

    return test_rule


class _ServerCheck:
    """One server, checked when the first of its tests is run: once in each process."""

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
        """Pass, fail, warn or skip: what came of a rule."""
        report = self._get_report(request)
        if stale := [entry for entry in report.stale if entry.split(" ")[0] == rule.id]:
            pytest.fail(f"{stale[0]} does not fail any more; take it out of {self._baseline}", pytrace=False)
        outcomes = by_rule(report.outcomes).get(rule.id)
        if not outcomes:
            pytest.skip("not tried: in no revision over any transport that the server has")
        verdict = worst_verdict(each.verdict for each in outcomes)
        if verdict in ("not-applicable", "not-observed"):
            pytest.skip("; ".join(dict.fromkeys(each.text for each in outcomes if each.text)) or verdict)
        if verdict != "pass":
            self._fail(rule, verdict, report)

    def _fail(self, rule: Rule, verdict: str, report: Report) -> None:
        found = [each for each in report.findings if rule.id in (each.rule, *each.also)]
        if found and all(each.known for each in found):
            pytest.xfail(f"{self._baseline} accepts it")
        broken = [each for each in report.outcomes if each.rule == rule.id and each.verdict in ("fail", "warn")]
        rules = {each.id: each for each in server_rules()}
        text = "\n".join(
            _lines(rule, broken, repeat_command(broken[0], rules, report.target, self._settings, "server"))
        )
        if verdict == "fail" or self._strict:
            pytest.fail(text, pytrace=False)
        warnings.warn(RuleWarning(text), stacklevel=2)

    def _get_report(self, request: pytest.FixtureRequest) -> Report:
        if self._report is None and not self._error:
            target = request.getfixturevalue("accord_server") if self._target is None else self._target
            try:
                self._report = self._run(_relative_to_test(target, request.path.parent), request.path.parent)
            except AccordError as exc:
                self._error = f"the server could not be checked: {exc}"
        if self._report is None:
            pytest.fail(self._error, pytrace=False)
        return self._report

    def _run(self, target: Any, folder: Path) -> Report:
        """Check, on a thread of its own: this one may run an event loop."""
        with ThreadPoolExecutor(1, "accord check") as thread:
            report = thread.submit(lambda: asyncio.run(check_server(target, self._settings))).result()
        if self._baseline is None:
            return report
        return baselines.apply(report, baselines.load(folder / self._baseline))


def _relative_to_test(target: Any, folder: Path) -> Any:
    """A file that is named without its folder is looked for beside the test."""
    if not isinstance(target, str) or ".py" not in target:
        return target
    file = folder / target
    return str(file) if Path(str(file).partition(".py:")[0].removesuffix(".py") + ".py").is_file() else target


def _lines(rule: Rule, broken: list[Outcome], command: str) -> Iterator[str]:
    """What is wrong, for people: where, what was seen, what the rule wants, why, and how to see it again."""
    places = dict.fromkeys(f"{each.revision} over {each.transport}" for each in broken)
    yield f"{rule.id} ({rule.level}), in {', '.join(places)}"
    yield from (f"  seen:   {text}" for text in dict.fromkeys(each.text for each in broken))
    yield f"  wanted: {rule.says}"
    if cause := broken[0].cause or rule.cause:
        yield f"  cause:  {cause}"
    yield from (f"  {line}" for line in broken[0].evidence)
    yield from (f"  see:    {place}" for place in spec_urls(rule.at, broken[0].revision))
    if command:
        yield f"  repeat: {command}"
