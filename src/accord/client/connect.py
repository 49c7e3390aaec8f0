"""From a target to an open connection: whichever transport, whichever revision.

Ways to a server, and which of them led there: so that the next client goes it at once.

Of a command it is remembered that its server said nothing to `server/discover`, which costs seconds at each start.

Memory only says what to try first: a way that fails is forgotten, and after an hour it is looked for anew, as a server
may have learnt more.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from enum import Enum
from typing import Any

from accord.client.target import Command, InProcessServer, PrincipalLike, Remote, check_principal, identity
from accord.errors import AccordError, ConnectError, ConnectionLost, HTTPError, TargetError
from accord.limits import Limits
from accord.messages.methods import Method
from accord.messages.revision import PER_REQUEST
from accord.session.handshake import ClientHandshake
from accord.session.negotiation import choose_revision, newest_handshake
from accord.session.peer_info import PeerInfo
from accord.session.session import Session
from accord.transport import memory
from accord.transport.base import Transport
from accord.transport.connection import Connection
from accord.transport.http.settings import HTTPSettings, with_default_headers
from accord.transport.http.sse import SSETransport
from accord.transport.http.streamable import StreamableTransport
from accord.transport.request_sender import NotificationCallback
from accord.transport.session_driver import Handler
from accord.transport.subprocess import SubprocessTransport

_MAX_SERVERS = 1_000
_TTL_SECONDS = 3_600.0


class ConnectMethod(Enum):
    """How a connection is opened."""

    PROBE = "server/discover, and initialize if the server is an older one"
    HANDSHAKE = "initialize"
    SSE = "HTTP+SSE"


class ConnectMethodCache:
    """What is known of servers; the one that was not used for the longest time goes first."""

    def __init__(self) -> None:
        self._methods: OrderedDict[Hashable, tuple[ConnectMethod, float]] = OrderedDict()

    def get(self, server: Hashable) -> ConnectMethod | None:
        """The way that led there."""
        way, ends_at = self._methods.get(server, (None, 0.0))
        if way is not None and time.monotonic() >= ends_at:
            self.forget(server)
            return None
        return way

    def set(self, server: Hashable, way: ConnectMethod) -> None:
        """This way led there."""
        self._methods[server] = (way, time.monotonic() + _TTL_SECONDS)
        self._methods.move_to_end(server)
        if len(self._methods) > _MAX_SERVERS:
            self._methods.popitem(last=False)

    def forget(self, server: Hashable) -> None:
        """The way that was known leads there no more."""
        self._methods.pop(server, None)


CONNECT_METHODS = ConnectMethodCache()
"""What this process knows, by `target.identity`: two paths of one host may be two servers."""


def may_try_other_method(error: AccordError) -> bool:
    """Whether a server was there, so that another way may lead to it."""
    return not any(
        isinstance(each, ConnectionLost | TimeoutError) or (isinstance(each, HTTPError) and each.final)
        for each in _causes(error)
    )


def may_be_sse(error: AccordError) -> bool:
    """Whether to try that: "400 Bad Request", "404 Not Found" or "405 Method Not Allowed": Issue a GET request"."""
    return any(isinstance(each, HTTPError) and each.status in (400, 404, 405) for each in _causes(error))


def have_same_response(first: AccordError, second: AccordError) -> bool:
    """Return whether two errors come from HTTP responses with the same status and body."""
    responses = [
        [(each.status, each.body) for each in _causes(error) if isinstance(each, HTTPError)]
        for error in (first, second)
    ]
    return bool(responses[0]) and responses[0][-1:] == responses[1][-1:]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


class Connector:
    """Opens connections for one client to one target. Raises `TargetError` for settings that are not for it."""

    def __init__(
        self,
        target: Command | Remote | InProcessServer | Transport,
        profile: PeerInfo,
        revisions: tuple[str, ...],
        limits: Limits,
        handler: Handler,
        on_stderr: Callable[[str], None] | None = None,
        record: Callable[[Transport], Transport] | None = None,
        *,
        on_notification: NotificationCallback | None = None,
        methods: Sequence[Method] = (),
        http: HTTPSettings | None = None,
        principal: PrincipalLike | None = None,
    ) -> None:
        check_principal(principal, target)
        self._principal = principal
        self._target = target
        self._profile = profile
        self._revisions = revisions
        self._limits = limits
        self._handler = handler
        self._on_stderr = on_stderr
        self._record = record
        self._on_notification = on_notification
        self._methods = methods
        if http is not None and not isinstance(target, Remote):
            raise TargetError("http= is for a server at a URL")
        self._http = http or HTTPSettings()
        self._server = identity(target, self._http)
        self._ends_at_probe: bool | None = None
        self._serving: asyncio.Task[None] | None = None
        self._answers = 0  # that came before the last opening failed

    async def open(self) -> Connection:
        """An open connection. Raises `ConnectError`, `ConnectionLost`.

        A server that ends at the probe is an older one: it is started again and opened by the handshake (stdio,
        Backward Compatibility), and the next time at once. One that was opened before does not end for that reason.
        So is one that said nothing to the probe: the next one of the same command is opened by the handshake at once.
        """
        if isinstance(self._target, Remote):
            return await self._open_remote(self._target)
        connection = await self._open_remembered()
        if connection is not None:
            return connection
        ends = bool(self._ends_at_probe)
        try:
            connection = await self._open(self._make_transport(), handshake=ends)
        except ConnectionLost:
            if not self._may_be_older():
                raise
            connection, ends = await self._open_older(), True
        self._ends_at_probe = ends
        self._remember_silence(connection)
        return connection

    async def _open_remembered(self) -> Connection | None:
        """Skip the probe of a command whose server did not answer it before; None where that is not so, or leads
        nowhere any more.
        """
        shakes = newest_handshake(self._revisions) is not None
        if not (
            isinstance(self._target, Command)
            and shakes
            and CONNECT_METHODS.get(self._server) is ConnectMethod.HANDSHAKE
        ):
            return None
        try:
            connection = await self._open(self._make_transport(), handshake=True)
        except (ConnectError, ConnectionLost):
            CONNECT_METHODS.forget(self._server)
            return None
        if not connection.session.rules.handshake:
            CONNECT_METHODS.forget(self._server)
        return connection

    def _remember_silence(self, connection: Connection) -> None:
        """Skip the probe the next time where nobody answered it."""
        opening = connection.session.handshake
        silent = isinstance(opening, ClientHandshake) and opening.probe_timed_out
        if isinstance(self._target, Command) and silent and connection.session.rules.handshake:
            CONNECT_METHODS.set(self._server, ConnectMethod.HANDSHAKE)

    async def _open_older(self) -> Connection:
        try:
            return await self._open(self._make_transport(), handshake=True)
        except ConnectError as second:
            raise second from None

    def _may_be_older(self) -> bool:
        """Whether the server may have ended because it does not know the probe."""
        older = newest_handshake(self._revisions) is not None
        died_at_the_probe = self._answers == 0 and self._ends_at_probe is None
        return isinstance(self._target, Command) and self._probes and older and died_at_the_probe

    async def _open_remote(self, remote: Remote) -> Connection:
        """By the way that is known to lead there, or else by each that there is."""
        known = CONNECT_METHODS.get(self._server)
        if remote.sse:
            return await self._open_with(remote, ConnectMethod.SSE)
        if known is not None:
            try:
                return await self._open_with(remote, known)
            except (ConnectError, ConnectionLost) as exc:
                CONNECT_METHODS.forget(self._server)
                if not may_try_other_method(exc):
                    raise
        try:
            return await self._open_with(remote, ConnectMethod.PROBE)
        except ConnectError as first:
            if not may_be_sse(first) or newest_handshake(self._revisions) is None:
                raise
            return await self._open_sse(remote, first)

    async def _open_sse(self, remote: Remote, first: ConnectError) -> Connection:
        try:
            return await self._open_with(remote, ConnectMethod.SSE)
        except ConnectError as second:
            then = "HTTP+SSE likewise" if have_same_response(first, second) else f"and then {second}"
            raise ConnectError(f"{first}; {then}") from first

    async def _open_with(self, remote: Remote, way: ConnectMethod) -> Connection:
        transport = (SSETransport if way is ConnectMethod.SSE else StreamableTransport)(
            remote.url, name=str(remote), settings=self._settings(remote), limits=self._limits
        )
        connection = await self._open(transport, handshake=way is not ConnectMethod.PROBE)
        opening = connection.session.handshake
        if isinstance(opening, ClientHandshake) and opening.is_older:
            way = ConnectMethod.HANDSHAKE
        if way is not ConnectMethod.PROBE:
            CONNECT_METHODS.set(self._server, way)
        return connection

    @property
    def _probes(self) -> bool:
        """Whether we speak a revision without a handshake at all: else nothing is known of the server's."""
        return choose_revision(PER_REQUEST, self._revisions) is not None

    def _settings(self, remote: Remote) -> HTTPSettings:
        return self._http if remote.headers is None else with_default_headers(remote.headers, self._http)

    async def _open(self, transport: Transport, *, handshake: bool) -> Connection:
        transport = transport if self._record is None else self._record(transport)
        session = Session(
            "client", self._profile, revisions=self._revisions, limits=self._limits, methods=self._methods
        )
        connection = Connection(
            session, transport, self._handler, on_notification=self._on_notification, limits=self._limits
        )
        try:
            await connection.start()
            await connection.open_client(handshake=handshake)
        except BaseException:
            self._answers = session.stats.answers_received
            await asyncio.shield(connection.close())
            raise
        return connection

    def _make_transport(self) -> Transport:
        target = self._target
        assert not isinstance(target, Remote), "each way to it has a transport of its own"
        if isinstance(target, Command):
            return SubprocessTransport(
                target.argv,
                name=str(target),
                env=target.env,
                cwd=target.cwd,
                inherit_env=target.inherit_env,
                limits=self._limits,
                on_stderr=self._on_stderr,
            )
        if isinstance(target, InProcessServer):
            ours, theirs = memory.pair(self._limits)
            who = {} if self._principal is None else {"principal": self._principal}
            serve: Coroutine[Any, Any, None] = target.serve(theirs, **who)  # type: ignore[assignment]
            self._serving = asyncio.get_running_loop().create_task(serve)
            self._serving.add_done_callback(lambda serving: _report_failure(serving, theirs))
            return ours
        made: Transport = target
        return made

    async def close(self) -> None:
        """Wait for a server in this process to have ended."""
        if self._serving is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._serving], timeout=self._limits.close_seconds)
                self._serving.cancel()


def _report_failure(serving: asyncio.Task[None], transport: memory.MemoryTransport) -> None:
    if not serving.cancelled() and (error := serving.exception()) is not None:
        transport.fail(error)
