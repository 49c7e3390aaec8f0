"""Findings: all outcomes with one cause, with the evidence, the sections of the specification, and the command that
repeats them.

A rule names its sections as `server/tools#error-handling`. Pages were moved, split and joined: a rule names those of
all revisions, and a report shows those of one revision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from accord.check.engine.report import Finding, Outcome, PeerRole, Place
from accord.check.engine.rule import Rule
from accord.check.settings import CheckSettings
from accord.messages.base import Life
from accord.messages.revision import is_in_revision
from accord.visible_text import shell_line

_SITE = "https://modelcontextprotocol.io/specification"

_PAGE_LIVES: dict[str, Life] = {
    "basic/messages": Life(until="2025-03-26"),
    "basic/lifecycle": Life(until="2026-07-28"),
    "basic/utilities": Life(until="2026-07-28"),
    "basic/authorization": Life(since="2025-03-26"),
    "basic/authorization/authorization-server-discovery": Life(since="2026-07-28"),
    "basic/authorization/security-considerations": Life(since="2026-07-28"),
    "basic/versioning": Life(since="2026-07-28"),
    "basic/patterns": Life(since="2026-07-28"),
    "server/discover": Life(since="2026-07-28"),
    "schema": Life(since="2025-06-18"),
}
"""Revisions of pages, and of folders of pages, that not all revisions have."""


def spec_url(place: str, revision: str) -> str:
    """Return the URL of a section in a revision; a URL without changes."""
    page, sign, section = place.partition("#")
    return place if "://" in place else f"{_SITE}/{revision}/{page.removesuffix('/index')}{sign}{section}"


def spec_urls(places: Sequence[str], revision: str) -> tuple[str, ...]:
    """Return the sections of a rule that a revision has; all if it has none."""
    return tuple(
        spec_url(place, revision) for place in [each for each in places if _exists_in(each, revision)] or places
    )


def _exists_in(place: str, revision: str) -> bool:
    page = place.partition("#")[0]
    life = _PAGE_LIVES.get(page) or _PAGE_LIVES.get(page.rpartition("/")[0])
    return life is None or is_in_revision(revision, *life)


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
        entries=first.entries,
        repeat=repeat_command(first, rules, target, settings, role),
    )


def repeat_command(
    outcome: Outcome, rules: Mapping[str, Rule], target: str, settings: CheckSettings, role: PeerRole
) -> str:
    """Return the command that repeats a case; empty for a server in this process."""
    if outcome.transport == "memory":
        return ""
    words = ["accord", "check"]
    option = {"client": f"--client{'-stdio' if outcome.transport == 'stdio' else ''}"}
    option["authorization server"] = "--authorization-server"
    words += [option[role], target] if role in option else [target]
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
    return shell_line(words)


def _only(outcome: Outcome, rules: Mapping[str, Rule], settings: CheckSettings, role: PeerRole) -> tuple[str, ...]:
    """Return the rule; for a reading rule also the rules of the cases that sent the messages, or all if they are
    unknown.
    """
    was_read = any(case.kind == "reading" and case.says == outcome.case for case in rules[outcome.rule].cases)
    if role == "client" or not was_read:
        return (outcome.rule,)
    during = set(outcome.during or ())
    cases = [(rule.id, case.says) for rule in rules.values() for case in rule.cases if case.kind != "reading"]
    if outcome.during is None or not during <= {says for _, says in cases}:
        return settings.only
    return tuple(dict.fromkeys((outcome.rule, *(id for id, says in cases if says in during))))
