"""Caching: what was worked out a moment ago is not worked out again.

Where results are kept for `Caching`: the contract, and the memory of this process.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Set
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from msgspec import Raw

from accord.errors import DeclarationError
from accord.messages import codec
from accord.messages.prompts import GetPromptResult
from accord.messages.resources import ReadResourceResult
from accord.schema.json_values import to_json
from accord.server.core.context import RunningServer
from accord.server.core.principal import Principal
from accord.server.core.results import EncodedToolResult
from accord.server.input.request_state import canonical
from accord.server.middleware.request import CallNext, Request

_Result = tuple[bytes, float]
"""What is kept, and when its time is over."""


class ResultStore(Protocol):
    """Keeps results by key. The public contract for stores of your own, which several processes may share.

    Any method may raise: then the result is not kept, and that is logged. What a key begins with, up to the first
    space, is the method that it belongs to.
    """

    async def get(self, key: str) -> bytes | None:
        """What was put there, unless its time is over; None where there is nothing."""

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        """Keep this for so long, in the place of what was kept; or not, where there is no room."""

    async def clear(self, prefix: str = "") -> None:
        """Forget all keys that begin like this."""


class MemoryResults:
    """A `ResultStore` in the memory of this process: at most `most` results, of `bytes` together.

    The one that was not asked for the longest goes first. `clock` gives seconds. Raises `DeclarationError` for bounds
    below 1.
    """

    def __init__(self, most: int = 1000, bytes: int = 16 << 20, *, clock: Callable[[], float] = time.monotonic) -> None:
        if most < 1 or bytes < 1:
            raise DeclarationError(f"most and bytes must be 1 or more, not {most} and {bytes}")
        self._most = most
        self._bytes = bytes
        self._clock = clock
        self._results: OrderedDict[str, _Result] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._results)

    async def get(self, key: str) -> bytes | None:
        """See `ResultStore.get`."""
        value, ends = self._results.get(key, (None, 0.0))
        if value is None:
            return None
        if self._clock() >= ends:
            self._drop(key)
            return None
        self._results.move_to_end(key)
        return value

    async def put(self, key: str, value: bytes, seconds: float) -> None:
        """See `ResultStore.put`. What is larger than all the room is not kept."""
        self._drop(key)
        if len(value) > self._bytes:
            return
        self._results[key] = value, self._clock() + seconds
        self._size += len(value)
        while len(self._results) > self._most or self._size > self._bytes:
            self._drop(next(iter(self._results)))

    async def clear(self, prefix: str = "") -> None:
        """See `ResultStore.clear`."""
        for key in [key for key in self._results if key.startswith(prefix)]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        value, _ = self._results.pop(key, (b"", 0.0))
        self._size -= len(value)


log: logging.Logger = logging.getLogger("accord.server")

READ = "resources/read"
_RESULTS: dict[str, type] = {"tools/call": EncodedToolResult, "prompts/get": GetPromptResult, READ: ReadResourceResult}


class Caching:
    """Keep results for `seconds`, and give them to whoever asks for the same: `Caching(seconds=60)`.

    Resources, prompts, and tools marked `readOnlyHint`; or the `tools` that are named, whatever their marks. The same
    is: server, principal with its scopes, method, name, version, arguments, revision, and what `key(request)` says,
    where a result depends on more (None: it is not kept). Never kept: errors, what has asked the client something, and
    what has read something else of the client (`Request.reads`: headers, roots, client, `_meta`, session, state),
    unless `key` has read that too.

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
            raise DeclarationError(f"seconds must be more than 0, not {seconds}")
        self._seconds = seconds
        self._tools = None if tools is None else frozenset(tools)
        self._extra = key
        self._store: ResultStore = MemoryResults(most, bytes) if store is None else store
        self._in_flight: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Future[bool]] = {}
        self._servers: WeakKeyDictionary[RunningServer, str] = WeakKeyDictionary()
        self._named: Counter[str] = Counter()
        self._edition = 0
        self._stale: set[str] = set()

    async def clear(self) -> None:
        """Forget all results. What is being worked out now is not kept either."""
        self._invalidate("")
        await self._refresh()

    async def __call__(self, request: Request, call_next: CallNext) -> Any:
        """See `Server.add_middleware`."""
        before = dict(request.reads)
        extra = self._extra(request) if self._extra is not None else ""
        covered = {*_read_since(before, request), "principal"}
        if not request.apart[1]:
            covered.add("state")  # then it is the same for all: what comes into it comes from inside
        key = None if extra is None or not self._is_cacheable(request) else self._key(request, extra)
        if key is None:
            return await call_next(request)
        await self._refresh()
        kept = await self._cached(request, key)
        if kept is not None:
            return kept
        if request.may_ask:
            return await self._compute(request, call_next, key, covered)
        return await self._single_flight(request, call_next, key, covered)

    # --- what is the same --------------------------------------------------------------------------------------

    def _key(self, request: Request, extra: str) -> str | None:
        """What is the same for equal requests; None where the principal has something that is no JSON."""
        of_whom = [self._identity(request.server), request.local, _of(request.principal)]
        what = [request.asked_for, request.version, request.revision, request.apart, extra]
        _, arguments, _, _ = request.inside
        given = canonical(bytes(arguments) if isinstance(arguments, Raw) else codec.encode(arguments or {}))
        try:
            said = to_json([of_whom, what])
        except ValueError:
            return None
        return f"{request.method} {blake2b(said + given, digest_size=24).hexdigest()}"

    def _is_cacheable(self, request: Request) -> bool:
        tool = request.tool
        if tool is None:
            return request.method in _RESULTS
        if self._tools is not None:
            return request.name in self._tools
        return tool.annotations is not None and bool(tool.annotations.read_only_hint)

    # --- working it out ----------------------------------------------------------------------------------------

    async def _single_flight(self, request: Request, call_next: CallNext, key: str, covered: Collection[str]) -> Any:
        """The first works it out; the others wait for that, and for nothing if it fails."""
        place = asyncio.get_running_loop(), key
        while (flight := self._in_flight.get(place)) is not None:
            await asyncio.wait((flight,))
            kept = await self._cached(request, key)
            if kept is not None:
                return kept
            if flight.result():  # it is nothing that can be kept: each has to find out alone
                return await call_next(request)
        flight = self._in_flight[place] = place[0].create_future()
        ended = False
        try:
            value = await self._compute(request, call_next, key, covered)
            ended = True
            return value
        except Exception:
            ended = True
            raise
        finally:
            del self._in_flight[place]
            flight.set_result(ended)  # else it was cancelled: the next one takes its place

    async def _compute(self, request: Request, call_next: CallNext, key: str, covered: Collection[str]) -> Any:
        """Work it out, and keep it if it is as good for whoever asks for the same. `covered`: what the key holds."""
        edition, before = self._edition, dict(request.reads)
        value = await call_next(request)
        if request.asked or not _read_since(before, request).issubset(covered):
            return value
        result = request.pack(value)
        good = type(result) is _RESULTS[request.method] and not getattr(result, "is_error", None)
        if good and edition == self._edition:
            await self._ignore_errors(self._store.put(key, codec.encode(result), self._seconds))
        return value

    async def _cached(self, request: Request, key: str) -> Any:
        found = await self._ignore_errors(self._store.get(key))
        return None if found is None else codec.decoder(_RESULTS[request.method]).decode(found)

    async def _ignore_errors(self, work: Awaitable[Any]) -> Any:
        """A store that fails costs time, and no call."""
        try:
            return await work
        except Exception as exc:
            log.warning("accord: a store of results failed, so nothing is kept: %s", exc)
            return None

    # --- what is out of date -----------------------------------------------------------------------------------

    def _identity(self, server: RunningServer) -> str:
        """What tells a server from others: its name and version, and its number among those with the same. And hear of
        its changes, from before anything of it is kept.
        """
        known = self._servers.get(server)
        if known is None:
            named = f"{server.name} {server.info.version}"
            self._named[named] += 1
            known = self._servers[server] = f"{self._named[named]} {named}"
            server.change_bus.add_listener(lambda what, uri: self._invalidate("" if what else READ))
        return known

    def _invalidate(self, prefix: str) -> None:
        """Whatever begins like this is out of date. From any thread."""
        self._edition += 1
        self._stale.add(prefix)

    async def _refresh(self) -> None:
        with suppress(KeyError):  # there is nothing, or nothing any more
            while True:
                await self._ignore_errors(self._store.clear(self._stale.pop()))


def _read_since(before: Mapping[str, int], request: Request) -> set[str]:
    return {what for what, count in request.reads.items() if count != before.get(what)}


def _of(who: Principal | None) -> Any:
    """All that is known of a principal, always in one order."""
    if who is None:
        return None
    fields = {name: getattr(who, name) for name in who.__struct_fields__}
    return {name: sorted(value) if isinstance(value, Set) else value for name, value in sorted(fields.items())}
