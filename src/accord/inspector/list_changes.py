"""Changes of the lists of a server: after `list_changed`, the list is requested again and compared with the one before.

The notification has no content. However many of them arrive, a list is requested at most once in `PAUSE_SECONDS`.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from accord.errors import AccordError, log_line
from accord.host.line_difference import difference
from accord.inspector.commands import InspectorError
from accord.visible_text import indented, visible

ListKind: TypeAlias = Literal["tools", "prompts", "resources"]
FetchList: TypeAlias = Callable[[ListKind], Awaitable[Sequence[Any]]]
StartTask: TypeAlias = Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]

PAUSE_SECONDS = 1.0
"""The least time between two requests of one list."""
_FIRST_PAUSE_SECONDS = 0.1
"""The time in which several changes become one."""
_MAX_CHANGES = 50
_MAX_NAMES = 200
_MAX_LINES = 200
_CONTEXT_LINES = 2
_MAX_COMPARED = 512 << 10
"""Characters of the definitions in one difference: they are compared line by line, which takes time."""
_TOO_LONG = "  ... the definitions are too long to compare"
_MAX_BYTES = 8 << 20
"""Bytes of one stored list; of a longer one, only the names of items are compared."""


class ChangedItem(msgspec.Struct, frozen=True):
    """An item of a list with another definition: lines with `+`, `-` or a space in front."""

    name: str
    lines: list[str]


class ListDifference(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The changes of one list. `note` says what is not known."""

    at: float
    kind: ListKind
    added: list[str] = []
    removed: list[str] = []
    changed: list[ChangedItem] = []
    note: str = ""


class StoredList(msgspec.Struct, frozen=True):
    """A list by the names of its items; the definitions are JSON, or empty if they are too long."""

    items: Mapping[str, bytes]
    is_complete: bool


class ListWatch:
    """The lists of one server. `fetch(kind)` requests one in a task of `start`; `on_change()` follows a difference."""

    def __init__(self, fetch: FetchList, on_change: Callable[[], None], start: StartTask) -> None:
        self.differences: deque[ListDifference] = deque(maxlen=_MAX_CHANGES)
        self._fetch = fetch
        self._on_change = on_change
        self._start = start
        self._stored: dict[ListKind, StoredList] = {}
        self._stale: set[ListKind] = set()
        self._tasks: dict[ListKind, asyncio.Task[Any]] = {}

    def learn(self, kind: ListKind, items: Sequence[Any]) -> None:
        """Store a list that was requested anyway; it is what the next one is compared with."""
        if kind not in self._stale:
            self._stored[kind] = _stored(items)

    def watch(self, kind: ListKind) -> None:
        """Request a list if none is stored, so that its next change can be shown."""
        if kind not in self._stored:
            self.changed(kind)

    def changed(self, kind: ListKind) -> None:
        """Request the list again, soon."""
        self._stale.add(kind)
        if kind not in self._tasks:
            self._tasks[kind] = self._start(self._follow(kind))

    async def _follow(self, kind: ListKind) -> None:
        try:
            await self._refresh(kind)
        finally:  # not in a callback of the task: a change between its end and the callback would be lost
            del self._tasks[kind]

    async def _refresh(self, kind: ListKind) -> None:
        await asyncio.sleep(_FIRST_PAUSE_SECONDS)
        while kind in self._stale:
            self._stale.discard(kind)
            try:
                found = _stored(await self._fetch(kind))
            except (AccordError, InspectorError) as exc:
                note = f"it changed, but cannot be requested: {log_line(exc)}"
                self._add(ListDifference(at=time.time(), kind=kind, note=note))
            else:
                before = self._stored.get(kind)
                self._stored[kind] = found
                self._add(await asyncio.to_thread(_difference, kind, before, found))
            await asyncio.sleep(PAUSE_SECONDS)

    def _add(self, found: ListDifference) -> None:
        self.differences.append(found)
        self._on_change()


def _stored(items: Sequence[Any]) -> StoredList:
    texts = {str(getattr(item, "name", None) or item.uri): msgspec.json.encode(item) for item in items}
    is_complete = sum(map(len, texts.values())) <= _MAX_BYTES
    return StoredList(texts if is_complete else dict.fromkeys(texts, b""), is_complete)


def _difference(kind: ListKind, before: StoredList | None, now: StoredList) -> ListDifference:
    if before is None:
        note = f"first read: {len(now.items):,} items; what it was before is not known"
        return ListDifference(at=time.time(), kind=kind, note=note)
    old, new = before.items, now.items
    added = [name for name in new if name not in old]
    removed = [name for name in old if name not in new]
    changed = [name for name, text in new.items() if name in old and old[name] != text]
    most = max(len(added), len(removed), len(changed))
    notes = [f"only the first {_MAX_NAMES} of {most:,} items are shown"] if most > _MAX_NAMES else []
    if not (before.is_complete and now.is_complete):
        notes.append("the list is too long to compare definitions")
    elif not most:
        notes.append("the list is the same as before")
    return ListDifference(
        at=time.time(),
        kind=kind,
        added=added[:_MAX_NAMES],
        removed=removed[:_MAX_NAMES],
        changed=list(_changed_items(changed[:_MAX_NAMES], old, new)),
        note="; ".join(notes),
    )


def _changed_items(names: Sequence[str], old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[ChangedItem]:
    """Yield items with the difference of their definitions, as long as what was compared has few characters."""
    room = _MAX_COMPARED
    for name in names:
        before, after = indented(old[name], room), indented(new[name], room)
        if before is None or after is None:
            yield ChangedItem(name, [_TOO_LONG])
        else:
            room -= max(len(before), len(after))
            yield ChangedItem(name, _lines(before.splitlines(), after.splitlines()))


def _lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    found = [visible(line) for line in difference(before, after, _CONTEXT_LINES)]
    return [*found[:_MAX_LINES], f"  ... {len(found) - _MAX_LINES:,} more lines"] if len(found) > _MAX_LINES else found
