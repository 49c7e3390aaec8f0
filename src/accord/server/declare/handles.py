"""State across calls without a session: the server keeps it, and the client refers to it by a handle.

    carts = Handles("cart", Cart)

    @server.tool
    def open_cart(ctx: Context) -> str:
        return carts.open(Cart(), ctx)                          # "cart_kE0f...", which the model passes on

    @server.tool
    def add(item: str, cart: Annotated[Cart, carts]) -> int:    # a string in the schema, the cart in the function
        ...

It works in every revision and over every transport, is visible to the model, and survives a reconnect.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable
from inspect import iscoroutinefunction
from itertools import takewhile
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from accord.errors import DeclarationError, ToolError, describe
from accord.server.core.principal import id_of
from accord.server.declare.parameters import unwrap_callable
from accord.server.depends.markers import HandleMarker

if TYPE_CHECKING:
    from accord.server.core.context import Context
    from accord.server.core.principal import Principal

T = TypeVar("T")

log: logging.Logger = logging.getLogger("accord.server")


class _HandleEntry(msgspec.Struct, Generic[T]):
    value: T
    principal: str
    used: float


class Handles(HandleMarker, Generic[T]):
    """Objects of one type that stay on the server between calls, each under an unguessable handle.

    `what` is a word for the type: "cart"; `type` informs type checkers. An object belongs to the principal that opened
    it; without authentication, to every client that has the handle. It expires `seconds` after its last use; then, and
    when it is closed, the function `close` is called with it. A principal may have at most `each` objects, and all
    clients together `most`. They are kept in this process. Raises `DeclarationError` for an invalid word, and for an
    async `close`.
    """

    def __init__(
        self,
        what: str,
        type: type[T],
        *,
        seconds: float = 3_600,
        most: int = 10_000,
        each: int = 100,
        close: Callable[[T], object] | None = None,
    ) -> None:
        if not what.isidentifier():
            raise DeclarationError(f"the name of a handle type must be one word, not {what!r}")
        if close is not None and iscoroutinefunction(unwrap_callable(close)):
            raise DeclarationError(f"the function that closes a {what} may run in any thread, so it cannot be async")
        self.what: str = what
        self._seconds = seconds
        self._most = most
        self._each = each
        self._close = close
        self._entries: dict[str, _HandleEntry[T]] = {}
        self._lock = threading.Lock()  # plain tools run in threads

    def __len__(self) -> int:
        self._forget()
        return len(self._entries)

    @property
    def described(self) -> str:
        """The description of a parameter that takes a handle, for the model."""
        return f"The handle of the {self.what}, as it was given when that was opened."

    def open(self, value: T, ctx: Context) -> str:
        """Store an object, and return its handle. Raises `ToolError` if there are too many."""
        self._forget()
        principal = id_of(ctx.principal)
        handle = f"{self.what}_{secrets.token_urlsafe(24)}"
        with self._lock:
            own = sum(entry.principal == principal for entry in self._entries.values())
            if (principal and own >= self._each) or len(self._entries) >= self._most:
                raise ToolError(f"too many are open; close a {self.what}, or come back later")
            self._entries[handle] = _HandleEntry(value, principal, time.monotonic())
        return handle

    def find(self, text: str, ctx: Context) -> T:
        """Return the object of a handle. Raises `ToolError`, also for an object of another principal."""
        return self.resolve(text, ctx.principal)

    def resolve(self, text: str, principal: Principal | None) -> T:
        """Return the object of a handle for a principal; None without authentication. Raises `ToolError`."""
        now = time.monotonic()
        with self._lock:
            entry = self._entries.get(text)
            if entry is not None and entry.principal == id_of(principal) and now - entry.used <= self._seconds:
                entry.used = now
                self._entries[text] = self._entries.pop(text)  # keeps the least recently used one first
                return entry.value
        raise ToolError(f"there is no {self.what} {text[:100]!r}: it was closed or has expired; open a new one")

    def close(self, text: str, ctx: Context) -> None:
        """Remove an object. Raises `ToolError` if it does not exist."""
        self.find(text, ctx)
        self._drop(text)

    def _forget(self) -> None:
        latest = time.monotonic() - self._seconds
        with self._lock:
            late = list(takewhile(lambda handle: self._entries[handle].used < latest, self._entries))
        for handle in late:
            self._drop(handle)

    def _drop(self, handle: str) -> None:
        with self._lock:
            entry = self._entries.pop(handle, None)
        if entry is None or self._close is None:
            return
        try:
            self._close(entry.value)
        except Exception as exc:  # the call that removes an expired object may be another client's
            log.error("accord: closing a %s failed: %s", self.what, describe(exc), exc_info=exc)
