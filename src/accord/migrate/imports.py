"""Import lines of other libraries, rewritten to the names that accord has for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from accord.compat.name_map import COMPAT_MODULES, FOREIGN_PACKAGES, MODULES, REPLACEMENTS, TYPES
from accord.migrate.edits import Edit, ManualStep, SourceText

_MAX_LINE_LENGTH = 100
"""Characters of an import line, beyond which it is broken."""

_BREAK = ",\n    "


class ImportTarget(NamedTuple):
    """What is imported here in the place of a name: `from module import name`."""

    module: str
    name: str


class ImportedName(NamedTuple):
    """A name as a program imports it."""

    module: str
    name: str
    line: int

    @property
    def is_type(self) -> bool:
        """Whether it is a type of the protocol."""
        place = target_of(self.module, self.name)
        return place is not None and place.module == TYPES


def import_edits(source: SourceText, native: Mapping[str, str]) -> Iterator[Edit | ManualStep]:
    """What to change in the import lines, and what of them has to be done by hand. `native` are names of the program
    that become accord's own.
    """
    for node in foreign_imports(source):
        if isinstance(node, ast.ImportFrom):
            yield from _from_import_edits(node, source, native)
        else:
            for alias in node.names:
                yield from _import_edits(alias, source)


def foreign_imports(source: SourceText) -> Iterator[ast.Import | ast.ImportFrom]:
    """The statements that import from one of the libraries, or from what stands for them here."""
    for node in ast.walk(source.tree):
        match node:
            case ast.ImportFrom(level=0, module=str(module)):
                modules = [module]
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case _:
                continue
        if any(map(is_foreign, modules)):
            yield node


def imported_names(source: SourceText) -> dict[str, ImportedName]:
    """The names of the program that come from there."""
    return {
        alias.asname or alias.name: ImportedName(node.module or "", alias.name, alias.lineno)
        for node in foreign_imports(source)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if target_of(node.module or "", alias.name) is not None
    }


def is_foreign(module: str) -> bool:
    """Whether a module belongs to one of the other libraries."""
    return module.partition(".")[0] in FOREIGN_PACKAGES or module in COMPAT_MODULES


def target_of(module: str, name: str) -> ImportTarget | None:
    """Where a name of another library's module is here, if it is."""
    if module in COMPAT_MODULES:
        return ImportTarget(module, name) if name in public_names(module) else None
    whole = MODULES.get(f"{module}.{name}")
    if whole is not None:
        package, _, last = whole.rpartition(".")
        return ImportTarget(package, last)
    home = MODULES.get(module)
    return ImportTarget(home, name) if home is not None and name in public_names(home) else None


def public_names(module: str) -> list[str]:
    """The names of one of our modules."""
    names: list[str] = import_module(module).__all__
    return names


def _from_import_edits(
    node: ast.ImportFrom, source: SourceText, native: Mapping[str, str]
) -> Iterator[Edit | ManualStep]:
    kept = [alias for alias in node.names if native.get(alias.asname or alias.name) != ""]
    places = [(alias, _target_of_alias(node.module or "", alias, native)) for alias in kept]
    for alias, place in places:
        if place is None:
            yield ManualStep(alias.lineno, f"{node.module}.{alias.name}: {advice_for(alias.name)}")
    found = {place.module for _, place in places if place is not None}
    if not kept:
        yield Edit(*source.lines(node), "")
    elif (
        len(kept) == len(node.names)
        and all(place is not None and place.name == alias.name for alias, place in places)
        and len(found) == 1
    ):
        start = source.span(node)[0] + source.text_of(node).index(node.module or "")
        yield Edit(start, start + len(node.module or ""), found.pop())
    elif found or len(kept) < len(node.names):
        yield Edit(*source.span(node), f"\n{' ' * node.col_offset}".join(_lines(node.module or "", places)))


def _target_of_alias(module: str, alias: ast.alias, native: Mapping[str, str]) -> ImportTarget | None:
    own = native.get(alias.asname or alias.name)
    return target_of(module, alias.name) if own is None else ImportTarget("accord", own)


def _lines(module: str, places: list[tuple[ast.alias, ImportTarget | None]]) -> Iterator[str]:
    """One import line for each module that the names are in now."""
    by_module: dict[str, list[str]] = {}
    for alias, place in places:
        home, name = place or ImportTarget(module, alias.name)
        known_as = name if home == "accord" else alias.asname or alias.name
        by_module.setdefault(home, []).append(name if name == known_as else f"{name} as {known_as}")
    for home, names in by_module.items():
        once = dict.fromkeys(names)
        line = f"from {home} import {', '.join(once)}"
        yield line if len(line) <= _MAX_LINE_LENGTH else f"from {home} import (\n    {_BREAK.join(once)},\n)"


def _import_edits(alias: ast.alias, source: SourceText) -> Iterator[Edit | ManualStep]:
    if not is_foreign(alias.name) or alias.name in COMPAT_MODULES:
        return
    home, known_as = MODULES.get(alias.name), alias.asname or alias.name
    if home is None:
        yield ManualStep(alias.lineno, f"{alias.name}: {advice_for(alias.name.rpartition('.')[2])}")
    elif "." in known_as:
        yield ManualStep(
            alias.lineno, f"import {alias.name}: write `import {home} as ...`, and that name where it is used"
        )
    else:
        yield Edit(*source.span(alias), f"{home} as {known_as}")
        yield from _unknown_attributes(known_as, home, source)


def _unknown_attributes(name: str, home: str, source: SourceText) -> Iterator[ManualStep]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=found), attr=attribute) if found == name:
                if attribute not in public_names(home):
                    yield ManualStep(node.lineno, f"{name}.{attribute}: {advice_for(attribute)}")


def advice_for(name: str) -> str:
    """What to write for something that has no name here."""
    return REPLACEMENTS.get(name, "accord has no such name; see docs/switching.md")
