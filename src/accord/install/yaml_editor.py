"""Editing YAML in place: an entry of a block mapping is added or replaced as text; all other characters stay.

ruamel.yaml finds the places. Where no place suits, the text is loaded and dumped as a whole, which keeps the order and
most comments, and may change the spelling of other values; the difference that the user sees shows that.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from accord.errors import TargetError
from accord.install.json_editor import json_text, new_line

MISSING = "editing YAML needs the extra `install`: pip install 'accord[install]'"
_UNIT = "  "


def set_entry(text: str, servers: str, name: str, value: Mapping[str, Any]) -> str:
    """Return the text with an entry of the mapping `servers`, which is added if it is missing. Raises `TargetError`."""
    root = _compose(text)
    end = new_line(text)
    if root is None or _find(root, servers) is None:
        begin = text if not text or text.endswith(("\n", "\r")) else text + end
        return f"{begin}{servers}:{end}" + _block(name, value, _UNIT, end)
    key, parent = _find(root, servers)
    is_empty = not parent.value or (parent.id == "scalar" and parent.value in ("null", "~"))
    if is_empty:
        return _fill(text, key, parent, _block(name, value, " " * key.start_mark.column + _UNIT, end))
    if parent.id != "mapping":
        return set_by_dump(text, servers, name, value)
    if parent.flow_style:
        return _set_in_flow(text, parent, name, value)
    indent = " " * parent.value[0][0].start_mark.column
    block = _block(name, value, indent, end)
    found = _find(parent, name)
    if found is None:
        offset = _content_end(text, parent.end_mark.index)
        return text[:offset] + ("" if text[:offset].endswith(("\n", "\r")) else end) + block + text[offset:]
    begin = found[0].start_mark.index - len(indent)
    return text[:begin] + block + text[_content_end(text, found[1].end_mark.index) :]


def set_by_dump(text: str, servers: str, name: str, value: Mapping[str, Any]) -> str:
    """Return the text with an entry, dumped as a whole."""
    document = _yaml().load(text)
    if document.get(servers) is None:
        document[servers] = {}
    document[servers][name] = dict(value)
    return _dump(document)


def remove_entry(text: str, servers: str, name: str) -> str:
    """Return the text without an entry of the mapping `servers`. Raises `TargetError` and `KeyError`."""
    found = _find(_compose(text), servers)
    if found is not None and not found[1].flow_style and len(found[1].value) > 1:
        entry = _find(found[1], name)
        if entry is not None:
            begin = entry[0].start_mark.index - entry[0].start_mark.column
            return text[:begin] + text[_content_end(text, entry[1].end_mark.index) :]
    document = _yaml().load(text)
    del document[servers][name]
    return _dump(document)


def _yaml() -> Any:
    try:
        from ruamel.yaml import YAML
    except ImportError:
        raise TargetError(MISSING) from None
    yaml = YAML(typ="rt", pure=True)
    yaml.preserve_quotes = True
    yaml.width = 1 << 20  # never folds a line
    return yaml


def _compose(text: str) -> Any:
    """Return the node of a text, whose marks have offsets; None for an empty text."""
    return _yaml().compose(text)


def _dump(document: Any) -> str:
    out = io.StringIO()
    _yaml().dump(document, out)
    return out.getvalue()


def _find(mapping: Any, name: str) -> Any:
    """Return the key node and the value node of a name in a mapping node; None if there is none."""
    pairs = mapping.value if mapping.id == "mapping" else ()
    return next((pair for pair in pairs if pair[0].value == name), None)


def _block(name: str, value: Mapping[str, Any], indent: str, end: str) -> str:
    """Return the lines of an entry. Values are JSON, which is YAML too, so no text is read as another type."""
    inner = indent + (indent or _UNIT)  # the mapping of the entries is at the first column
    lines = [f"{indent}{name}:", *(f"{inner}{key}: {json_text(each)}" for key, each in value.items())]
    return "".join(line + end for line in lines)


def _set_in_flow(text: str, parent: Any, name: str, value: Mapping[str, Any]) -> str:
    """Return the text with an entry in a flow mapping that is not empty: JSON is a flow mapping too."""
    last = parent.value[-1][1].end_mark.index
    found = _find(parent, name)
    if found is None:
        return f"{text[:last]}, {json_text(name)}: {json_text(value)}{text[last:]}"
    return text[: found[1].start_mark.index] + json_text(value) + text[found[1].end_mark.index :]


def _fill(text: str, key: Any, parent: Any, block: str) -> str:
    """Return the text with a block in place of an empty flow mapping, of null, or of no value."""
    begin = key.end_mark.index + 1  # after the colon
    rest = text[begin:] if parent.value == "" else text[parent.end_mark.index :]
    head = text[:begin]
    line, found, tail = rest.partition("\n")
    return head + line + (found or new_line(text)) + block + tail


def _content_end(text: str, offset: int) -> int:
    """Return the end of the last line with content before an offset: without blank lines and comments after it."""
    lines = text[:offset].splitlines(keepends=True)
    if lines and lines[-1].strip() and not lines[-1].endswith(("\n", "\r")) and text[offset:]:
        lines[-1] += text[offset:].splitlines(keepends=True)[0]  # the value ends on this line
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines.pop()
    return sum(map(len, lines))
