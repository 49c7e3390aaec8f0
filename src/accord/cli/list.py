"""`accord list`: what a server offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from accord.cli.columns import Row, heading, rows
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES
from accord.cli.settings import Settings, settings_options
from accord.cli.shapes import parameters
from accord.cli.visit import visit
from accord.client.client import Client
from accord.errors import MethodNotFound, NotSupported
from accord.messages.content import Resource
from accord.messages.prompts import Prompt
from accord.messages.resources import ResourceTemplate
from accord.messages.tools import Tool

Listing = dict[str, list[Any]]

_ASK: dict[str, Callable[[Client], Any]] = {
    "tools": Client.list_tools,
    "resources": Client.list_resources,
    "templates": Client.list_resource_templates,
    "prompts": Client.list_prompts,
}
_NEEDS = {"tools": "tools", "resources": "resources", "templates": "resources", "prompts": "prompts"}
_KEYS = {"templates": "resourceTemplates"}


@click.command(epilog=EXIT_CODES)
@click.argument("target")
@click.argument("kind", type=click.Choice(list(_ASK)), required=False)
@settings_options
def command(target: str, kind: str | None, settings: Settings) -> int:
    """List what a server offers: tools with their parameters, resources, templates of resources, prompts.

    With KIND only that.
    """

    async def work(client: Client) -> None:
        found = {kind: await _ASK[kind](client)} if kind else await everything(client)
        if settings.as_json:
            echo_json({_KEYS.get(name, name): items for name, items in found.items()})
        else:
            show(client, found)

    return visit(target, settings, work)


async def everything(client: Client) -> Listing:
    """All lists that the server has."""
    offered = client.server_capabilities
    found: Listing = {}
    for kind, ask in _ASK.items():
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


def _row(item: Any) -> Row:
    about = item.description or item.title or ""
    match item:
        case Tool():
            return Row(item.name, f"({', '.join(parameters(item.input_schema))})", about)
        case Prompt():
            words = [each.name if each.required else f"{each.name}?" for each in item.arguments or []]
            return Row(item.name, f"({', '.join(words)})", about)
        case ResourceTemplate():
            return Row(item.uri_template, "", _described(item))
        case Resource():
            return Row(item.uri, "", _described(item))
    return Row(str(item), "", "")


def _described(item: Resource | ResourceTemplate) -> str:
    about = item.description or item.title or item.name
    return f"{about} ({item.mime_type})" if item.mime_type else about
