"""Every sentence that the map must have a line for, wherever it stands: its id, and its levels.

The pages of the five revisions are read from a list beside the specification: `ACCORD_SPEC_REQUIREMENTS`, else
`requirements.jsonl` in `shared/spec` beside the checkout. All else has a list of its own here, in `sentences/`, with
one line per sentence: its id, its levels (`MUST, SHOULD NOT`; `must` where the word is not in capitals; `-` where there
is none) and whatever tells a person, or a test, which sentence is meant. Never the text.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

PAGES = Path(
    os.environ.get("ACCORD_SPEC_REQUIREMENTS") or Path(__file__).parents[3] / "shared" / "spec" / "requirements.jsonl"
)

LISTS = Path(__file__).parent / "sentences"


class Wanted(NamedTuple):
    """One sentence: `2025-11-25/server/tools#07`, and `("MUST", "MAY")`."""

    id: str
    levels: tuple[str, ...]


@cache
def wanted() -> tuple[Wanted, ...]:
    """The sentences of all sources."""
    return (*_of_pages(), *(each for path in sorted(LISTS.glob("*.tsv")) for each in _listed(path)))


def rows(path: Path) -> Iterator[list[str]]:
    """The columns of each line of a list."""
    yield from (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())


def _of_pages() -> Iterator[Wanted]:
    for line in PAGES.read_text(encoding="utf-8").splitlines():
        sentence = json.loads(line)
        yield Wanted(sentence["id"], tuple(sentence["levels"]))


def _listed(path: Path) -> Iterator[Wanted]:
    for id, levels, *_ in rows(path):
        yield Wanted(id, () if levels == "-" else tuple(levels.split(", ")))
