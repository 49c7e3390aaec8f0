"""From outcomes to findings: what has one cause is one finding, with the bytes, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from accord.check.places import urls
from accord.check.report import Finding, Outcome, PeerRole, Place
from accord.check.rule import Rule
from accord.check.settings import CheckSettings

_BAD = ("fail", "warn")


def findings(
    outcomes: Iterable[Outcome], rules: Mapping[str, Rule], target: str, settings: CheckSettings, role: PeerRole
) -> tuple[Finding, ...]:
    """The worst first, then in the order of the rules."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.verdict in _BAD:
            groups.setdefault(outcome.symptom, []).append(outcome)
    found = [_finding(group, rules, target, settings, role) for group in groups.values()]
    order = {id: number for number, id in enumerate(rules)}
    return tuple(sorted(found, key=lambda each: (_BAD.index(each.verdict), order[each.rule])))


def _finding(
    group: list[Outcome], rules: Mapping[str, Rule], target: str, settings: CheckSettings, role: PeerRole
) -> Finding:
    # the rule that the failures share as their symptom says it most plainly
    first = min(group, key=lambda each: (_BAD.index(each.verdict), each.rule != each.symptom, group.index(each)))
    rule = rules[first.rule]
    places = dict.fromkeys((each.revision, each.transport) for each in group)
    return Finding(
        rule=rule.id,
        verdict="fail" if first.verdict == "fail" else "warn",
        level=rule.level,
        says=rule.says,
        sources=urls(rule.at, first.revision),
        text=first.text,
        cause=first.cause,
        places=tuple(Place(revision=revision, transport=transport) for revision, transport in places),
        also=tuple(dict.fromkeys(each.rule for each in group if each.rule != rule.id)),
        cases=tuple(dict.fromkeys(each.case for each in group if each.rule == rule.id)),
        evidence=first.evidence,
        repeat=repeat(first, rule, target, settings, role),
    )


def repeat(outcome: Outcome, rule: Rule, target: str, settings: CheckSettings, role: PeerRole) -> str:
    """The command line that tries this rule there again; empty for a server in this process, which no command has.

    What was only read may have come for a case of any rule: then all is tried again that was tried.
    """
    if outcome.transport == "memory":
        return ""
    words = ["accord", "check"]
    words += [f"--client{'-stdio' if outcome.transport == 'stdio' else ''}", target] if role == "client" else [target]
    words += ["--revision", outcome.revision]
    only = settings.only if role == "server" and _was_read(outcome, rule) else (outcome.rule,)
    words += [word for each in only for word in ("--only", each)]
    if role == "server":
        words += ["--transport", outcome.transport]
    if settings.call_tools is True:
        words.append("--call-tools")
    else:
        words += [word for name in settings.call_tools or () for word in ("--call-tool", name)]
    if settings.trusted:
        words.append("--trusted")
    if outcome.rule.startswith("generated/"):
        words += ["--seed", str(settings.seed), "--cases", str(settings.cases)]
    words += settings.again
    return shlex.join(words)


def _was_read(outcome: Outcome, rule: Rule) -> bool:
    return any(case.kind == "reading" and case.says == outcome.case for case in rule.cases)
