"""Options that several commands share, and their frozen value."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import update_wrapper
from typing import Any

import click

from accord.messages.revision import REVISIONS


@dataclass(frozen=True)
class ConnectionSettings:
    """The options of a connection, and of the output."""

    as_json: bool = False
    verbose: int = 0
    timeout: float | None = None
    revision: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    bearer: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    roots: tuple[str, ...] = ()
    stderr: bool = False
    record: str | None = None
    unredacted: bool = False

    def __repr__(self) -> str:
        return "ConnectionSettings(...)"  # without tokens


def _store_flag(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Store the flag in the context, because errors anywhere are reported in the chosen form."""
    ctx.meta[param.opts[-1].removeprefix("--")] = value
    return value


def key_values(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return each value of an option as a pair."""
    for each in value:
        if "=" not in each.lstrip("="):
            raise click.BadParameter(f"{each!r} is not KEY=VALUE")
    return tuple((key, text) for key, _, text in (each.partition("=") for each in value))


_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*[:=][ \t]*(.*?)[ \t]*", re.DOTALL)


def header_values(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return each value of `--header` as a pair: `Name: value`, or `Name=value`. An error never shows the value."""
    matches = [_HEADER.fullmatch(each) for each in value]
    if None in matches:
        raise click.BadParameter("write it as 'Name: value'")
    return tuple((match[1], match[2]) for match in matches if match is not None)


def passed_variables(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return each value of `--env` as a pair; a name alone has its value in this environment."""
    for each in value:
        if "=" not in each and each not in os.environ:
            raise click.BadParameter(f"{each} is not set here; write {each}=VALUE")
    assignments = tuple(each if "=" in each else f"{each}={os.environ[each]}" for each in value)
    return key_values(ctx, param, assignments)


def positive_seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Return a duration above zero."""
    if value is not None and not 0 < value < float("inf"):
        raise click.BadParameter("give a number of seconds above 0")
    return value


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

json_option: Decorator = click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    callback=_store_flag,
    help="Print one JSON document.",
)
traceback_option: Decorator = click.option(
    "--traceback", is_flag=True, is_eager=True, expose_value=False, callback=_store_flag,
    help="Print tracebacks of errors (also ACCORD_TRACEBACK=1).",
)  # fmt: skip

header_option: Decorator = click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", callback=header_values,
    help="Send this header with every request to a URL; may be repeated.",
)  # fmt: skip


def _with_record(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    """Reject `--unredacted` without `--record`, which click reads first."""
    if value and not ctx.params.get("record"):
        raise click.UsageError("--unredacted needs --record FILE")
    return value


RECORD_OPTIONS: Sequence[Decorator] = (
    click.option(
        "--record", metavar="FILE", type=click.Path(dir_okay=False), is_eager=True,
        help="Record all traffic to this session file, without secrets; see `accord replay`.",
    ),
    click.option(
        "--unredacted", is_flag=True, callback=_with_record, help="With --record: do not replace secrets in the file."
    ),
)  # fmt: skip
"""Options of each command that connects to a peer."""

_OPTIONS = (
    json_option,
    click.option("-v", "--verbose", count=True, help="Print each message to stderr; -vv prints them in full."),
    click.option(
        "--timeout", type=float, metavar="SECONDS", callback=positive_seconds,
        help="Fail after this time without a response or progress.",
    ),
    click.option("--revision", type=click.Choice(REVISIONS), metavar="REVISION", help="Use this revision only."),
    header_option,
    click.option(
        "--bearer", metavar="TOKEN", envvar="ACCORD_BEARER", show_envvar=True,
        help="Send a bearer token to a URL; in the environment variable it is not shown by `ps`.",
    ),
    click.option(
        "--env", multiple=True, metavar="KEY[=VALUE]", callback=passed_variables,
        help="Set an environment variable of the server; KEY alone passes yours. May be repeated.",
    ),
    click.option(
        "--cwd", type=click.Path(exists=True, file_okay=False), help="Working directory of the server."
    ),
    click.option(
        "--roots", multiple=True, metavar="DIR", type=click.Path(exists=True, file_okay=False),
        help="Offer this directory as a root; may be repeated.",
    ),
    click.option("--stderr", is_flag=True, help="Print the stderr of the server."),
    *RECORD_OPTIONS,
    traceback_option,
)  # fmt: skip


def options_as(name: str, type_: type[Any], options: Sequence[Decorator]) -> Decorator:
    """Add options to a command, as one frozen argument called `name`."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(**values: Any) -> Any:
            value = type_(**{field.name: values.pop(field.name) for field in fields(type_)})
            return function(**{name: value}, **values)

        command: Callable[..., Any] = update_wrapper(call, function)
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


settings_options: Decorator = options_as("settings", ConnectionSettings, _OPTIONS)
"""Add the options of `ConnectionSettings` to a command, as the argument `settings`."""
