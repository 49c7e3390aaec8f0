"""Opening a conversation in one revision."""

from __future__ import annotations

import asyncio
from typing import Any

from accord.check.reach import Reach
from accord.check.record import Record, Room
from accord.check.report import TransportName
from accord.check.rule import Broken, Kind, NotObserved, Unreached, Unspoken
from accord.check.settings import CheckSettings
from accord.check.speech import LISTS, hello_params
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import Answer
from accord.check.wires.child import ChildWire
from accord.messages.base import JSONObject


class Doors:
    """Opens conversations with one server in one revision over one transport, and keeps their records."""

    def __init__(self, reach: Reach, revision: str, transport: TransportName, settings: CheckSettings) -> None:
        self.reach: Reach = reach
        self.revision: str = revision
        self.transport: TransportName = transport
        self.settings: CheckSettings = settings
        self.room: Room = Room()
        """For what the server says in all of them."""
        self.records: list[Record] = []
        self.opened: list[Talk] = []
        self.slow: set[Any] = set()
        """Names of tools that did not answer in time."""
        self._second: Talk | None = None
        self._schemas: dict[str, JSONObject] = {}
        """The input schemas of tools, as the shared conversation listed them."""
        self._lists: bool = True
        """Whether lists are answered."""

    @property
    def outlived(self) -> float:
        """Seconds for which the server was seen to run on after the end of its input, in any revision."""
        return self.reach.outlived

    @outlived.setter
    def outlived(self, seconds: float) -> None:
        self.reach.outlived = seconds

    @property
    def slowest_start(self) -> float:
        """Seconds until the first answer in the conversation that took longest."""
        return max((record.silence for record in self.records), default=0.0)

    async def raw(self, kind: Kind = "raw", case: str = "") -> Talk:
        """Return a conversation in which nothing was said yet. Raises `ConnectError`."""
        record = Record(self.revision, self.transport, kind, case, self.room)
        talk = Talk(self.reach.wire(self.transport, record), record, self.settings, self)
        talk.beside = self.records
        self.records.append(record)
        self.opened.append(talk)
        await talk.wire.open()
        return talk

    async def open(self, kind: Kind = "own", case: str = "", *, capabilities: JSONObject | None = None) -> Talk:
        """Return a conversation that is open. Raises `Unspoken`, `Broken`, `ConnectError`."""
        talk = await self.raw(kind, case)
        if capabilities is not None:
            talk.declared = capabilities
        try:
            await self.open_up(talk)
            await self._use(talk)
        except BaseException:  # nobody else has it: a server that refuses each one would be started for each case
            await self.end(talk)
            raise
        return talk

    async def second(self, case: str = "") -> Talk:
        """Return the second conversation of shared cases, opened on first use, and again when it has ended."""
        if self._second is None or not self._second.alive:
            self._second = await self.open("own", case)
        self._second.record.case = case
        return self._second

    def release_second(self) -> Talk | None:
        """Return the second conversation, if it is open, and let the next case that needs one open another."""
        talk, self._second = self._second, None
        return talk if talk is not None and talk.alive else None

    async def open_up(self, talk: Talk) -> None:
        """Open it by what its revision has for that. Raises `Unspoken`, and `Broken` when nothing sensible comes."""
        talk.record.declared = talk.declared
        if talk.rules.handshake:
            answer = await talk.request(
                "initialize", hello_params(talk.revision, talk.declared), seconds=talk.settings.opening
            )
        else:
            answer = await self._discover(talk)
        hello = answer.result
        if answer.error is not None or not isinstance(hello, dict):
            raise _refused(answer)
        spoken = [hello.get("protocolVersion")] if talk.rules.handshake else hello.get("supportedVersions")
        if not isinstance(spoken, list) or talk.revision not in spoken:
            raise Unspoken(f"it speaks {shown(spoken)}")
        talk.hello = talk.record.hello = hello
        if talk.rules.handshake:
            talk.notify("notifications/initialized")
            if talk.transport == "http" and talk.http is not None:
                talk.http.listen({"MCP-Protocol-Version": talk.revision})

    async def _use(self, talk: Talk) -> None:
        """Make one ordinary request, so that every case begins in the same state.

        Without a handshake a server may decide by the first request after `server/discover` what the connection speaks,
        and arguments may stand in headers by the schemas of tools.
        """
        if talk.rules.handshake or not self._lists:
            return
        talk.schemas.update(self._schemas)
        method = next((each for name, each in LISTS.items() if talk.has(name)), talk.harmless)
        try:
            if talk.record.kind == "shared" and talk.has("tools"):
                await talk.tools()
                self._schemas = dict(talk.schemas)
            else:
                await talk.request(method)
        except (Broken, NotObserved):  # for the rules that try just this
            self._lists = False

    async def _discover(self, talk: Talk) -> Answer:
        """Send `server/discover`. Raises `Unreached` if it "does not respond within a reasonable timeout", or ends."""
        try:
            return await talk.request("server/discover", seconds=talk.settings.opening)
        except Broken as exc:
            raise Unreached(str(exc)) from exc

    async def close(self) -> None:
        """Close the conversations that are still open, all at once."""
        async with asyncio.TaskGroup() as group:
            for talk in self.opened:
                group.create_task(self.end(talk))

    async def end(self, talk: Talk) -> None:
        """Close a conversation. A process that outlives its input is not waited for again."""
        await talk.close()
        if isinstance(talk.wire, ChildWire) and talk.wire.stayed:
            self.reach.stays = True


def _refused(answer: Answer) -> Unspoken:
    if answer.error is not None and not answer.message:
        return Unreached(f"{answer.error['message']}{_advice(answer.status or 0)}")
    return Unspoken(f"it answers {answer.request.get('method')} with {shown(answer.error or answer.result)}")


def _advice(status: int) -> str:
    """What to do where HTTP refuses to open a conversation."""
    if status in (401, 403):
        return "; what it wants to know who asks is given with --header, as 'Authorization=Bearer ...'"
    if 300 <= status < 400:
        return "; redirects are not followed: give the URL that it leads to"
    return "; is the path right? That of many servers is /mcp" if status in (404, 405) else ""
