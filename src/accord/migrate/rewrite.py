"""One program rewritten: `rewrite(text)` gives the new text, and what is left to do by hand."""

from __future__ import annotations

from typing import NamedTuple

from accord.migrate.edits import Edit, Left, Source
from accord.migrate.imports import foreign_imports, imported_names, rewritten_imports
from accord.migrate.native import Native
from accord.migrate.spellings import wire_spellings


class Rewritten(NamedTuple):
    """The new text, and what is left, by line of the old one."""

    text: str
    left: list[Left]
    foreign: bool = False
    """Whether the program imported another library, or what stands for one here."""


def rewrite(text: str, *, native: bool = False) -> Rewritten:
    """Rewrite the imports of other libraries to `accord.compat`; with `native`, what is plain to accord's own words.

    Raises `SyntaxError` for a text that is no program.
    """
    source = Source(text)
    words = Native(source, imported_names(source)) if native else None
    found = list(rewritten_imports(source, words.names if words else {}))
    edits = [one for one in found if isinstance(one, Edit)] + (words.edits if words else [])
    left = [one for one in found if isinstance(one, Left)] + (words.left if words else [])
    if edits:
        left += wire_spellings(source)
    return Rewritten(source.with_edits(edits), sorted(left), any(foreign_imports(source)))
