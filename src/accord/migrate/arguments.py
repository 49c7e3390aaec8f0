"""The arguments of a call in a program's text: renamed, given another value, taken out."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping

from accord.migrate.edits import Edit, SourceText


def keywords_of(call: ast.Call) -> dict[str, ast.keyword] | None:
    """The keywords of a call by name; None where some are not written out (`**options`, `*args`)."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return None
    return {one.arg: one for one in call.keywords if one.arg is not None}


def rename_keywords(call: ast.Call, names: Mapping[str, str], source: SourceText) -> Iterator[Edit]:
    """Keywords under other names."""
    for one in call.keywords:
        if one.arg is not None and names.get(one.arg, one.arg) != one.arg:
            start, _ = source.span(one)
            yield Edit(start, start + len(one.arg), names[one.arg])


def remove_arguments(call: ast.Call, gone: Collection[ast.AST], source: SourceText) -> Iterator[Edit]:
    """Arguments taken out, with the commas that they leave."""
    given = sorted([*call.args, *call.keywords], key=source.span)
    at = 0
    while at < len(given):
        if given[at] not in gone:
            at += 1
            continue
        begin = at
        while at < len(given) and given[at] in gone:
            at += 1
        if begin:
            yield Edit(source.span(given[begin - 1])[1], source.span(given[at - 1])[1], "")
        elif at < len(given):
            yield Edit(source.span(given[0])[0], source.span(given[at])[0], "")
        else:
            yield Edit(source.span(call.func)[1], source.span(call)[1], "()")


def constant(node: ast.expr | None) -> object:
    """The value of a literal; None for anything else."""
    return node.value if isinstance(node, ast.Constant) else None
