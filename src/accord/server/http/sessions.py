"""Tables of the sessions of one server: lookup by id and principal, with bounds on number and age."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from accord.errors import StoreError
from accord.server.core.principal import id_of
from accord.server.http.base_session import BaseHTTPSession, SessionRecord, is_own_id, read_record
from accord.server.http.quotas import is_address, network_of
from accord.server.http.session import NO_SESSION, HTTPSession
from accord.transport.asgi.request import ASGIRequest, RequestRejected

if TYPE_CHECKING:
    from accord.server.core.principal import Principal
    from accord.server.http.http_context import HTTPContext

log: logging.Logger = logging.getLogger("accord")

V = TypeVar("V", bound=BaseHTTPSession)

_FEW = 100
"""The number of sessions in use that a network keeps even if others need room."""

_AT_ONCE = 16
"""The number of sessions that begin to end in one iteration of the loop."""

_LATER = ((b"retry-after", b"30"),)


def _limit_of(account: str) -> str:
    """Return the name of the limit on the sessions of one account."""
    return "sessions_per_address" if is_address(account) else "sessions_per_principal"


class SessionTable(Generic[V]):
    """A table of sessions of one kind."""

    def __init__(self, context: HTTPContext) -> None:
        self._context = context
        self._by_id: dict[str, V] = {}
        self._unused: dict[V, None] = {}  # and some used since, the oldest first
        self._by_account: dict[str, OrderedDict[BaseHTTPSession, None]] = {}  # the longest idle first
        self._by_network: dict[str, OrderedDict[BaseHTTPSession, None]] = {}  # likewise; see `network_of`
        self._ending: dict[str, asyncio.Future[Any]] = {}

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[V]:
        return iter(list(self._by_id.values()))

    async def ensure_capacity(self, account: str) -> None:
        """Make room for one session at once. Unused sessions are evicted first, the oldest one; then the longest idle
        one.

        Raises `RequestRejected` (503) if too many sessions are in use, of this account or in total.
        """
        while (full := self._full(account)) is not None:
            spare = self._oldest_unused(full) or self._longest_idle(full)
            if spare is None:
                limits = self._context.limits
                owner = "" if not full else " of this address" if is_address(full) else f" of {full!r}"
                most = self._max_sessions(full) if full else limits.http.sessions
                name = "sessions" if not full else _limit_of(full)
                what = f"too many sessions{owner}: the limit is {most:,} (HTTPLimits.{name})"
                raise RequestRejected(503, what, _LATER)
            await self.end(spare, "the session was idle, and others need its room")

    def _full(self, account: str) -> str | None:
        """Return the account that is full, an empty string if the table is, or None if there is room."""
        if len(self._by_account.get(account, ())) >= self._max_sessions(account):
            return account
        return "" if len(self._by_id) >= self._context.limits.http.sessions else None

    def _max_sessions(self, account: str) -> int:
        most: int = getattr(self._context.limits.http, _limit_of(account))
        return most

    def _oldest_unused(self, account: str) -> V | None:
        """Return the oldest unused session of an account, or of all for an empty string."""
        used, oldest = [], None
        for session in self._unused:
            if not session.unused:
                used.append(session)
            elif account in ("", session.account):
                oldest = session
                break
        for session in used:
            del self._unused[session]
        return oldest

    def _longest_idle(self, account: str) -> V | None:
        """Return the session to evict, of this account or, for an empty string, of the network with the most sessions.

        A network within its share loses only sessions that were idle for a while. One above its share also loses
        recently used sessions without requests in progress, and then those with open streams only: otherwise two
        networks that use their sessions now and then, or keep a stream of each open, could lock out all others.
        """
        if account:
            return self._idle_of(self._by_account[account])
        largest, limits = max(self._by_network.values(), key=len), self._context.limits
        if len(largest) > max(_FEW, limits.http.sessions // (len(self._by_network) + 1)):
            return self._idle_of(largest, may_listen=True)
        idle = self._context.loop.time() - limits.http.session_unused_seconds
        candidate = self._idle_of(largest)
        return candidate if candidate is not None and candidate.last_used_at <= idle else None

    def _idle_of(self, sessions: Iterable[BaseHTTPSession], *, may_listen: bool = False) -> V | None:
        """Return the longest idle session; with `may_listen`, one that only has open streams if none is idle."""
        listening = None
        for session in sessions:
            if not session.busy:
                return self._by_id[session.id]
            if may_listen and listening is None and session.is_listening:
                listening = self._by_id[session.id]
        return listening

    def add(self, session: V) -> None:
        """Add a session."""
        self._by_id[session.id] = session
        self._unused[session] = None
        session.neighbors = tuple(table.setdefault(key, OrderedDict()) for table, key in self._tables_of(session))
        for sessions in session.neighbors:
            sessions[session] = None

    def get(self, id: str) -> V | None:
        """Return the session with an id, of any principal."""
        return self._by_id.get(id)

    def find(self, id: str, principal: Principal | None) -> V | None:
        """Return the session with an id if it belongs to the principal, or None."""
        session, owner = self._by_id.get(id), "" if principal is None else principal.id
        return session if session is not None and session.principal == owner else None

    async def end(self, session: V, reason: str) -> None:
        """End a session for good: remove it from the table and the store, and close it. If the caller is cancelled,
        the session ends all the same.
        """
        if self._by_id.pop(session.id, None) is not None:
            self._unused.pop(session, None)
            self._remove_from_tables(session)
            # Together: no other process may restore it, and a store that hangs must not delay the close.
            ending = self._ending[session.id] = asyncio.gather(session.forget(), session.close(reason))
            ending.add_done_callback(lambda _: self._ending.pop(session.id))
            await asyncio.shield(ending)

    def _tables_of(self, session: V) -> tuple[tuple[dict[str, OrderedDict[BaseHTTPSession, None]], str], ...]:
        """Return the tables of all sessions by account and by network, each with the key of a session."""
        return (self._by_account, session.account), (self._by_network, network_of(session.account))

    def _remove_from_tables(self, session: V) -> None:
        session.neighbors = ()
        for table, key in self._tables_of(session):
            del table[key][session]
            if not table[key]:
                del table[key]

    async def sweep(self) -> None:
        """End the sessions that are idle or too old."""
        await _run_all((self.end(*each) for each in self._expired()), 2 * self._context.limits.close_seconds)

    def _expired(self) -> Iterator[tuple[V, str]]:
        """Yield the sessions that are idle or too old, with the reason for their end."""
        now, limits = self._context.loop.time(), self._context.limits
        for session in self:
            if now - session.created_at > limits.http.session_seconds:
                yield session, "the session has reached its maximum age"
            elif not session.busy and now - session.last_used_at > self._idle_limit(session):
                yield session, "the session was idle"

    def _idle_limit(self, session: V) -> float:
        """Return the seconds that a session may be idle."""
        limits = self._context.limits
        idle = limits.http.session_idle_seconds
        return min(idle, limits.http.session_unused_seconds) if session.unused else idle

    async def close(self, reason: str) -> None:
        """Close all sessions in this process; another process may restore them."""
        sessions, self._by_id = list(self._by_id.values()), {}
        self._unused.clear()
        for session in sessions:
            self._remove_from_tables(session)
        closing = (session.close(reason) for session in sessions)
        await _run_all([*self._ending.values(), *closing], 2 * self._context.limits.close_seconds)


class PersistentSessionTable(SessionTable[HTTPSession]):
    """The sessions of Streamable HTTP, which can be restored from the store."""

    async def get_or_restore(self, id: str, request: ASGIRequest) -> HTTPSession:
        """Return a session, restored if necessary. Raises `RequestRejected`: "the server MUST respond [...] 404"."""
        session = self.find(id, request.principal)
        if session is None and self._context.is_persistent:
            session = await self._restore(id, request.principal, self._context.account(request))
        if session is None:
            if not is_own_id(id):
                self._context.warn_about_workers("a request names a session that this process has not begun")
            raise RequestRejected(404, NO_SESSION)
        return session

    async def _restore(self, id: str, principal: Principal | None, account: str) -> HTTPSession | None:
        record = await self._record(id)
        if record is None or record.principal != id_of(principal):
            return None
        await self.ensure_capacity(account)
        # The tables may have changed while the store was read.
        if id in self._ending or (restored := self.find(id, principal)) is not None:
            return None if id in self._ending else restored
        session = HTTPSession(self._context, principal, account, id, known=True)
        try:
            session.restore(record)
        except RequestRejected:
            await session.close("the memory for sessions is used up")
            raise
        self.add(session)
        return session

    async def _record(self, id: str) -> SessionRecord | None:
        """Return the stored record, or None if there is none or this server cannot use it. Raises `RequestRejected`."""
        if id in self._ending:
            return None
        try:
            data = await self._context.events.load(id)
        except StoreError as exc:
            log.error("accord: a session could not be read: %s", exc)
            raise RequestRejected(503, "the session store is not available", _LATER) from exc
        return None if data is None else read_record(data, self._context.server.revisions)


async def _run_all(ends: Iterable[Awaitable[Any]], seconds: float) -> None:
    """Run awaitables concurrently; one that fails or exceeds `seconds` does not delay the others. Requests are served
    in between, as many of them take a while to begin.
    """
    tasks = []
    for end in ends:
        tasks.append(asyncio.ensure_future(end))
        if not len(tasks) % _AT_ONCE:
            await asyncio.sleep(0)
    if not tasks:
        return
    done, hanging = await asyncio.wait(tasks, timeout=seconds)
    for task in hanging:
        task.cancel()
        log.error("accord: the end of a session took longer than %g seconds, and was given up", seconds)
    for task in done:
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("accord: a session could not be ended", exc_info=exc)
