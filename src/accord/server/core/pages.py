"""Lists as encoded pages, created once per revision, and cursors that survive a restart.

A cursor consists of the name of the last item sent and a checksum against accidental changes; the server stores none. A
cursor has one spelling and is valid only at the end of a page, so a list has a bounded number of pages. The removal of
its item makes it invalid ("Invalid cursors SHOULD result in an error with code -32602").
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Raw

from accord.errors import DeclarationError, InvalidParams
from accord.messages.revision import Rules

log: logging.Logger = logging.getLogger("accord.server")


def cursor_after(name: str) -> str:
    """Return the cursor after the item `name`."""
    data = name.encode()
    return (zlib.crc32(data).to_bytes(4, "big") + data).hex()


def name_before(cursor: str) -> str:
    """Return the name of the item before a cursor. Raises `InvalidParams`, also for capitals and blanks, which
    `fromhex` accepts.
    """
    try:
        name = bytes.fromhex(cursor)[4:].decode()
    except ValueError:
        name = ""
    if not name or cursor != cursor_after(name):
        raise _unknown(cursor)
    return name


def _unknown(cursor: str) -> InvalidParams:
    return InvalidParams(f"not a cursor of this server: {cursor[:100]!r}")


class Pages:
    """The pages of one list. `items` returns the listed definitions by name, in order; `pack` encodes a page."""

    def __init__(
        self,
        items: Callable[[], dict[str, Any]],
        pack: Callable[[Sequence[Any], str | None, Rules], Raw],
        size: int,
    ) -> None:
        self._items = items
        self._pack = pack
        self._size = size
        self._made: dict[tuple[str, str | None], Raw] = {}

    def clear(self) -> None:
        """Discard the pages after a change; callable from any thread. A page that is being created keeps the old
        list.
        """
        self._made = {}

    def page(self, cursor: str | None, rules: Rules) -> Raw:
        """Return the page after a cursor. Raises `InvalidParams`."""
        pages = self._made
        made = pages.get((rules.revision, cursor))
        if made is None:
            made = pages[rules.revision, cursor] = self._make(cursor, rules)
        return made

    def _make(self, cursor: str | None, rules: Rules) -> Raw:
        items = self._items()
        page, following = cut(list(items), cursor, self._size)
        found = [defined(name, items[name], rules) for name in page]
        return self._pack([each for each in found if each is not None], following, rules)


def defined(name: str, define: Callable[[Rules], Any], rules: Rules) -> Any:
    """Return the definition of a list item; None, and log an error, for an invalid declaration, so that the others are
    still listed.
    """
    try:
        return define(rules)
    except DeclarationError as exc:
        log.error("accord: %r cannot be listed: %s", name, exc)
        return None


def cut(names: list[str], cursor: str | None, size: int) -> tuple[list[str], str | None]:
    """Return the names of one page, and the cursor after it if more follow. Raises `InvalidParams`."""
    start = 0 if cursor is None else _start(names, cursor)
    if cursor is not None and start % size:  # the server issues cursors only at the end of a page
        raise _unknown(cursor)
    page = names[start : start + size]
    return page, cursor_after(page[-1]) if start + len(page) < len(names) else None


def _start(names: list[str], cursor: str) -> int:
    name = name_before(cursor)
    try:
        return names.index(name) + 1
    except ValueError:
        raise InvalidParams(f"the list has changed since this cursor was issued: {name[:100]!r} is gone") from None
