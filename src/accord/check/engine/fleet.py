"""`accord check --fleet servers.json`: check many servers concurrently, and compare the results with earlier runs.

A server that hangs, crashes or cannot be found is reported as an error and does not affect the others. The environment
and headers of an entry count as secrets, and appear in no report.
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
"""The timeout of the check of one server."""


class CheckedServer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One server of a fleet: its report, or the error that prevented it."""

    name: str
    seconds: float
    report: Report | None = None
    error: str = ""

    @property
    def failed(self) -> bool:
        """Return whether the server could not be checked, or failed the check."""
        return self.report is None or self.report.failed


class Fleet(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The results of many servers."""

    started: str
    """The start, in UTC: `2026-11-21T12:00:00Z`."""
    seconds: float
    version: str
    """The version of accord that checked."""
    servers: tuple[CheckedServer, ...]
    """The servers in the order of the configuration."""
    history: tuple[FleetRun, ...] = ()
    """Earlier runs, the oldest first."""
    news: tuple[FleetChange, ...] = ()
    """The changes of each server since the last run that included it."""

    @property
    def failed(self) -> bool:
        """Return whether a server has failed."""
        return any(each.failed for each in self.servers)

    @property
    def run(self) -> FleetRun:
        """Return this run as an entry of the history."""
        return FleetRun(started=self.started, version=self.version, servers=_server_statuses(self.servers))

    def by_rule(self) -> dict[str, tuple[str, ...]]:
        """Return the broken rules, the most frequent first, with the names of the servers that break them."""
        found: dict[str, list[str]] = {}
        for name, status in self.run.servers.items():
            for rule in (*status.failing, *status.warning):
                found.setdefault(rule, []).append(name)
        return {rule: tuple(found[rule]) for rule in sorted(found, key=lambda rule: (-len(found[rule]), rule))}


class FleetWatcher(Protocol):
    """Receives the progress of a fleet, with several servers checked concurrently."""

    def server_began(self, name: str) -> Watcher:
        """Return the watcher that receives the progress of a server whose check begins."""
        ...

    def server_ended(self, checked: CheckedServer) -> None:
        """Receive the result of a server."""
        ...


class ServerChecker(Protocol):
    """The type of `accord.check.server.check_server`."""

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
    """Check servers, `jobs` of them concurrently, each for at most `seconds`.

    `entries` are those of `mcpServers`; `file` is their file, which reports name. A line is appended to the file
    `history`. Raises `TargetError` if it cannot be read or written.
    """
    before = read_history(history) if history else []
    began, started = time.monotonic(), datetime.now(UTC)
    slots = asyncio.Semaphore(max(jobs, 1))

    async def check_entry(name: str, entry: Any) -> CheckedServer:
        async with slots:
            label = f"{file}#{name}" if file else name
            checked = await _check_one(name, entry, label, settings or CheckSettings(), watcher, check, seconds)
        if watcher is not None:
            watcher.server_ended(checked)
        return checked

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check_entry(name, entry)) for name, entry in entries.items()]
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
    """Check one server; every exception becomes its error."""
    server_watcher = NullWatcher() if watcher is None else watcher.server_began(name)
    fields = entry if isinstance(entry, dict) else {}
    secrets = collect_secrets(
        None, *(each for each in (fields.get("env"), fields.get("headers")) if isinstance(each, dict))
    )
    redacting = RedactingWatcher(server_watcher, secrets)
    began = time.monotonic()
    report, error = None, ""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            report = redact(secrets, await check(_target(name, entry), settings, redacting, label=label))
    except Exception as exc:  # a failure of one server must not stop the others
        late = isinstance(exc, TimeoutError) and limit.expired()
        error = f"timed out after {seconds:g} s" if late else secrets.redact(describe(exc))
    return CheckedServer(name=name, seconds=round(time.monotonic() - began, 3), report=report, error=error)


def _target(name: str, entry: Any) -> Command | Remote | InProcessServer | Transport:
    """Return the target of an entry. A command is labelled by the entry's name, because an argument may be a secret.
    Raises `TargetError`.
    """
    if not isinstance(entry, dict):
        raise TargetError('the entry is not an object; it needs "command" or "url"')
    target = parse(entry)
    return msgspec.structs.replace(target, label=name) if isinstance(target, Command) else target


def _server_statuses(servers: tuple[CheckedServer, ...]) -> dict[str, ServerStatus]:
    return {each.name: server_status(each.report, each.error) for each in servers}
