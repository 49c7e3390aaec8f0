"""Visibility rules by name and by tag; the last rule that matches decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from accord.errors import DeclarationError
from accord.server.compose.uri_spelling import all_canonical, all_spellings, canonical, spellings


class VisibilityRule(msgspec.Struct, frozen=True):
    """A rule that shows or hides registrations by name or tag."""

    shown: bool
    names: frozenset[str]
    tags: frozenset[str]

    def matches(self, names: Collection[str], tags: Collection[str]) -> bool:
        """Return whether the rule applies to a registration with these names. URIs match in any spelling for a rule
        that hides, and only in equal spellings for one that shows.
        """
        if not self.names.isdisjoint(names) or not self.tags.isdisjoint(tags):
            return True
        if not any(":" in name for name in names):
            return False
        if self.shown:
            return not all_canonical(self.names).isdisjoint(map(canonical, names))
        return any(not all_spellings(self.names).isdisjoint(spellings(name)) for name in names)


class VisibilityRules(msgspec.Struct, frozen=True):
    """An immutable list of rules."""

    rules: tuple[VisibilityRule, ...] = ()
    otherwise: bool = True
    """Whether registrations that no rule matches are shown."""


class Visibility:
    """The visibility rules of a server or of one session, by names of tools and prompts, URIs, and texts of
    templates.
    """

    def __init__(self, rules: VisibilityRules | None = None) -> None:
        self.rules: VisibilityRules = rules or VisibilityRules()

    def __bool__(self) -> bool:
        """Return whether any registration can be hidden."""
        return bool(self.rules.rules) or not self.rules.otherwise

    def set(self, shown: bool, names: Iterable[str], tags: Iterable[str], *, only: bool = False) -> None:
        """Show or hide registrations; with `only`, replace all earlier rules and hide all others. Raises
        `DeclarationError`.
        """
        rule = VisibilityRule(shown, frozenset(names), words("tags", tags))
        if not rule.names and not rule.tags:
            raise DeclarationError("enable() and disable() need a name or tags={...}")
        before = VisibilityRules(otherwise=False) if only else self.rules
        self.rules = VisibilityRules((*(each for each in before.rules if each != rule), rule), before.otherwise)

    def is_visible(self, names: Collection[str], tags: Collection[str]) -> bool:
        """Return whether a registration with these names is shown: most have one, a URI of a template also has its
        text.
        """
        for rule in reversed(self.rules.rules):
            if rule.matches(names, tags):
                return rule.shown
        return self.rules.otherwise


def words(what: str, words: Iterable[str]) -> frozenset[str]:
    """Return a set of words. Raises `DeclarationError` for a single string, whose letters would otherwise be the
    words.
    """
    if isinstance(words, str):
        raise DeclarationError(f"{what}= must be a set of strings, not a string: write {what}={{{words!r}}}")
    return frozenset(words)
