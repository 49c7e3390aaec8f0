"""Opening sessions in one revision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from accord.check.engine.report import TransportName
from accord.check.engine.rule import Kind, NotObserved, UnreachableServer, UnsupportedRevision, Violation
from accord.check.engine.server_target import ServerTarget
from accord.check.probes.access import Access
from accord.check.probes.client_messages import LIST_METHODS, initialize_params
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MemoryBudget, MessageLog
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.check.settings import CheckSettings
from accord.check.wires.child import ChildWire
from accord.check.wires.http import HTTPWire
from accord.errors import TargetError
from accord.messages.base import JSONObject


class SessionFactory:
    """Opens sessions with one server in one revision over one transport, and stores their logs."""

    def __init__(self, reach: ServerTarget, revision: str, transport: TransportName, settings: CheckSettings) -> None:
        self.target: ServerTarget = reach
        self.revision: str = revision
        self.transport: TransportName = transport
        self.settings: CheckSettings = settings
        self.memory: MemoryBudget = MemoryBudget()
        """The memory budget of all sessions."""
        self.logs: list[MessageLog] = []
        self.probes: list[Probe] = []
        self.slow_tools: set[Any] = set()
        """The names of tools that did not respond in time."""
        self._second: Probe | None = None
        self._schemas: dict[str, JSONObject] = {}
        """The input schemas of tools, from the lists of the shared session."""
        self._lists_answered: bool = True
        """Whether list methods succeed."""

    @property
    def exit_delay(self) -> float:
        """Seconds for which the server ran after the end of stdin, in any revision."""
        return self.target.exit_delay

    @exit_delay.setter
    def exit_delay(self, seconds: float) -> None:
        self.target.exit_delay = seconds

    @property
    def slowest_start(self) -> float:
        """Seconds until the first response in the slowest session."""
        return max((log.first_answer_seconds for log in self.logs), default=0.0)

    async def open_raw(self, kind: Kind = "raw", case: str = "", *, token: str | None = None) -> Probe:
        """Return a session without a handshake; over HTTP, with another `token`. Raises `ConnectError`."""
        log = MessageLog(self.revision, self.transport, kind, case, self.memory)
        log.record(self.settings.record, f"{self.target.name}, {self.revision}")
        headers = None if token is None else {"Authorization": f"Bearer {token}"}
        probe = Probe(self.target.create_wire(self.transport, log, headers), log, self.settings, self)
        probe.peer_logs = self.logs
        self.logs.append(log)
        self.probes.append(probe)
        await probe.wire.open()
        return probe

    async def open(
        self, kind: Kind = "own", case: str = "", *, capabilities: JSONObject | None = None, token: str | None = None
    ) -> Probe:
        """Return an open session; over HTTP, with another `token`. Raises `UnsupportedRevision`, `Violation`,
        `ConnectError`.
        """
        probe = await self.open_raw(kind, case, token=token)
        if capabilities is not None:
            probe.client_capabilities = capabilities
        try:
            await self.negotiate(probe)
            await self._send_first_request(probe)
        except BaseException:  # nobody else has it: a server that refuses each one would be started for each case
            await self.close_probe(probe)
            raise
        return probe

    @asynccontextmanager
    async def open_access(self, shared: Probe | None, *, is_open: bool) -> AsyncIterator[Access]:
        """Open connections with any credentials; `is_open` says whether the server has opened a session."""
        log = MessageLog(self.revision, self.transport, "access", "", self.memory)
        log.record(self.settings.record, f"{self.target.name}, {self.revision}")
        wire = self.target.create_wire(self.transport, log)
        if not isinstance(wire, HTTPWire):
            raise TargetError("rules about authorization are for HTTP")
        session = shared.http.session_id if shared is not None and shared.http is not None and shared.alive else None
        await wire.open()
        try:
            yield Access(
                wire,
                log,
                self.settings,
                logs=self.logs,
                is_open=is_open,
                has_credentials=self.target.has_credentials,
                session=session,
                forge=self.target.forge,
            )
        finally:
            await wire.close()
            log.close()

    async def second(self, case: str = "") -> Probe:
        """Return the second session of shared cases, opened on first use, and again when it has ended."""
        if self._second is None or not self._second.alive:
            self._second = await self.open("own", case)
        self._second.log.case = case
        return self._second

    def release_second(self) -> Probe | None:
        """Return the second session if it is open; the next case that needs one opens another."""
        probe, self._second = self._second, None
        return probe if probe is not None and probe.alive else None

    async def negotiate(self, probe: Probe) -> None:
        """Open a session as its revision requires. Raises `UnsupportedRevision`, and `Violation` for an invalid
        response.
        """
        probe.log.client_capabilities = probe.client_capabilities
        if probe.rules.handshake:
            answer = await probe.request(
                "initialize",
                initialize_params(probe.revision, probe.client_capabilities),
                seconds=probe.settings.opening,
            )
        else:
            answer = await self._discover(probe)
        hello = answer.result
        if answer.error is not None or not isinstance(hello, dict):
            raise _opening_error(answer)
        spoken = [hello.get("protocolVersion")] if probe.rules.handshake else hello.get("supportedVersions")
        if not isinstance(spoken, list) or probe.revision not in spoken:
            raise UnsupportedRevision(f"it speaks {preview_json(spoken)}")
        probe.handshake_result = probe.log.handshake_result = hello
        if probe.rules.handshake:
            probe.notify("notifications/initialized")
            if probe.transport == "http" and probe.http is not None:
                probe.http.open_stream({"MCP-Protocol-Version": probe.revision})

    async def _send_first_request(self, probe: Probe) -> None:
        """Send one ordinary request, so that all cases begin in the same state.

        Without a handshake, a server may choose its protocol by the first request after `server/discover`, and
        arguments may have headers from the schemas of tools.
        """
        if probe.rules.handshake or not self._lists_answered:
            return
        probe.schemas.update(self._schemas)
        method = next(
            (each for name, each in LIST_METHODS.items() if probe.has_capability(name)), probe.harmless_method
        )
        try:
            if probe.log.kind == "shared" and probe.has_capability("tools"):
                await probe.tools()
                self._schemas = dict(probe.schemas)
            else:
                await probe.request(method)
        except (Violation, NotObserved):  # for the rules that try just this
            self._lists_answered = False

    async def _discover(self, probe: Probe) -> Answer:
        """Send `server/discover`. Raises `UnreachableServer` if it "does not respond within a reasonable timeout", or
        ends.
        """
        try:
            return await probe.request("server/discover", seconds=probe.settings.opening)
        except Violation as exc:
            raise UnreachableServer(str(exc)) from exc

    async def close(self) -> None:
        """Close all open sessions concurrently."""
        async with asyncio.TaskGroup() as group:
            for probe in self.probes:
                group.create_task(self.close_probe(probe))

    async def close_probe(self, probe: Probe) -> None:
        """Close a session. A process that does not exit at the end of stdin is not waited for again."""
        await probe.close()
        if isinstance(probe.wire, ChildWire) and probe.wire.ignored_stdin_end:
            self.target.ignores_stdin_end = True


def _opening_error(answer: Answer) -> UnsupportedRevision:
    if answer.error is not None and not answer.message:
        return UnreachableServer(f"{answer.error['message']}{_advice(answer.status or 0)}")
    return UnsupportedRevision(
        f"it answers {answer.request.get('method')} with {preview_json(answer.error or answer.result)}"
    )


def _advice(status: int) -> str:
    """Return what to do if HTTP refuses to open a session."""
    if status in (401, 403):
        return "; give credentials with --token, or with --header"
    if 300 <= status < 400:
        return "; redirects are not followed: give the URL that it leads to"
    return "; is the path right? That of many servers is /mcp" if status in (404, 405) else ""
