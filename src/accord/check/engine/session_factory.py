"""Opening a conversation in one revision."""

from __future__ import annotations

import asyncio
from typing import Any

from accord.check.engine.report import TransportName
from accord.check.engine.rule import Kind, NotObserved, UnreachableServer, UnsupportedRevision, Violation
from accord.check.engine.server_target import ServerTarget
from accord.check.probes.client_messages import LIST_METHODS, initialize_params
from accord.check.probes.content import preview_json
from accord.check.probes.message_log import MemoryBudget, MessageLog
from accord.check.probes.pending_answer import Answer
from accord.check.probes.probe import Probe
from accord.check.settings import CheckSettings
from accord.check.wires.child import ChildWire
from accord.messages.base import JSONObject


class SessionFactory:
    """Opens conversations with one server in one revision over one transport, and keeps their records."""

    def __init__(self, reach: ServerTarget, revision: str, transport: TransportName, settings: CheckSettings) -> None:
        self.target: ServerTarget = reach
        self.revision: str = revision
        self.transport: TransportName = transport
        self.settings: CheckSettings = settings
        self.memory: MemoryBudget = MemoryBudget()
        """For what the server says in all of them."""
        self.logs: list[MessageLog] = []
        self.probes: list[Probe] = []
        self.slow_tools: set[Any] = set()
        """Names of tools that did not answer in time."""
        self._second: Probe | None = None
        self._schemas: dict[str, JSONObject] = {}
        """The input schemas of tools, as the shared conversation listed them."""
        self._lists_answered: bool = True
        """Whether lists are answered."""

    @property
    def exit_delay(self) -> float:
        """Seconds for which the server was seen to run on after the end of its input, in any revision."""
        return self.target.exit_delay

    @exit_delay.setter
    def exit_delay(self, seconds: float) -> None:
        self.target.exit_delay = seconds

    @property
    def slowest_start(self) -> float:
        """Seconds until the first answer in the conversation that took longest."""
        return max((record.first_answer_seconds for record in self.logs), default=0.0)

    async def open_raw(self, kind: Kind = "raw", case: str = "") -> Probe:
        """Return a conversation in which nothing was said yet. Raises `ConnectError`."""
        record = MessageLog(self.revision, self.transport, kind, case, self.memory)
        talk = Probe(self.target.create_wire(self.transport, record), record, self.settings, self)
        talk.peer_logs = self.logs
        self.logs.append(record)
        self.probes.append(talk)
        await talk.wire.open()
        return talk

    async def open(self, kind: Kind = "own", case: str = "", *, capabilities: JSONObject | None = None) -> Probe:
        """Return a conversation that is open. Raises `UnsupportedRevision`, `Violation`, `ConnectError`."""
        talk = await self.open_raw(kind, case)
        if capabilities is not None:
            talk.client_capabilities = capabilities
        try:
            await self.negotiate(talk)
            await self._send_first_request(talk)
        except BaseException:  # nobody else has it: a server that refuses each one would be started for each case
            await self.close_probe(talk)
            raise
        return talk

    async def second(self, case: str = "") -> Probe:
        """Return the second conversation of shared cases, opened on first use, and again when it has ended."""
        if self._second is None or not self._second.alive:
            self._second = await self.open("own", case)
        self._second.log.case = case
        return self._second

    def release_second(self) -> Probe | None:
        """Return the second conversation, if it is open, and let the next case that needs one open another."""
        talk, self._second = self._second, None
        return talk if talk is not None and talk.alive else None

    async def negotiate(self, talk: Probe) -> None:
        """Open it by what its revision has for that. Raises `UnsupportedRevision`, and `Violation` when nothing
        sensible comes."""
        talk.log.client_capabilities = talk.client_capabilities
        if talk.rules.handshake:
            answer = await talk.request(
                "initialize", initialize_params(talk.revision, talk.client_capabilities), seconds=talk.settings.opening
            )
        else:
            answer = await self._discover(talk)
        hello = answer.result
        if answer.error is not None or not isinstance(hello, dict):
            raise _opening_error(answer)
        spoken = [hello.get("protocolVersion")] if talk.rules.handshake else hello.get("supportedVersions")
        if not isinstance(spoken, list) or talk.revision not in spoken:
            raise UnsupportedRevision(f"it speaks {preview_json(spoken)}")
        talk.handshake_result = talk.log.handshake_result = hello
        if talk.rules.handshake:
            talk.notify("notifications/initialized")
            if talk.transport == "http" and talk.http is not None:
                talk.http.open_stream({"MCP-Protocol-Version": talk.revision})

    async def _send_first_request(self, talk: Probe) -> None:
        """Make one ordinary request, so that every case begins in the same state.

        Without a handshake a server may decide by the first request after `server/discover` what the connection speaks,
        and arguments may stand in headers by the schemas of tools.
        """
        if talk.rules.handshake or not self._lists_answered:
            return
        talk.schemas.update(self._schemas)
        method = next((each for name, each in LIST_METHODS.items() if talk.has_capability(name)), talk.harmless_method)
        try:
            if talk.log.kind == "shared" and talk.has_capability("tools"):
                await talk.tools()
                self._schemas = dict(talk.schemas)
            else:
                await talk.request(method)
        except (Violation, NotObserved):  # for the rules that try just this
            self._lists_answered = False

    async def _discover(self, talk: Probe) -> Answer:
        """Send `server/discover`. Raises `UnreachableServer` if it "does not respond within a reasonable timeout", or
        ends."""
        try:
            return await talk.request("server/discover", seconds=talk.settings.opening)
        except Violation as exc:
            raise UnreachableServer(str(exc)) from exc

    async def close(self) -> None:
        """Close the conversations that are still open, all at once."""
        async with asyncio.TaskGroup() as group:
            for talk in self.probes:
                group.create_task(self.close_probe(talk))

    async def close_probe(self, talk: Probe) -> None:
        """Close a conversation. A process that outlives its input is not waited for again."""
        await talk.close()
        if isinstance(talk.wire, ChildWire) and talk.wire.ignored_stdin_end:
            self.target.ignores_stdin_end = True


def _opening_error(answer: Answer) -> UnsupportedRevision:
    if answer.error is not None and not answer.message:
        return UnreachableServer(f"{answer.error['message']}{_advice(answer.status or 0)}")
    return UnsupportedRevision(
        f"it answers {answer.request.get('method')} with {preview_json(answer.error or answer.result)}"
    )


def _advice(status: int) -> str:
    """What to do where HTTP refuses to open a conversation."""
    if status in (401, 403):
        return "; what it wants to know who asks is given with --header, as 'Authorization=Bearer ...'"
    if 300 <= status < 400:
        return "; redirects are not followed: give the URL that it leads to"
    return "; is the path right? That of many servers is /mcp" if status in (404, 405) else ""
