"""What of a program can be written in accord's own words, and the edits that do it.

A server and its contexts change together or not at all: what one call of it needs from `accord.compat` keeps the rest
there. Types of the protocol change one by one. Whatever is not certain stays, and is told.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from accord.migrate.context_edits import CONTEXT, context_edits
from accord.migrate.edits import Edit, ManualStep, SourceText
from accord.migrate.imports import ImportedName
from accord.migrate.server_edits import SERVERS, server_edits
from accord.migrate.type_edits import SAME, TYPES, type_edits

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
