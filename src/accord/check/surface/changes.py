"""What changed in what a server offers, and whether those who use it notice: `accord check --diff OLD NEW`.

A change is `breaking` when what worked fails or loses its meaning, `risky` when it may, or when models may act in
another way, and `safe` otherwise. Schemas are compared in `comparing`, all else here: of each thing by its fields, each
with a function that judges it.

What changed in what a tool or a resource says of itself, and what people agreed to when they let it be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from accord.check.surface.schema_changes import KINDS, Change, Kind, change, describe_change
from accord.check.surface.schemas import schema_changes
from accord.check.surface.surface import by_revision
from accord.messages.base import JSONObject

_FEWER_CONSENTS = "clients may stop asking people before they call it"
_HINTS: dict[str, tuple[bool, Kind, str, Kind, str]] = {
    "destructiveHint": (True, "risky", _FEWER_CONSENTS, "breaking", "people agreed to calls that destroy nothing"),
    "idempotentHint": (
        False,
        "breaking",
        "clients call it again, and it acts twice",
        "safe",
        "it promises more",
    ),
    "openWorldHint": (True, "safe", "it promises more", "risky", "people agreed to a tool that stays at home"),
}
"""What holds where nothing is said; what it means that the hint is false now; and that it is true now."""

_UNKNOWN_HINT: tuple[Kind, str] = ("risky", "who reads it may act in another way")
_TASKS: dict[tuple[str, str], tuple[Kind, str]] = {
    ("forbidden", "optional"): ("safe", "ordinary calls work as before"),
    ("forbidden", "required"): ("breaking", "ordinary calls are refused"),
    ("optional", "forbidden"): ("breaking", "calls as a task are refused"),
    ("optional", "required"): ("breaking", "ordinary calls are refused"),
    ("required", "forbidden"): ("breaking", "calls as a task are refused"),
    ("required", "optional"): ("safe", "calls as a task work as before"),
}


_SHOWN_DIFFERENTLY: tuple[Kind, str] = ("risky", "clients may show it to others, or leave it out")
_RESOURCE_ANNOTATIONS: dict[str, tuple[Kind, str]] = {
    "lastModified": ("safe", "it is of the content, which may change at any time")
}


def annotation_changes(old: JSONObject | None, new: JSONObject | None, path: tuple[str, ...]) -> Iterator[Change]:
    """Of a tool. The other hints count only for a tool that does not merely read."""
    was, now = old or {}, new or {}
    yield from _read_only(was.get("readOnlyHint"), now.get("readOnlyHint"), (*path, "readOnlyHint"))
    for key in sorted((was.keys() | now.keys()) - {"readOnlyHint"}):
        if was.get(key) != now.get(key):
            both_read = was.get("readOnlyHint") is True and now.get("readOnlyHint") is True
            yield from _hint(key, was.get(key), now.get(key), (*path, key), both_read)


def _read_only(was: Any, now: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if was is True and now is not True:
        yield change("breaking", path, describe_change(was, now), "people agreed to calls that change nothing")
    elif was != now:
        says_more = now is True
        why = _FEWER_CONSENTS if says_more else "it means what it meant"
        yield change("risky" if says_more else "safe", path, describe_change(was, now), why)


def _hint(key: str, was: Any, now: Any, path: tuple[str, ...], read_only: bool) -> Iterator[Change]:
    if key == "title":
        yield change("safe", path, describe_change(was, now), "it is for people")
    elif key not in _HINTS:
        kind, why = _UNKNOWN_HINT
        yield change(kind, path, describe_change(was, now), why)
    else:
        unsaid, less, why_less, more, why_more = _HINTS[key]
        before, after = (unsaid if each is None else each for each in (was, now))
        same = before == after or (read_only and key != "openWorldHint")
        kind, why = ("safe", "it means what it meant") if same else (more, why_more) if after else (less, why_less)
        yield change(kind, path, describe_change(was, now), why)


def execution_changes(old: JSONObject | None, new: JSONObject | None, path: tuple[str, ...]) -> Iterator[Change]:
    """Of a tool: whether it runs as a task."""
    was, now = ((each or {}).get("taskSupport") or "forbidden" for each in (old, new))
    if was != now:
        kind, why = _TASKS.get((was, now), _UNKNOWN_HINT)
        yield change(kind, (*path, "taskSupport"), describe_change(was, now), why)
    elif old != new:
        yield change("safe", path, describe_change(old, new), "it means what it meant")


def resource_annotation_changes(
    old: JSONObject | None, new: JSONObject | None, path: tuple[str, ...]
) -> Iterator[Change]:
    """Of a resource: for whom it is, how much it matters, when it changed."""
    was, now = old or {}, new or {}
    for key in sorted(was.keys() | now.keys()):
        if was.get(key) != now.get(key):
            kind, why = _RESOURCE_ANNOTATIONS.get(key, _SHOWN_DIFFERENTLY)
            yield change(kind, (*path, key), describe_change(was.get(key), now.get(key)), why)


Path: TypeAlias = tuple[str, ...]
FieldComparison: TypeAlias = Callable[[Any, Any, Path], Iterator[Change]]

_MODELS = "models read it, and may act in another way"


def surface_changes(old: JSONObject, new: JSONObject) -> list[Change]:
    """The changes from one surface to another, the worst first. What is alike in several revisions is told once.

    Raises `ValueError` for what is no surface.
    """
    return changes_by_revision(by_revision(old), by_revision(new))


def changes_by_revision(
    old: dict[str, JSONObject], new: dict[str, JSONObject], unspoken: Sequence[str] = ()
) -> list[Change]:
    """The same of surfaces by their revisions. `unspoken` are revisions that the new server is known not to speak."""
    found: dict[Change, None] = dict.fromkeys(_revisions(old, new, unspoken))
    common = [(old[each], new[each]) for each in sorted(old.keys() & new.keys())]
    for was, now in common or ([(old[max(old)], new[max(new)])] if old and new else []):
        found.update(dict.fromkeys(_surface(was, now)))
    return sorted(found, key=lambda each: (KINDS.index(each.kind), each.place))


def _revisions(old: dict[str, JSONObject], new: dict[str, JSONObject], unspoken: Sequence[str]) -> Iterator[Change]:
    for revision in sorted(old.keys() - new.keys()):
        if len(new) > 1 or revision in unspoken:
            yield change("breaking", ("revisions", revision), "gone", "clients that speak nothing newer are refused")
        elif len(old) == 1 and not old.keys() & new.keys():
            yield change(
                "risky",
                ("revision",),
                describe_change(revision, max(new)),
                "whether the old one is spoken is not known",
            )
    for revision in sorted(new.keys() - old.keys()) if len(old) > 1 else ():
        yield change("safe", ("revisions", revision), "new", "clients choose one that they speak")


def _surface(old: JSONObject, new: JSONObject) -> Iterator[Change]:
    yield from _text_changes("risky", _MODELS)(old.get("instructions"), new.get("instructions"), ("instructions",))
    yield from _capabilities(old.get("capabilities") or {}, new.get("capabilities") or {}, ("capabilities",))
    for kind, fields in _FIELDS.items():
        yield from _listed_items(old[kind], new[kind], (kind,), fields)


def _capabilities(old: JSONObject, new: JSONObject, path: Path) -> Iterator[Change]:
    for name in sorted(old.keys() | new.keys()):
        was, now, place = old.get(name), new.get(name), (*path, name)
        if was in (None, False) and now in (None, False):
            continue
        if now in (None, False):
            yield change("breaking", place, "gone", "clients that make use of it fail, or wait for what never comes")
        elif was in (None, False):
            yield change("safe", place, "new", "clients that do not know it do without")
        elif isinstance(was, dict) and isinstance(now, dict):
            yield from _capabilities(was, now, place)
        elif was != now:
            yield change("risky", place, describe_change(was, now), "clients may count on what it was")


def _listed_items(old: JSONObject, new: JSONObject, path: Path, fields: dict[str, FieldComparison]) -> Iterator[Change]:
    """What is listed, by name: what is gone, has another name, is new, or says something else."""
    names = _renamed(old, new)
    for name in sorted(old.keys() - new.keys()):
        what = f"renamed: {names[name]}" if name in names else "gone"
        yield change("breaking", (*path, name), what, "who asks for it by its name gets an error")
    for name in sorted(new.keys() - old.keys() - set(names.values())):
        yield change("safe", (*path, name), "new", "nobody asks for it yet")
    for name in sorted(old.keys() & new.keys()):
        yield from _listed_item(old[name], new[name], (*path, name), fields)


def _renamed(old: JSONObject, new: JSONObject) -> dict[str, str]:
    """By its old name, what is like something that is new, but for what it is called."""
    left: dict[bytes, list[str]] = {}
    for name in sorted(new.keys() - old.keys(), reverse=True):
        left.setdefault(_without_names(new[name]), []).append(name)
    found: dict[str, str] = {}
    for name in sorted(old.keys() - new.keys()):
        same = left.get(_without_names(old[name])) if "description" in old[name] else None
        if same:
            found[name] = same.pop()
    return found


def _without_names(thing: JSONObject) -> bytes:
    """A thing but for what it is called, as JSON in which members are in order."""
    rest = {key: value for key, value in thing.items() if key not in ("name", "title", "uri", "uriTemplate")}
    return msgspec.json.encode(rest, order="sorted")


def _listed_item(old: JSONObject, new: JSONObject, path: Path, fields: dict[str, FieldComparison]) -> Iterator[Change]:
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if was != now:
            yield from fields.get(key, _UNKNOWN)(was, now, (*path, key))


# --- fields --------------------------------------------------------------------------------------------------------


def _text_changes(kind: Kind, why: str) -> FieldComparison:
    def judge(was: Any, now: Any, path: Path) -> Iterator[Change]:
        if was != now:
            yield change(kind, path, describe_change(was, now), why)

    return judge


def _input(was: Any, now: Any, path: Path) -> Iterator[Change]:
    yield from schema_changes(was or {}, now or {}, path, sent=True)


def _output(was: Any, now: Any, path: Path) -> Iterator[Change]:
    if now is None:
        yield change("breaking", path, "gone", "clients that read structured results get none, or of any shape")
    elif was is None:
        yield change("safe", path, "new", "results are as they were, or have structure besides")
    else:
        yield from schema_changes(was, now, path, sent=False)


def _media_type(was: Any, now: Any, path: Path) -> Iterator[Change]:
    if was is None:
        yield change("safe", path, describe_change(was, now), "nothing was promised")
    elif now is None:
        yield change("risky", path, describe_change(was, now), "clients that go by it have to guess")
    else:
        yield change("breaking", path, describe_change(was, now), "clients that go by it read something else")


def _arguments(was: Any, now: Any, path: Path) -> Iterator[Change]:
    """Of a prompt, by their names; their order says nothing."""
    old, new = ({each["name"]: each for each in some or ()} for some in (was, now))
    for name in sorted(old.keys() - new.keys()):
        yield change("breaking", (*path, name), "gone", "what old clients send for it is refused or ignored")
    for name in sorted(new.keys() - old.keys()):
        needs = bool(new[name].get("required"))
        what, why = ("new, and required", "old clients do not send it") if needs else ("new", "old clients do without")
        yield change("breaking" if needs else "safe", (*path, name), what, why)
    for name in sorted(old.keys() & new.keys()):
        yield from _listed_item(old[name], new[name], (*path, name), _ARGUMENT)


def _required(was: Any, now: Any, path: Path) -> Iterator[Change]:
    if bool(was) is not bool(now):
        why = "requests without it are refused" if now else "it may be left out"
        yield change("breaking" if now else "safe", path, describe_change(was, now), why)


_UNKNOWN = _text_changes(*_UNKNOWN_HINT)
_FOR_MODELS = _text_changes("risky", _MODELS)
_FOR_PEOPLE = _text_changes("safe", "it is for people")

_ARGUMENT: dict[str, FieldComparison] = {"description": _FOR_MODELS, "title": _FOR_PEOPLE, "required": _required}
_ALL: dict[str, FieldComparison] = {"description": _FOR_MODELS, "title": _FOR_PEOPLE, "icons": _FOR_PEOPLE}
_RESOURCE: dict[str, FieldComparison] = {
    **_ALL,
    "mimeType": _media_type,
    "size": _text_changes("safe", "it is of the content, which may change at any time"),
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
