"""The two ways of a schema: clients fill in what a tool takes, and read what it gives. What changes mean to them."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

_T = TypeVar("_T")


class Direction(NamedTuple):
    """Who keeps to which schema, and what is said of it."""

    is_input: bool
    """Whether old clients send values, that the new schema judges; otherwise new values come, judged by the old one."""
    wider: str
    """Nothing is refused that was not refused before."""
    narrower: str
    """Something is, and this is an example."""
    some: str
    """The same, without an example."""
    unclear: str
    types: str
    """Types that are not let pass any more follow."""
    taken: str
    """A new member was something else before."""
    more: str
    """Members that are not named, of which nothing was said, are forbidden now or may come now."""

    def writer_and_reader(self, old: _T, new: _T) -> tuple[_T, _T]:
        """The schema by which values are made, and the one that judges them."""
        return (old, new) if self.is_input else (new, old)


INPUT = Direction(
    is_input=True,
    wider="all that was accepted still is",
    narrower="was accepted, and is refused now",
    some="not all that was accepted still is",
    unclear="it cannot be told whether all that was accepted still is",
    types="old clients may send",
    taken="old clients were free to use the name for something else",
    more="who sends more than is named is refused now",
)

OUTPUT = Direction(
    is_input=False,
    wider="all that may come was expected before",
    narrower="may come now, and was ruled out",
    some="what old clients do not expect may come",
    unclear="it cannot be told whether all that may come was expected before",
    types="old clients do not expect",
    taken="old clients expect something else under that name",
    more="more than is named may come now",
)
