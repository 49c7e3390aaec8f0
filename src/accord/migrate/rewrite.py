"""The rewriting of one program: `rewrite(text)` returns the new text and the manual steps.

A server and its contexts are rewritten to accord's own API together or not at all: one call that needs `accord.compat`
keeps the server there. Types of the protocol are rewritten one by one. Code that cannot be rewritten safely stays,
with a manual step.

Attributes in wire spelling (`result.isError` of mcp 1, `result.is_error` of accord) are reported, but not rewritten,
because the syntax tree does not show the type of the object.
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
    """Yield a step for each attribute that has the wire name of a field."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr in _fields():
            yield ManualStep(
                node.lineno, f".{node.attr}: accord's types have .{_fields()[node.attr]}", is_blocking=False
            )


@cache
def _fields() -> dict[str, str]:
    """Return the fields of accord's types that have another name on the wire."""
    structs = [vars(types)[name] for name in types.__all__ if isinstance(vars(types)[name], StructMeta)]
    return {
        wire: name
        for struct in structs
        for wire, name in zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True)
        if wire != name and not wire.startswith("_")
    }


Names = dict[str, str]
"""Maps a name in the program to its new name in `accord`, or to an empty string when it is unused after the edits."""


_COMPAT_ONLY = {
    *("CurrentContext", "FunctionResource", "LocalProvider", "Prompt", "PromptsAsTools", "Resolve"),
    *("ResourceSecurity", "ResourcesAsTools", "TextResource", "Tool", "prompt", "resource", "tool"),
}
"""Names that other servers accept, and accord's own server does not."""


class NativeEdits:
    """The edits to accord's own API: the new names, the edits, and the manual steps of names that stay."""

    def __init__(self, source: SourceText, imported: Mapping[str, ImportedName]) -> None:
        self.names: Names = {}
        self.edits: list[Edit] = []
        self.manual_steps: list[ManualStep] = []
        self._source = source
        self._imported = imported
        """The imported names by their local name."""
        self._server_edits()
        for local, imported_name in imported.items():
            if imported_name.name in SAME or (imported_name.is_type and imported_name.name in TYPES):
                self._apply({local: TYPES[imported_name.name]}, type_edits(source, local, TYPES[imported_name.name]))

        self._drop_unused()

    def _drop_unused(self) -> None:
        """Remove the imports of names that only occur in removed code."""
        removed_spans = [(edit.start, edit.end) for edit in self.edits if not edit.text]
        uses: dict[str, list[bool]] = {}
        for node in ast.walk(self._source.tree):
            if isinstance(node, ast.Name) and node.id in self._imported:
                start, end = self._source.span(node)
                uses.setdefault(node.id, []).append(any(a <= start and end <= b for a, b in removed_spans))
        self.names |= {local: "" for local, removed in uses.items() if all(removed)}

    def _server_edits(self) -> None:
        servers = {local: "Server" for local, target in self._imported.items() if target.name in SERVERS}
        contexts = {local: "Context" for local, target in self._imported.items() if target.name == CONTEXT}
        server_changes = server_edits(self._source, servers)
        changes = [*self._compat_only_names(), *server_changes, *context_edits(self._source, contexts)]
        self._apply({**servers, **contexts}, iter(changes))

    def _compat_only_names(self) -> Iterator[ManualStep]:
        """Yield a step for each name that only works with a server of `accord.compat`."""
        for local, imported_name in self._imported.items():
            if imported_name.name in _COMPAT_ONLY and not imported_name.is_type:
                yield ManualStep(imported_name.line, f"{local}: only servers of accord.compat support it")

    def _apply(self, names: Names, changes: Iterator[Edit | ManualStep]) -> None:
        """Apply all edits, or none if a blocking manual step remains or a new name is already in use."""
        all_changes = list(changes)
        steps = list(dict.fromkeys(change for change in all_changes if isinstance(change, ManualStep)))
        blocking = [change for change in steps if change.is_blocking]
        self.manual_steps += blocking or steps
        if not blocking and not self._is_name_used(names):
            self.names |= names
            self.edits += [change for change in all_changes if isinstance(change, Edit)]
            self.edits += [edit for local, name in names.items() for edit in _rename_edits(self._source, local, name)]

    def _is_name_used(self, names: Names) -> bool:
        """Return whether the program already uses a new name for something else."""
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
    """The new text, and the manual steps with lines of the original text."""

    text: str
    manual_steps: list[ManualStep]
    foreign: bool = False
    """Whether the program imports another library or a compat module."""


def rewrite(text: str, *, native: bool = False) -> RewriteResult:
    """Rewrite imports to `accord.compat`; with `native`, code that can be rewritten safely to accord's own API.

    Raises `SyntaxError` for invalid Python.
    """
    source = SourceText(text)
    if not any(foreign_imports(source)):
        return RewriteResult(text, [])
    native_edits = NativeEdits(source, imported_names(source)) if native else None
    changes = list(import_edits(source, native_edits.names if native_edits else {}))
    edits = [change for change in changes if isinstance(change, Edit)] + (native_edits.edits if native_edits else [])
    steps = [change for change in changes if isinstance(change, ManualStep)] + (
        native_edits.manual_steps if native_edits else []
    )
    if edits:
        steps += wire_name_steps(source)
    return RewriteResult(source.with_edits(edits), sorted(steps), foreign=True)
