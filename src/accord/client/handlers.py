"""Calls of the user's functions that answer server requests.

An `async def` function runs on the event loop. A plain function may wait for a user, so it runs in a daemon thread of
its own, which does not keep the process alive. No exception of a function, not even `SystemExit`, reaches the event
loop: it ends only the request.
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
"""Whether the function returned, and its result or exception."""


class ClientContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context of a request, for its handler."""

    server: str
    """The server, under the name of the target. Show this name to users, because the server cannot choose it."""
    server_info: Implementation | None
    """The server's name and version, if it sent them."""
    revision: str
    """The protocol revision in use: "2026-07-28"."""
    method: str | None
    """The client's request that the server needs the answer for: "tools/call". Unknown through 2025-11-25: None."""
    params: msgspec.Raw | None = None
    """The params of the server's request as it sent them, with members that accord does not know."""


class UserHandler:
    """A user's function, called with the arguments that it takes: the params first, then the `ClientContext`.

    `name` is the option of the function. Raises `DeclarationError` for a function with other parameters.
    """

    def __init__(self, name: str, function: Callable[..., Any], most: int, threads: HandlerThreads) -> None:
        if not callable(function):
            raise DeclarationError(f"{name}={function!r} is not a function")
        self._name = name
        self._function = function
        self._threads = threads
        self._arity = min(_parameters(function, name, most), most)
        call_method = getattr(function, "__call__", None)  # noqa: B004  an object with `async def __call__`
        self.is_async: bool = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call_method)
        """Whether the function runs on the event loop."""

    async def __call__(self, *args: Any) -> Any:
        """Return the result of the function. Raises its `Exception`; any other exception becomes `InternalError`."""
        try:
            return await self._invoke(args[: self._arity])
        except (Exception, asyncio.CancelledError):
            raise
        except BaseException as exc:  # sys.exit() in a handler must not end the loop
            raise InternalError(f"the {self._name} handler did not answer: {describe_redacted(exc)}") from exc

    async def _invoke(self, arguments: tuple[Any, ...]) -> Any:
        if self.is_async:
            return await self._function(*arguments)
        result = await self._threads.call(self._function, *arguments)
        return await result if inspect.isawaitable(result) else result


def _parameters(function: Callable[..., Any], name: str, most: int) -> int:
    """Return the number of arguments to pass: the required ones, at least one if the function takes any."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return 1
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return most
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = sum(parameter.default is parameter.empty for parameter in positional)
    keywords = [
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    ]
    if required > most or keywords:
        raise DeclarationError(f"{name}: a handler takes the request and, optionally, a ClientContext")
    return max(required, min(1, len(positional)))


class HandlerThreads:
    """The threads of the plain functions of one client, at most `most` at a time, with abandoned ones."""

    def __init__(self, most: int) -> None:
        self._limit = most
        self._running: set[threading.Thread] = set()

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call `function` in a thread, in a copy of this context. A cancelled await abandons the thread.

        Raises the errors of the function, and `InternalError` when there are too many threads.
        """
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        work = partial(_run_in_thread, future, copy_context().run, function, *args)
        self._start(threading.Thread(target=work, name="accord-question", daemon=True))
        returned, value = await future
        if returned:
            return value
        raise value

    def _start(self, thread: threading.Thread) -> None:
        self._running = {running for running in self._running if running.is_alive()}
        if len(self._running) >= self._limit:
            raise InternalError(
                f"{self._limit} requests of the server are already being answered (Limits.workers); "
                "some of them may be abandoned"
            )
        thread.start()
        self._running.add(thread)


def _run_in_thread(future: asyncio.Future[Outcome], run: Callable[..., Any], *arguments: Any) -> None:
    """Run a function in a thread, and pass its outcome to the event loop."""
    try:
        outcome = (True, run(*arguments))
    except BaseException as exc:  # a handler may raise anything; the caller receives it
        outcome = (False, exc)
    try:
        future.get_loop().call_soon_threadsafe(_settle, future, outcome)
    except RuntimeError:  # the loop has closed: no caller waits
        return


def _settle(future: asyncio.Future[Outcome], outcome: Outcome) -> None:
    if not future.done():
        future.set_result(outcome)
