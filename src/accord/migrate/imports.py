"""Import lines of other libraries, rewritten to the names that accord has for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from accord.compat.names import FOREIGN, HERE, INSTEAD, MODULES, TYPES
from accord.migrate.edits import Edit, Left, Source

_LONGEST = 100
"""Characters of an import line, beyond which it is broken."""

_BREAK = ",\n    "


class Place(NamedTuple):
    """What is imported here in the place of a name: `from module import name`."""

    module: str
    name: str


class Imported(NamedTuple):
    """A name as a program imports it."""

    module: str
    name: str
    line: int

    @property
    def is_type(self) -> bool:
        """Whether it is a type of the protocol."""
        place = place_of(self.module, self.name)
        return place is not None and place.module == TYPES


def rewritten_imports(source: Source, native: Mapping[str, str]) -> Iterator[Edit | Left]:
    """What to change in the import lines, and what of them has to be done by hand. `native` are names of the program
    that become accord's own.
    """
    for node in foreign_imports(source):
        if isinstance(node, ast.ImportFrom):
            yield from _rewritten_from(node, source, native)
        else:
            for alias in node.names:
                yield from _rewritten_import(alias, source)


def foreign_imports(source: Source) -> Iterator[ast.Import | ast.ImportFrom]:
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


def imported_names(source: Source) -> dict[str, Imported]:
    """The names of the program that come from there."""
    return {
        alias.asname or alias.name: Imported(node.module or "", alias.name, alias.lineno)
        for node in foreign_imports(source)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if place_of(node.module or "", alias.name) is not None
    }


def is_foreign(module: str) -> bool:
    """Whether a module belongs to one of the other libraries."""
    return module.partition(".")[0] in FOREIGN or module in HERE


def place_of(module: str, name: str) -> Place | None:
    """Where a name of another library's module is here, if it is."""
    if module in HERE:
        return Place(module, name) if name in public(module) else None
    whole = MODULES.get(f"{module}.{name}")
    if whole is not None:
        package, _, last = whole.rpartition(".")
        return Place(package, last)
    home = MODULES.get(module)
    return Place(home, name) if home is not None and name in public(home) else None


def public(module: str) -> list[str]:
    """The names of one of our modules."""
    names: list[str] = import_module(module).__all__
    return names


def _rewritten_from(node: ast.ImportFrom, source: Source, native: Mapping[str, str]) -> Iterator[Edit | Left]:
    kept = [alias for alias in node.names if native.get(alias.asname or alias.name) != ""]
    places = [(alias, _place(node.module or "", alias, native)) for alias in kept]
    for alias, place in places:
        if place is None:
            yield Left(alias.lineno, f"{node.module}.{alias.name}: {instead(alias.name)}")
    found = {place.module for _, place in places if place is not None}
    if not kept:
        yield Edit(*source.lines(node), "")
    elif (
        len(kept) == len(node.names)
        and all(place is not None and place.name == alias.name for alias, place in places)
        and len(found) == 1
    ):
        start = source.span(node)[0] + source.of(node).index(node.module or "")
        yield Edit(start, start + len(node.module or ""), found.pop())
    elif found or len(kept) < len(node.names):
        yield Edit(*source.span(node), f"\n{' ' * node.col_offset}".join(_lines(node.module or "", places)))


def _place(module: str, alias: ast.alias, native: Mapping[str, str]) -> Place | None:
    own = native.get(alias.asname or alias.name)
    return place_of(module, alias.name) if own is None else Place("accord", own)


def _lines(module: str, places: list[tuple[ast.alias, Place | None]]) -> Iterator[str]:
    """One import line for each module that the names are in now."""
    by_module: dict[str, list[str]] = {}
    for alias, place in places:
        home, name = place or Place(module, alias.name)
        known_as = name if home == "accord" else alias.asname or alias.name
        by_module.setdefault(home, []).append(name if name == known_as else f"{name} as {known_as}")
    for home, names in by_module.items():
        once = dict.fromkeys(names)
        line = f"from {home} import {', '.join(once)}"
        yield line if len(line) <= _LONGEST else f"from {home} import (\n    {_BREAK.join(once)},\n)"


def _rewritten_import(alias: ast.alias, source: Source) -> Iterator[Edit | Left]:
    if not is_foreign(alias.name) or alias.name in HERE:
        return
    home, known_as = MODULES.get(alias.name), alias.asname or alias.name
    if home is None:
        yield Left(alias.lineno, f"{alias.name}: {instead(alias.name.rpartition('.')[2])}")
    elif "." in known_as:
        yield Left(alias.lineno, f"import {alias.name}: write `import {home} as ...`, and that name where it is used")
    else:
        yield Edit(*source.span(alias), f"{home} as {known_as}")
        yield from _unknown_attributes(known_as, home, source)


def _unknown_attributes(name: str, home: str, source: Source) -> Iterator[Left]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=found), attr=attribute) if found == name:
                if attribute not in public(home):
                    yield Left(node.lineno, f"{name}.{attribute}: {instead(attribute)}")


def instead(name: str) -> str:
    """What to write for something that has no name here."""
    return INSTEAD.get(name, "accord has no such name; see docs/switching.md")
