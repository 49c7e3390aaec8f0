"""From a target to an open connection: whichever transport, whichever revision."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from accord.client.target import Command, Serves
from accord.errors import ConnectError, ConnectionLost
from accord.limits import Limits
from accord.messages.methods import Method
from accord.messages.revision import PER_REQUEST
from accord.session.negotiate import choose, newest_handshake
from accord.session.profile import Profile
from accord.session.session import Session
from accord.transport import memory
from accord.transport.asking import NotificationCallback
from accord.transport.base import Transport
from accord.transport.connection import Connection, Handler
from accord.transport.subprocess import SubprocessTransport


class Connector:
    """Opens connections for one client to one target."""

    def __init__(
        self,
        target: Command | Serves | Transport,
        profile: Profile,
        revisions: tuple[str, ...],
        limits: Limits,
        handler: Handler,
        on_stderr: Callable[[str], None] | None = None,
        record: Callable[[Transport], Transport] | None = None,
        *,
        on_notification: NotificationCallback | None = None,
        methods: Sequence[Method] = (),
    ) -> None:
        self._target = target
        self._profile = profile
        self._revisions = revisions
        self._limits = limits
        self._handler = handler
        self._on_stderr = on_stderr
        self._record = record
        self._on_notification = on_notification
        self._methods = methods
        self._ends_at_probe: bool | None = None
        self._serving: asyncio.Task[None] | None = None
        self._answers = 0  # that came before the last opening failed

    async def open(self) -> Connection:
        """An open connection. Raises `ConnectError`, `ConnectionLost`.

        A server that ends at the probe is an older one: it is started again and opened by the handshake (stdio,
        Backward Compatibility), and the next time at once. One that was opened before does not end for that reason.
        """
        ends = bool(self._ends_at_probe)
        try:
            connection = await self._open(handshake=ends)
        except ConnectionLost:
            if not self._may_be_older():
                raise
            connection, ends = await self._open_older(), True
        self._ends_at_probe = ends
        return connection

    async def _open_older(self) -> Connection:
        try:
            return await self._open(handshake=True)
        except ConnectError as second:
            raise second from None

    def _may_be_older(self) -> bool:
        """Whether the server may have ended because it does not know the probe."""
        older = newest_handshake(self._revisions) is not None
        probes = choose(PER_REQUEST, self._revisions) is not None
        died_at_the_probe = self._answers == 0 and self._ends_at_probe is None
        return isinstance(self._target, Command) and probes and older and died_at_the_probe

    async def _open(self, *, handshake: bool) -> Connection:
        transport = self._transport()
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

    def _transport(self) -> Transport:
        transport = self._make()
        return transport if self._record is None else self._record(transport)

    def _make(self) -> Transport:
        target = self._target
        if isinstance(target, Command):
            return SubprocessTransport(
                target.argv,
                name=str(target),
                env=target.env,
                cwd=target.cwd,
                limits=self._limits,
                on_stderr=self._on_stderr,
            )
        if isinstance(target, Serves):
            ours, theirs = memory.pair(self._limits)
            serve: Coroutine[Any, Any, None] = target.serve(theirs)  # type: ignore[assignment]
            self._serving = asyncio.get_running_loop().create_task(serve)
            return ours
        made: Transport = target
        return made

    async def close(self) -> None:
        """Wait for a server in this process to have ended."""
        if self._serving is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([self._serving], timeout=self._limits.close_seconds)
                self._serving.cancel()
