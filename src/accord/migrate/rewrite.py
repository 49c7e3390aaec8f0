"""One program rewritten: `rewrite(text)` gives the new text, and what is left to do by hand.

Fields that are read in the spelling of the wire: mcp 1 has `result.isError`, accord `result.is_error`.

Whose attribute it is cannot be told from a syntax tree, so it is not rewritten.

What of a program can be written in accord's own words, and the edits that do it.

A server and its contexts change together or not at all: what one call of it needs from `accord.compat` keeps the rest
there. Types of the protocol change one by one. Whatever is not certain stays, and is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

from msgspec import StructMeta

from accord.compat import types
from accord.migrate.context_edits import CONTEXT, context_edits
from accord.migrate.edits import Edit, ManualStep, SourceText
from accord.migrate.imports import ImportedName, foreign_imports, import_edits, imported_names
from accord.migrate.server_edits import SAME, SERVERS, TYPES, server_edits, type_edits


def wire_name_steps(source: SourceText) -> Iterator[ManualStep]:
    """The attributes that look like one."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in _fields():
            yield ManualStep(
                node.lineno, f".{node.attr}: accord's types have .{_fields()[node.attr]}", is_blocking=False
            )


@cache
def _fields() -> dict[str, str]:
    """The fields of accord's types that have another name on the wire."""
    structs = [vars(types)[name] for name in types.__all__ if isinstance(vars(types)[name], StructMeta)]
    return {
        wire: name
        for struct in structs
        for wire, name in zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True)
        if wire != name and not wire.startswith("_")
    }


Names = dict[str, str]
"""A name in the program, as it was imported, and the name in `accord` that it becomes; empty where it is not used any
more.
"""


_COMPAT_ONLY = {
    *("CurrentContext", "FunctionResource", "LocalProvider", "Prompt", "PromptsAsTools", "Resolve"),
    *("ResourceSecurity", "ResourcesAsTools", "TextResource", "Tool", "prompt", "resource", "tool"),
}
"""What other servers take, and accord's own does not."""


class NativeEdits:
    """The names that become accord's own, with the edits for it, and what kept others from it."""

    def __init__(self, source: SourceText, imported: Mapping[str, ImportedName]) -> None:
        self.names: Names = {}
        self.edits: list[Edit] = []
        self.manual_steps: list[ManualStep] = []
        self._source = source
        self._imported = imported
        """Local names of what was imported, and where from."""
        self._server_edits()
        for local, found in imported.items():
            if found.name in SAME or (found.is_type and found.name in TYPES):
                self._apply({local: TYPES[found.name]}, type_edits(source, local, TYPES[found.name]))

        self._drop_unused()

    def _drop_unused(self) -> None:
        """Names that were only used in what is taken out need not be imported any more."""
        gone = [(edit.start, edit.end) for edit in self.edits if not edit.text]
        uses: dict[str, list[bool]] = {}
        for node in ast.walk(self._source.tree):
            if isinstance(node, ast.Name) and node.id in self._imported:
                start, end = self._source.span(node)
                uses.setdefault(node.id, []).append(any(a <= start and end <= b for a, b in gone))
        self.names |= {local: "" for local, removed in uses.items() if all(removed)}

    def _server_edits(self) -> None:
        servers = {local: "Server" for local, found in self._imported.items() if found.name in SERVERS}
        contexts = {local: "Context" for local, found in self._imported.items() if found.name == CONTEXT}
        words = server_edits(self._source, servers)
        found = [*self._compat_only_names(), *words, *context_edits(self._source, contexts)]
        self._apply({**servers, **contexts}, iter(found))

    def _compat_only_names(self) -> Iterator[ManualStep]:
        """Names that mean something only on a server of `accord.compat`."""
        for local, found in self._imported.items():
            if found.name in _COMPAT_ONLY and not found.is_type:
                yield ManualStep(found.line, f"{local}: only a server of accord.compat knows what it means")

    def _apply(self, names: Names, found: Iterator[Edit | ManualStep]) -> None:
        """Take all of it, or, where something is left, none."""
        words = list(found)
        left = list(dict.fromkeys(one for one in words if isinstance(one, ManualStep)))
        stops = [one for one in left if one.is_blocking]
        self.manual_steps += stops or left
        if not stops and not self._is_name_used(names):
            self.names |= names
            self.edits += [one for one in words if isinstance(one, Edit)]
            self.edits += [edit for local, name in names.items() for edit in _rename_edits(self._source, local, name)]

    def _is_name_used(self, names: Names) -> bool:
        """Whether a new name means something else in the program already."""
        used = {node.id for node in ast.walk(self._source.tree) if isinstance(node, ast.Name)}
        defined = {
            node.name
            for node in ast.walk(self._source.tree)
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        }
        return any(new != local and new in used | defined for local, new in names.items())


def _rename_edits(source: SourceText, local: str, name: str) -> Iterator[Edit]:
    if local != name:
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Name) and node.id == local:
                yield Edit(*source.span(node), name)


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
