"""The functions that answer a server's questions, called in one way whatever they are.

An `async def` runs on the loop. A plain function may wait for a person, so it runs in a thread of its own: a
daemon, so that a question which nobody answers does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import msgspec

from accord.errors import DeclarationError
from accord.messages.identity import Implementation

Outcome = tuple[bool, Any]
"""Whether it returned, and what; or what it raised."""


class ClientContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler may know about a question, besides what is asked."""

    server: str
    """Who asks: the server as this client was pointed at it. Show this one, it is not the server's to choose."""
    server_info: Implementation | None
    """What the server says it is, if it says so."""
    revision: str
    """The revision in use: "2026-07-28"."""
    method: str | None
    """The request of ours that the server needs the answer for: "tools/call". Not told through 2025-11-25: None."""


class Handler:
    """A user's function with at most the arguments that it takes: what is asked first, then the `ClientContext`.

    `name` is the option it was given as. Raises `DeclarationError` for what cannot be called so.
    """

    def __init__(self, name: str, function: Callable[..., Any], most: int) -> None:
        if not callable(function):
            raise DeclarationError(f"{name}={function!r} is not a function")
        self._function = function
        self._takes = min(_parameters(function, name, most), most)
        called = getattr(function, "__call__", None)  # noqa: B004  an object with `async def __call__`
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)

    async def __call__(self, *args: Any) -> Any:
        """What the function gives. Raises what it raises."""
        given = args[: self._takes]
        if self._is_async:
            return await self._function(*given)
        result = await _in_thread(self._function, *given)
        return await result if inspect.isawaitable(result) else result


def _parameters(function: Callable[..., Any], name: str, most: int) -> int:
    """How many arguments a function is given: those that it must have, one at least if it takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return 1
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return most
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = sum(each.default is each.empty for each in places)
    keywords = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if needed > most or keywords:
        raise DeclarationError(f"{name}: a handler takes what is asked and, if it wants it, a ClientContext")
    return max(needed, min(1, len(places)))


async def _in_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` in a thread, in a copy of this context. A cancelled await leaves the thread to itself."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outcome] = loop.create_future()
    run = copy_context().run

    def work() -> None:
        try:
            outcome = (True, run(function, *args))
        except BaseException as exc:  # a handler may raise anything; the one who awaits gets it
            outcome = (False, exc)
        try:
            loop.call_soon_threadsafe(_settle, future, outcome)
        except RuntimeError:  # the loop has closed: nobody waits any more
            return

    threading.Thread(target=work, name="accord-question", daemon=True).start()
    returned, value = await future
    if returned:
        return value
    raise value


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)
