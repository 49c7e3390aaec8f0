"""Middleware: the built-in ones in a good order, a custom one, and one that asks for confirmation.

accord list examples/middleware.py
accord call examples/middleware.py rate currency=NOK
accord call examples/middleware.py erase account=7      # asks first
"""

from __future__ import annotations

from typing import Any

from accord import CallNext, Context, Request, Server, ToolAnnotations, ToolError
from accord.middleware import Caching, MaskErrors, RateLimit, Retry, SizeLimit, Timeout, Timing

RATES = {"EUR": 1.0, "NOK": 11.6, "JPY": 163.2}

server = Server(
    "bank",
    middleware=[
        Timing(),
        MaskErrors(),
        RateLimit(per_second=50, by="tool"),
        Caching(seconds=60),
        SizeLimit(100_000, cut=True),
        Timeout(10),
        Retry(times=2),
    ],
)


@server.middleware
async def record_purpose(request: Request, call_next: CallNext) -> Any:
    """Pass the purpose of the call to the handler, which reads it from `ctx.state`."""
    request.state["why"] = request.meta.get("why", "not said")
    return await call_next(request)


async def confirm(request: Request, call_next: CallNext, ctx: Context) -> Any:
    """Ask for confirmation. In every revision the function runs once, after the answer."""
    answer = await ctx.elicit(f"Really {request.name} {request.arguments}?", bool)
    if answer.action != "accept" or not answer.data:
        raise ToolError("not confirmed: nothing was done")
    return await call_next(request)


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def rate(currency: str) -> float:
    """Return how much of a currency is one euro."""
    if currency not in RATES:
        raise ToolError(f"no rate for {currency!r}; there are {', '.join(RATES)}")
    return RATES[currency]


@server.tool(annotations=ToolAnnotations(destructive_hint=True), middleware=[confirm])
async def erase(account: int, ctx: Context) -> str:
    """Erase an account."""
    return f"account {account} is gone (why: {ctx.state['why']})"


if __name__ == "__main__":
    server.run()
