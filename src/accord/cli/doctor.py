"""`accord doctor`: find out why a server does not work."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
import msgspec

from accord.cli import completion, keyboard
from accord.cli.approver import show_prompt
from accord.cli.columns import heading
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, printable
from accord.cli.run_client import with_headers
from accord.cli.screen import screen
from accord.cli.settings import Decorator, header_option, json_option, positive_seconds, traceback_option
from accord.client.target import Command, Remote
from accord.errors import StoreError, TargetError
from accord.host.doctor.diagnosis import Diagnosis, diagnose
from accord.host.doctor.known_facts import SECONDS, Subject
from accord.host.doctor.protocol_steps import STEPS
from accord.host.doctor.subjects import (
    InstalledEntry,
    InstalledEntryResult,
    check_installed,
    subjects_of_hosts,
    subjects_of_target,
)
from accord.host.known_hosts import KNOWN_HOSTS, known_host
from accord.host.prompts import CommandPrompt
from accord.install.records import InstallRecords

_MARKS = {"passed": "ok", "failed": "failed", "warning": "warning"}
_COLOURS = {"passed": "green", "failed": "red", "warning": "yellow"}

_bearer_option: Decorator = click.option(
    "--bearer", metavar="TOKEN", envvar="ACCORD_BEARER", show_envvar=True, help="Send a bearer token to the TARGET."
)


@click.command(short_help="Find out why a server does not work.", epilog=EXIT_CODES)
@click.argument("target", required=False, shell_complete=completion.target)
@click.option("--host", type=click.Choice(list(KNOWN_HOSTS)), metavar="HOST", help="The servers of this host only.")
@click.option(
    "--start", is_flag=True, help="Start and contact servers that accord found by itself, without a question."
)
@click.option(
    "--timeout",
    type=float,
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    callback=positive_seconds,
    help="The time limit of a step.",
)
@header_option
@_bearer_option
@json_option
@traceback_option
def command(
    target: str | None,
    host: str | None,
    start: bool,
    timeout: float,
    headers: tuple[tuple[str, str], ...],
    bearer: str | None,
    as_json: bool,
) -> int:
    """Check a server step by step, from its configuration to the schemas of its tools.

    Without TARGET, the servers in the files of all installed hosts are checked (and in those of this folder), and
    whether the entries that `accord install` wrote are still there. The exit code is 1 if a step failed.
    """
    if target is not None and host is not None:
        raise click.UsageError("give a TARGET or --host, not both")
    if target is not None:
        subjects = [_with_options(each, headers, bearer) for each in subjects_of_target(target, seconds=timeout)]
        installed: list[InstalledEntryResult] = []
    else:
        hosts = [known_host(host)] if host is not None else list(KNOWN_HOSTS.values())
        asks = not start and not as_json and sys.stdin.isatty() and sys.stderr.isatty()
        subjects = subjects_of_hosts(hosts, _Permission(start, asks).ask, project=Path.cwd(), seconds=timeout)
        installed = _installed(host)
    with _without_warnings():
        return asyncio.run(_report(subjects, installed, as_json=as_json))


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress the warnings of the library: what they are about is evidence of a step."""
    logger = logging.getLogger("accord")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _with_options(subject: Subject, headers: Sequence[tuple[str, str]], bearer: str | None) -> Subject:
    """Return a subject with the options of the user."""

    def adjust(target: Command | Remote) -> Command | Remote:
        if isinstance(target, Remote):
            return with_headers(target, headers, bearer)
        if headers:
            raise TargetError("--header is for a server at a URL, and the target is none")
        return target

    return msgspec.structs.replace(subject, adjust=adjust)


class _Permission:
    """The permission to start and contact servers that accord found by itself."""

    def __init__(self, start: bool, asks: bool) -> None:
        self._start = start
        self._asks = asks

    async def ask(self, name: str, lines: list[str]) -> bool:
        """Return whether a server may be started; ask the user at a terminal."""
        if self._start or not self._asks:
            return self._start
        with screen.prompting(), suppress(keyboard.PromptRefused):
            await keyboard.discard_typed()
            show_prompt(CommandPrompt(name, lines))
            return bool(click.confirm("Start it?", default=False, err=True))
        return False


def _installed(host: str | None) -> list[InstalledEntryResult]:
    """Return the state of the entries that `accord install` wrote."""
    try:
        found = InstallRecords().all()
    except StoreError as exc:
        return [InstalledEntryResult(host or "", "", "", "unknown", str(exc), "correct or delete this file")]
    return [
        check_installed(InstalledEntry(each.host, each.file, each.name, each.written[-1]))
        for each in found
        if each.written and host in (None, each.host)
    ]


async def _report(subjects: list[Subject], installed: list[InstalledEntryResult], *, as_json: bool) -> int:
    diagnoses = []
    for subject in subjects:
        diagnoses.append(await diagnose(subject, STEPS))
        for line in () if as_json else _diagnosis_lines(diagnoses[-1]):
            click.echo(line)
    if as_json:
        echo_json({"servers": diagnoses, "installed": installed})
    else:
        for line in _installed_lines(installed):
            click.echo(line)
        if not subjects and not installed:
            click.echo("no server is configured in the files of the known hosts; give a TARGET, or use accord install")
    is_missing = any(each.state in ("missing", "unknown") for each in installed)
    return 1 if is_missing or any(each.failed for each in diagnoses) else 0


def _diagnosis_lines(diagnosis: Diagnosis) -> Iterator[str]:
    place = f" · {diagnosis.host}" if diagnosis.host else ""
    yield heading(f"{diagnosis.name or diagnosis.file}{place}")
    checked = [step for step in diagnosis.steps if step.state != "not-checked"]
    for step in checked:
        first, *more = step.evidence or [""]
        mark = click.style(f"{_MARKS[step.state]:12}", fg=_COLOURS[step.state])
        yield f"  {mark}{printable(f'{step.step}: {first}')}"
        for line in more:
            yield f"  {'':12}{printable(line)}"
        if step.remedy:
            yield f"  {'':12}{printable(f'remedy: {step.remedy}')}"
    if left_out := diagnosis.steps[len(checked) :]:
        names = ", ".join(step.step for step in left_out)
        yield f"  {click.style('not checked', fg='bright_black')} {names}: {printable(left_out[0].evidence[0])}"


def _installed_lines(installed: list[InstalledEntryResult]) -> Iterator[str]:
    if installed:
        yield heading("Entries that accord installed")
    for each in installed:
        colour = {"present": "green", "missing": "red", "unknown": "red"}.get(each.state, "yellow")
        text = printable(f"{each.name} · {each.host}: {each.evidence}")
        yield f"  {click.style(f'{each.state:12}', fg=colour)}{text}"
        if each.remedy:
            yield f"  {'':12}{printable(f'remedy: {each.remedy}')}"
