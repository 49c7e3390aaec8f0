"""`accord install`: add a server to the configuration file of another host, and undo that."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from accord.cli import completion
from accord.cli.columns import one_line
from accord.cli.failures import EXIT_CODES, USAGE, printable
from accord.cli.settings import header_option, json_option, traceback_option
from accord.client.variables import expand
from accord.errors import TargetError
from accord.host.known_hosts import KNOWN_HOSTS, KnownHost, known_host, user_folders
from accord.install.difference import difference
from accord.install.host_spelling import check_transport, has_references
from accord.install.installation import InstallPlan, execute, install_paths, plan_install, plan_undo
from accord.install.listing import installed_servers, records_of
from accord.install.records import InstallRecords
from accord.install.target_entry import (
    check_name,
    default_name,
    entry_of,
    is_temporary,
    literal_secrets,
    portable,
    with_settings,
)

_COLOURS = {"+": "green", "-": "red"}


@click.command(epilog=EXIT_CODES)
@click.argument("target", required=False, shell_complete=completion.target)
@click.option(
    "--to",
    "host_name",
    metavar="HOST",
    type=click.Choice(list(KNOWN_HOSTS)),
    help="The host; one of " + ", ".join(KNOWN_HOSTS) + ".",
)
@click.option("--project", is_flag=True, help="Write the host's file of the current folder, not that of the user.")
@click.option("--name", help="Name of the server in the host; by default made from TARGET.")
@click.option(
    "--env",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="Pass an environment variable: NAME alone is a reference, so its value is not written. May be repeated.",
)
@header_option
@click.option("--yes", is_flag=True, help="Write without asking.")
@click.option("--undo", is_flag=True, help="Remove what accord install has written.")
@click.option("--list", "is_list", is_flag=True, help="List the servers of all hosts, and which accord has installed.")
@json_option
@traceback_option
def command(
    target: str | None, host_name: str | None, project: bool, name: str | None, env: tuple[str, ...],
    headers: tuple[tuple[str, str], ...], yes: bool, undo: bool, is_list: bool, as_json: bool,
) -> int:  # fmt: skip
    """Add the server at TARGET to another host, such as Claude Desktop or VS Code.

    The difference is shown first. The file is written atomically, next to a backup, and its comments stay.
    Paths become absolute. A secret becomes a reference in the host's own form: --env NAME, or
    --header 'NAME: ${VARIABLE}'.
    """
    if undo and is_list:
        raise click.UsageError("--undo and --list are two commands; give one of them")
    records = InstallRecords()
    if is_list:
        hosts = [known_host(host_name)] if host_name else list(KNOWN_HOSTS.values())
        return _list(hosts, records, as_json)
    if undo:
        wanted = name or (default_name(target) if target is not None else None)
        found = records_of(records.all(), host_name, wanted, Path.cwd() if project else None)
        return _carry_out([plan_undo(each) for each in found], records, yes, "undone")
    if target is None or host_name is None:
        raise click.UsageError("give a TARGET and --to HOST; or --undo, or --list")
    host, folder = known_host(host_name), Path.cwd() if project else None
    new_name = name or default_name(target)
    check_name(new_name)
    entry: Mapping[str, Any] = portable(with_settings(entry_of(target), env, headers))
    check_transport(entry, host)
    if is_temporary(entry):
        click.echo(
            f"warning: {printable(entry['command'])} is in a cache, which may be deleted; "
            "run accord install from an environment that stays",
            err=True,
        )
    paths = install_paths(host, folder, [Path(each) for each in host.user_files(user_folders())])
    entry, has_secret = _with_secrets(entry, host, paths[0])
    plans = [plan_install(each, host, new_name, entry, project=folder, has_secret=has_secret) for each in paths]
    code = _carry_out(plans, records, yes, "written")
    if code == 0 and any(each.is_change for each in plans):
        click.echo(f"{host.title}: {host.after}", err=True)
    return code


def _with_secrets(entry: Mapping[str, Any], host: KnownHost, path: Path) -> tuple[Mapping[str, Any], bool]:
    """Return the entry to write, and whether it has a secret, to which the user agreed. Raises `TargetError`."""
    written = literal_secrets(entry)
    if written:
        _agree(
            f"{', '.join(written)}: this looks like a secret, and would be written into {path}",
            "give it as a reference: --env NAME, or --header 'NAME: ${VARIABLE}'",
        )
    if not has_references(entry) or host.format.reference is not None or host.format.env_names is not None:
        return entry, bool(written)
    _agree(
        f"{host.title} has no references to environment variables: their values would be written into {path}",
        "let the server read the secret from a file or a keyring",
    )
    return {key: expand(each, key) for key, each in entry.items()}, True


def _agree(problem: str, remedy: str) -> None:
    """Ask a user at a terminal; --yes is no answer to this. Raises `TargetError`."""
    if not _is_interactive() or not click.confirm(f"{printable(problem)}. Write it?", err=True):
        raise TargetError(f"{problem}; {remedy}. Nothing was written")


def _carry_out(plans: list[InstallPlan], records: InstallRecords, yes: bool, done: str) -> int:
    """Show each plan, ask, and execute it; return the exit code."""
    for plan in plans:
        path = plan.file.path
        _show(plan)
        if plan.is_change and not yes and not (_is_interactive() and click.confirm(f"Write {path}?", err=True)):
            hint = "" if _is_interactive() else "; give --yes, or run it in a terminal"
            click.echo(f"{printable(str(path))}: nothing was written{hint}", err=True)
            return USAGE
        execute(plan, records)
        if plan.is_change:
            backup = f"; the file before is {plan.file.backup.name}" if plan.file.text is not None else ""
            click.echo(f"{printable(str(path))}: {done}{backup if plan.new is not None else ''}", err=True)
    return 0


def _show(plan: InstallPlan) -> None:
    folder = plan.file.path.parent
    if plan.record is not None and plan.record.project is None and not folder.is_dir():
        click.echo(f"{printable(str(folder))} does not exist yet; is {plan.host.title} installed?", err=True)
    if plan.note:
        click.echo(f"{printable(str(plan.file.path))}: {printable(plan.note)}", err=True)
    if not plan.is_change:
        return
    click.echo(f"{printable(str(plan.file.path))}{'' if plan.file.text is not None else ' (new)'}")
    for line in difference(plan.old, plan.new or "", is_new_secret=plan.has_secret):
        click.echo(click.style(printable(line), fg=_COLOURS.get(line[:1])))


def _list(hosts: list[KnownHost], records: InstallRecords, as_json: bool) -> int:
    servers = list(installed_servers(hosts, records.all(), Path.cwd()))
    if as_json:
        click.echo(json.dumps(msgspec.to_builtins(servers), indent=2))
        return 0
    for each in servers:
        place = each.file if each.line is None else f"{each.file}:{each.line}"
        click.echo(f"{each.host:15} {one_line(each.name, 64):24} {each.state:14} {one_line(place, 1_000)}")
        if each.error and each.state == "unreadable":
            click.echo(f"{'':15} {printable(each.error)}")
    if not servers:
        click.echo("no host has a server", err=True)
    return 0


def _is_interactive() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
