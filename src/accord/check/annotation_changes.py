"""What changed in what a tool or a resource says of itself, and what people agreed to when they let it be used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accord.check.schema_diff.change import Change, Kind, change, describe_change
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

_UNKNOWN: tuple[Kind, str] = ("risky", "who reads it may act in another way")
_TASKS: dict[tuple[str, str], tuple[Kind, str]] = {
    ("forbidden", "optional"): ("safe", "ordinary calls work as before"),
    ("forbidden", "required"): ("breaking", "ordinary calls are refused"),
    ("optional", "forbidden"): ("breaking", "calls as a task are refused"),
    ("optional", "required"): ("breaking", "ordinary calls are refused"),
    ("required", "forbidden"): ("breaking", "calls as a task are refused"),
    ("required", "optional"): ("safe", "calls as a task work as before"),
}


_SHOWN_DIFFERENTLY: tuple[Kind, str] = ("risky", "clients may show it to others, or leave it out")
_RESOURCE: dict[str, tuple[Kind, str]] = {
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
        kind, why = _UNKNOWN
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
        kind, why = _TASKS.get((was, now), _UNKNOWN)
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
            kind, why = _RESOURCE.get(key, _SHOWN_DIFFERENTLY)
            yield change(kind, (*path, key), describe_change(was.get(key), now.get(key)), why)
