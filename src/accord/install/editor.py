"""Editing the text of a host's file in its own syntax, and the proof that nothing else changed.

Each edit is checked with the reader of the syntax, which is not the code that edits: the new text must have exactly the
expected content, in the same order. A text for which no edit passes is refused, and left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from accord.errors import TargetError
from accord.host import jsonc
from accord.host.documents import parse_document
from accord.host.known_hosts import FileFormat
from accord.install import json_editor, toml_editor, yaml_editor

_MAX_VALUES = 2_000_000
"""Limit of the values of a file; aliases of YAML may make many of few characters."""

Content = dict[str, Any]


def content(text: str, form: FileFormat, path: Path) -> Content:
    """Return the content of a text as plain values. Raises `TargetError` with line and column."""
    left = [_MAX_VALUES]
    return dict(_plain(parse_document(text, form.syntax, path).value, left, path))


def set_entry(
    text: str, form: FileFormat, name: str, entry: Any, inputs: Sequence[Mapping[str, Any]], path: Path
) -> list[str]:
    """Return the texts with an entry, and then with each of the questions to the user; the last one is complete.

    Raises `TargetError` if that would change anything else.
    """
    before = content(text, form, path)
    _check_servers(before, form, path)
    expected = with_entry(before, form, name, entry, inputs)
    for edit in _EDITS[form.syntax]:
        try:
            steps = [edit(text, form.servers, name, entry)]
            for each in inputs:
                steps.append(json_editor.append_item(steps[-1], (str(form.inputs),), dict(each)))
        except jsonc.JSONCError as exc:
            raise TargetError(f"{path}:{exc}; edit the file by hand") from None
        except TargetError as exc:
            raise TargetError(f"{path}: {exc}; nothing was changed") from None
        except (ValueError, LookupError, TypeError):  # from a library: this edit does not suit the text
            continue
        if has_content(steps[-1], form, path, expected):
            return steps
    raise TargetError(f"{path} is written in a way that cannot be edited without changing more; nothing was changed")


def remove_entry(text: str, form: FileFormat, name: str, inputs: Sequence[str], path: Path) -> str:
    """Return the text without an entry, and without the questions with these ids. Raises `TargetError`."""
    expected = without_entry(content(text, form, path), form, name, inputs)
    try:
        new = _REMOVALS[form.syntax](text, form.servers, name)
        for each in inputs:
            new = _without_input(new, str(form.inputs), each)
        if has_content(new, form, path, expected):
            return new
    except TargetError as exc:
        raise TargetError(f"{path}: {exc}; nothing was changed") from None
    except (ValueError, LookupError, TypeError):
        pass
    raise TargetError(f"{path} is written in a way that cannot be edited without changing more; nothing was changed")


def with_entry(
    before: Content, form: FileFormat, name: str, entry: Any, inputs: Sequence[Mapping[str, Any]]
) -> Content:
    """Return a content with an entry and questions added."""
    servers = {**(before.get(form.servers) or {}), name: entry}
    after = {**before, form.servers: servers}
    if inputs:
        after[str(form.inputs)] = [*(before.get(str(form.inputs)) or []), *map(dict, inputs)]
    return after


def without_entry(before: Content, form: FileFormat, name: str, inputs: Sequence[str]) -> Content:
    """Return a content without an entry and without the questions with these ids."""
    servers = {each: value for each, value in before[form.servers].items() if each != name}
    return without_inputs({**before, form.servers: servers}, form, inputs)


def without_inputs(before: Content, form: FileFormat, inputs: Sequence[str]) -> Content:
    """Return a content without the questions with these ids."""
    if not inputs:
        return before
    kept = [each for each in before[str(form.inputs)] if input_id(each) not in inputs]
    return {**before, str(form.inputs): kept}


def has_content(text: str, form: FileFormat, path: Path, expected: Content) -> bool:
    """Return whether a text has a content, in the same order."""
    try:
        found = content(text, form, path)
    except TargetError:
        return False
    in_any_order = form.syntax == "toml"  # tables stay where they are, and may be in two parts of a file
    return _fingerprint(found, in_any_order) == _fingerprint(expected, in_any_order)


def same_values(one: Any, other: Any) -> bool:
    """Return whether two entries are equal, in any order of their keys."""
    return json.dumps(one, sort_keys=True, default=str) == json.dumps(other, sort_keys=True, default=str)


def input_ids(before: Content, form: FileFormat, path: Path) -> list[str | None]:
    """Return the ids of the questions to the user. Raises `TargetError` if they are not in a list."""
    found = before.get(form.inputs) if form.inputs is not None else None
    if found is None:
        return []
    if not isinstance(found, list):
        raise TargetError(f'{path}: "{form.inputs}" must be a list; nothing was changed')
    return [input_id(each) for each in found]


def input_id(value: Any) -> str | None:
    """Return the id of a question to the user."""
    found = value.get("id") if isinstance(value, Mapping) else None
    return found if isinstance(found, str) else None


def _check_servers(before: Content, form: FileFormat, path: Path) -> None:
    servers = before.get(form.servers)
    if servers is not None and not isinstance(servers, dict):
        raise TargetError(f'{path}: "{form.servers}" must be an object; nothing was changed')


def _without_input(text: str, key: str, name: str) -> str:
    root = jsonc.parse(text)
    items = root.at(key) if root is not None else None
    for index, each in enumerate(items.items or () if items is not None else ()):
        if input_id(each.plain()) == name:
            return json_editor.remove_item(text, (key,), index)
    return text


def _fingerprint(value: Any, in_any_order: bool) -> str:
    return json.dumps(value, sort_keys=in_any_order, default=lambda each: f"{type(each).__name__}:{each}")


def _plain(value: Any, left: list[int], path: Path) -> Any:
    """Return a value as dicts, lists and scalars of the standard library, each of at most so many."""
    left[0] -= 1
    if left[0] < 0:
        raise TargetError(f"{path} has too many values; nothing was changed")
    if isinstance(value, Mapping):
        return {str(name): _plain(each, left, path) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, left, path) for each in value]
    if isinstance(value, str):
        return str(value)
    return value


def _json_edit(text: str, servers: str, name: str, entry: Any) -> str:
    return json_editor.set_member(text, (servers, name), entry)


def _json_removal(text: str, servers: str, name: str) -> str:
    return json_editor.remove_member(text, (servers, name))


_EDITS: dict[str, tuple[Callable[[str, str, str, Any], str], ...]] = {
    "json": (_json_edit,),
    "toml": (toml_editor.set_table,),
    "yaml": (yaml_editor.set_entry, yaml_editor.set_by_dump),
}
_REMOVALS: dict[str, Callable[[str, str, str], str]] = {
    "json": _json_removal,
    "toml": toml_editor.remove_table,
    "yaml": yaml_editor.remove_entry,
}
