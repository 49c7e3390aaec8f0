"""`Timing`: logs one line for each request."""

from __future__ import annotations

import logging
import time
from typing import Any

from accord.errors import DeclarationError
from accord.messages.tools import CallToolResult
from accord.redaction import redact
from accord.server.middleware.request import CallNext, Request
from accord.transport.deadlines import is_cancelled

log: logging.Logger = logging.getLogger("accord.timing")

_MAX_NAME_CHARACTERS = 200
"""Characters of a name that are logged: a client can send a URI of any length."""


class Timing:
    """A middleware that logs method, name, milliseconds and outcome of each request: `Server(middleware=[Timing()])`.

    Writes to `log`, at the level INFO, without secrets in a URI; requests of `slow` seconds or longer as a warning. The
    time includes all inner middleware, and the time that the user takes to answer. Outcomes: `ok`, `error result` (of a
    tool), the name of the exception, `cancelled`, `asks` (2026-07-28: answered with a question, to be run again).
    """

    def __init__(self, log: logging.Logger = log, slow: float = 1.0) -> None:
        if not slow >= 0:
            raise DeclarationError(f"slow must be a number of seconds, not {slow}")
        self._log = log
        self._slow = slow

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`."""
        began = time.perf_counter()
        outcome = "cancelled"
        try:
            value = await call_next(request)
            outcome = "error result" if isinstance(value, CallToolResult) and value.is_error else "ok"
            return value
        except BaseException as exc:
            outcome = "cancelled" if is_cancelled(exc) else type(exc).__name__
            raise
        finally:
            self._log_request(request, time.perf_counter() - began, "asks" if request.over else outcome)

    def _log_request(self, request: Request, seconds: float, outcome: str) -> None:
        level = logging.WARNING if seconds >= self._slow else logging.INFO
        shown = str(redact(request.name[: 2 * _MAX_NAME_CHARACTERS]))  # a URI may contain a secret
        # quoted, so that a name cannot add lines to the log
        name = f" {shown[:_MAX_NAME_CHARACTERS]!r}" if shown else ""
        self._log.log(level, "%s%s %.1f ms %s", request.method, name, 1000 * seconds, outcome)
