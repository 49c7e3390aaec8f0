"""Edits of a handler's context to accord's API: `ctx.elicit(message, schema=Form)` becomes `ctx.elicit(message,
type=Form)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from accord.migrate.edits import Edit, ManualStep, SourceText, keywords_of, rename_keywords

CONTEXT = "Context"
"""The name of the context class."""

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_SAME = ("report_progress", "request_id", "elicit_url")
_LOGS = ("debug", "info", "warning", "error")
_PATHS = {
    "request_context.lifespan_context": "lifespan",
    "request_context.request_id": "request_id",
    "request_context.protocol_version": "revision",
    "lifespan_context": "lifespan",
    "fastmcp": "server",
    "mcp_server": "server",
}
"""Attributes with another name in accord."""
_REPLACEMENTS = {
    "set_state": 'ctx.state["a"] = 1, for this call; for state between calls use Handles, see docs/dependencies.md',
    "get_state": 'ctx.state["a"], of this call; for state between calls use Handles, see docs/dependencies.md',
    "delete_state": 'del ctx.state["a"]',
}
"""What to write for attributes that accord lacks."""


def context_edits(source: SourceText, contexts: Mapping[str, str]) -> Iterator[Edit | ManualStep]:
    """Yield the edits for contexts of these class names, and the manual steps that prevent them."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in contexts:
            yield Edit(source.span(node.value)[1], source.span(node)[1], "")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for parameter in (*node.args.args, *node.args.kwonlyargs):
                if _is_context(parameter.annotation, contexts):
                    yield from _uses(node, parameter.arg, source)


def _is_context(hint: ast.expr | None, contexts: Mapping[str, str]) -> bool:
    hint = hint.value if isinstance(hint, ast.Subscript) else hint
    return isinstance(hint, ast.Name) and hint.id in contexts


def _uses(function: _Function, name: str, source: SourceText) -> Iterator[Edit | ManualStep]:
    calls = {node.func: node for node in ast.walk(function) if isinstance(node, ast.Call)}
    for node, path in _paths(function, name):
        attribute = path.rpartition(".")[2]
        if path in _PATHS:
            start, end = source.span(node)
            yield Edit(start, end, f"{name}.{_PATHS[path]}")
        elif path in _LOGS and node in calls:
            yield from _logging(calls[node], source)
        elif path == "elicit" and node in calls:
            yield from rename_keywords(calls[node], {"schema": "type", "response_type": "type"}, source)
        elif path not in _SAME:
            advice = _REPLACEMENTS.get(attribute, f"see accord.Context for a replacement of {attribute}")
            yield ManualStep(node.lineno, f"{name}.{path}: {advice}")


def _logging(call: ast.Call, source: SourceText) -> Iterator[Edit | ManualStep]:
    keywords = keywords_of(call)
    if keywords is None or not set(keywords) <= {"message", "data", "logger_name"}:
        yield ManualStep(call.lineno, f"{source.text_of(call)}: pass the data, and logger=")
    else:
        yield from rename_keywords(call, {"message": "data", "logger_name": "logger"}, source)


def _paths(function: _Function, name: str) -> Iterator[tuple[ast.Attribute, str]]:
    """Yield each use of the context with its longest known path, such as `request_context.lifespan_context`."""
    inner: set[ast.AST] = set()
    for node in ast.walk(function):  # outer attributes come before those inside them
        if not isinstance(node, ast.Attribute) or node in inner:
            continue
        path, value = node.attr, node.value
        while isinstance(value, ast.Attribute):
            path, value = f"{value.attr}.{path}", value.value
        if isinstance(value, ast.Name) and value.id == name:
            known = _longest_known(node, path)
            inner.update(ast.walk(node))
            yield known, _path_of(known)


def _longest_known(node: ast.Attribute, path: str) -> ast.Attribute:
    """Return the longest known part of `ctx.a.b.c`, or all of it."""
    outermost = node
    while True:
        if path in _PATHS or path in _SAME or "." not in path:
            return node
        if not isinstance(node.value, ast.Attribute):
            return outermost
        node, path = node.value, path.rpartition(".")[0]


def _path_of(node: ast.Attribute) -> str:
    path, value = node.attr, node.value
    while isinstance(value, ast.Attribute):
        path, value = f"{value.attr}.{path}", value.value
    return path
