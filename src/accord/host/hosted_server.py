"""One configured server: its client, its state, and what it offers. No server knows of another one."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from accord.client.client import Client
from accord.client.reconnecting import ConnectionState
from accord.client.subscription import Subscription
from accord.errors import AccordError, NotConnected, NotSupported, ProtocolError, RequestTimeout, log_line
from accord.host.catalogue import ServerCatalogue
from accord.host.configuration import ConfiguredServer
from accord.host.definitions import Definition, Definitions, definition_of, instructions_of
from accord.host.state import Pin
from accord.host.supervision import Action, ServerState, Supervision
from accord.messages.prompts import Prompt
from accord.messages.tools import Tool
from accord.visible_text import single_line, truncate

log: logging.Logger = logging.getLogger("accord.host")

K = TypeVar("K")

_STDERR_LINES = 20
_STDERR_CHARACTERS = 500
_MAX_REASON = 2_000
_LIST_SECONDS = 60.0
"""Limit of a subscription, and of reading the lists."""
_AT_ONCE = 500
"""Definitions that are made in one step of the event loop: each costs some 5 µs."""
_FIRST_PAUSE, _MAX_PAUSE = 0.05, 10.0
"""Seconds between two readings of lists that change all the time."""


class SampledTokens:
    """The tokens of sampling requests of one run, with those of their answers."""

    __slots__ = ("tokens",)

    def __init__(self) -> None:
        self.tokens: int = 0


class HostedServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A server of a host, at one moment."""

    name: str
    state: ServerState
    reason: str = ""
    """Why it is not connected, or why nothing of it can be used although it is."""
    stderr: tuple[str, ...] = ()
    """The last lines that it wrote to stderr."""
    unapproved: int = 0
    """How many definitions wait for an approval."""
    revision: str = ""
    """The agreed revision of the protocol; empty before the first connection."""


class HostedServer:
    """A server of a host.

    `make_client(server, on_state, on_stderr)` returns its client, `on_change()` is called after each change of its
    state or its lists, and `on_definitions(server)` when definitions wait for an approval.
    """

    def __init__(
        self,
        configured: ConfiguredServer,
        definitions: Definitions,
        supervision: Supervision,
        make_client: Callable[..., Awaitable[Client]],
        *,
        on_change: Callable[[], None],
        on_definitions: Callable[[HostedServer], None],
        ping_seconds: float,
    ) -> None:
        self.configured: ConfiguredServer = configured
        self.digest: str = configured.digest
        """The digest of `configured`: each call is compared with it."""
        self.definitions: Definitions = definitions
        self.catalogue: ServerCatalogue = ServerCatalogue(configured.name, configured.settings.tools)
        """The approved tools and prompts under their names in the catalogue."""
        self.catalogue.update(definitions)
        self.resources: bool = False
        """Whether the server has resources, as far as is known."""
        self._supervision = supervision
        self._make_client = make_client
        self._client: Client | None = None
        self._on_change = on_change
        self._on_definitions = on_definitions
        self._ping_seconds = ping_seconds
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._connecting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._announced = 0
        """How often the lists had to be read again, and up to which of these times they are read."""
        self._read_up_to = 0
        self._lists_failure = ""
        self._changed = asyncio.Event()
        self._connected_at = 0.0
        self.active_principals: dict[str, int] = {}
        """The requests in flight by the principal that caused them."""
        self.active_runs: dict[SampledTokens | None, int] = {}
        """The requests in flight by the run that makes them; None for those outside of runs."""
        self.requests: int = 0
        """How many requests were begun."""

    @property
    def name(self) -> str:
        """Return the name in the configuration."""
        return self.configured.name

    @property
    def state(self) -> ServerState:
        """Return the state."""
        return self._supervision.state

    @property
    def status(self) -> HostedServerStatus:
        """Return the state, with its reason."""
        client = self._client
        return HostedServerStatus(
            name=self.name,
            state=self.state,
            reason=self._supervision.reason or self._lists_failure,
            stderr=tuple(self._stderr),
            unapproved=len(self.definitions.changes),
            revision=client.revision if client is not None and client.state == "connected" else "",
        )

    # --- lifetime ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the server, if it starts with the host."""
        if self._connecting is None:
            self._act(self._supervision.start())

    def refuse(self, reason: str) -> None:
        """Do not start the server until `allow` is called."""
        self._supervision.refuse("unapproved", reason)
        self._on_change()

    def allow(self) -> None:
        """Start the server after all, if it starts with the host."""
        self._supervision.allow()
        self.start()

    async def settled(self) -> None:
        """Wait until the server is connected and its lists are read, or has failed."""
        while self._connecting is not None:
            await asyncio.wait([self._connecting])
        await self._lists_read()

    async def close(self) -> None:
        """End the connection."""
        self._supervision.close()
        self._notify()
        for task in (self._connecting, self._watching, self._refreshing, self._listening):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        if self._client is not None:
            await self._client.close()

    async def ready(self) -> Client:
        """Return the connected client; start the server if necessary. Raises `NotConnected` with the server's error.

        What is called must be what was approved: the lists have been read on this connection, and again after each
        change that was announced before.
        """
        self.requests += 1
        self._act(self._supervision.use(_now()))
        while self._connecting is not None:
            await asyncio.wait([self._connecting])
        while self.state == "reconnecting":
            await self._changed.wait()
        await self._lists_read()
        client = self._client
        self.check_ready(client)
        assert client is not None, "it is ready"
        return client

    def check_ready(self, client: Client | None) -> None:
        """Raise `NotConnected` unless a request of this client would be sent now."""
        if client is None or client is not self._client or self.state != "connected":
            raise NotConnected(f"the server {self.name!r} is not available: {self._supervision.reason or self.state}")
        if self._lists_failure:
            raise NotConnected(f"the server {self.name!r} is not available: {self._lists_failure}")

    @contextlib.contextmanager
    def in_flight(self, principal: str, run: SampledTokens | None) -> Iterator[None]:
        """Count a request as one in flight of its principal, to whom the server's questions go, and of its run, to
        which the tokens of its sampling requests are charged.
        """
        with _counted(self.active_principals, principal), _counted(self.active_runs, run):
            yield

    async def _lists_read(self) -> None:
        """Wait until the lists are read that the server has announced so far, or cannot be read."""
        if self._lists_failure and self.state == "connected":
            self._mark_stale()  # perhaps it works now
        announced = self._announced
        while self._read_up_to < announced and self._refreshing is not None:
            await self._changed.wait()

    def _notify(self) -> None:
        """Wake those that wait for a change of the state or the lists."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _act(self, action: Action) -> None:
        loop = asyncio.get_running_loop()
        if action == "connect" and self._connecting is None:
            self._connecting = loop.create_task(self._connect())
            self._connecting.add_done_callback(self._on_connecting_done)
        elif action == "wait" and (at := self._supervision.retry_at) is not None:
            loop.call_later(max(0, at - _now()), lambda: self._act(self._supervision.wake(_now())))

    async def _connect(self) -> None:
        previous, self._client = self._client, None
        if previous is not None:
            await previous.close()
        try:
            self._client = client = await self._make_client(self, self._on_state, self._on_stderr)
            await client.connect()
            await self._subscribe(client)
        except AccordError as exc:
            self._fail(exc)
        except Exception as exc:  # a defect in one server's connection ends no other
            log.exception("accord: a defect in the connection to %s", self.name)
            self._fail(exc)

    async def _subscribe(self, client: Client) -> None:
        """Learn of changes before the lists are read, so that none is missed."""
        subscription = client.subscribe(tools=True, prompts=True)
        try:
            async with asyncio.timeout(_LIST_SECONDS):
                await subscription.__aenter__()
        except (NotSupported, ProtocolError, RequestTimeout, TimeoutError) as exc:  # lists that never change
            log.debug("accord: %s announces no changes of its lists: %s", self.name, exc)
            self._mark_stale()
            return
        self._mark_stale()
        self._listening = asyncio.get_running_loop().create_task(self._listen(subscription))

    async def _listen(self, subscription: Subscription) -> None:
        with contextlib.suppress(AccordError):  # the connection is lost, which the state shows
            async for _ in subscription:
                self._mark_stale()

    def _fail(self, error: Exception) -> None:
        reason = truncate(f"{error}", _MAX_REASON)
        self._act(self._supervision.change("closed", reason, _now()))
        self._notify()
        self._on_change()

    def _on_connecting_done(self, task: asyncio.Task[None]) -> None:
        self._connecting = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("accord: a defect in the connection to %s", self.name, exc_info=error)
        self.start()  # if it was refused and allowed meanwhile
        self._act(self._supervision.wake(_now()))
        if self.state == "connecting" and self._connecting is None:  # it was to connect again before this task ended
            self._act("connect")

    def _on_state(self, state: ConnectionState, error: AccordError | None) -> None:
        reason = "" if error is None else truncate(str(error), _MAX_REASON)
        if state == "connected":
            self._connected_at = _now()
            if self.state == "reconnecting":
                self._mark_stale()
            self._watch()
        if state != "closed":  # reported with its error by who connects
            self._act(self._supervision.change(state, reason, _now(), _now() - self._connected_at))
        self._notify()
        self._on_change()

    def _on_stderr(self, line: str) -> None:
        self._stderr.append(single_line(truncate(line, _STDERR_CHARACTERS)))

    # --- health ------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._ping())

    async def _ping(self) -> None:
        """Ask the server from time to time whether it still answers; start it again if it does not."""
        while self.state == "connected" and self._client is not None:
            await asyncio.sleep(self._ping_seconds)
            try:
                async with asyncio.timeout(self._ping_seconds):
                    await self._client.ping()
            except (AccordError, TimeoutError) as exc:
                if self.state == "connected" and not self.active_principals:
                    self._restart(f"it did not answer a ping within {self._ping_seconds:g} s: {exc}")
                    return

    def _restart(self, reason: str) -> None:
        log.warning("accord: the server %s is started again: %s", self.name, log_line(reason))
        self._act(self._supervision.change("closed", reason, _now(), _now() - self._connected_at))
        self._on_change()

    # --- lists -------------------------------------------------------------------------------------------------

    def _mark_stale(self) -> None:
        self._announced += 1
        if self._refreshing is None and self.state != "closed":
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    async def _refresh(self) -> None:
        try:
            await self._read_changes()
        except Exception as exc:
            log.exception("accord: a defect while the lists of %s were read", self.name)
            self._lists_failure = truncate(f"its lists could not be read: {exc!r}", _MAX_REASON)
        finally:  # in the same step as the last comparison, or a change that is announced in between would be lost
            self._refreshing = None
            self._notify()

    async def _read_changes(self) -> None:
        """Read the lists again until they did not change meanwhile. One that always changes is read after pauses."""
        pause = _FIRST_PAUSE
        while self._read_up_to < self._announced and (client := self._client) is not None:
            announced = self._announced
            try:
                async with asyncio.timeout(_LIST_SECONDS):
                    offered = await self._read(client)
            except (AccordError, TimeoutError) as exc:
                self._lists_failure = truncate(f"its lists could not be read: {exc or 'no answer'}", _MAX_REASON)
                log.warning("accord: %s: %s", self.name, log_line(self._lists_failure))
                break
            self._read_up_to, self._lists_failure = announced, ""
            if self.definitions.offer(offered):
                self._update_catalogue()
            self._notify()
            if self._read_up_to < self._announced:
                if pause > _FIRST_PAUSE:  # it may announce a change with each list: then this never ends
                    self._review()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_PAUSE)
        self._review()

    def _review(self) -> None:
        if self.definitions.changes:
            self._on_definitions(self)

    def approve(self, pins: Iterable[Pin]) -> None:
        """Take approvals of definitions."""
        if self.definitions.approve(pins):
            self._update_catalogue()

    def _update_catalogue(self) -> None:
        self.catalogue.update(self.definitions)
        for error in self.catalogue.errors:
            log.warning("accord: %s: %s", self.name, log_line(error))
        self._on_change()

    async def _read(self, client: Client) -> list[Definition]:
        capabilities = client.server_capabilities
        items: list[Tool | Prompt] = []
        if capabilities is not None and capabilities.tools is not None:
            items += [tool for tool in await client.list_tools() if _is_for_model(tool)]
        if capabilities is not None and capabilities.prompts is not None:
            items += await client.list_prompts()
        offered = await _definitions_of(items)
        self.resources = capabilities is not None and capabilities.resources is not None
        instructions = instructions_of(client.instructions)
        return offered if instructions is None else [*offered, instructions]


def _now() -> float:
    return time.monotonic()


async def _definitions_of(items: Sequence[Tool | Prompt]) -> list[Definition]:
    """Return the definitions of tools and prompts. Other work has its turn between thousands of them."""
    found: list[Definition] = []
    for start in range(0, len(items), _AT_ONCE):
        if start:
            await asyncio.sleep(0)
        found += map(definition_of, items[start : start + _AT_ONCE])
    return found


def _is_for_model(tool: Tool) -> bool:
    """Return whether a model may be shown a tool; others are for pages of its server (extension MCP Apps)."""
    return tool.ui is None or tool.ui.is_for_model


@contextlib.contextmanager
def _counted(active: dict[K, int], key: K) -> Iterator[None]:
    active[key] = active.get(key, 0) + 1
    try:
        yield
    finally:
        active[key] -= 1
        if not active[key]:
            del active[key]
