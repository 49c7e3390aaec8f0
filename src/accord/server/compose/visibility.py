"""Who sees what: rules that show or hide by name and by tag, the last one that says anything about a thing decides."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from accord.errors import DeclarationError


class _Rule(msgspec.Struct, frozen=True):
    shown: bool
    names: frozenset[str]
    tags: frozenset[str]

    def speaks_of(self, name: str, tags: Collection[str]) -> bool:
        return name in self.names or not self.tags.isdisjoint(tags)


class Visibility:
    """Rules of a server, or of one session. Names are those of tools and prompts, URIs, and texts of templates."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []
        self._otherwise = True

    def __bool__(self) -> bool:
        """Whether anything can be hidden."""
        return bool(self._rules) or not self._otherwise

    def set(self, shown: bool, names: Iterable[str], tags: Iterable[str], *, only: bool = False) -> None:
        """Show or hide these; with `only`, hide all others, whatever was said before. Raises `DeclarationError`."""
        rule = _Rule(shown, frozenset(names), words("tags", tags))
        if not rule.names and not rule.tags:
            raise DeclarationError("name what is to be shown or hidden: by its name, or by tags={...}")
        if only:
            self._rules, self._otherwise = [], False
        if rule in self._rules:
            self._rules.remove(rule)
        self._rules = [*self._rules, rule]

    def shows(self, name: str, tags: Collection[str]) -> bool:
        """Whether it is seen."""
        for rule in reversed(self._rules):
            if rule.speaks_of(name, tags):
                return rule.shown
        return self._otherwise


def words(what: str, words: Iterable[str]) -> frozenset[str]:
    """A set of words; a single text is a mistake that would be taken for its letters. Raises `DeclarationError`."""
    if isinstance(words, str):
        raise DeclarationError(f"{what} are a set of texts: {what}={{{words!r}}}")
    return frozenset(words)
