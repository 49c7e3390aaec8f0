"""Every sentence that the map must have a line for, wherever it stands: its id, and its levels.

Those of the pages of the five revisions are in `tests/data/sentences.tsv`, which is derived from them. All else has a
list of its own here, in `sentences/`. A line is a sentence: its id, its levels (`MUST, SHOULD NOT`; `must` where the
word is not in capitals; `-` where there is none) and whatever tells a person, or a test, which sentence is meant. Never
the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.data import SENTENCES

LISTS = Path(__file__).parent / "sentences"


class Wanted(NamedTuple):
    """One sentence: `2025-11-25/server/tools#07`, and `("MUST", "MAY")`."""

    id: str
    levels: tuple[str, ...]


@cache
def wanted() -> tuple[Wanted, ...]:
    """The sentences of all sources."""
    lists = (SENTENCES, *sorted(LISTS.glob("*.tsv")))
    return tuple(each for path in lists for each in _listed(path))


def rows(path: Path) -> Iterator[list[str]]:
    """The columns of each line of a list."""
    yield from (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())


def _listed(path: Path) -> Iterator[Wanted]:
    for id, levels, *_ in rows(path):
        yield Wanted(id, () if levels == "-" else tuple(levels.split(", ")))
