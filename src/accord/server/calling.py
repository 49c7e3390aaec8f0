"""Calling what the program declared: through its middleware, with its parameters filled, on the loop or in a thread,
within its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from accord.limits import Limits
from accord.messages.content import ResourceContents
from accord.server.compose.access import check_readable
from accord.server.context import Context
from accord.server.finding import Finding
from accord.server.middleware.chain import chained
from accord.server.middleware.request import End, Request
from accord.server.results import Packer, contents_of
from accord.server.workers import Workers
from accord.transport.patience import within

if TYPE_CHECKING:
    from accord.server.asking.call import Call
    from accord.server.offer import Offer
    from accord.server.peer import Peer
    from accord.server.server import Server
    from accord.session.exchange import Exchange

T = TypeVar("T")


class Calling:
    """The functions of one running server, and how they are called."""

    def __init__(self, server: Server, packer: Packer, limits: Limits) -> None:
        self.server: Server = server
        self._packer = packer
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        """Where it runs; a plain handler is in a thread beside it."""
        self._limits = limits
        self._workers = Workers(limits)

    def close(self) -> None:
        """Let the worker threads go."""
        self._workers.close()

    def reach(
        self, offer: Offer, name: str, arguments: Any, exchange: Exchange, peer: Peer, call: Call | None
    ) -> Awaitable[Any]:
        """Call what a client asks for; to be awaited at once. Raises what it raises, and what its middleware does."""
        if offer.chain is None:
            return self.run(offer, arguments, call)
        return offer.chain(Request(None, self, exchange, peer, name, offer, arguments, call))

    def surround(
        self, end: End, name: str, offer: Offer | None, arguments: Any, exchange: Exchange, peer: Peer
    ) -> Awaitable[Any]:
        """Do something else than calling a function, through the middleware of the server and of the offer that it is
        about; only through that which takes no context. To be awaited at once. As `reach`.
        """
        around = self.server.registry.around if offer is None else (*self.server.registry.around, *offer.around)
        chain = chained([step for step in around if not step.context])
        return (chain or end)(Request(end, self, exchange, peer, name, offer, arguments, None))

    def run(self, offer: Offer, arguments: Any, call: Call | None, prefix: str = "") -> Awaitable[Any]:
        """Call a function. As `reach`, without its middleware."""
        if call is None:
            args, kwargs = offer.bind(arguments, None)
            return self._start(offer, args, kwargs, None)
        args, kwargs = offer.bind(arguments, self.context(offer, call) if offer.context else None)
        if not offer.declared:
            return self._start(offer, args, kwargs, call)
        return self._run_filled(offer, args, kwargs, call, call.fill(offer.declared, arguments, prefix))

    def context(self, offer: Offer | None, call: Call) -> Context:
        """What a function may know of the call it serves."""
        server = (offer and offer.home) or self.server
        return server.context_type(server, self, call)

    async def read(self, server: Server, uri: str, call: Call) -> list[ResourceContents]:
        """Read a resource inside another call. Raises `ResourceNotFound`, also for what the client of that call may
        not see, and what its function raises.
        """
        if call.peer.view is not None:
            call.record("session")
        if server is not self.server:
            check_readable(self.server.registry, server.registry, uri, call.exchange, call.peer)
        offer, variables = await Finding(server.registry, self._limits).resource(uri, call.exchange, call.peer)
        home = offer.home or server
        if home is not self.server:  # which is mounted: it has to run, and its functions know it
            await self.server.lifetimes.here().adopt(home)
            offer = offer.derived(home=home)
        value = await self.run(offer, variables, call, f"{uri} ")
        return contents_of(value, uri, offer.define(call.exchange.rules).mime_type)

    def packed(self, request: Request, value: Any) -> Any:
        """What a handler returned as the result that is sent, decoded again; what is an extension's stays as it is.
        Raises `ToolError`.
        """
        offer, _, _, exchange = request.inside
        if isinstance(value, self.server.extended.kinds):
            return value
        return self._packer.handled(value, request.asked_for, offer, exchange)

    async def _run_filled(self, offer: Offer, args: Any, kwargs: Any, call: Call, filled: Awaitable[Any]) -> Any:
        """Call the function with what the client is asked for first."""
        return await self._start(offer, args, {**kwargs, **await filled}, call)

    def _start(self, offer: Offer, args: Any, kwargs: Any, call: Call | None) -> Awaitable[Any]:
        work = self.begin(offer, args, kwargs, call)
        seconds = offer.timeout or self._limits.tool_seconds
        if seconds is None:
            return work
        return self.within(seconds, work, call)

    def within(self, seconds: float, work: Awaitable[T], call: Call | None) -> Awaitable[T]:
        """Await `work` for so long; the time of questions does not count. Raises `OutOfTime`."""
        return within(seconds, work) if call is None else call.timed(seconds, work)

    def begin(self, offer: Offer, args: Any, kwargs: Any, call: Call | None) -> Awaitable[Any]:
        """Call the function with these arguments."""
        if offer.depends is not None:
            return offer.depends.call(self, offer, args, kwargs, call)
        return self.invoke(offer, args, kwargs)

    def invoke(self, offer: Offer, args: Any, kwargs: Any) -> Awaitable[Any]:
        """Call the function with all of its arguments."""
        return offer.function(*args, **kwargs) if offer.is_async else self._workers.run(offer.function, *args, **kwargs)
