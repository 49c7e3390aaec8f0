"""What the shell completes: targets, and the names of what a server offers. Quick, and silent where it cannot be.

click asks for it in a process of its own at each TAB; what goes wrong there would be printed into the line being typed.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import click
from click.shell_completion import CompletionItem

from accord.cli.settings import ConnectionSettings

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_SECONDS = 5.0
"""How long a server may take to start and to answer."""
_WORD = re.compile(r"[\w@%+=:,./~?#{}-]+")
"""Characters that no shell reads as more than themselves, as parts of names, URIs and templates."""
_NO_BEGINNINGS = ("-", "#", "~", "=")
"""An option, a comment, the directory of a user, and for zsh the path of a program."""
_LISTS = {
    "tools": ("list_tools", "name"),
    "prompts": ("list_prompts", "name"),
    "resources": ("list_resources", "uri"),
    "templates": ("list_resource_templates", "uri_template"),
}


def target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """A file, or behind `mcp.json#` the name of a server in it."""
    from accord.client.target import configuration, entries
    from accord.errors import TargetError

    file, _, _ = incomplete.partition("#")
    if "#" in incomplete and configuration(file) is not None:
        try:
            names = entries(configuration(file)[0])  # type: ignore[index]  # which is one
        except TargetError:
            return []
        found = (f"{file}#{name}" for name in names if _is_one_word(name))
        return [CompletionItem(each) for each in found if each.startswith(incomplete)]
    return [CompletionItem(incomplete, type="file")]


def names(*kinds: str) -> Completer:
    """Complete the names of what the target before it offers: "tools", "prompts", "resources", "templates"."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        logging.disable(logging.CRITICAL)
        try:
            found = asyncio.run(asyncio.wait_for(_names_of(ctx.params, kinds), _SECONDS))
        except Exception:  # whatever it is, the person is typing a command
            return []
        return [CompletionItem(name, help=about) for name, about in found if name.startswith(incomplete)]

    return complete


async def _names_of(params: dict[str, Any], kinds: tuple[str, ...]) -> list[tuple[str, str]]:
    from accord.cli.failures import printable
    from accord.cli.run_client import client_for, target_for

    given = {field.name: params[field.name] for field in fields(ConnectionSettings) if params.get(field.name)}
    settings = ConnectionSettings(**{**given, "verbose": 0, "stderr": False})
    async with client_for(target_for(params["target"], settings), settings) as client:
        found = []
        for kind in kinds:
            verb, field = _LISTS[kind]
            try:
                listed = await getattr(client, verb)()
            except Exception:  # it has none of these
                continue
            found += [
                (getattr(each, field), " ".join((each.description or each.title or "").split())[:80]) for each in listed
            ]
        return [(name, printable(about)) for name, about in found if _is_one_word(name)]


def _is_one_word(name: str) -> bool:
    """Return whether a shell takes a name for one word as it is, and for no option.

    bash puts a completion into the line without quotes: the name of a tool would run as a command at Enter.
    """
    expands = "{" in name and ("," in name or ".." in name)
    return _WORD.fullmatch(name) is not None and not name.startswith(_NO_BEGINNINGS) and not expands
