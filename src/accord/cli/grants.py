"""`accord grants`: the stored grants of the user."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

import click

from accord.cli.columns import ColumnRow, rows
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, TOOL_FAILED
from accord.cli.settings import json_option
from accord.host.grants import CallGrant, decode_grant
from accord.host.state import HostState

_EPILOG = EXIT_CODES.replace("the tool returned an error", "there is no such grant")


@click.group(epilog=_EPILOG)
def command() -> None:
    """List and revoke your grants: approvals of many calls. Those for one conversation end with it."""


@command.command("list")
@json_option
def list_command(as_json: bool) -> int:
    """List the stored grants: id, server, tool, and until when."""
    grants = asyncio.run(_grants())
    if as_json:
        echo_json(grants)
        return 0
    for line in rows([ColumnRow(grant.id, "", "; ".join(_facts(grant))) for grant in grants], indent=0):
        click.echo(line)
    if not grants:
        click.echo("there is no grant")
    return 0


@command.command(epilog=_EPILOG)
@click.argument("id")
def revoke(id: str) -> int:
    """Revoke the grant ID: further calls are asked about again."""
    if asyncio.run(_revoke(id)):
        click.echo(f"revoked {id}")
        return 0
    click.echo(f"there is no grant {id!r}; accord grants list shows them", err=True)
    return TOOL_FAILED


async def _grants() -> list[CallGrant]:
    state = HostState()
    if not state.path.exists():
        return []
    async with state:
        return await state.grants(decode_grant)


async def _revoke(id: str) -> bool:
    state = HostState()
    if not state.path.exists():
        return False
    async with state:
        return await state.revoke_grant(id)


def _facts(grant: CallGrant) -> list[str]:
    facts = [f"{grant.tool} of {grant.server_name}"]
    if grant.principal:
        facts.append(f"for {grant.principal}")
    if grant.arguments is not None:
        facts.append("with the same arguments only")
    facts.append(f"given {_time(grant.at)}")
    if grant.expires is None:
        return [*facts, "no end"]
    return [*facts, f"{'expired' if grant.expires <= time.time() else 'until'} {_time(grant.expires)}"]


def _time(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().isoformat(" ", "minutes")
