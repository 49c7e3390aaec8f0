"""`MaskErrors` hides unexpected errors from clients; `Retry` repeats failed requests that may run again."""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
from collections.abc import Collection
from typing import Any

from accord.errors import DeclarationError, InternalError, ProtocolError, ToolError
from accord.server.core.dispatch import EXPECTED_ERRORS
from accord.server.middleware.request import CallNext, Request
from accord.transport.deadlines import is_cancelled

log: logging.Logger = logging.getLogger("accord.server")

_CLIENT_ERRORS = (*EXPECTED_ERRORS, ProtocolError)
"""Errors whose text is meant for the client."""


class MaskErrors:
    """A middleware that replaces the text of unexpected errors by a reference: `an internal error, reference 7f3a91c2`.

    The log has the same reference with the traceback. Errors meant for the client pass: `ToolError`, invalid arguments,
    protocol errors, timeouts, missing answers; and the types in `show`.
    """

    def __init__(self, show: tuple[type[Exception], ...] = ()) -> None:
        self._show: tuple[type[Exception], ...] = (*_CLIENT_ERRORS, *show)

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `ToolError` or `InternalError` in place of a masked error."""
        try:
            return await call_next(request)
        except self._show:
            raise
        except BaseException as exc:
            if request.over or is_cancelled(exc):
                raise
            raise _masked(request, exc) from None


def _masked(request: Request, exc: BaseException) -> Exception:
    reference = secrets.token_hex(4)
    log.error("accord: %s %.200r failed, reference %s", request.method, request.name, reference, exc_info=exc)
    text = f"an internal error, reference {reference}"
    return ToolError(text) if request.method == "tools/call" else InternalError(text)


class Retry:
    """A middleware that repeats a request which failed with one of the errors `on`, up to `times` times:
    `Retry(times=2)`.

    Applies only to requests that may run twice: prompts, resources, lists, tools marked `readOnlyHint` or
    `idempotentHint`, and the named `tools`. Never to a call that requested input: the user is not asked twice.

    The pause before a retry is a random part of `pause` seconds, doubled for each retry, at most `longest`. Raises
    `DeclarationError` for numbers below 0.
    """

    def __init__(
        self,
        times: int = 2,
        on: tuple[type[Exception], ...] = (ConnectionError, TimeoutError),
        *,
        pause: float = 0.2,
        longest: float = 5.0,
        tools: Collection[str] = (),
    ) -> None:
        if times < 0 or not pause >= 0 or not longest >= 0:
            raise DeclarationError(f"times, pause and longest must be 0 or more, not {times}, {pause}, {longest}")
        self._times = times
        self._on = on
        self._pause = pause
        self._longest = longest
        self._tools = frozenset(tools)

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises the error of the last attempt."""
        for tried in range(self._times):
            try:
                return await call_next(request)
            except self._on:
                if not self._may(request):
                    raise
            # A random part, so that requests that failed together do not retry together.
            await asyncio.sleep(random.random() * min(self._longest, self._pause * 2**tried))
        return await call_next(request)

    def _may(self, request: Request) -> bool:
        safe = request.may_run_again or request.name in self._tools
        return safe and not request.asked
