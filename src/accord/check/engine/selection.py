"""Selection of rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from accord.check.engine.rule import Rule
from accord.check.settings import CheckSettings
from accord.errors import TargetError


def select_rules(rules: Iterable[Rule], settings: CheckSettings) -> list[Rule]:
    """Return the rules that the settings select. Raises `TargetError` for a pattern that fits no rule."""
    every = list(rules)
    only = _matching(every, settings.only)
    skip = _matching(every, settings.skip)
    return [
        rule
        for rule in every
        if settings.includes_level(rule.level) and (not settings.only or rule.id in only) and rule.id not in skip
    ]


def background_rules(rules: Collection[Rule], wanted: Sequence[Rule], settings: CheckSettings) -> list[Rule]:
    """Return the other rules of a whole run, whose messages selected rules read; none without `whole_traffic`."""
    if not settings.whole_traffic:
        return []
    left_out = {rule.id for rule in wanted} | _matching(rules, settings.skip)
    return [rule for rule in rules if rule.id not in left_out]


def _matching(rules: Collection[Rule], patterns: Iterable[str]) -> set[str]:
    """The ids of the rules that a pattern fits: the name of an area, an id, or one with `*` and `?`."""
    ids = {rule.id for rule in rules}
    areas: dict[str, set[str]] = {}
    for each in ids:
        areas.setdefault(each.partition("/")[0], set()).add(each)
    matching: set[str] = set()
    for pattern in patterns:
        fitting = areas.get(pattern) or ({pattern} & ids) or {each for each in ids if fnmatchcase(each, pattern)}
        if not fitting:
            raise TargetError(f"no rule is called {pattern!r}; {_suggest(rules, pattern)}")
        matching |= fitting
    return matching


def _suggest(rules: Collection[Rule], pattern: str) -> str:
    """Name the rules of the area, or the areas, for an error message."""
    area = pattern.partition("/")[0]
    inside = [rule.id for rule in rules if rule.area == area]
    if inside:
        return f"the rules of this area are {', '.join(inside)}"
    return f"the areas are {', '.join(dict.fromkeys(rule.area for rule in rules))}"
