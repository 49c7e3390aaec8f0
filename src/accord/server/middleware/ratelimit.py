"""RateLimit: so many requests a second, and no more."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Literal

from accord.errors import DeclarationError, RateLimited
from accord.server.http.auth import id_of
from accord.server.middleware.rate_store import MemoryRates, RateStore
from accord.server.middleware.request import CallNext, Request
from accord.session.rate import Pace

By = Literal["principal", "tool", "method"] | Callable[[Request], str | None]


class RateLimit:
    """Let `per_second` requests through on average, `burst` at once: `RateLimit(per_second=10, burst=20)`.

    `by` says what is counted together: all requests of a "principal" (those of all whom nobody vouches for count as
    one), all calls of a "tool", all requests of a "method"; or what a function of the request gives (None: it is not
    counted). One request too many is answered with an error that says when to come back, also as a number in
    `data.retryAfter`. What is remembered is bounded, and shared where the `store` is: `SQLiteRates(path)`.
    Raises `DeclarationError` for numbers that are no rate.
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
            raise DeclarationError(f"rates are counted by {', '.join(_BY)}, or by a function, not by {by!r}")
        self._per_second = per_second
        self._key = by if callable(by) else _BY[by]
        self._store: RateStore = MemoryRates() if store is None else store

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`. Raises `RateLimited` for a request that comes too soon."""
        key = self._key(request)
        if key is not None:
            seconds = await self._store.take(key, self._pace)
            if seconds:
                raise self._too_many(request, seconds)
        return await call_next(request)

    def _too_many(self, request: Request, seconds: float) -> RateLimited:
        what = f"more than {self._per_second:g} a second: {request.method} {request.asked_for}".rstrip()
        if seconds == inf:
            return RateLimited(f"{what} is not allowed")
        return RateLimited(f"{what}; try again in {seconds:.3f} s", retry_after=seconds)


def _principal(request: Request) -> str:
    return f"principal {id_of(request.principal)}"


def _tool(request: Request) -> str | None:
    return f"tool {request.name}" if request.method == "tools/call" else None


def _method(request: Request) -> str:
    return f"method {request.method}"


_BY: dict[str, Callable[[Request], str | None]] = {"principal": _principal, "tool": _tool, "method": _method}
