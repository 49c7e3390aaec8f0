"""Which rules are tried."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from accord.check.rule import Rule
from accord.check.settings import CheckSettings
from accord.errors import TargetError


def selected(rules: Iterable[Rule], settings: CheckSettings) -> list[Rule]:
    """Those that the settings want. Raises `TargetError` for a pattern that fits no rule."""
    every = list(rules)
    for pattern in (*settings.only, *settings.skip):
        if not any(_fits(rule, pattern) for rule in every):
            areas = ", ".join(dict.fromkeys(rule.area for rule in every))
            raise TargetError(f"no rule is called {pattern!r}; the areas are {areas}")
    return [
        rule
        for rule in every
        if settings.takes(rule.level)
        and (not settings.only or any(_fits(rule, pattern) for pattern in settings.only))
        and not any(_fits(rule, pattern) for pattern in settings.skip)
    ]


def _fits(rule: Rule, pattern: str) -> bool:
    return pattern == rule.area or fnmatchcase(rule.id, pattern)
