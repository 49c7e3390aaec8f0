"""Shell completion of targets and of the names that a server offers. It is bounded in time and never prints errors.

The shell runs it in a process of its own at each TAB; an error message would be printed into the line being typed.
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
"""The timeout for a server to start and respond."""
_WORD = re.compile(r"[\w@%+=:,./~?#{}-]+")
"""The characters of names, URIs and templates that no shell expands."""
_NO_BEGINNINGS = ("-", "#", "~", "=")
"""Beginnings of an option, a comment, a home directory, and for zsh the path of a program."""
_LISTS = {
    "tools": ("list_tools", "name"),
    "prompts": ("list_prompts", "name"),
    "resources": ("list_resources", "uri"),
    "templates": ("list_resource_templates", "uri_template"),
}


def target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete a file name, or the name of a server after `mcp.json#`."""
    from accord.client.target import configuration, entries
    from accord.errors import TargetError

    file, _, _ = incomplete.partition("#")
    if "#" in incomplete and configuration(file) is not None:
        try:
            names = entries(configuration(file)[0])  # type: ignore[index]  # which is one
        except TargetError:
            return []
        candidates = (f"{file}#{name}" for name in names if _is_one_word(name))
        return [CompletionItem(candidate) for candidate in candidates if candidate.startswith(incomplete)]
    return [CompletionItem(incomplete, type="file")]


def names(*kinds: str) -> Completer:
    """Complete the names that the preceding target offers: "tools", "prompts", "resources", "templates"."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        logging.disable(logging.CRITICAL)
        try:
            suggestions = asyncio.run(asyncio.wait_for(_names_of(ctx.params, kinds), _SECONDS))
        except Exception:  # no error may reach the line that the user types
            return []
        return [
            CompletionItem(name, help=description) for name, description in suggestions if name.startswith(incomplete)
        ]

    return complete


async def _names_of(params: dict[str, Any], kinds: tuple[str, ...]) -> list[tuple[str, str]]:
    from accord.cli.failures import printable
    from accord.cli.run_client import client_for, target_for

    values = {field.name: params[field.name] for field in fields(ConnectionSettings) if params.get(field.name)}
    settings = ConnectionSettings(**{**values, "verbose": 0, "stderr": False, "record": None, "unredacted": False})
    async with client_for(target_for(params["target"], settings), settings) as client:
        suggestions = []
        for kind in kinds:
            method, field = _LISTS[kind]
            try:
                entries = await getattr(client, method)()
            except Exception:  # the server does not support this list
                continue
            suggestions += [
                (getattr(entry, field), " ".join((entry.description or entry.title or "").split())[:80])
                for entry in entries
            ]
        return [(name, printable(description)) for name, description in suggestions if _is_one_word(name)]


def _is_one_word(name: str) -> bool:
    """Return whether every shell takes a name as one word, and not as an option.

    bash inserts completions into the line without quotes: a tool name could run as a command at Enter.
    """
    braces = "{" in name and ("," in name or ".." in name)
    home = "~" in name and "=" in name  # bash puts the home directory for `a=~` and for `a=b:~`
    return _WORD.fullmatch(name) is not None and not name.startswith(_NO_BEGINNINGS) and not braces and not home
