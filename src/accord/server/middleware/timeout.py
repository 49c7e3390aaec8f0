"""Timeout: a bound on the time of everything inside."""

from __future__ import annotations

from typing import Any

from accord.errors import DeclarationError
from accord.server.middleware.request import CallNext, Request


class Timeout:
    """Stop what takes longer than `seconds`, with an error that says so: `Timeout(30)`.

    As `@server.tool(timeout=...)`, for many at once; the shorter of the two holds. Waiting for an answer of the client
    does not count. A plain `def` cannot be stopped: it runs on in its thread, and nobody waits for it.
    Raises `DeclarationError` unless `seconds` is above 0.
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise DeclarationError(f"a timeout is above 0 seconds, not {seconds}")
        self._seconds = seconds

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `OutOfTime`."""
        return await request.within(self._seconds, call_next(request))
