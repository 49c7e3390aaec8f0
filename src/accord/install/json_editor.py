"""Editing JSON with comments in place: one member is added, replaced or removed, and all other characters stay.

The edits are of the text itself, by the offsets that `accord.host.jsonc` gives. Indentation, line ends and trailing
commas follow the text around. There is no dependency: the libraries for this are for other languages, or lose comments.
"""

from __future__ import annotations

import json
import re
from typing import Any

from accord.errors import visible
from accord.host import jsonc
from accord.host.jsonc import JSONMember, JSONNode

_INDENT = re.compile(r"[ \t]*")


def set_member(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with a value at a path of names, of which missing objects are added. Raises `JSONCError`."""
    root = jsonc.parse(text)
    if root is None:
        return _first_value(text, _nested(path, value))
    node = root
    for depth, name in enumerate(path):
        member = _only_member(text, node, name)
        if member is None:
            return _insert(text, root, node, name, _nested(path[depth + 1 :], value))
        node = member.value
    begin = _line_indent(text, node.start)
    return text[: node.start] + _format(value, text, root, begin, _is_multiline(text, node)) + text[node.end :]


def append_item(text: str, path: tuple[str, ...], value: Any) -> str:
    """Return the text with a value at the end of the array at a path of names. Raises `JSONCError`."""
    root = jsonc.parse(text)
    node = root.at(*path) if root is not None else None
    if root is None or node is None or node.items is None:
        return set_member(text, path, [value])
    return _append(text, root, node, [each.start for each in node.items], "", value)


def remove_member(text: str, path: tuple[str, ...]) -> str:
    """Return the text without the member at a path of names. Raises `KeyError` if there is none, and `JSONCError`."""
    root = jsonc.parse(text)
    parent = root.at(*path[:-1]) if root is not None else None
    member = parent.member(path[-1]) if parent is not None else None
    if parent is None or parent.members is None or member is None:
        raise KeyError(path[-1])
    index = parent.members.index(member)
    starts = [(each.start, each.value.end) for each in parent.members]
    return _cut(text, starts, index)


def remove_item(text: str, path: tuple[str, ...], index: int) -> str:
    """Return the text without an item of the array at a path of names."""
    root = jsonc.parse(text)
    parent = root.at(*path) if root is not None else None
    items = parent.items if parent is not None else None
    return _cut(text, [(each.start, each.end) for each in items or ()], index)


def new_line(text: str) -> str:
    """Return the line end that a text uses."""
    match = re.search(r"\r\n|\r|\n", text)
    return match[0] if match is not None else "\n"


def _only_member(text: str, node: JSONNode, name: str) -> JSONMember | None:
    """Return the member with a name. Raises `JSONCError` if there are two, because hosts differ in which one counts."""
    found = [each for each in node.members or () if each.name == name]
    if len(found) > 1:
        raise jsonc.JSONCError(f"the name {name!r:.100} is there twice", text, found[1].start)
    return found[0] if found else None


def json_text(value: Any, indent: str | None = None) -> str:
    """Return a value as JSON; characters that are not printable are escaped."""
    shown = json.dumps(value, indent=indent, ensure_ascii=False)
    return shown if visible(shown.replace("\n", "")) == shown.replace("\n", "") else json.dumps(value, indent=indent)


def _nested(path: tuple[str, ...], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _first_value(text: str, value: Any) -> str:
    """Return a text of only space and comments, with a value at its end."""
    head = text.rstrip(" \t\r\n")
    end = new_line(text)
    before = head + end if head.removeprefix("\ufeff") else head
    return before + json_text(value, "  ").replace("\n", end) + end


def _insert(text: str, root: JSONNode, parent: JSONNode, name: str, value: Any) -> str:
    """Return the text with a new last member of an object."""
    members: tuple[JSONMember, ...] = parent.members or ()
    if parent.members is None:
        raise jsonc.JSONCError("expected an object", text, parent.start)
    return _append(text, root, parent, [each.start for each in members], f"{json_text(name)}: ", value)


def _append(text: str, root: JSONNode, parent: JSONNode, starts: list[int], prefix: str, value: Any) -> str:
    """Return the text with a new last member or item, with `prefix` before its value."""
    end = new_line(text)
    outer = _line_indent(text, parent.start)
    unit = _indent_unit(text, root)
    children = [each.value for each in parent.members] if parent.members is not None else list(parent.items or ())
    inner = _line_indent(text, starts[-1]) if starts and _begins_line(text, starts[-1]) else outer + unit
    last = children[-1].end if children else parent.start + 1
    close = parent.end - 1
    rest = text[last:close]
    content = rest.rstrip(" \t\r\n")
    after_space = jsonc.skip_space(text, last)
    has_comma = bool(children) and text[after_space] == ","
    if children and not has_comma:
        content = "," + content
    multiline = _is_multiline(text, parent) or (not children and not _is_one_line(text))
    item = prefix + _format(value, text, root, inner, multiline) + ("," if has_comma else "")
    if multiline:
        tail = rest[len(rest.rstrip(" \t\r\n")) :] if children else ""
        tail = tail if "\n" in tail or "\r" in tail else end + outer
        return text[:last] + content + end + inner + item + tail + text[close:]
    space = rest[len(rest.rstrip(" \t")) :]
    return text[:last] + content + (" " if children else space) + item + space + text[close:]


def _cut(text: str, spans: list[tuple[int, int]], index: int) -> str:
    """Return the text without one of the members or items of a container, and without one comma."""
    begin, end = spans[index]
    after = jsonc.skip_space(text, end)
    if text[after] == ",":
        end = end + 1 if after == end else after + 1
    elif index:
        comma = jsonc.skip_space(text, spans[index - 1][1])  # of the one before, which is the last one now
        text = text[:comma] + text[comma + 1 :]
        begin, end = begin - 1, end - 1
    line_begin = begin - len(_line_indent(text, begin)) if _begins_line(text, begin) else begin
    match = re.compile(r"[ \t]*(\r\n|\r|\n)").match(text, end)
    if line_begin != begin or begin == 0 or text[begin - 1] in "\r\n":
        return text[:line_begin] + text[match.end() if match is not None else end :]
    blank = _INDENT.match(text, end)
    return text[:begin].rstrip(" \t") + text[blank.end() if blank is not None and index else end :].removeprefix(" ")


def _format(value: Any, text: str, root: JSONNode, indent: str, multiline: bool) -> str:
    if not multiline:
        return json_text(value)
    return json_text(value, _indent_unit(text, root)).replace("\n", new_line(text) + indent)


def _is_multiline(text: str, node: JSONNode) -> bool:
    return any(each in text[node.start : node.end] for each in "\r\n")


def _is_one_line(text: str) -> bool:
    """Return whether a text is in one line with other values in it: `{}` alone is not."""
    stripped = text.strip("\ufeff \t\r\n")
    return "\n" not in stripped and "\r" not in stripped and stripped != "{}"


def _begins_line(text: str, offset: int) -> bool:
    """Return whether only space is before an offset on its line."""
    before = text[:offset].rstrip(" \t")
    return before == "" or before[-1] in "\r\n\ufeff"


def _line_indent(text: str, offset: int) -> str:
    """Return the space at the begin of the line of an offset."""
    begin = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    match = _INDENT.match(text, begin)
    return match[0] if match is not None else ""


def _indent_unit(text: str, root: JSONNode) -> str:
    """Return the space of one level of indentation."""
    first = next((each.start for each in root.members or ()), None)
    if first is None or not _begins_line(text, first):
        return "  "
    return _line_indent(text, first).removeprefix(_line_indent(text, root.start)) or "  "
