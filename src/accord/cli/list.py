"""`accord list`: list what a server offers."""

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
    listing = _ServerListing(kind, settings.as_json)
    code = run_with_client(target, settings, listing.fetch)
    if settings.as_json:
        echo_json(listing.lists)
    return code


def _list_all(file: Path, names: Sequence[str], kind: str | None, settings: ConnectionSettings) -> int:
    """List all servers of a configuration and return the exit code of the first failure."""
    exit_code, results = 0, {}
    for number, name in enumerate(names):
        if not settings.as_json:
            click.echo(("\n" if number else "") + heading(f"{file}#{name}"))
            sys.stdout.flush()  # before output on stderr
        listing = _ServerListing(kind, settings.as_json)
        try:
            code = run_with_client(f"{file}#{name}", settings, listing.fetch)
            results[name] = listing.lists
        except AccordError as exc:
            code = failures.report_error(exc, trace=click.get_current_context().meta.get("traceback", False))
            results[name] = {"error": failures.details(exc)}
        exit_code = exit_code or code
        if code == TERMINATED:
            break
    if settings.as_json:
        echo_json({"servers": results})
    return exit_code


class _ServerListing:
    """The lists of one server, printed at once or collected for JSON."""

    def __init__(self, kind: str | None, as_json: bool) -> None:
        self._kind = kind
        self._as_json = as_json
        self.lists: dict[str, Any] = {}

    async def fetch(self, client: Client) -> None:
        """Request the lists. Raises the errors of the requests."""
        lists = {self._kind: await _FETCHERS[self._kind](client)} if self._kind else await everything(client)
        self.lists = {_KEYS.get(name, name): items for name, items in lists.items()}
        if not self._as_json:
            show(client, lists)


async def everything(client: Client) -> Listing:
    """Return all lists that the server supports."""
    capabilities = client.server_capabilities
    lists: Listing = {}
    for kind, fetch in _FETCHERS.items():
        if capabilities is None or getattr(capabilities, _NEEDS[kind]) is not None:
            try:
                lists[kind] = await fetch(client)
            except (MethodNotFound, NotSupported):  # such as a server with resources, but without templates
                continue
    return lists


def show(client: Client, lists: Listing) -> None:
    """Print the lists."""
    info = client.server_info
    name = f"{info.title or info.name} {info.version}" if info else "server"
    click.echo(f"{heading(name)} · revision {client.revision}")
    for kind, items in lists.items():
        if items:
            click.echo("\n" + heading(kind.capitalize()))
            for line in rows(_row(item) for item in items):
                click.echo(line)
    if not any(lists.values()):
        click.echo(f"no {' or '.join(lists) or 'lists'}")


def _row(item: Any) -> ColumnRow:
    description = item.description or item.title or ""
    match item:
        case Tool():
            return ColumnRow(item.name, f"({', '.join(parameters(item.input_schema))})", description)
        case Prompt():
            arguments = [
                argument.name if argument.required else f"{argument.name}?" for argument in item.arguments or []
            ]
            return ColumnRow(item.name, f"({', '.join(arguments)})", description)
        case ResourceTemplate():
            return ColumnRow(item.uri_template, "", _description(item))
        case Resource():
            return ColumnRow(item.uri, "", _description(item))
    return ColumnRow(str(item), "", "")


def _description(item: Resource | ResourceTemplate) -> str:
    description = item.description or item.title or item.name
    return f"{description} ({item.mime_type})" if item.mime_type else description
