"""From outcomes to findings: what has one cause is one finding, with the bytes, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from accord.check.report import Finding, Outcome, PeerRole, Place
from accord.check.rule import Rule
from accord.check.settings import CheckSettings
from accord.check.spec_links import spec_urls

_FAILING = ("fail", "warn")


def build_findings(
    outcomes: Iterable[Outcome], rules: Mapping[str, Rule], target: str, settings: CheckSettings, role: PeerRole
) -> tuple[Finding, ...]:
    """Return the findings of these outcomes: the worst first, then in the order of the rules."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.verdict in _FAILING:
            groups.setdefault(outcome.symptom, []).append(outcome)
    found = [_finding(group, rules, target, settings, role) for group in groups.values()]
    order = {id: number for number, id in enumerate(rules)}
    return tuple(sorted(found, key=lambda each: (_FAILING.index(each.verdict), order[each.rule])))


def _finding(
    group: list[Outcome], rules: Mapping[str, Rule], target: str, settings: CheckSettings, role: PeerRole
) -> Finding:
    # the rule that the failures share as their symptom says it most plainly
    first = min(group, key=lambda each: (_FAILING.index(each.verdict), each.rule != each.symptom, group.index(each)))
    rule = rules[first.rule]
    return Finding(
        rule=rule.id,
        verdict="fail" if first.verdict == "fail" else "warn",
        level=rule.level,
        says=rule.says,
        sources=spec_urls(rule.at, first.revision),
        text=first.text,
        symptom=first.symptom,
        cause=first.cause,
        places=tuple(dict.fromkeys(Place(revision=each.revision, transport=each.transport) for each in group)),
        also=tuple(dict.fromkeys(each.rule for each in group if each.rule != rule.id)),
        cases=tuple(dict.fromkeys(each.case for each in group if each.rule == rule.id)),
        evidence=first.evidence,
        repeat=repeat_command(first, rules, target, settings, role),
    )


def repeat_command(
    outcome: Outcome, rules: Mapping[str, Rule], target: str, settings: CheckSettings, role: PeerRole
) -> str:
    """Return the command that tries this rule there again; empty for a server in this process."""
    if outcome.transport == "memory":
        return ""
    words = ["accord", "check"]
    words += [f"--client{'-stdio' if outcome.transport == 'stdio' else ''}", target] if role == "client" else [target]
    words += ["--revision", outcome.revision]
    only = _only(outcome, rules, settings, role)
    words += [word for each in only for word in ("--only", each)]
    if role == "server":
        words += ["--transport", outcome.transport]
    if settings.call_tools is True:
        words.append("--call-tools")
    else:
        words += [word for name in settings.call_tools or () for word in ("--call-tool", name)]
    if settings.trusted:
        words.append("--trusted")
    if outcome.again:
        words += outcome.again
    elif any(each.startswith("generated/") for each in only):
        words += ["--seed", str(settings.seed), "--cases", str(settings.cases)]
    words += settings.again
    return shlex.join(words)


def _only(outcome: Outcome, rules: Mapping[str, Rule], settings: CheckSettings, role: PeerRole) -> tuple[str, ...]:
    """The rule; and of what was only read the rules for whose cases it was said, or all where nobody knows those."""
    was_read = any(case.kind == "reading" and case.says == outcome.case for case in rules[outcome.rule].cases)
    if role == "client" or not was_read:
        return (outcome.rule,)
    during = set(outcome.during or ())
    cases = [(rule.id, case.says) for rule in rules.values() for case in rule.cases if case.kind != "reading"]
    if outcome.during is None or not during <= {says for _, says in cases}:
        return settings.only
    return tuple(dict.fromkeys((outcome.rule, *(id for id, says in cases if says in during))))
