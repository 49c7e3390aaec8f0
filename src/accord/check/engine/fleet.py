"""`accord check --fleet servers.json`: many servers, checked side by side, and how they stand.

Each is checked by itself: one that hangs, dies or cannot be found is told as such, and touches no other. What its entry
gives as environment and headers is taken for secrets, and stands in no report.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import msgspec

from accord.check.engine.fleet_history import (
    FleetChange,
    FleetRun,
    ServerStatus,
    append_history,
    fleet_changes,
    read_history,
    server_status,
)
from accord.check.engine.outcomes import NullWatcher, Watcher
from accord.check.engine.report import Report
from accord.check.engine.server_target import RedactingWatcher, collect_secrets, redact
from accord.check.server import check_server
from accord.check.settings import CheckSettings
from accord.client.target import Command, InProcessServer, Remote, parse
from accord.errors import TargetError, describe
from accord.transport.base import Transport

_SECONDS = 900.0
"""What one server may take, whatever its rules take."""


class CheckedServer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One server of a fleet: its report, or why there is none."""

    name: str
    seconds: float
    report: Report | None = None
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether it could not be checked, or its report has failed."""
        return self.report is None or self.report.failed


class Fleet(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Many servers, checked."""

    started: str
    """When, in UTC: `2026-11-21T12:00:00Z`."""
    seconds: float
    version: str
    """The version of accord that checked."""
    servers: tuple[CheckedServer, ...]
    """In the order of their configuration."""
    history: tuple[FleetRun, ...] = ()
    """Earlier runs, the oldest first."""
    news: tuple[FleetChange, ...] = ()
    """What changed since the last run in which a server was."""

    @property
    def failed(self) -> bool:
        """Whether one of them has failed."""
        return any(each.failed for each in self.servers)

    @property
    def run(self) -> FleetRun:
        """This run, as a history keeps it."""
        return FleetRun(started=self.started, version=self.version, servers=_server_statuses(self.servers))

    def by_rule(self) -> dict[str, tuple[str, ...]]:
        """Rules that somebody breaks, the most frequent first, with the names of the servers that do."""
        found: dict[str, list[str]] = {}
        for name, stands in self.run.servers.items():
            for rule in (*stands.failing, *stands.warning):
                found.setdefault(rule, []).append(name)
        return {rule: tuple(found[rule]) for rule in sorted(found, key=lambda rule: (-len(found[rule]), rule))}


class FleetWatcher(Protocol):
    """Is told how it goes. Several servers are under way at once."""

    def server_began(self, name: str) -> Watcher:
        """A server is checked from now on; what is given is told how that goes."""
        ...

    def server_ended(self, checked: CheckedServer) -> None: ...


class ServerChecker(Protocol):
    """Checks one server: `accord.check.server.check_server`."""

    def __call__(
        self, target: Any, settings: CheckSettings | None = None, watcher: Watcher | None = None, *, label: str = ""
    ) -> Awaitable[Report]: ...


async def check_fleet(
    entries: Mapping[str, Any],
    settings: CheckSettings | None = None,
    *,
    jobs: int = 2,
    watcher: FleetWatcher | None = None,
    history: Path | None = None,
    file: str = "",
    check: ServerChecker = check_server,
    seconds: float = _SECONDS,
) -> Fleet:
    """Check servers, `jobs` of them at once, each for so many `seconds` at most.

    `entries` are those of `mcpServers`; `file` is where they stand, by which reports name them. To `history` a line is
    added. Raises `TargetError` when it cannot be read or written.
    """
    before = read_history(history) if history else []
    began, started = time.monotonic(), datetime.now(UTC)
    free = asyncio.Semaphore(max(jobs, 1))

    async def one(name: str, entry: Any) -> CheckedServer:
        async with free:
            label = f"{file}#{name}" if file else name
            checked = await _check_one(name, entry, label, settings or CheckSettings(), watcher, check, seconds)
        if watcher is not None:
            watcher.server_ended(checked)
        return checked

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(name, entry)) for name, entry in entries.items()]
    servers = tuple(task.result() for task in tasks)
    fleet = Fleet(
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=round(time.monotonic() - began, 3),
        version=version("accord"),
        servers=servers,
        history=tuple(before),
        news=fleet_changes(before, _server_statuses(servers)),
    )
    if history is not None:
        append_history(history, fleet.run)
    return fleet


async def _check_one(
    name: str,
    entry: Any,
    label: str,
    settings: CheckSettings,
    watcher: FleetWatcher | None,
    check: ServerChecker,
    seconds: float,
) -> CheckedServer:
    """One server; whatever is wrong with it becomes its error."""
    watch = NullWatcher() if watcher is None else watcher.server_began(name)
    given = entry if isinstance(entry, dict) else {}
    secrets = collect_secrets(
        None, *(each for each in (given.get("env"), given.get("headers")) if isinstance(each, dict))
    )
    watch = RedactingWatcher(watch, secrets)
    began = time.monotonic()
    report, error = None, ""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            report = redact(secrets, await check(_target(name, entry), settings, watch, label=label))
    except Exception as exc:  # whatever one server does, the others are checked
        late = isinstance(exc, TimeoutError) and limit.expired()
        error = f"not done within {seconds:g} s" if late else secrets.redact(describe(exc))
    return CheckedServer(name=name, seconds=round(time.monotonic() - began, 3), report=report, error=error)


def _target(name: str, entry: Any) -> Command | Remote | InProcessServer | Transport:
    """What an entry says; a command goes by its name, for an argument may be a secret too. Raises `TargetError`."""
    if not isinstance(entry, dict):
        raise TargetError('the entry is no object; it needs "command" or "url"')
    target = parse(entry)
    return msgspec.structs.replace(target, label=name) if isinstance(target, Command) else target


def _server_statuses(servers: tuple[CheckedServer, ...]) -> dict[str, ServerStatus]:
    return {each.name: server_status(each.report, each.error) for each in servers}
