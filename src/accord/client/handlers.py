"""The functions that answer a server's questions, called in one way whatever they are.

An `async def` runs on the loop. A plain function may wait for a person, so it runs in a thread of its own: a
daemon, so that a question which nobody answers does not keep the process alive. Nothing that a function raises, not
even `SystemExit`, reaches the loop: it ends the question.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

import msgspec

from accord.errors import DeclarationError, InternalError
from accord.messages.identity import Implementation
from accord.redaction import describe_redacted

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


class UserHandler:
    """A user's function with at most the arguments that it takes: what is asked first, then the `ClientContext`.

    `name` is the option it was given as. Raises `DeclarationError` for what cannot be called so.
    """

    def __init__(self, name: str, function: Callable[..., Any], most: int, threads: HandlerThreads) -> None:
        if not callable(function):
            raise DeclarationError(f"{name}={function!r} is not a function")
        self._name = name
        self._function = function
        self._threads = threads
        self._arity = min(_parameters(function, name, most), most)
        called = getattr(function, "__call__", None)  # noqa: B004  an object with `async def __call__`
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)

    async def __call__(self, *args: Any) -> Any:
        """What the function gives. Raises what it raises, if that is an `Exception`; else `InternalError`."""
        try:
            return await self._invoke(args[: self._arity])
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as exc:  # sys.exit() of a handler must not end the loop
            raise InternalError(f"the {self._name} handler did not answer: {describe_redacted(exc)}") from exc

    async def _invoke(self, given: tuple[Any, ...]) -> Any:
        if self._is_async:
            return await self._function(*given)
        result = await self._threads.call(self._function, *given)
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
        raise DeclarationError(f"{name}: a handler takes the request and, optionally, a ClientContext")
    return max(needed, min(1, len(places)))


class HandlerThreads:
    """Threads for the plain functions of one client, at most `most` at a time: one that nobody waits for any more
    counts until its function returns.
    """

    def __init__(self, most: int) -> None:
        self._limit = most
        self._running: set[threading.Thread] = set()

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call `function` in a thread, in a copy of this context. A cancelled await leaves the thread to itself.

        Raises what it raises, `InternalError` when there are too many threads.
        """
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        work = partial(_run_in_thread, future, copy_context().run, function, *args)
        self._start(threading.Thread(target=work, name="accord-question", daemon=True))
        returned, value = await future
        if returned:
            return value
        raise value

    def _start(self, thread: threading.Thread) -> None:
        self._running = {each for each in self._running if each.is_alive()}
        if len(self._running) >= self._limit:
            raise InternalError(
                f"{self._limit} requests of the server are already being answered (Limits.workers); "
                "some of them may be abandoned"
            )
        thread.start()
        self._running.add(thread)


def _run_in_thread(future: asyncio.Future[Outcome], run: Callable[..., Any], *call: Any) -> None:
    """What a thread does."""
    try:
        outcome = (True, run(*call))
    except BaseException as exc:  # a handler may raise anything; the one who awaits gets it
        outcome = (False, exc)
    try:
        future.get_loop().call_soon_threadsafe(_settle, future, outcome)
    except RuntimeError:  # the loop has closed: nobody waits any more
        return


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)
