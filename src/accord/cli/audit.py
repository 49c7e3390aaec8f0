"""`accord audit`: the audit log of a host."""

from __future__ import annotations

from collections.abc import Iterator

import click

from accord.cli.content import echo_json
from accord.cli.failures import printable
from accord.cli.settings import json_option
from accord.errors import StoreError, TargetError
from accord.host.audit.verify import AuditReport, verify_log

CHANGED, INCOMPLETE = 1, 6

_EXIT_CODES = f"""\
\b
Exit codes:
  0    the log is intact
  {CHANGED}    the log was changed
  2    invalid command line, or a file that cannot be read
  {INCOMPLETE}    the log is intact, except for an incomplete last entry"""


@click.group(epilog=_EXIT_CODES)
def command() -> None:
    """Verify the audit log of a host."""


@command.command(epilog=_EXIT_CODES)
@click.argument("file")
@click.option("--anchor", metavar="FILE", help="The anchor of the log; without it, a cut end cannot be found.")
@json_option
def verify(file: str, anchor: str | None, as_json: bool) -> int:
    """Check whether entries of the audit log FILE were edited, removed or reordered, and which."""
    try:
        report = verify_log(file, anchor=anchor)
    except StoreError as exc:
        raise TargetError(str(exc)) from exc
    if as_json:
        echo_json(report)
    for line in () if as_json else _lines(report):
        click.echo(printable(line))
    if report.problems:
        return CHANGED
    return 0 if report.incomplete is None else INCOMPLETE


def _lines(report: AuditReport) -> Iterator[str]:
    entries = "1 entry" if report.entries == 1 else f"{report.entries:,} entries"
    yield f"{report.path}: {'changed' if report.problems else 'intact'}, {entries}"
    for problem in report.problems:
        yield f"  {problem.kind:9}  {problem.text}"
    if report.incomplete is not None:
        yield f"  the last entry is incomplete ({report.incomplete} bytes): its process ended before it was stored"
    if report.after_anchor is not None and not report.problems:
        yield f"  entries after the anchor: {report.after_anchor:,}"
    elif not report.problems:
        yield "  no anchor was given: a log that was cut off at its end looks intact"
    if report.hash:
        yield f"  last entry: {report.hash}"
