"""Rules that show or hide by name and by tag; the last rule that matches decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from accord.errors import DeclarationError
from accord.server.compose.uri_spelling import all_canonical, all_spellings, canonical, spellings


class VisibilityRule(msgspec.Struct, frozen=True):
    """One of them."""

    shown: bool
    names: frozenset[str]
    tags: frozenset[str]

    def matches(self, names: Collection[str], tags: Collection[str]) -> bool:
        """Whether it says anything about a thing that has these names: URIs in any spelling where it hides, only in
        equal ones where it shows.
        """
        if not self.names.isdisjoint(names) or not self.tags.isdisjoint(tags):
            return True
        if not any(":" in name for name in names):
            return False
        if self.shown:
            return not all_canonical(self.names).isdisjoint(map(canonical, names))
        return any(not all_spellings(self.names).isdisjoint(spellings(name)) for name in names)


class VisibilityRules(msgspec.Struct, frozen=True):
    """What was said so far, as it can be kept."""

    rules: tuple[VisibilityRule, ...] = ()
    otherwise: bool = True
    """Whether that is shown of which nothing was said."""


class Visibility:
    """Rules of a server, or of one session. Names are those of tools and prompts, URIs, and texts of templates."""

    def __init__(self, said: VisibilityRules | None = None) -> None:
        self.rules: VisibilityRules = said or VisibilityRules()

    def __bool__(self) -> bool:
        """Whether anything can be hidden."""
        return bool(self.rules.rules) or not self.rules.otherwise

    def set(self, shown: bool, names: Iterable[str], tags: Iterable[str], *, only: bool = False) -> None:
        """Show or hide these; with `only`, hide all others, whatever was said before. Raises `DeclarationError`."""
        rule = VisibilityRule(shown, frozenset(names), words("tags", tags))
        if not rule.names and not rule.tags:
            raise DeclarationError("enable() and disable() need a name or tags={...}")
        before = VisibilityRules(otherwise=False) if only else self.rules
        self.rules = VisibilityRules((*(each for each in before.rules if each != rule), rule), before.otherwise)

    def is_visible(self, names: Collection[str], tags: Collection[str]) -> bool:
        """Whether a thing with these names is seen: most have one, a URI of a template has the text of that as well."""
        for rule in reversed(self.rules.rules):
            if rule.matches(names, tags):
                return rule.shown
        return self.rules.otherwise


def words(what: str, words: Iterable[str]) -> frozenset[str]:
    """A set of words; a single text is a mistake that would be taken for its letters. Raises `DeclarationError`."""
    if isinstance(words, str):
        raise DeclarationError(f"{what}= must be a set of strings, not a string: write {what}={{{words!r}}}")
    return frozenset(words)
