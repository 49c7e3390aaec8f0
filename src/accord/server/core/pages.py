"""Lists as pages of bytes, made once per revision, and cursors that survive a restart.

A cursor is the name of the last item sent, and a checksum against accidents; it needs no memory in the server. It has
one spelling, and stands at the end of a page: so there are no more pages to keep than the list has. An item that has
gone since makes it invalid ("Invalid cursors SHOULD result in an error with code -32602").
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
    """The cursor that stands behind the item `name`."""
    data = name.encode()
    return (zlib.crc32(data).to_bytes(4, "big") + data).hex()


def name_before(cursor: str) -> str:
    """The item before a cursor. Raises `InvalidParams`; also where `fromhex` is lenient: capitals, blanks."""
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
    """The pages of one list. `items` gives what is listed, by name, in order; `pack` makes a page's bytes."""

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
        """Something was added or removed. From any thread: a page that is being made now is of the old list."""
        self._made = {}

    def page(self, cursor: str | None, rules: Rules) -> Raw:
        """The page behind a cursor. Raises `InvalidParams`."""
        kept = self._made
        made = kept.get((rules.revision, cursor))
        if made is None:
            made = kept[rules.revision, cursor] = self._make(cursor, rules)
        return made

    def _make(self, cursor: str | None, rules: Rules) -> Raw:
        items = self._items()
        page, following = cut(list(items), cursor, self._size)
        found = [defined(name, items[name], rules) for name in page]
        return self._pack([each for each in found if each is not None], following, rules)


def defined(name: str, define: Callable[[Rules], Any], rules: Rules) -> Any:
    """An item of a list; None for one whose declaration turns out to be wrong: the others are listed all the same."""
    try:
        return define(rules)
    except DeclarationError as exc:
        log.error("accord: %r cannot be listed: %s", name, exc)
        return None


def cut(names: list[str], cursor: str | None, size: int) -> tuple[list[str], str | None]:
    """The names of one page, and the cursor behind it, if there is more. Raises `InvalidParams`."""
    start = 0 if cursor is None else _start(names, cursor)
    if cursor is not None and start % size:  # only cursors that were given: see above
        raise _unknown(cursor)
    page = names[start : start + size]
    return page, cursor_after(page[-1]) if start + len(page) < len(names) else None


def _start(names: list[str], cursor: str) -> int:
    name = name_before(cursor)
    try:
        return names.index(name) + 1
    except ValueError:
        raise InvalidParams(f"the list has changed since this cursor was issued: {name[:100]!r} is gone") from None
