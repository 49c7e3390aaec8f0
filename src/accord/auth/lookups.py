"""`Lookups`: look-ups of names that strangers chose, apart from all others.

Their name servers may take half a minute to answer, and a look-up cannot be cancelled. The default executor of an event
loop has few threads, as many as a stranger can occupy: so each of these look-ups has a thread of its own.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Any

from accord.errors import AuthorizationError

LOOKUPS = 64
"""Limit of the look-ups in progress."""


class Lookups:
    """The look-ups in progress, of all event loops, of which there are at most `limit`; they also count for `whole`. It
    takes the place of a loop in a resolver of aiohttp.
    """

    def __init__(self, limit: int = LOOKUPS, whole: Lookups | None = None) -> None:
        self._limit = limit
        self._whole = whole
        self._lock = threading.Lock()
        self.running: int = 0
        """The number of threads, also of those for whose result nobody waits any more."""

    async def getaddrinfo(self, host: str, port: int, **options: Any) -> list[Any]:
        """Return the addresses of a name, as `socket.getaddrinfo` does. Raises `OSError`, and `AuthorizationError`
        beyond the limit.
        """
        self._begin()
        found: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        thread = threading.Thread(
            target=self._look_up, args=(found, host, port, options), name="accord look-up", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads
            self._end()
            raise OSError("no thread can be started") from None
        return await found

    async def getnameinfo(self, address: tuple[Any, ...], flags: int) -> tuple[str, str]:
        """Return the text of an address: the resolver needs it for IPv6 with a scope."""
        return socket.getnameinfo(address, flags | socket.NI_NUMERICHOST | socket.NI_NUMERICSERV)

    def _look_up(self, found: asyncio.Future[list[Any]], host: str, port: int, options: dict[str, Any]) -> None:
        outcome: list[Any] | Exception
        try:
            outcome = list(socket.getaddrinfo(host, port, **options))
        except (OSError, UnicodeError) as exc:
            outcome = exc
        self._end()
        with suppress(RuntimeError):  # the loop is closed
            found.get_loop().call_soon_threadsafe(_settle, found, outcome)

    def _begin(self) -> None:
        with self._lock:
            if self.running >= self._limit:
                raise AuthorizationError("connection", "too many names are being looked up", "try again later")
            if self._whole is not None:
                self._whole._begin()
            self.running += 1

    def _end(self) -> None:
        with self._lock:
            self.running -= 1
        if self._whole is not None:
            self._whole._end()


def _settle(found: asyncio.Future[list[Any]], outcome: list[Any] | Exception) -> None:
    if found.done():  # the request was cancelled
        return
    if isinstance(outcome, Exception):
        found.set_exception(outcome)
    else:
        found.set_result(outcome)
