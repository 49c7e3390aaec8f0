"""`Timeout`, `SizeLimit` and `RateLimit`; and the stores of `RateLimit`: the contract, one for this process and one
shared by the processes of a machine.
"""

from __future__ import annotations

import os
import sqlite3
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET

from accord.errors import DeclarationError, RateLimited, ToolError
from accord.messages import codec
from accord.messages.content import TextContent
from accord.messages.prompts import GetPromptResult
from accord.messages.resources import ReadResourceResult
from accord.messages.tools import CallToolResult
from accord.server.core.principal import id_of
from accord.server.middleware.request import CallNext, Request
from accord.session.rate import Pace, rate_limited
from accord.store.database_thread import DatabaseThread, create_private_file, switch_to_wal


class Timeout:
    """A middleware that cancels calls which take longer than `seconds`: `Timeout(30)`.

    As `@server.tool(timeout=...)`, for many at once; the shorter of the two applies. The time that the client takes to
    answer does not count. A plain `def` cannot be stopped: it runs on in its thread, and its result is discarded.
    Raises `DeclarationError` unless `seconds` is above 0.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise DeclarationError(f"a timeout must be more than 0 seconds, not {seconds}")
        self._seconds = seconds

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `OutOfTime`."""
        return await request.within(self._seconds, call_next(request))


_NOTE = 60
"""Maximum bytes of the note about the omitted text."""


class SizeLimit:
    """A middleware that rejects results of tools, prompts and resources above this many bytes of JSON:
    `SizeLimit(200_000)`.

    With `cut`, the text of a tool's result is truncated instead, with a note of how much is missing. Structured output
    is never truncated: it would not match the tool's schema. Raises `DeclarationError` for a limit below 1000 bytes, in
    which no result fits.
    """

    def __init__(self, bytes: int = 1_000_000, cut: bool = False) -> None:
        if not isinstance(bytes, int) or bytes < 1000:
            raise DeclarationError(f"the limit must be at least 1000 bytes: SizeLimit(200_000), not {bytes!r:.200}")
        self._bytes = bytes
        self._cut = cut

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `ToolError` for a result that is too large."""
        value = await call_next(request)
        if request.over:
            return value
        result = request.pack(value)
        if not isinstance(result, CallToolResult | GetPromptResult | ReadResourceResult):
            return value
        size = len(codec.encode(result))
        if size <= self._bytes:
            return value
        if self._cut and isinstance(result, CallToolResult) and not _is_structured(request, result):
            shorter = _shortened(result, size - self._bytes)
            if shorter is not None:
                return shorter
        raise ToolError(
            f"the result of {request.asked_for} has {size:,} bytes; the limit is {self._bytes:,}: "
            "ask for less, such as a part of it"
        )


def _is_structured(request: Request, result: CallToolResult) -> bool:
    """Return whether a result is structured output, which clients of old revisions receive as text only."""
    if result.structured_content is not UNSET:
        return True
    tool = request.tool
    return tool is not None and tool.output_schema is not None and not result.is_error


def _shortened(result: CallToolResult, excess: int) -> CallToolResult | None:
    """Return the result without `excess` bytes of JSON, taken from its last texts; None if these are not enough."""
    content = list(result.content)
    missing = excess + _NOTE
    for index in reversed(range(len(content))):
        block = content[index]
        if isinstance(block, TextContent):
            size = _json_bytes(block.text)
            shortened = _beginning(block.text, max(0, size - missing))
            missing -= size - _json_bytes(shortened)
            content[index] = msgspec.structs.replace(block, text=shortened)
            if missing <= 0:
                note = f"\n[{excess + _NOTE:,} bytes were left out here]"
                content[index] = msgspec.structs.replace(block, text=shortened + note)
                return msgspec.structs.replace(result, content=content)
    return None


def _json_bytes(text: str) -> int:
    """Return the bytes of a text in JSON, where an escaped character has up to six."""
    return len(codec.encode(text)) - 2  # the quotes


def _beginning(text: str, most: int) -> str:
    """Return the longest beginning of a text that has at most `most` bytes in JSON."""
    longest = min(len(text), most)  # a character has at least one byte, and the text may have megabytes
    return text[: bisect_right(range(1, longest + 1), most, key=lambda end: _json_bytes(text[:end]))]


_BUSY_SECONDS = 5.0

_TABLE = "CREATE TABLE IF NOT EXISTS rates (name TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID"
_INDEX = "CREATE INDEX IF NOT EXISTS rates_by_due ON rates (due)"
_FORGET = "DELETE FROM rates WHERE due < ?"
_READ = "SELECT due FROM rates WHERE name = ?"
_EVICT = """
    DELETE FROM rates WHERE name IN (
        SELECT name FROM rates ORDER BY due LIMIT max(0, (SELECT COUNT(*) FROM rates) - ?)
    )
"""
_WRITE = "INSERT INTO rates VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET due = excluded.due"


class RateStore(Protocol):
    """A store of rates by key. The public contract for stores of your own, which several processes may share."""

    async def take(self, key: str, pace: Pace) -> float:
        """Count a request if the pace allows it now, and return 0; otherwise return the seconds until it does. May
        raise: the request then fails with that error.
        """
        ...


class MemoryRates:
    """A `RateStore` in the memory of this process, of at most `most` keys: the least recently used is evicted first.

    `clock` returns seconds. Raises `DeclarationError` for a bound below 1.
    """

    def __init__(self, most: int = 10_000, *, clock: Callable[[], float] = time.monotonic) -> None:
        if most < 1:
            raise DeclarationError(f"most must be 1 or more, not {most}")
        self._most = most
        self._clock = clock
        self._due: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._due)

    async def take(self, key: str, pace: Pace) -> float:
        """See `RateStore.take`."""
        now, due = self._clock(), self._due.pop(key, -inf)
        following = pace.step(due, now)
        self._due[key] = due if following is None else following
        if len(self._due) > self._most:
            self._due.popitem(last=False)
        return pace.wait(due, now) if following is None else 0


class SQLiteRates:
    """A `RateStore` in the file `path`, which all processes of a machine may share. It opens on first use; `close` it.

    It holds `most` keys, and up to a hundredth more in each process; the one with the least to wait is evicted first.
    `clock` returns seconds that all processes share, also after a restart. Calls raise `StoreError` if the file cannot
    be used. Raises `DeclarationError` for a bound below 1.
    """

    def __init__(
        self, path: str | os.PathLike[str], most: int = 100_000, *, clock: Callable[[], float] = time.time
    ) -> None:
        if most < 1:
            raise DeclarationError(f"most must be 1 or more, not {most}")
        self._path = Path(path)
        self._most = most
        self._added = most // 100
        """The number of keys added since the keys were counted, which reads all of them. The first key added has them
        counted: processes may be short.
        """
        self._clock = clock
        self._committer = DatabaseThread(self._connect, self._explain)
        self._opened = 0
        """The number of times it was opened: concurrent first calls each open it."""

    async def take(self, key: str, pace: Pace) -> float:
        """See `RateStore.take`."""
        if not self._opened:
            await self._committer.start()
            self._opened += 1
        return await self._committer.run(lambda db: self._count(db, key, pace))

    async def close(self) -> None:
        """Finish the pending calls, and close the file."""
        while self._opened:
            self._opened -= 1
            await self._committer.stop()

    def _count(self, db: sqlite3.Connection, key: str, pace: Pace) -> float:
        now = self._clock()
        db.execute(_FORGET, (now,))
        row = db.execute(_READ, (key,)).fetchone()
        (due,) = row or (-inf,)
        due = min(due, now + pace.longest)  # the clock was set back: do not wait until it reaches the old time
        following = pace.step(due, now)
        db.execute(_WRITE, (key, due if following is None else following))
        if row is None:
            self._make_room(db)
        return pace.wait(due, now) if following is None else 0

    def _make_room(self, db: sqlite3.Connection) -> None:
        self._added += 1
        if self._added > self._most // 100:
            db.execute(_EVICT, (self._most,))
            self._added = 0

    def _connect(self) -> sqlite3.Connection:
        with suppress(OSError):  # it exists; or it cannot be created, and SQLite raises the reason
            # The keys reveal who called what: only the owner may read the files, those of SQLite included.
            create_private_file(self._path)
        db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None)
        switch_to_wal(db, _BUSY_SECONDS)
        for statement in ("PRAGMA synchronous=OFF", _TABLE, _INDEX):
            db.execute(statement)  # a power failure loses only rates
        return db

    def _explain(self, exc: sqlite3.Error) -> str:
        return f"rates could not be kept in {self._path}: {exc}; see that the file and its folder can be written to"


By = Literal["principal", "tool", "method"] | Callable[[Request], str | None]


class RateLimit:
    """A middleware that allows `per_second` requests on average, `burst` at once: `RateLimit(per_second=10, burst=20)`.

    `by` selects what is counted together: all requests of a "principal" (requests without authentication count as one),
    all calls of a "tool", all requests of a "method"; or the key that a function of the request returns (None: not
    counted). A request beyond the rate fails with an error that states when to retry, also as a number in
    `data.retryAfter`. The stored rates are bounded, and shared if the `store` is: `SQLiteRates(path)`. Raises
    `DeclarationError` for an invalid rate.
    """

    def __init__(
        self,
        per_second: float = 10,
        burst: float | None = None,
        by: By = "principal",
        *,
        store: RateStore | None = None,
    ) -> None:
        try:
            self._pace = Pace(per_second, burst)
        except ValueError as exc:
            raise DeclarationError(str(exc)) from exc
        if not callable(by) and by not in _BY:
            raise DeclarationError(f"by= must be one of {', '.join(_BY)}, or by a function, not by {by!r}")
        self._per_second = per_second
        self._key = by if callable(by) else _BY[by]
        self._store: RateStore = MemoryRates() if store is None else store

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `RateLimited` for a request beyond the rate."""
        key = self._key(request)
        if key is not None:
            seconds = await self._store.take(key, self._pace)
            if seconds:
                raise self._too_many(request, seconds)
        return await call_next(request)

    def _too_many(self, request: Request, seconds: float) -> RateLimited:
        what = f"more than {self._per_second:g} a second: {request.method} {request.asked_for}".rstrip()
        return rate_limited(f"{what} is not allowed" if seconds == inf else what, seconds)


def _principal(request: Request) -> str:
    return f"principal {id_of(request.principal)}"


def _tool(request: Request) -> str | None:
    return f"tool {request.name}" if request.method == "tools/call" else None


def _method(request: Request) -> str:
    return f"method {request.method}"


_BY: dict[str, Callable[[Request], str | None]] = {"principal": _principal, "tool": _tool, "method": _method}
