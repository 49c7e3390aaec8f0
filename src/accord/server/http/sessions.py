"""The sessions of one site: found by id and principal, bounded in number and in time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from accord.server.http.visitor import Visitor
from accord.transport.asgi.request import Rejected

if TYPE_CHECKING:
    from accord.server.http.auth import Principal
    from accord.server.http.site import Site

V = TypeVar("V", bound=Visitor)

_LATER = ((b"retry-after", b"30"),)


class Sessions(Generic[V]):
    """Sessions of one kind."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._by_id: dict[str, V] = {}
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._by_id.values()))

    def check_room(self, who: Principal | None) -> None:
        """Raises `Rejected` (503) when there are too many already, of this principal or of all."""
        limits = self._site.limits
        if len(self._by_id) >= limits.sessions:
            raise Rejected(503, f"too many sessions: the limit is {limits.sessions:,}", _LATER)
        if who is not None and self._of[who.id] >= limits.sessions_per_principal:
            most = limits.sessions_per_principal
            raise Rejected(503, f"too many sessions of {who.id!r}: the limit is {most:,}", _LATER)

    def add(self, visitor: V) -> None:
        """From now on it is found."""
        self._by_id[visitor.id] = visitor
        self._of[visitor.principal] += 1

    def find(self, id: str, who: Principal | None) -> V | None:
        """A session, for the one whose it is; for anyone else there is none."""
        visitor = self._by_id.get(id)
        return visitor if visitor is not None and visitor.principal == ("" if who is None else who.id) else None

    async def end(self, visitor: V, why: str) -> None:
        """End it: it is not found any more, and what it does stops."""
        if self._by_id.pop(visitor.id, None) is not None:
            self._of[visitor.principal] -= 1
            if not self._of[visitor.principal]:
                del self._of[visitor.principal]
            await visitor.close(why)
            await visitor.forget()

    async def sweep(self) -> None:
        """End those that have had nothing to do for too long, or are too old."""
        now, limits = self._site.loop.time(), self._site.limits
        for visitor in list(self._by_id.values()):
            if now - visitor.born > limits.session_seconds:
                await self.end(visitor, "the session has lasted as long as it may")
            elif not visitor.busy and now - visitor.seen > limits.session_idle_seconds:
                await self.end(visitor, "the session was idle")

    async def close(self, why: str) -> None:
        """The process ends: close all of them, which another process may take up again."""
        visitors, self._by_id = list(self._by_id.values()), {}
        self._of.clear()
        for visitor in visitors:
            await visitor.close(why)
