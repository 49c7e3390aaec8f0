"""From a target to an open connection: whichever transport, whichever revision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from accord.client.connect_methods import (
    CONNECT_METHODS,
    ConnectMethod,
    have_same_response,
    may_be_sse,
    may_try_other_method,
)
from accord.client.target import Command, InProcessServer, PrincipalLike, Remote, check_principal, identity
from accord.errors import ConnectError, ConnectionLost, TargetError
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
