"""Edits of the imports of other libraries to the names that accord has for them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from accord.compat.name_map import COMPAT_MODULES, FOREIGN_PACKAGES, MODULES, REPLACEMENTS, TYPES
from accord.migrate.edits import Edit, ManualStep, SourceText

_MAX_LINE_LENGTH = 100
"""The maximum length of an import line in characters; a longer one is wrapped."""

_BREAK = ",\n    "


class ImportTarget(NamedTuple):
    """The module and name that replace an imported name."""

    module: str
    name: str


class ImportedName(NamedTuple):
    """A name that a program imports, and where."""

    module: str
    name: str
    line: int

    @property
    def is_type(self) -> bool:
        """Return whether the name is a type of the protocol."""
        target = target_of(self.module, self.name)
        return target is not None and target.module == TYPES


def import_edits(source: SourceText, native: Mapping[str, str]) -> Iterator[Edit | ManualStep]:
    """Yield the edits of the imports, and the manual steps. `native` maps names in the program to names of accord."""
    for node in foreign_imports(source):
        if isinstance(node, ast.ImportFrom):
            yield from _from_import_edits(node, source, native)
        else:
            for alias in node.names:
                yield from _import_edits(alias, source)


def foreign_imports(source: SourceText) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the statements that import from another library or a compat module."""
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
    """Return the names that the program imports from other libraries and that accord has."""
    return {
        alias.asname or alias.name: ImportedName(node.module or "", alias.name, alias.lineno)
        for node in foreign_imports(source)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if target_of(node.module or "", alias.name) is not None
    }


def is_foreign(module: str) -> bool:
    """Return whether a module belongs to another library or is a compat module."""
    return module.partition(".")[0] in FOREIGN_PACKAGES or module in COMPAT_MODULES


def target_of(module: str, name: str) -> ImportTarget | None:
    """Return the compat module and name for a name of another library, or None."""
    if module in COMPAT_MODULES:
        return ImportTarget(module, name) if name in public_names(module) else None
    submodule = MODULES.get(f"{module}.{name}")
    if submodule is not None:
        package, _, submodule_name = submodule.rpartition(".")
        return ImportTarget(package, submodule_name)
    compat_module = MODULES.get(module)
    return (
        ImportTarget(compat_module, name) if compat_module is not None and name in public_names(compat_module) else None
    )


def public_names(module: str) -> list[str]:
    """Return the public names of a compat module."""
    names: list[str] = import_module(module).__all__
    return names


def _from_import_edits(
    node: ast.ImportFrom, source: SourceText, native: Mapping[str, str]
) -> Iterator[Edit | ManualStep]:
    aliases = [alias for alias in node.names if native.get(alias.asname or alias.name) != ""]
    targets = [(alias, _target_of_alias(node.module or "", alias, native)) for alias in aliases]
    for alias, target in targets:
        if target is None:
            yield ManualStep(alias.lineno, f"{node.module}.{alias.name}: {advice_for(alias.name)}")
    modules = {target.module for _, target in targets if target is not None}
    if not aliases:
        yield Edit(*source.lines(node), "")
    elif (
        len(aliases) == len(node.names)
        and all(target is not None and target.name == alias.name for alias, target in targets)
        and len(modules) == 1
    ):
        start = source.span(node)[0] + source.text_of(node).index(node.module or "")
        yield Edit(start, start + len(node.module or ""), modules.pop())
    elif modules or len(aliases) < len(node.names):
        yield Edit(*source.span(node), f"\n{' ' * node.col_offset}".join(_lines(node.module or "", targets)))


def _target_of_alias(module: str, alias: ast.alias, native: Mapping[str, str]) -> ImportTarget | None:
    native_name = native.get(alias.asname or alias.name)
    return target_of(module, alias.name) if native_name is None else ImportTarget("accord", native_name)


def _lines(module: str, targets: list[tuple[ast.alias, ImportTarget | None]]) -> Iterator[str]:
    """Yield one import line per target module."""
    by_module: dict[str, list[str]] = {}
    for alias, target in targets:
        target_module, name = target or ImportTarget(module, alias.name)
        local = name if target_module == "accord" else alias.asname or alias.name
        by_module.setdefault(target_module, []).append(name if name == local else f"{name} as {local}")
    for target_module, names in by_module.items():
        unique = dict.fromkeys(names)
        line = f"from {target_module} import {', '.join(unique)}"
        yield line if len(line) <= _MAX_LINE_LENGTH else f"from {target_module} import (\n    {_BREAK.join(unique)},\n)"


def _import_edits(alias: ast.alias, source: SourceText) -> Iterator[Edit | ManualStep]:
    if not is_foreign(alias.name) or alias.name in COMPAT_MODULES:
        return
    compat_module, local = MODULES.get(alias.name), alias.asname or alias.name
    if compat_module is None:
        yield ManualStep(alias.lineno, f"{alias.name}: {advice_for(alias.name.rpartition('.')[2])}")
    elif "." in local:
        yield ManualStep(alias.lineno, f"import {alias.name}: write `import {compat_module} as ...`, and use that name")
    else:
        yield Edit(*source.span(alias), f"{compat_module} as {local}")
        yield from _unknown_attributes(local, compat_module, source)


def _unknown_attributes(name: str, compat_module: str, source: SourceText) -> Iterator[ManualStep]:
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=id_), attr=attribute) if id_ == name:
                if attribute not in public_names(compat_module):
                    yield ManualStep(node.lineno, f"{name}.{attribute}: {advice_for(attribute)}")


def advice_for(name: str) -> str:
    """Return the advice for a name that accord lacks."""
    return REPLACEMENTS.get(name, "accord has no such name; see docs/switching.md")
