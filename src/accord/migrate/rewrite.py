"""One program rewritten: `rewrite(text)` gives the new text, and what is left to do by hand."""

from __future__ import annotations

from typing import NamedTuple

from accord.migrate.edits import Edit, ManualStep, SourceText
from accord.migrate.imports import foreign_imports, import_edits, imported_names
from accord.migrate.native import NativeEdits
from accord.migrate.wire_names import wire_name_steps


class RewriteResult(NamedTuple):
    """The new text, and what is left, by line of the old one."""

    text: str
    manual_steps: list[ManualStep]
    foreign: bool = False
    """Whether the program imported another library, or what stands for one here."""


def rewrite(text: str, *, native: bool = False) -> RewriteResult:
    """Rewrite the imports of other libraries to `accord.compat`; with `native`, what is plain to accord's own words.

    Raises `SyntaxError` for a text that is no program.
    """
    source = SourceText(text)
    words = NativeEdits(source, imported_names(source)) if native else None
    found = list(import_edits(source, words.names if words else {}))
    edits = [one for one in found if isinstance(one, Edit)] + (words.edits if words else [])
    left = [one for one in found if isinstance(one, ManualStep)] + (words.manual_steps if words else [])
    if edits:
        left += wire_name_steps(source)
    return RewriteResult(source.with_edits(edits), sorted(left), any(foreign_imports(source)))
