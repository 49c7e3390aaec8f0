"""Selection of rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from accord.check.engine.rule import Rule
from accord.check.settings import CheckSettings
from accord.errors import TargetError


def select_rules(rules: Iterable[Rule], settings: CheckSettings) -> list[Rule]:
    """Return the rules that the settings select. Raises `TargetError` for a pattern that fits no rule."""
    every = list(rules)
    for pattern in (*settings.only, *settings.skip):
        if not any(_fits(rule, pattern) for rule in every):
            raise TargetError(f"no rule is called {pattern!r}; {_suggest(every, pattern)}")
    return [
        rule
        for rule in every
        if settings.includes_level(rule.level)
        and (not settings.only or any(_fits(rule, pattern) for pattern in settings.only))
        and not any(_fits(rule, pattern) for pattern in settings.skip)
    ]


def background_rules(rules: Iterable[Rule], wanted: Sequence[Rule], settings: CheckSettings) -> list[Rule]:
    """Return the other rules of a whole run, whose messages selected rules read; none without `whole_traffic`."""
    if not settings.whole_traffic:
        return []
    skipped = [rule for rule in rules if any(_fits(rule, pattern) for pattern in settings.skip)]
    return [rule for rule in rules if rule not in wanted and rule not in skipped]


def _fits(rule: Rule, pattern: str) -> bool:
    return pattern == rule.area or fnmatchcase(rule.id, pattern)


def _suggest(rules: list[Rule], pattern: str) -> str:
    """Name the rules of the area, or the areas, for an error message."""
    area = pattern.partition("/")[0]
    inside = [rule.id for rule in rules if rule.area == area]
    if inside:
        return f"the rules of this area are {', '.join(inside)}"
    return f"the areas are {', '.join(dict.fromkeys(rule.area for rule in rules))}"
