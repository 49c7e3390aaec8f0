"""`accord list`: what a server offers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from accord.cli import completion, failures
from accord.cli.columns import ColumnRow, heading, rows
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES
from accord.cli.run_client import TERMINATED, run_with_client
from accord.cli.schema_text import parameters
from accord.cli.settings import ConnectionSettings, settings_options
from accord.client.client import Client
from accord.client.target import configuration, entries
from accord.errors import AccordError, MethodNotFound, NotSupported
from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate
from accord.messages.tools import Tool

Listing = dict[str, list[Any]]

_FETCHERS: dict[str, Callable[[Client], Any]] = {
    "tools": Client.list_tools,
    "resources": Client.list_resources,
    "templates": Client.list_resource_templates,
    "prompts": Client.list_prompts,
}
_NEEDS = {"tools": "tools", "resources": "resources", "templates": "resources", "prompts": "prompts"}
_KEYS = {"templates": "resourceTemplates"}


@click.command(epilog=EXIT_CODES)
@click.argument("target", shell_complete=completion.target)
@click.argument("kind", type=click.Choice(list(_FETCHERS)), required=False)
@settings_options
def command(target: str, kind: str | None, settings: ConnectionSettings) -> int:
    """List what a server offers: tools with their parameters, resources, templates of resources, prompts.

    With KIND only that. A configuration file without a name lists all of its servers.
    """

    config = configuration(target)
    if config is not None and config[1] is None and len(names := list(entries(config[0]))) > 1:
        return _list_all(config[0], names, kind, settings)
    found = _ServerListing(kind, settings.as_json)
    code = run_with_client(target, settings, found.fetch)
    if settings.as_json:
        echo_json(found.lists)
    return code


def _list_all(file: Path, names: Sequence[str], kind: str | None, settings: ConnectionSettings) -> int:
    """List all servers of a configuration; the exit code is that of the first that failed."""
    first, answers = 0, {}
    for number, name in enumerate(names):
        if not settings.as_json:
            click.echo(("\n" if number else "") + heading(f"{file}#{name}"))
            sys.stdout.flush()  # before what is said on stderr
        found = _ServerListing(kind, settings.as_json)
        try:
            code = run_with_client(f"{file}#{name}", settings, found.fetch)
            answers[name] = found.lists
        except AccordError as exc:
            code = failures.report_error(exc, trace=click.get_current_context().meta.get("traceback", False))
            answers[name] = {"error": failures.details(exc)}
        first = first or code
        if code == TERMINATED:
            break
    if settings.as_json:
        echo_json({"servers": answers})
    return first


class _ServerListing:
    """What one server offers, shown at once or kept for JSON."""

    def __init__(self, kind: str | None, as_json: bool) -> None:
        self._kind = kind
        self._as_json = as_json
        self.lists: dict[str, Any] = {}

    async def fetch(self, client: Client) -> None:
        """Ask for the lists. Raises what asking raises."""
        found = {self._kind: await _FETCHERS[self._kind](client)} if self._kind else await everything(client)
        self.lists = {_KEYS.get(name, name): items for name, items in found.items()}
        if not self._as_json:
            show(client, found)


async def everything(client: Client) -> Listing:
    """All lists that the server has."""
    offered = client.server_capabilities
    found: Listing = {}
    for kind, ask in _FETCHERS.items():
        if offered is None or getattr(offered, _NEEDS[kind]) is not None:
            try:
                found[kind] = await ask(client)
            except (MethodNotFound, NotSupported):  # it has resources and no templates, say
                continue
    return found


def show(client: Client, found: Listing) -> None:
    """The lists, for people."""
    info = client.server_info
    name = f"{info.title or info.name} {info.version}" if info else "server"
    click.echo(f"{heading(name)} · revision {client.revision}")
    for kind, items in found.items():
        if items:
            click.echo("\n" + heading(kind.capitalize()))
            for line in rows(_row(item) for item in items):
                click.echo(line)
    if not any(found.values()):
        click.echo(f"no {' or '.join(found) or 'lists'}")


def _row(item: Any) -> ColumnRow:
    about = item.description or item.title or ""
    match item:
        case Tool():
            return ColumnRow(item.name, f"({', '.join(parameters(item.input_schema))})", about)
        case Prompt():
            words = [each.name if each.required else f"{each.name}?" for each in item.arguments or []]
            return ColumnRow(item.name, f"({', '.join(words)})", about)
        case ResourceTemplate():
            return ColumnRow(item.uri_template, "", _description(item))
        case Resource():
            return ColumnRow(item.uri, "", _description(item))
    return ColumnRow(str(item), "", "")


def _description(item: Resource | ResourceTemplate) -> str:
    about = item.description or item.title or item.name
    return f"{about} ({item.mime_type})" if item.mime_type else about
