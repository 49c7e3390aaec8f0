"""The sessions of one site: found by id and principal, bounded in number and in time."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from accord.errors import StoreError
from accord.server.core.principal import id_of
from accord.server.http.base_session import BaseHTTPSession, SessionRecord, is_own_id, read_record
from accord.server.http.quotas import is_address
from accord.server.http.session import NO_SESSION, HTTPSession
from accord.transport.asgi.request import ASGIRequest, RequestRejected

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.http.http_context import HTTPContext

log: logging.Logger = logging.getLogger("accord")

V = TypeVar("V", bound=BaseHTTPSession)

_EVICTION_TRIES = 64
"""Sessions that are looked at to find one which is idle; those that are not have another turn."""

_FEW = 100
"""Sessions of one account that do not end for those of others while they are used."""

_LATER = ((b"retry-after", b"30"),)


class SessionTable(Generic[V]):
    """Sessions of one kind."""

    def __init__(self, site: HTTPContext) -> None:
        self._context = site
        self._by_id: dict[str, V] = {}
        self._unused: dict[V, None] = {}  # and some that were used since, the oldest first
        self._by_account: dict[str, OrderedDict[BaseHTTPSession, None]] = {}  # by account, the longest idle first
        self._ending: set[str] = set()

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._by_id.values()))

    async def ensure_capacity(self, account: str) -> None:
        """Return when one more can be added, at once. Sessions that nobody uses keep no one out: the oldest goes, and
        then the one that was idle for the longest time.

        Raises `RequestRejected` (503) when there are too many that are in use, of this account or of all.
        """
        while (full := self._full(account)) is not None:
            spare = self._oldest_unused(full) or self._longest_idle(full)
            if spare is None:
                limits = self._context.limits
                whose = "" if not full else " of this address" if is_address(full) else f" of {full!r}"
                most = self._most(full) if full else limits.http.sessions
                raise RequestRejected(503, f"too many sessions{whose}: the limit is {most:,}", _LATER)
            await self.end(spare, "the session was idle, and others need its room")

    def _full(self, account: str) -> str | None:
        """The account that has too many, or an empty string for all; None where there is room."""
        if len(self._by_account.get(account, ())) >= self._most(account):
            return account
        return "" if len(self._by_id) >= self._context.limits.http.sessions else None

    def _most(self, account: str) -> int:
        limits = self._context.limits
        return limits.http.sessions_per_address if is_address(account) else limits.http.sessions_per_principal

    def _oldest_unused(self, account: str) -> V | None:
        """Of this account, or of all."""
        used, found = [], None
        for visitor in self._unused:
            if not visitor.unused:
                used.append(visitor)
            elif account in ("", visitor.account):
                found = visitor
                break
        for visitor in used:
            del self._unused[visitor]
        return found

    def _longest_idle(self, account: str) -> V | None:
        """Of this account; or of the one that has most of all. One that has no more than its share of the room loses
        only sessions that were idle for a while; one that has more also loses others, if nothing runs in them, and
        then those that only listen: otherwise two addresses that use each of theirs now and then, or have a stream of
        each open, would keep everyone else out.
        """
        if account:
            return self._idle_of(self._by_account[account])
        most, limits = max(self._by_account.values(), key=len), self._context.limits
        found = self._idle_of(most)
        if len(most) > max(_FEW, limits.http.sessions // (len(self._by_account) + 1)):
            return found or self._idle_of(most, may_listen=True)
        idle = self._context.loop.time() - limits.http.session_unused_seconds
        return found if found is not None and found.last_used_at <= idle else None

    def _idle_of(self, visitors: OrderedDict[BaseHTTPSession, None], *, may_listen: bool = False) -> V | None:
        for _ in range(min(_EVICTION_TRIES, len(visitors))):
            visitor = next(iter(visitors))
            if not visitor.busy or (may_listen and visitor.is_listening):
                return self._by_id[visitor.id]
            visitors.move_to_end(visitor)
        return None

    def add(self, visitor: V) -> None:
        """From now on it is found."""
        self._by_id[visitor.id] = visitor
        self._unused[visitor] = None
        visitor.account_sessions = self._by_account.setdefault(visitor.account, OrderedDict())
        visitor.account_sessions[visitor] = None

    def get(self, id: str) -> V | None:
        """A session, whosever it is."""
        return self._by_id.get(id)

    def find(self, id: str, who: Principal | None) -> V | None:
        """A session, for the one whose it is; for anyone else there is none."""
        visitor = self._by_id.get(id)
        return visitor if visitor is not None and visitor.principal == id_of(who) else None

    async def end(self, visitor: V, why: str) -> None:
        """End it: it is not found any more, and what it does stops."""
        if self._by_id.pop(visitor.id, None) is not None:
            self._unused.pop(visitor, None)
            self._remove_from_account(visitor)
            self._ending.add(visitor.id)
            try:
                # First, or another process takes it up meanwhile; but a store that hangs must not keep it running.
                await asyncio.gather(visitor.forget(), visitor.close(why))
            finally:
                self._ending.discard(visitor.id)

    def _remove_from_account(self, visitor: V) -> None:
        others, visitor.account_sessions = visitor.account_sessions, None
        if others is not None:
            del others[visitor]
            if not others:
                del self._by_account[visitor.account]

    async def sweep(self) -> None:
        """End those that have had nothing to do for too long, or are too old."""
        now, limits = self._context.loop.time(), self._context.limits
        over: list[Coroutine[Any, Any, None]] = []
        for visitor in self:
            if now - visitor.created_at > limits.http.session_seconds:
                over.append(self.end(visitor, "the session has lasted as long as it may"))
            elif not visitor.busy and now - visitor.last_used_at > self._idle_limit(visitor):
                over.append(self.end(visitor, "the session was idle"))
        await _run_all(over, 2 * limits.close_seconds)

    def _idle_limit(self, visitor: V) -> float:
        """Seconds that it may have nothing to do."""
        limits = self._context.limits
        idle = limits.http.session_idle_seconds
        return min(idle, limits.http.session_unused_seconds) if visitor.unused else idle

    async def close(self, why: str) -> None:
        """The process ends: close all of them, which another process may take up again."""
        visitors, self._by_id = list(self._by_id.values()), {}
        self._unused.clear()
        for visitor in visitors:
            self._remove_from_account(visitor)
        await _run_all([visitor.close(why) for visitor in visitors], 2 * self._context.limits.close_seconds)


class PersistentSessionTable(SessionTable[HTTPSession]):
    """Those of Streamable HTTP, which may have begun in a process that is gone."""

    async def get_or_restore(self, id: str, who: Principal | None, request: ASGIRequest) -> HTTPSession:
        """A session, from the store if need be. Raises `RequestRejected`: "the server MUST respond [...] 404"."""
        session = self.find(id, who)
        if session is None and self._context.is_persistent:
            session = await self._restore(id, who, self._context.account(who, request))
        if session is None:
            if not is_own_id(id):
                self._context.warn_about_workers("a session was asked for that this process has not begun")
            raise RequestRejected(404, NO_SESSION)
        return session

    async def _restore(self, id: str, who: Principal | None, account: str) -> HTTPSession | None:
        record = await self._record(id)
        if record is None or record.principal != id_of(who):
            return None
        await self.ensure_capacity(account)
        # What was so before the store was asked may be so no longer.
        if id in self._ending or (found := self.find(id, who)) is not None:
            return None if id in self._ending else found
        session = HTTPSession(self._context, who, account, id, known=True)
        try:
            session.restore(record)
        except RequestRejected:
            await session.close("there is no room for what it keeps")
            raise
        self.add(session)
        return session

    async def _record(self, id: str) -> SessionRecord | None:
        """What the store has of a session. One that this server cannot carry on is none. Raises `RequestRejected`."""
        if id in self._ending:
            return None
        try:
            kept = await self._context.events.load(id)
        except StoreError as exc:
            log.error("accord: a session could not be read: %s", exc)
            raise RequestRejected(503, "the session store is not available", _LATER) from exc
        return None if kept is None else read_record(kept, self._context.server.revisions)


async def _run_all(ends: list[Coroutine[Any, Any, None]], seconds: float) -> None:
    """Have all of them happen, side by side: one that fails or hangs holds up no other."""
    if not ends:
        return
    tasks = [asyncio.ensure_future(end) for end in ends]
    done, hanging = await asyncio.wait(tasks, timeout=seconds)
    for task in hanging:
        task.cancel()
        log.error("accord: the end of a session took longer than %g seconds, and was given up", seconds)
    for task in done:
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("accord: a session could not be ended", exc_info=exc)
