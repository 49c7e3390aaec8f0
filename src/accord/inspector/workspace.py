"""The workspace: what commands act on. It exists once per inspector, whatever pages are open."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from accord.client.target import Command, InProcessServer, Remote, Target, parse
from accord.errors import TargetError
from accord.host.approvers import Approver
from accord.host.command_approval import describe_target
from accord.host.configuration import read_configuration
from accord.host.prompts import CommandPrompt
from accord.inspector.app_frames import AppFrames
from accord.inspector.authorization.runs import AuthorizationRuns
from accord.inspector.calls import InspectedCalls
from accord.inspector.check_runs import CheckRuns
from accord.inspector.commands import InspectorError
from accord.inspector.list_changes import ListKind
from accord.inspector.notifications import NotificationStore
from accord.inspector.open_subscriptions import OpenSubscriptions
from accord.inspector.questions import Questions
from accord.inspector.raw_requests import RawConnections
from accord.inspector.saved_calls import SavedCalls
from accord.inspector.servers import InspectedServer, InspectedTarget, ServerOrigin
from accord.inspector.topics import Topics
from accord.inspector.traffic.recording import TrafficRecording
from accord.inspector.traffic.sessions import Sessions
from accord.redaction import redact

_MAX_SERVERS = 200
_APPROVAL_SECONDS = 120.0
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


class NamedServer(msgspec.Struct, frozen=True):
    """A server that the user named: on the command line, in the program, or by naming its configuration."""

    name: str
    target: InspectedTarget
    origin: ServerOrigin
    file: str = ""


def named_servers(targets: Iterable[Target], configuration: Path | None) -> list[NamedServer]:
    """Return the servers of the command line and of a configuration. Raises `TargetError`."""
    found: list[NamedServer] = []
    for target in targets:
        parsed = parse(target)
        if not isinstance(parsed, Command | Remote | InProcessServer):
            raise TargetError("a transport cannot be opened twice: give a command, a URL or a Server")
        is_object = isinstance(parsed, InProcessServer)
        found.append(NamedServer(name_of(parsed), parsed, "program" if is_object else "command line"))
    if configuration is None:
        return found
    for name, configured in read_configuration(configuration).servers.items():
        if configured.error:
            raise TargetError(configured.error)
        found.append(NamedServer(name, configured.target(), "configuration", str(configuration)))
    return found


class Workspace:
    """The servers, the recording, and the topics that tell pages what changed.

    `approver` is asked before a command starts that the user has not named on the command line or in a configuration.
    Secrets in the recording are replaced if it is `redacted`.
    """

    def __init__(
        self, named: Iterable[NamedServer] = (), *, approver: Approver | None = None, redacted: bool = True
    ) -> None:
        self.topics: Topics = Topics()
        self.questions: Questions = Questions(self.topics)
        """The requests of servers that wait for the user."""
        self.notifications: NotificationStore = NotificationStore(self.topics, self._fetch_list, self.start_task)
        self.subscriptions: OpenSubscriptions = OpenSubscriptions(self.start_task, self.notifications.publish)
        self.servers: dict[str, InspectedServer] = {}
        self.checks: CheckRuns = CheckRuns(lambda runs: self.topics.changed("check", {"runs": runs}))
        self.authorization: AuthorizationRuns = AuthorizationRuns(self.topics, lambda: self.recording.recorder)
        self.folder: Path = Path(tempfile.mkdtemp(prefix="accord-inspect-"))
        """The folder of temporary files, which only this user can read; it is deleted at the end."""
        self.recording: TrafficRecording = TrafficRecording(
            self.folder / "traffic.jsonl", redacted=redacted, on_change=lambda rows: self._publish_traffic()
        )
        """The traffic of all connections."""
        self.calls: InspectedCalls = InspectedCalls(
            self.folder,
            rows=self._rows,
            requests=self.recording.index.requests,
            on_change=lambda running: self.topics.changed("calls", {"running": running}),
            calling=self.questions.calling,
        )
        self.saved_calls: SavedCalls = SavedCalls()
        self.apps: AppFrames = AppFrames()
        self.sessions: Sessions = Sessions(self.recording, self.folder, self._publish_sessions)
        """The sessions that pages can show."""
        self.raw: RawConnections = RawConnections()
        self._approver = approver
        self._tasks: set[asyncio.Task[Any]] = set()
        self._publish_servers()
        for each in named:
            self.add(each.name, each.target, each.origin, file=each.file)

    # --- lifetime ----------------------------------------------------------------------------------------------

    def start_task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run work in the background until the workspace is closed; it must handle its errors."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """End all connections, processes and tasks, and delete the temporary files."""
        try:
            await self._close()
        finally:  # also where Ctrl-C cancels this: a server may take its time to end
            shutil.rmtree(self.folder, ignore_errors=True)

    async def _close(self) -> None:
        self.topics.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.calls.close()
        await self.authorization.close()
        await self.raw.close()
        await asyncio.gather(*(server.disconnect() for server in self.servers.values()), return_exceptions=True)
        await self.recording.close()

    # --- servers -----------------------------------------------------------------------------------------------

    def server(self, name: str) -> InspectedServer:
        """Return a server by name. Raises `InspectorError`."""
        found = self.servers.get(name)
        if found is None:
            raise InspectorError(f"there is no server {name!r:.100}", "reload the page", status=404)
        return found

    def add_targets(self, targets: Iterable[Target], configuration: Path | None = None) -> None:
        """Add the servers of targets, and of a configuration. Raises `TargetError`."""
        for each in named_servers(targets, configuration):
            self.add(each.name, each.target, each.origin, file=each.file)

    def add(
        self,
        name: str,
        target: InspectedTarget,
        origin: ServerOrigin,
        *,
        file: str = "",
        entry: Mapping[str, Any] | None = None,
        needs_approval: bool = False,
    ) -> InspectedServer:
        """Add a server; its name gets a number if it is taken. Raises `InspectorError` beyond a limit."""
        if len(self.servers) >= _MAX_SERVERS:
            raise InspectorError(f"there are {_MAX_SERVERS} servers already", "remove some")
        name, base, number = name or "server", name or "server", 1
        while name in self.servers:
            number += 1
            name = f"{base}-{number}"
        server = InspectedServer(
            name,
            target,
            origin,
            file=file,
            entry=entry,
            needs_approval=needs_approval,
            options=(self._recording_options, self.questions.options, self.notifications.options),
            on_change=self._publish_servers,
        )
        self.servers[name] = server
        self._publish_servers()
        return server

    async def remove(self, name: str) -> None:
        """Disconnect a server, and forget it. Raises `InspectorError`."""
        await self.server(name).disconnect()
        await self.authorization.end(name)
        self.checks.forget(name)
        self.servers.pop(name, None)
        self.notifications.forget(name)
        self.questions.forget(name)
        self.apps.forget(name)
        self._publish_servers()

    async def approve(self, server: InspectedServer) -> None:
        """Ask in the terminal whether a server may start, if it needs that. Raises `InspectorError` unless it may.

        The answer holds for what would start now: a change of the command or its program needs a new one.
        """
        if not server.needs_approval:
            return
        assert isinstance(server.target, Command | Remote), "a server in this process needs no approval"
        description = await asyncio.to_thread(describe_target, server.target, server.entry)
        await self._ask_to_start(server.name, description.lines())
        if (await asyncio.to_thread(describe_target, server.target, server.entry)).digest != description.digest:
            raise InspectorError(f"{server.name} changed while it was approved", "connect it again")
        if self.servers.get(server.name) is not server:
            raise InspectorError(f"{server.name} was removed meanwhile", "add it again")

    async def _ask_to_start(self, name: str, lines: list[str]) -> None:
        """Ask in the terminal whether the server that the lines describe may start. Raises `InspectorError` unless
        it may.
        """
        if self._approver is None:
            raise InspectorError(f"{name} cannot be approved: there is no terminal", "name it on the command line")
        answer = await self._approver.ask(CommandPrompt(name, lines), _APPROVAL_SECONDS)
        if not answer.approved:
            raise InspectorError(f"{name} was not approved: {answer.reason or 'denied in the terminal'}")

    async def _fetch_list(self, name: str, kind: ListKind) -> Sequence[Any]:
        client = self.server(name).client
        if kind == "tools":
            return await client.list_tools(fresh=True)
        return await (client.list_prompts(fresh=True) if kind == "prompts" else client.list_resources(fresh=True))

    def _recording_options(self, name: str) -> Mapping[str, Any]:
        return {"record": self.recording.recorder}

    def _publish_sessions(self) -> None:
        self.topics.changed("session", {"sessions": list(self.sessions.sources)})

    def _publish_traffic(self) -> None:
        self.topics.changed("traffic", {"rows": len(self.recording.index), "error": self.recording.error})

    async def _rows(self) -> int:
        await self.recording.written()
        return len(self.recording.index)

    def _publish_servers(self) -> None:
        states = {name: server.state for name, server in self.servers.items()}
        for name, state in states.items():
            if state == "lost":
                self.questions.withdraw(name, "the connection to the server is lost")
        self.topics.changed("servers", {"states": states})


def name_of(target: InspectedTarget) -> str:
    """Return a short name for a target: of its script, its package or its host."""
    if isinstance(target, Remote):
        return safe_name(target.url.partition("//")[2].partition("/")[0].rpartition("@")[2])
    if isinstance(target, Command):
        words = [target.label] if target.label else [word for word in target.argv if not word.startswith("-")]
        return safe_name(redact(Path(words[min(1, len(words) - 1)]).name))  # the script or package, else the program
    return safe_name(str(getattr(target, "name", "server")))


def safe_name(text: str) -> str:
    """Return a text as the name of a server: in addresses, it needs no escapes."""
    return _NOT_IN_A_NAME.sub("-", text).strip("-")[:64] or "server"
