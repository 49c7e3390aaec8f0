"""Editing TOML in place with tomlkit, which keeps comments, order and spelling of what is not edited."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accord.errors import TargetError
from accord.install.json_editor import new_line
from accord.install.splice import Splice

MISSING = "editing TOML needs the extra `install`: pip install 'accord[install]'"


def set_table(text: str, servers: str, name: str, value: Mapping[str, Any]) -> str:
    """Return the text with a table in the table `servers`, which is added if it is missing. Raises `TargetError`."""
    mark, document = _parse(text)
    from tomlkit import dumps, table
    from tomlkit.items import InlineTable, Table

    if servers not in document:
        document[servers] = table(is_super_table=True)
    parent = document[servers]
    existing = parent.get(name)
    if isinstance(existing, Table):
        _update(existing, value)
    else:
        is_inline = isinstance(parent, InlineTable) or isinstance(existing, InlineTable)
        parent[name] = _inline(value) if is_inline else _table(value)
    return _with_line_ends(text, mark + dumps(document))


def remove_table(text: str, servers: str, name: str) -> str:
    """Return the text without a table of the table `servers`. Raises `TargetError` and `KeyError`."""
    mark, document = _parse(text)
    from tomlkit import dumps

    del document[servers][name]
    return mark + dumps(document)


def _parse(text: str) -> tuple[str, Any]:
    """Return the byte order mark of a text, and its content."""
    try:
        from tomlkit import parse
        from tomlkit.exceptions import TOMLKitError
    except ImportError:
        raise TargetError(MISSING) from None
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    try:
        return mark, parse(text.removeprefix(mark))
    except TOMLKitError as exc:
        raise TargetError(f"tomlkit cannot read it: {type(exc).__name__}") from None


def _with_line_ends(text: str, new: str) -> str:
    """Return the new text with the line ends of the text in what was inserted: tomlkit has its own there."""
    splice = Splice.between(text, new)
    inserted = splice.new.replace("\r\n", "\n").replace("\n", new_line(text))
    return text[: splice.offset] + inserted + text[splice.offset + len(splice.old) :]


def _update(table: Any, value: Mapping[str, Any]) -> None:
    """Give an existing table other values: what is replaced as a whole takes the comments after it along."""
    for key in list(table):
        if key not in value:
            del table[key]
    for key, each in value.items():
        table[key] = _inline(each) if isinstance(each, Mapping) else each


def _table(value: Mapping[str, Any]) -> Any:
    from tomlkit import table

    new = table()
    for key, each in value.items():
        new[key] = _inline(each) if isinstance(each, Mapping) else each
    return new


def _inline(value: Mapping[str, Any]) -> Any:
    from tomlkit import inline_table

    new = inline_table()
    for key, each in value.items():
        new[key] = _inline(each) if isinstance(each, Mapping) else each
    return new
