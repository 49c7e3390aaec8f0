"""Compare two surfaces, and classify the effect of each change on clients: `accord check --diff OLD NEW`.

A change is `breaking` if something that worked fails or changes its meaning, `risky` if it may, or if models may behave
differently, and `safe` otherwise. This module compares the fields of each tool, prompt and resource, with one function
per field; `schemas` compares their schemas. A change of an annotation matters because users consented to calls under
the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from accord.check.surface.schema_changes import (
    ADDED,
    ADDED_REQUIRED,
    FOR_MODELS,
    FOR_PEOPLE,
    KINDS,
    REMOVED,
    Change,
    Kind,
    change,
    describe_change,
)
from accord.check.surface.schemas import schema_changes
from accord.check.surface.surface import by_revision
from accord.messages.base import JSONObject

_FEWER_CONSENTS = "clients may stop asking users before calls"
_HINTS: dict[str, tuple[bool, Kind, str, Kind, str]] = {
    "destructiveHint": (True, "risky", _FEWER_CONSENTS, "breaking", "users consented to non-destructive calls"),
    "idempotentHint": (
        False,
        "breaking",
        "clients may repeat calls, and each call has an effect",
        "safe",
        "the new value is stricter",
    ),
    "openWorldHint": (
        True,
        "safe",
        "the new value is stricter",
        "risky",
        "users consented to a tool without external access",
    ),
}
"""The default; kind and effect of a change to false; kind and effect of a change to true."""

_SAME_MEANING = "it has the same meaning"
_UNKNOWN_HINT: tuple[Kind, str] = ("risky", "clients that read it may behave differently")
_TASKS: dict[tuple[str, str], tuple[Kind, str]] = {
    ("forbidden", "optional"): ("safe", "ordinary calls work as before"),
    ("forbidden", "required"): ("breaking", "ordinary calls are rejected"),
    ("optional", "forbidden"): ("breaking", "calls as a task are rejected"),
    ("optional", "required"): ("breaking", "ordinary calls are rejected"),
    ("required", "forbidden"): ("breaking", "calls as a task are rejected"),
    ("required", "optional"): ("safe", "calls as a task work as before"),
}


_SHOWN_DIFFERENTLY: tuple[Kind, str] = ("risky", "clients may show it to another audience, or omit it")
_RESOURCE_ANNOTATIONS: dict[str, tuple[Kind, str]] = {
    "lastModified": ("safe", "it describes the content, which may change at any time")
}


def annotation_changes(old: JSONObject | None, new: JSONObject | None, path: tuple[str, ...]) -> Iterator[Change]:
    """Yield the changes of a tool's annotations; most hints do not matter for a read-only tool."""
    was, now = old or {}, new or {}
    yield from _read_only(was.get("readOnlyHint"), now.get("readOnlyHint"), (*path, "readOnlyHint"))
    for key in sorted((was.keys() | now.keys()) - {"readOnlyHint"}):
        if was.get(key) != now.get(key):
            both_read = was.get("readOnlyHint") is True and now.get("readOnlyHint") is True
            yield from _hint(key, was.get(key), now.get(key), (*path, key), both_read)


def _read_only(was: Any, now: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if was is True and now is not True:
        yield change("breaking", path, describe_change(was, now), "users consented to read-only calls")
    elif was != now:
        is_stricter = now is True
        why = _FEWER_CONSENTS if is_stricter else _SAME_MEANING
        yield change("risky" if is_stricter else "safe", path, describe_change(was, now), why)


def _hint(key: str, was: Any, now: Any, path: tuple[str, ...], read_only: bool) -> Iterator[Change]:
    if key == "title":
        yield change("safe", path, describe_change(was, now), FOR_PEOPLE)
    elif key not in _HINTS:
        kind, why = _UNKNOWN_HINT
        yield change(kind, path, describe_change(was, now), why)
    else:
        default, kind_false, why_false, kind_true, why_true = _HINTS[key]
        before, after = (default if each is None else each for each in (was, now))
        same = before == after or (read_only and key != "openWorldHint")
        kind, why = ("safe", _SAME_MEANING) if same else (kind_true, why_true) if after else (kind_false, why_false)
        yield change(kind, path, describe_change(was, now), why)


def execution_changes(old: JSONObject | None, new: JSONObject | None, path: tuple[str, ...]) -> Iterator[Change]:
    """Yield the changes of a tool's task support."""
    was, now = ((each or {}).get("taskSupport") or "forbidden" for each in (old, new))
    if was != now:
        kind, why = _TASKS.get((was, now), _UNKNOWN_HINT)
        yield change(kind, (*path, "taskSupport"), describe_change(was, now), why)
    elif old != new:
        yield change("safe", path, describe_change(old, new), _SAME_MEANING)


def resource_annotation_changes(
    old: JSONObject | None, new: JSONObject | None, path: tuple[str, ...]
) -> Iterator[Change]:
    """Yield the changes of a resource's annotations: audience, priority, time of the last change."""
    was, now = old or {}, new or {}
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            kind, why = _RESOURCE_ANNOTATIONS.get(key, _SHOWN_DIFFERENTLY)
            yield change(kind, (*path, key), describe_change(was.get(key), now.get(key)), why)


Path: TypeAlias = tuple[str, ...]
FieldComparison: TypeAlias = Callable[[Any, Any, Path], Iterator[Change]]


def surface_changes(old: JSONObject, new: JSONObject) -> list[Change]:
    """Return the changes from one surface to another, the worst first, without repetitions for several revisions.

    Raises `ValueError` for an invalid surface.
    """
    return changes_by_revision(by_revision(old), by_revision(new))


def changes_by_revision(
    old: dict[str, JSONObject], new: dict[str, JSONObject], unsupported: Sequence[str] = ()
) -> list[Change]:
    """Return the changes of surfaces by revision. `unsupported` are revisions that the new server does not support."""
    found: dict[Change, None] = dict.fromkeys(_revisions(old, new, unsupported))
    common = [(old[each], new[each]) for each in sorted(old.keys() & new.keys())]
    for was, now in common or ([(old[max(old)], new[max(new)])] if old and new else []):
        found.update(dict.fromkeys(_surface(was, now)))
    return sorted(found, key=lambda each: (KINDS.index(each.kind), each.place))


def _revisions(old: dict[str, JSONObject], new: dict[str, JSONObject], unsupported: Sequence[str]) -> Iterator[Change]:
    for revision in sorted(old.keys() - new.keys()):
        if len(new) > 1 or revision in unsupported:
            yield change("breaking", ("revisions", revision), REMOVED, "clients without a newer revision are rejected")
        elif len(old) == 1 and not old.keys() & new.keys():
            yield change(
                "risky",
                ("revision",),
                describe_change(revision, max(new)),
                "whether the server still supports the old revision is unknown",
            )
    for revision in sorted(new.keys() - old.keys()) if len(old) > 1 else ():
        yield change("safe", ("revisions", revision), ADDED, "clients choose a revision that they support")


def _surface(old: JSONObject, new: JSONObject) -> Iterator[Change]:
    yield from _text_changes("risky", FOR_MODELS)(old.get("instructions"), new.get("instructions"), ("instructions",))
    yield from _capabilities(old.get("capabilities") or {}, new.get("capabilities") or {}, ("capabilities",))
    for kind, fields in _FIELDS.items():
        yield from _listed_items(old[kind], new[kind], (kind,), fields)


def _capabilities(old: JSONObject, new: JSONObject, path: Path) -> Iterator[Change]:
    for name in sorted(old.keys() | new.keys()):
        was, now, place = old.get(name), new.get(name), (*path, name)
        if was in (None, False) and now in (None, False):
            continue
        if now in (None, False):
            yield change("breaking", place, REMOVED, "clients that use it fail, or wait in vain")
        elif was in (None, False):
            yield change("safe", place, ADDED, "old clients do not use it")
        elif isinstance(was, dict) and isinstance(now, dict):
            yield from _capabilities(was, now, place)
        elif was != now:
            yield change("risky", place, describe_change(was, now), "clients may rely on the old value")


def _listed_items(old: JSONObject, new: JSONObject, path: Path, fields: dict[str, FieldComparison]) -> Iterator[Change]:
    """Yield the changes of a list by name: items removed, renamed, added or changed."""
    names = _renamed(old, new)
    for name in sorted(old.keys() - new.keys()):
        what = f"renamed: {names[name]}" if name in names else REMOVED
        yield change("breaking", (*path, name), what, "requests with the old name get an error")
    for name in sorted(new.keys() - old.keys() - set(names.values())):
        yield change("safe", (*path, name), ADDED, "old clients do not use it")
    for name in sorted(old.keys() & new.keys()):
        yield from _listed_item(old[name], new[name], (*path, name), fields)


def _renamed(old: JSONObject, new: JSONObject) -> dict[str, str]:
    """Return the new name of each removed item that equals an added one except for its names."""
    left: dict[bytes, list[str]] = {}
    for name in sorted(new.keys() - old.keys(), reverse=True):
        left.setdefault(_without_names(new[name]), []).append(name)
    found: dict[str, str] = {}
    for name in sorted(old.keys() - new.keys()):
        same = left.get(_without_names(old[name])) if "description" in old[name] else None
        if same:
            found[name] = same.pop()
    return found


def _without_names(item: JSONObject) -> bytes:
    """Return an item without its names, as JSON with sorted members."""
    rest = {key: value for key, value in item.items() if key not in ("name", "title", "uri", "uriTemplate")}
    return msgspec.json.encode(rest, order="sorted")


def _listed_item(old: JSONObject, new: JSONObject, path: Path, fields: dict[str, FieldComparison]) -> Iterator[Change]:
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if was != now:
            yield from fields.get(key, _UNKNOWN)(was, now, (*path, key))


# --- fields --------------------------------------------------------------------------------------------------------


def _text_changes(kind: Kind, why: str) -> FieldComparison:
    def compare(was: Any, now: Any, path: Path) -> Iterator[Change]:
        if was != now:
            yield change(kind, path, describe_change(was, now), why)

    return compare


def _input(was: Any, now: Any, path: Path) -> Iterator[Change]:
    yield from schema_changes(was or {}, now or {}, path, sent=True)


def _output(was: Any, now: Any, path: Path) -> Iterator[Change]:
    if now is None:
        yield change("breaking", path, REMOVED, "clients that read structured content may get none, or of any shape")
    elif was is None:
        yield change("safe", path, ADDED, "results may have structured content in addition")
    else:
        yield from schema_changes(was, now, path, sent=False)


def _media_type(was: Any, now: Any, path: Path) -> Iterator[Change]:
    if was is None:
        yield change("safe", path, describe_change(was, now), "no media type was declared before")
    elif now is None:
        yield change("risky", path, describe_change(was, now), "clients that rely on it have to guess")
    else:
        yield change("breaking", path, describe_change(was, now), "clients that rely on it get another format")


def _arguments(was: Any, now: Any, path: Path) -> Iterator[Change]:
    """Yield the changes of a prompt's arguments by name; their order does not matter."""
    old, new = ({each["name"]: each for each in arguments or ()} for arguments in (was, now))
    for name in sorted(old.keys() - new.keys()):
        yield change("breaking", (*path, name), REMOVED, "its values from old clients are rejected or ignored")
    for name in sorted(new.keys() - old.keys()):
        required = bool(new[name].get("required"))
        what, why = (ADDED_REQUIRED, "old clients do not send it") if required else (ADDED, "old clients do not use it")
        yield change("breaking" if required else "safe", (*path, name), what, why)
    for name in sorted(old.keys() & new.keys()):
        yield from _listed_item(old[name], new[name], (*path, name), _ARGUMENT)


def _required(was: Any, now: Any, path: Path) -> Iterator[Change]:
    if bool(was) is not bool(now):
        why = "requests without it are rejected" if now else "it may be omitted"
        yield change("breaking" if now else "safe", path, describe_change(was, now), why)


_UNKNOWN = _text_changes(*_UNKNOWN_HINT)
_FOR_MODELS = _text_changes("risky", FOR_MODELS)
_FOR_PEOPLE = _text_changes("safe", FOR_PEOPLE)

_ARGUMENT: dict[str, FieldComparison] = {"description": _FOR_MODELS, "title": _FOR_PEOPLE, "required": _required}
_ALL: dict[str, FieldComparison] = {"description": _FOR_MODELS, "title": _FOR_PEOPLE, "icons": _FOR_PEOPLE}
_RESOURCE: dict[str, FieldComparison] = {
    **_ALL,
    "mimeType": _media_type,
    "size": _text_changes(*_RESOURCE_ANNOTATIONS["lastModified"]),
    "annotations": resource_annotation_changes,
}
_TOOL: dict[str, FieldComparison] = {
    **_ALL,
    "inputSchema": _input,
    "outputSchema": _output,
    "annotations": annotation_changes,
    "execution": execution_changes,
}
_FIELDS: dict[str, dict[str, FieldComparison]] = {
    "tools": _TOOL,
    "prompts": {**_ALL, "arguments": _arguments},
    "resources": _RESOURCE,
    "resourceTemplates": _RESOURCE,
}
