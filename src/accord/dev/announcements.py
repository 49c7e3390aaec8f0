"""The comparison of two surfaces, and the notifications about what really changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from accord.check.surface.changes import surface_changes
from accord.check.surface.schema_changes import Change
from accord.dev.exchange import Exchange
from accord.dev.rewriting import LIST_KINDS, members, notification
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID

_KIND_OF_PLACE = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}


def compare(old: JSONObject | None, new: JSONObject | None) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return the changes, and the lists to announce; all lists if a surface is unknown or cannot be compared."""
    if old is None or new is None:
        return (), LIST_KINDS
    try:
        changes = surface_changes(old, new)
    except ValueError:
        return (), LIST_KINDS
    changed = {_KIND_OF_PLACE.get(each.place.partition(".")[0]) for each in changes}
    return tuple(changes), tuple(kind for kind in LIST_KINDS if kind in changed)


def notifications(kinds: Iterable[str], *, session: bool, listening: Iterable[Exchange]) -> Iterator[bytes]:
    """Yield the notifications: one per list for a session, and one for each subscription that requested it."""
    subscriptions = [(each.id, members(each.params).get("notifications")) for each in listening]
    for kind in kinds:
        method = f"notifications/{kind}/list_changed"
        if session:
            yield notification(method)
        for id, wanted in subscriptions:
            if isinstance(wanted, dict) and wanted.get(f"{kind}ListChanged") is True:
                yield notification(method, {"_meta": {SUBSCRIPTION_ID: id}})


def granted(requested: JSONObject, acknowledged: JSONObject) -> JSONObject:
    """Return what the host is granted: what the process grants, and the list changes, which the relay announces."""
    wanted = (f"{kind}ListChanged" for kind in LIST_KINDS)
    return {**acknowledged, **{name: True for name in wanted if requested.get(name) is True}}
