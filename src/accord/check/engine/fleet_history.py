"""How servers stand from one run to the next: the history of a fleet, a line of JSON for each run, and what is new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from accord.check.engine.report import Report
from accord.errors import TargetError

_MOST_RUNS = 500
"""Runs that are read of a history, the last ones."""


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How one server stood after one run."""

    score: int | None
    """None where it could not be checked."""
    scores: dict[str, int] = {}
    """By revision and transport: `2026-07-28 stdio`."""
    failing: tuple[str, ...] = ()
    """Rules that failed, sorted; those that the baseline knows are not among them."""
    warning: tuple[str, ...] = ()
    error: str = ""
    """Why it could not be checked."""


class FleetRun(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One run over a fleet."""

    started: str
    """When, in UTC: `2026-11-21T12:00:00Z`."""
    version: str
    """The version of accord that checked."""
    servers: dict[str, ServerStatus]


FleetChangeKind: TypeAlias = Literal["worse", "better", "new", "gone"]


class FleetChange(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is otherwise than when a server was checked before."""

    server: str
    kind: FleetChangeKind
    text: str
    """In words: `tools/unknown-name fails now`."""


def server_status(report: Report | None, error: str = "") -> ServerStatus:
    """How a server stands by its report, or by what kept it from being checked."""
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
    """What is new: of each server since the last of these runs in which it was; none where there was no run."""
    return tuple(_changes_since(before, now)) if before else ()


def _changes_since(before: Sequence[FleetRun], now: Mapping[str, ServerStatus]) -> Iterator[FleetChange]:
    for name, stands in now.items():
        stood = next((run.servers[name] for run in reversed(before) if name in run.servers), None)
        if stood is None:
            yield FleetChange(server=name, kind="new", text="checked for the first time")
        else:
            yield from (FleetChange(server=name, kind=kind, text=text) for kind, text in _status_changes(stood, stands))
    for name in sorted(before[-1].servers.keys() - now.keys()):
        yield FleetChange(server=name, kind="gone", text="not in the fleet any more")


_Change: TypeAlias = tuple[FleetChangeKind, str]


def _status_changes(stood: ServerStatus, stands: ServerStatus) -> Iterator[_Change]:
    if stood.score is None or stands.score is None:
        if stood.score is not None:
            yield "worse", f"cannot be checked any more: {stands.error}"
        elif stands.score is not None:
            yield "better", f"can be checked again: {stands.score}"
        return
    if stood.score != stands.score:
        yield "better" if stands.score > stood.score else "worse", f"score {stood.score} → {stands.score}"
    kept = (*stands.failing, *stands.warning)
    yield from _rule_changes("worse", "fails now", _added_rules(stands.failing, stood.failing))
    yield from _rule_changes("worse", "warns now", _added_rules(stands.warning, (*stood.warning, *stood.failing)))
    yield from _rule_changes("better", "does not fail any more", _added_rules(stood.failing, stands.failing))
    yield from _rule_changes("better", "does not warn any more", _added_rules(stood.warning, kept))


def _rule_changes(kind: FleetChangeKind, what: str, rules: Iterable[str]) -> Iterator[_Change]:
    for rule in rules:
        yield kind, f"{rule} {what}"


def _added_rules(rules: Iterable[str], others: Iterable[str]) -> list[str]:
    return sorted(set(rules) - set(others))


def read_history(file: Path) -> list[FleetRun]:
    """The last runs in a file, the oldest first; none where there is no file. Raises `TargetError`."""
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
        raise TargetError(f"{file}, line {number} is no run ({exc}); take the line out, or begin a new file") from exc


def append_history(file: Path, run: FleetRun) -> None:
    """Write a run at the end of a file, which is made if there is none. Raises `TargetError`."""
    try:
        with file.open("ab") as opened:
            opened.write(msgspec.json.encode(run) + b"\n")
    except OSError as exc:
        raise TargetError(f"{file}: {exc.strerror}") from exc
