"""Fields that are read in the spelling of the wire: mcp 1 has `result.isError`, accord `result.is_error`.

Whose attribute it is cannot be told from a syntax tree, so it is not rewritten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

from msgspec import StructMeta

from accord.compat import types
from accord.migrate.edits import ManualStep, SourceText


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
