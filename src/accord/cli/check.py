"""`accord check`: is this server, or this client, right?"""

from __future__ import annotations

import asyncio

import click

from accord.check.server import check_server
from accord.check.settings import CheckSettings


@click.command()
@click.argument("target")
@click.option("--revision", "revisions", multiple=True)
@click.option("--transport", "transports", multiple=True)
@click.option("--only", multiple=True)
@click.option("--call-tools", is_flag=True)
def command(target: str, revisions: tuple[str, ...], transports: tuple[str, ...], only: tuple[str, ...], call_tools: bool) -> int:
    """Check a server."""
    report = asyncio.run(check_server(target, CheckSettings(revisions=revisions, transports=transports, only=only, call_tools=call_tools)))  # type: ignore[arg-type]
    for visit in report.visits:
        click.echo(f"{visit.revision} {visit.transport} {visit.score} {visit.counts} {visit.seconds} {visit.error}")
    for finding in report.findings:
        click.echo(f"{finding.verdict} {finding.rule}: {finding.text}\n  {finding.places}\n  " + "\n  ".join(finding.evidence) + "\n  " + finding.repeat)
    return 1 if report.failed else 0
