"""Opening a connection to a target, over its transport and in its revision.

This process remembers how each server was reached, so that the next client tries that first. For a command, it
remembers that the server did not respond to `server/discover`, because that probe delays each start by seconds.

A remembered method that fails is dropped, and each one expires after an hour, as the server may have been updated.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from enum import Enum
from functools import partial
from typing import Any, TypeAlias

import msgspec

from accord.client.authorization import ClientAuthorization, authorization_error
from accord.client.target import ClientAuth, Command, InProcessServer, PrincipalLike, Remote, check_principal, identity
from accord.errors import AccordError, ConnectError, ConnectionLost, HTTPError, TargetError
from accord.limits import Limits
from accord.messages.base import JSONObject
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

RecordTarget: TypeAlias = str | os.PathLike[str] | Callable[[Transport], Transport]
"""Where a client records its connections: the path of a session file, or what records a transport, such as
`accord.testing.Recording`."""

_MAX_SERVERS = 1_000
_TTL_SECONDS = 3_600.0


class ConnectMethod(Enum):
    """A method of opening a connection."""

    PROBE = "server/discover, and initialize if the server is an older one"
    HANDSHAKE = "initialize"
    SSE = "HTTP+SSE"


class ConnectMethodCache:
    """The methods that reached servers; the least recently used is dropped first."""

    def __init__(self) -> None:
        self._methods: OrderedDict[Hashable, tuple[ConnectMethod, float]] = OrderedDict()

    def get(self, server: Hashable) -> ConnectMethod | None:
        """Return the method that reached a server, or None."""
        method, ends_at = self._methods.get(server, (None, 0.0))
        if method is not None and time.monotonic() >= ends_at:
            self.forget(server)
            return None
        return method

    def set(self, server: Hashable, method: ConnectMethod) -> None:
        """Store the method that reached a server."""
        self._methods[server] = (method, time.monotonic() + _TTL_SECONDS)
        self._methods.move_to_end(server)
        if len(self._methods) > _MAX_SERVERS:
            self._methods.popitem(last=False)

    def forget(self, server: Hashable) -> None:
        """Drop the method of a server, because it failed."""
        self._methods.pop(server, None)


CONNECT_METHODS = ConnectMethodCache()
"""The methods that this process knows, by `target.identity`: two paths of one host may be two servers."""


def may_try_other_method(error: AccordError) -> bool:
    """Return whether the server responded, so that another method may reach it."""
    return not any(
        isinstance(cause, ConnectionLost | TimeoutError) or (isinstance(cause, HTTPError) and cause.final)
        for cause in _causes(error)
    )


def may_be_sse(error: AccordError) -> bool:
    """Return whether to try HTTP+SSE after "400 Bad Request", "404 Not Found" or "405 Method Not Allowed": Issue a GET
    request".
    """
    return any(isinstance(cause, HTTPError) and cause.status in (400, 404, 405) for cause in _causes(error))


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
    """Opens connections of one client to one target. Raises `TargetError` for settings of another target."""

    def __init__(
        self,
        target: Command | Remote | InProcessServer | Transport,
        profile: PeerInfo,
        revisions: tuple[str, ...],
        limits: Limits,
        handler: Handler,
        on_stderr: Callable[[str], None] | None = None,
        record: RecordTarget | None = None,
        *,
        on_notification: NotificationCallback | None = None,
        methods: Sequence[Method] = (),
        http: HTTPSettings | None = None,
        auth: str | ClientAuth | None = None,
        principal: PrincipalLike | None = None,
    ) -> None:
        check_principal(principal, target)
        self._principal = principal
        self._target = target
        self._revisions = revisions
        self._limits = limits
        self._handler = handler
        self._on_stderr = on_stderr
        self._record = session_recorder(record) if isinstance(record, str | os.PathLike) else record
        self._on_notification = on_notification
        self._methods = methods
        for name, value in (("http", http), ("auth", auth)):
            if value is not None and not isinstance(target, Remote):
                raise TargetError(f"{name}= is for a server at a URL")
        self._http = http or HTTPSettings()
        self.authorization: ClientAuthorization = ClientAuthorization(target, auth, self._http)
        self._profile = _with_extensions(profile, self.authorization.extensions)
        self._server = identity(target, self._http)
        self._ends_at_probe: bool | None = None
        self._serving: asyncio.Task[None] | None = None
        self._answers = 0  # responses received in the last failed attempt

    async def open(self) -> Connection:
        """Return an open connection. Raises `ConnectError`, `ConnectionLost`.

        A server that ends at the probe is an older one: it is started again and opened by the handshake (stdio,
        Backward Compatibility), and the next time without a probe. A server that was opened before does not end for
        that reason. If a server does not respond to the probe, the next one of the same command is opened without it.
        """
        if isinstance(remote := self._target, Remote):
            return await self._open_authorized(remote)
        connection = await self._open_remembered()
        if connection is not None:
            return connection
        ends_at_probe = bool(self._ends_at_probe)
        try:
            connection = await self._open(self._make_transport(), handshake=ends_at_probe)
        except ConnectionLost:
            if not self._may_be_older():
                raise
            connection, ends_at_probe = await self._open_older(), True
        self._ends_at_probe = ends_at_probe
        self._remember_silence(connection)
        return connection

    async def _open_authorized(self, remote: Remote) -> Connection:
        """Open a URL, after a login if it needs one."""
        try:
            try:
                return await self._open_remote(remote)
            except AccordError as exc:
                return await self.authorization.after_login(exc, partial(self._open_remote, remote))
        except BaseException:
            await self.authorization.close()
            raise

    async def _open_remembered(self) -> Connection | None:
        """Open a command without the probe if its server ignored it before; return None if not, or if that fails."""
        has_handshake = newest_handshake(self._revisions) is not None
        if not (
            isinstance(self._target, Command)
            and has_handshake
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
        """Skip the probe the next time if the server did not respond to it."""
        handshake = connection.session.handshake
        silent = isinstance(handshake, ClientHandshake) and handshake.probe_timed_out
        if isinstance(self._target, Command) and silent and connection.session.rules.handshake:
            CONNECT_METHODS.set(self._server, ConnectMethod.HANDSHAKE)

    async def _open_older(self) -> Connection:
        try:
            return await self._open(self._make_transport(), handshake=True)
        except ConnectError as second:
            raise second from None

    def _may_be_older(self) -> bool:
        """Return whether the server may have ended because it does not support the probe."""
        has_handshake = newest_handshake(self._revisions) is not None
        died_at_the_probe = self._answers == 0 and self._ends_at_probe is None
        return isinstance(self._target, Command) and self._probes and has_handshake and died_at_the_probe

    async def _open_remote(self, remote: Remote) -> Connection:
        """Open a URL by the method that reached it before, or else by each method."""
        method = CONNECT_METHODS.get(self._server)
        if remote.sse:
            return await self._open_with(remote, ConnectMethod.SSE)
        if method is not None:
            try:
                return await self._open_with(remote, method)
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
            result = "HTTP+SSE likewise" if have_same_response(first, second) else f"and then {second}"
            needs_login = authorization_error(second) is not None
            raise ConnectError(f"{first}; {result}") from (second if needs_login else first)

    async def _open_with(self, remote: Remote, method: ConnectMethod) -> Connection:
        transport = (SSETransport if method is ConnectMethod.SSE else StreamableTransport)(
            remote.url,
            name=str(remote),
            settings=self._settings(remote),
            limits=self._limits,
            credentials=self.authorization.credentials,
        )
        connection = await self._open(transport, handshake=method is not ConnectMethod.PROBE)
        handshake = connection.session.handshake
        if isinstance(handshake, ClientHandshake) and handshake.is_older:
            method = ConnectMethod.HANDSHAKE
        if method is not ConnectMethod.PROBE:
            CONNECT_METHODS.set(self._server, method)
        return connection

    @property
    def _probes(self) -> bool:
        """Return whether this client supports a revision without a handshake; otherwise it does not send the probe."""
        return choose_revision(PER_REQUEST, self._revisions) is not None

    def _settings(self, remote: Remote) -> HTTPSettings:
        return self._http if remote.headers is None else with_default_headers(remote.headers, self._http)

    async def _open(self, transport: Transport, *, handshake: bool) -> Connection:
        if self._record is not None:
            transport = await self._recorded(transport, self._record)
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

    async def _recorded(self, transport: Transport, record: Callable[[Transport], Transport]) -> Transport:
        """Return a transport that records this one, which is closed if that fails."""
        try:
            return record(transport)
        except BaseException:
            await asyncio.shield(transport.close())
            raise

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
            options = {} if self._principal is None else {"principal": self._principal}
            serve: Coroutine[Any, Any, None] = target.serve(theirs, **options)  # type: ignore[assignment]
            self._serving = asyncio.get_running_loop().create_task(serve)
            self._serving.add_done_callback(lambda task: _report_failure(task, theirs))
            return ours
        transport: Transport = target
        return transport

    async def close(self) -> None:
        """Wait until a server in this process has ended; close the credentials."""
        await self.authorization.close()
        serving, self._serving = self._serving, None
        if serving is not None:
            try:
                await asyncio.wait([serving], timeout=self._limits.close_seconds)
            finally:
                serving.cancel()


def session_recorder(file: str | os.PathLike[str]) -> Callable[[Transport], Transport]:
    """Return what records the connections of one or more clients to a session file."""
    from accord.transport.recording import SessionRecorder
    from accord.transport.session_queue import SessionQueue
    from accord.transport.session_writer import SessionFileWriter

    return SessionRecorder(SessionQueue(SessionFileWriter(file)))


def _with_extensions(profile: PeerInfo, extensions: dict[str, JSONObject]) -> PeerInfo:
    """Return the profile of a client that declares these extensions too."""
    if not extensions:
        return profile
    capabilities = profile.capabilities
    merged = msgspec.structs.replace(capabilities, extensions=extensions | (capabilities.extensions or {}))
    return PeerInfo(profile.info, merged, profile.instructions)


def _report_failure(task: asyncio.Task[None], transport: memory.MemoryTransport) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        transport.fail(error)
