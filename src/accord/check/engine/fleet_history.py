"""The history of a fleet, with one line of JSON per run, and the changes since earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from accord.check.engine.report import Report
from accord.errors import TargetError

_MOST_RUNS = 500
"""The maximum number of runs to read, from the end of the history."""


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one server in one run."""

    score: int | None
    """The score, or None if the server could not be checked."""
    scores: dict[str, int] = {}
    """The scores by revision and transport: `2026-07-28 stdio`."""
    failing: tuple[str, ...] = ()
    """The rules that failed, sorted, without known failures of the baseline."""
    warning: tuple[str, ...] = ()
    """The rules that warned, likewise."""
    error: str = ""
    """Why the server could not be checked."""


class FleetRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run of a fleet."""

    started: str
    """The start, in UTC: `2026-11-21T12:00:00Z`."""
    version: str
    """The version of accord that checked."""
    servers: dict[str, ServerStatus]


FleetChangeKind: TypeAlias = Literal["worse", "better", "new", "gone"]


class FleetChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A change of a server since the last run that included it."""

    server: str
    kind: FleetChangeKind
    text: str
    """The change in words: `tools/unknown-name now fails`."""


def server_status(report: Report | None, error: str = "") -> ServerStatus:
    """Return the status of a server by its report, or by the error that prevented one."""
    if report is None:
        return ServerStatus(score=None, error=error)
    by_verdict = {
        verdict: tuple(sorted({each.rule for each in report.findings if each.verdict == verdict and not each.known}))
        for verdict in ("fail", "warn")
    }
    return ServerStatus(
        score=report.score,
        scores={f"{visit.revision} {visit.transport}": visit.score for visit in report.visits},
        failing=by_verdict["fail"],
        warning=by_verdict["warn"],
    )


def fleet_changes(before: Sequence[FleetRun], now: Mapping[str, ServerStatus]) -> tuple[FleetChange, ...]:
    """Return the changes of each server since the last of these runs that included it; none without earlier runs."""
    return tuple(_changes_since(before, now)) if before else ()


def _changes_since(before: Sequence[FleetRun], now: Mapping[str, ServerStatus]) -> Iterator[FleetChange]:
    for name, current in now.items():
        previous = next((run.servers[name] for run in reversed(before) if name in run.servers), None)
        if previous is None:
            yield FleetChange(server=name, kind="new", text="checked for the first time")
        else:
            changes = _status_changes(previous, current)
            yield from (FleetChange(server=name, kind=kind, text=text) for kind, text in changes)
    for name in sorted(before[-1].servers.keys() - now.keys()):
        yield FleetChange(server=name, kind="gone", text="no longer in the fleet")


_Change: TypeAlias = tuple[FleetChangeKind, str]


def _status_changes(old: ServerStatus, new: ServerStatus) -> Iterator[_Change]:
    if old.score is None or new.score is None:
        if old.score is not None:
            yield "worse", f"can no longer be checked: {new.error}"
        elif new.score is not None:
            yield "better", f"can be checked again: {new.score}"
        return
    if old.score != new.score:
        yield "better" if new.score > old.score else "worse", f"score {old.score} → {new.score}"
    broken = (*new.failing, *new.warning)
    yield from _rule_changes("worse", "now fails", _added_rules(new.failing, old.failing))
    yield from _rule_changes("worse", "now warns", _added_rules(new.warning, (*old.warning, *old.failing)))
    yield from _rule_changes("better", "no longer fails", _added_rules(old.failing, new.failing))
    yield from _rule_changes("better", "no longer warns", _added_rules(old.warning, broken))


def _rule_changes(kind: FleetChangeKind, what: str, rules: Iterable[str]) -> Iterator[_Change]:
    for rule in rules:
        yield kind, f"{rule} {what}"


def _added_rules(rules: Iterable[str], others: Iterable[str]) -> list[str]:
    return sorted(set(rules) - set(others))


def read_history(file: Path) -> list[FleetRun]:
    """Return the last runs in a file, the oldest first; none if the file does not exist. Raises `TargetError`."""
    try:
        lines = file.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    except OSError as exc:
        raise TargetError(f"{file}: {exc.strerror}") from exc
    return [_run(file, number, line) for number, line in list(enumerate(lines, 1))[-_MOST_RUNS:] if line.strip()]


def _run(file: Path, number: int, line: bytes) -> FleetRun:
    try:
        return msgspec.json.decode(line, type=FleetRun)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise TargetError(f"{file}, line {number}: invalid run ({exc}); remove the line, or start a new file") from exc


def append_history(file: Path, run: FleetRun) -> None:
    """Append a run to a file, which is created if it does not exist. Raises `TargetError`."""
    try:
        with file.open("ab") as opened:
            opened.write(msgspec.json.encode(run) + b"\n")
    except OSError as exc:
        raise TargetError(f"{file}: {exc.strerror}") from exc
