"""State across calls, where no session is: the server keeps it, and the client names it.

    carts = Handles("cart", Cart)

    @server.tool
    def open_cart(ctx: Context) -> str:
        return carts.open(Cart(), ctx)                          # "cart_kE0f...", which the model passes on

    @server.tool
    def add(item: str, cart: Annotated[Cart, carts]) -> int:    # a text in the schema, the cart in the function
        ...

It works in every revision and over every transport, is plain to the model, and survives a reconnect.
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
    """Things of one kind that stay on the server between calls, each under a text that nobody can guess.

    `what` says in a word what it is: "cart"; `type` tells it to type checkers. One belongs to the principal that it was
    opened for, if that is known; to whoever has the text, if not. It is let go `seconds` after it was last used, and
    the function `close` is called with it, as it is when it is closed. A principal that is known has at most `each` of
    them, and all together `most`. They are kept in this process. Raises `DeclarationError` for what is no word, and for
    a `close` that is async.
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
        """What a model is told of a parameter that takes one."""
        return f"The handle of the {self.what}, as it was given when that was opened."

    def open(self, value: T, ctx: Context) -> str:
        """Keep something, and give the text that stands for it. Raises `ToolError` where there is no room."""
        self._forget()
        principal = id_of(ctx.principal)
        handle = f"{self.what}_{secrets.token_urlsafe(24)}"
        with self._lock:
            mine = sum(held.principal == principal for held in self._entries.values())
            if (principal and mine >= self._each) or len(self._entries) >= self._most:
                raise ToolError(f"too many are open; close a {self.what}, or come back later")
            self._entries[handle] = _HandleEntry(value, principal, time.monotonic())
        return handle

    def find(self, text: str, ctx: Context) -> T:
        """What a text stands for. Raises `ToolError`, also for what belongs to another principal."""
        return self.resolve(text, ctx.principal)

    def resolve(self, text: str, principal: Principal | None) -> T:
        """The same for a principal; None for whoever is not known."""
        now = time.monotonic()
        with self._lock:
            held = self._entries.get(text)
            if held is not None and held.principal == id_of(principal) and now - held.used <= self._seconds:
                held.used = now
                self._entries[text] = self._entries.pop(
                    text
                )  # the one that was not used for the longest time stands first
                return held.value
        raise ToolError(f"there is no {self.what} {text[:100]!r}: it was closed or has expired; open a new one")

    def close(self, text: str, ctx: Context) -> None:
        """Keep it no longer. Raises `ToolError` where there is none."""
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
            held = self._entries.pop(handle, None)
        if held is None or self._close is None:
            return
        try:
            self._close(held.value)
        except Exception as exc:  # it may be anybody's call that finds it late
            log.error("accord: closing a %s failed: %s", self.what, describe(exc), exc_info=exc)
