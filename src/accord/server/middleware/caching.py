"""Caching: what was worked out a moment ago is not worked out again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from hashlib import blake2b
from typing import Any
from weakref import WeakSet

from msgspec import Raw

from accord.errors import DeclarationError
from accord.messages import codec
from accord.messages.prompts import GetPromptResult
from accord.messages.resources import ReadResourceResult
from accord.server.asking.state import canonical
from accord.server.http.auth import id_of
from accord.server.middleware.kept import MemoryResults, ResultStore
from accord.server.middleware.request import CallNext, Request
from accord.server.results import PackedToolResult
from accord.server.server import Server

log: logging.Logger = logging.getLogger("accord.server")

READ = "resources/read"
_RESULTS: dict[str, type] = {"tools/call": PackedToolResult, "prompts/get": GetPromptResult, READ: ReadResourceResult}


class Caching:
    """Keep results for `seconds`, and give them to whoever asks for the same: `Caching(seconds=60)`.

    Resources, prompts, and tools marked `readOnlyHint`; or the `tools` that are named, whatever their marks. The same
    is: principal with its scopes, method, name, version, arguments, revision, and what `key(request)` says, where a
    result depends on more (None: it is not kept). Never kept: errors, and what has asked the client something.

    Equal requests at once are one, unless the function takes a context: then it may wait for a person. All is
    forgotten when what the server offers changes, the resources when `resource_updated` says that one has, and with
    `clear()`. At most `most` results of `bytes` together; or what a `store` of your own has room for. Raises
    `DeclarationError` for bounds that are none.
    """

    def __init__(
        self,
        seconds: float = 60,
        most: int = 1000,
        *,
        bytes: int = 16 << 20,
        tools: Collection[str] | None = None,
        key: Callable[[Request], str | None] | None = None,
        store: ResultStore | None = None,
    ) -> None:
        if not seconds > 0:
            raise DeclarationError(f"results are kept for more than 0 seconds, not {seconds}")
        self._seconds = seconds
        self._tools = None if tools is None else frozenset(tools)
        self._extra = key
        self._store: ResultStore = MemoryResults(most, bytes) if store is None else store
        self._flights: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Future[bool]] = {}
        self._followed: WeakSet[Server] = WeakSet()
        self._edition = 0
        self._stale: set[str] = set()

    async def clear(self) -> None:
        """Forget all results. What is being worked out now is not kept either."""
        self._outdated("")
        await self._refresh()

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`."""
        key = self._key(request)
        if key is None:
            return await call_next(request)
        self._follow(request.server)
        await self._refresh()
        kept = await self._kept(request, key)
        if kept is not None:
            return kept
        if request.may_ask:
            return await self._fresh(request, call_next, key)
        return await self._once(request, call_next, key)

    # --- what is the same --------------------------------------------------------------------------------------

    def _key(self, request: Request) -> str | None:
        extra = self._extra(request) if self._extra is not None else ""
        if extra is None or not self._may_keep(request):
            return None
        who = request.principal
        of_whom = [request.local, id_of(who), sorted(who.scopes) if who is not None else []]
        what = [request.asked_for, request.version, request.revision, extra]
        _, arguments, _, _ = request.inside
        given = canonical(bytes(arguments) if isinstance(arguments, Raw) else codec.encode(arguments or {}))
        return f"{request.method} {blake2b(codec.encode([of_whom, what]) + given, digest_size=24).hexdigest()}"

    def _may_keep(self, request: Request) -> bool:
        tool = request.tool
        if tool is None:
            return request.method in _RESULTS
        if self._tools is not None:
            return request.name in self._tools
        return tool.annotations is not None and bool(tool.annotations.read_only_hint)

    # --- working it out ----------------------------------------------------------------------------------------

    async def _once(self, request: Request, call_next: CallNext, key: str) -> Any:
        """The first works it out; the others wait for that, and for nothing if it fails."""
        place = asyncio.get_running_loop(), key
        while (flight := self._flights.get(place)) is not None:
            await asyncio.wait((flight,))
            kept = await self._kept(request, key)
            if kept is not None:
                return kept
            if flight.result():  # it is nothing that can be kept: each has to find out alone
                return await call_next(request)
        flight = self._flights[place] = place[0].create_future()
        ended = False
        try:
            value = await self._fresh(request, call_next, key)
            ended = True
            return value
        except Exception:
            ended = True
            raise
        finally:
            del self._flights[place]
            flight.set_result(ended)  # else it was cancelled: the next one takes its place

    async def _fresh(self, request: Request, call_next: CallNext, key: str) -> Any:
        edition = self._edition
        value = await call_next(request)
        if request.asked:
            return value
        result = request.pack(value)
        good = type(result) is _RESULTS[request.method] and not getattr(result, "is_error", None)
        if good and edition == self._edition:
            await self._safely(self._store.put(key, codec.encode(result), self._seconds))
        return value

    async def _kept(self, request: Request, key: str) -> Any:
        found = await self._safely(self._store.get(key))
        return None if found is None else codec.decoder(_RESULTS[request.method]).decode(found)

    async def _safely(self, work: Awaitable[Any]) -> Any:
        """A store that fails costs time, and no call."""
        try:
            return await work
        except Exception as exc:
            log.warning("accord: a store of results failed, so nothing is kept: %s", exc)
            return None

    # --- what is out of date -----------------------------------------------------------------------------------

    def _follow(self, server: Server) -> None:
        """Hear of its changes, from before anything of it is kept."""
        if server not in self._followed:
            self._followed.add(server)
            server.hub.follow(lambda what, uri: self._outdated("" if what else READ))

    def _outdated(self, prefix: str) -> None:
        """Whatever begins like this is out of date. From any thread."""
        self._edition += 1
        self._stale.add(prefix)

    async def _refresh(self) -> None:
        with suppress(KeyError):  # there is nothing, or nothing any more
            while True:
                await self._safely(self._store.clear(self._stale.pop()))
