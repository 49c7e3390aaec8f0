"""A thread that works on one SQLite database, and commits several jobs in one transaction.

A disk may be slow: the event loop does not wait for it. Jobs that arrive during a commit form the next transaction, so
that many writers cost little more than one.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from accord.errors import AccordError, StoreError

T = TypeVar("T")

Work = Callable[[sqlite3.Connection], Any]
Job = tuple[Work | None, asyncio.Future[Any]]
"""The work, and the future for its outcome; None instead of work ends the thread."""
Outcome = tuple[Any, BaseException | None]
"""The return value of a job, or its exception."""

_MAX_BATCH = 500
"""Limit of the jobs in one transaction."""


def create_private_file(path: Path) -> bool:
    """Create the file of a database for its owner only, and so those that SQLite creates beside it; return False if it
    exists. Raises `OSError`.

    An existing file is not opened here: closing it would release the locks that another connection of this process has
    on it (POSIX).
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    return True


def switch_to_wal(db: sqlite3.Connection, seconds: float = 10.0) -> None:
    """Switch a file to a write-ahead log, and wait so many seconds for those that write to it. Raises `sqlite3.Error`.

    SQLite does not wait here, whatever the timeout of the connection: it fails at once where another connection writes,
    such as one that creates the tables of the same new file.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            db.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


class DatabaseThread:
    """The only thread with access to its database. It calls `connect`; `explain` gives the text for an error of SQLite.

    Several event loops may use it at once.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], explain: Callable[[sqlite3.Error], str]) -> None:
        self._connect = connect
        self._explain = explain
        self._jobs: SimpleQueue[Job] | None = None
        self._opening: list[asyncio.Future[None]] = []
        """Futures that wait for the connection."""
        self._users = 0
        """Number of `start` calls without `stop`."""
        self._lock = threading.Lock()
        """Lock for the three fields above, held only briefly: so all work is in the queue before its end."""

    async def start(self) -> None:
        """Connect, unless connected. Raises the errors of `connect`, and `StoreError` for an error of SQLite."""
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._users += 1
            if self._jobs is not None:
                return
            self._opening.append(ready)
            if len(self._opening) == 1:
                # A daemon: a disk that does not respond must not keep the process alive.
                threading.Thread(target=self._run, name="accord events", daemon=True).start()
        try:
            await ready
        except BaseException:
            self._leave()
            raise

    async def stop(self) -> None:
        """Finish pending jobs, and disconnect once every caller of `start` has called `stop`."""
        over = self._leave()
        if over is not None:
            await over

    def _leave(self) -> asyncio.Future[None] | None:
        """Count one user less. The last one ends the thread; return the future of that end."""
        with self._lock:
            self._users = max(0, self._users - 1)
            if self._jobs is None or self._users:
                return None
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._jobs.put((None, over))
            self._jobs = None
        return over

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction, which is committed once this returns.

        Works run in the order of these calls. The changes of a failed one are rolled back. Raises the errors of `work`,
        and `StoreError` for an error of SQLite.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._jobs is None:
                raise StoreError("the store is not open: call open() first")
            self._jobs.put((work, future))
        return await future

    # --- in the thread -----------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            db = self._connect()
        except Exception as exc:
            self._on_connected(None, self._explain_error(exc))
            return
        queue: SimpleQueue[Job] = SimpleQueue()
        end: asyncio.Future[None] | None = None
        if self._on_connected(queue, None):
            while end is None:
                end = self._run_batch(db, queue)
        with suppress(sqlite3.Error):
            db.close()
        if end is not None:
            _deliver([(end, (None, None))])

    def _run_batch(self, db: sqlite3.Connection, queue: SimpleQueue[Job]) -> asyncio.Future[None] | None:
        """Run the next jobs; return the future of the end if it is reached. Between jobs nothing holds their values,
        which may be large.
        """
        works, futures, end = _next_batch(queue)
        _deliver(list(zip(futures, self._commit(db, works), strict=True)))
        return end

    def _on_connected(self, queue: SimpleQueue[Job] | None, error: Exception | None) -> bool:
        """Return whether the thread has users: all callers of `start` may have been cancelled meanwhile."""
        with self._lock:
            is_used = self._users > 0
            opening, self._opening, self._jobs = self._opening, [], queue if is_used else None
        _deliver([(future, (None, error)) for future in opening])
        return is_used

    def _commit(self, db: sqlite3.Connection, works: list[Work]) -> list[Outcome]:
        """Run the works in one transaction; if it fails, each in its own, so that none fails because of another."""
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as exc:
            return [(None, self._explain_error(exc)) for _ in works]
        try:
            outcomes = [_attempt(work, db) for work in works]
            db.execute("COMMIT")
        except Exception as exc:
            _rollback(db)
            if len(works) == 1:
                return [(None, self._explain_error(exc))]
            return [outcome for work in works for outcome in self._commit(db, [work])]
        return outcomes

    def _explain_error(self, exc: Exception) -> Exception:
        if isinstance(exc, UnicodeDecodeError):  # of a damaged file, whose error message repeats its bytes
            exc = sqlite3.DatabaseError(f"the database is damaged: {exc}")
        if not isinstance(exc, sqlite3.Error):
            return exc
        error = StoreError(self._explain(exc))
        error.__cause__ = exc
        return error


def _next_batch(queue: SimpleQueue[Job]) -> tuple[list[Work], list[asyncio.Future[Any]], asyncio.Future[None] | None]:
    """Wait for a job, and take the others in the queue: works, their futures, and the future of the end if it is
    reached."""
    works: list[Work] = []
    futures: list[asyncio.Future[Any]] = []
    with suppress(Empty):
        while len(works) < _MAX_BATCH:
            work, future = queue.get(block=not works)
            if work is None:
                return works, futures, future
            works.append(work)
            futures.append(future)
    return works, futures, None


def _attempt(work: Work, db: sqlite3.Connection) -> Outcome:
    db.execute("SAVEPOINT work")
    try:
        outcome: Outcome = work(db), None
    except AccordError as exc:
        db.execute("ROLLBACK TO work")
        outcome = None, exc
    db.execute("RELEASE work")
    return outcome


def _rollback(db: sqlite3.Connection) -> None:
    with suppress(sqlite3.Error):  # SQLite has already rolled back after some errors, such as a full disk
        db.execute("ROLLBACK")


def _deliver(done: list[tuple[asyncio.Future[Any], Outcome]]) -> None:
    """Set the outcome of each future, in the event loop of that future."""
    for loop in {future.get_loop() for future, _ in done}:
        outcomes = [each for each in done if each[0].get_loop() is loop]
        with suppress(RuntimeError):  # the loop is closed: no task waits
            loop.call_soon_threadsafe(_settle, outcomes)


def _settle(done: list[tuple[asyncio.Future[Any], Outcome]]) -> None:
    for future, (value, error) in done:
        if future.done():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)
