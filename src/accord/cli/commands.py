"""The command group, whose table of names loads each command's module when it is invoked."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import click

from accord import __version__ as accord_version
from accord.cli import failures
from accord.cli.failures import EXIT_CODES

COMMANDS = {
    "run": "Serve the server in a Python file, over stdio or HTTP.",
    "list": "List the tools, resources and prompts of a server.",
    "call": "Call a tool.",
    "read": "Read a resource.",
    "prompt": "Get a prompt.",
    "complete": "Complete an argument of a prompt or a resource template.",
    "watch": "Print the notifications of a server.",
    "task": "Look at a task, wait for it, or cancel it.",
    "ping": "Measure the round-trip time to a server.",
    "dev": "Serve a program to a host, and reload it when its files change.",
    "doctor": "Find out why a server does not work.",
    "login": "Log in to a server at a URL.",
    "logout": "Revoke and delete a login.",
    "auth": "List your logins; explain the login at a server.",
    "inspect": "Inspect servers in a browser: tools, traffic, any request.",
    "replay": "Replay a recorded session, as a server or as a client.",
    "policy": "Explain how the rules of a host decide about a call.",
    "audit": "Verify the audit log of a host.",
    "chat": "Chat with a model that uses the tools of your servers.",
    "pins": "Show and approve the definitions of a host's servers.",
    "grants": "List and revoke your grants: approvals of many calls.",
    "check": "Check a server or a client for conformance.",
    "install": "Add a server to Claude, Cursor, VS Code and other hosts.",
    "migrate": "Migrate a program from FastMCP or the official SDK.",
    "version": "Print the version and exit.",
}

TARGETS = """\
\b
A TARGET is one argument:
  weather.py, weather.py:name      a file that holds a Server
  https://example.com/mcp          a URL; authenticate with --header, --bearer or accord login
  "npx -y some-server --fast"      a command line, run without a shell
  mcp.json#name                    an entry of a configuration file"""


class Commands(click.Group):
    """A click group that loads commands on demand and turns exceptions into messages and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"accord.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS:
            ctx.fail(f"no command {args[0]!r}; there are {', '.join(COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit, click.Abort, SystemExit):
            raise
        except BaseException as exc:  # every exception becomes one message and one exit code
            settings = ctx.meta
            code = failures.report_error(
                exc, as_json=settings.get("json", False), trace=settings.get("traceback", False)
            )
        ctx.exit(code or 0)

    def main(self, *args: Any, **options: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # escape characters that an old locale cannot print
        options["standalone_mode"] = False
        if os.environ.get("NO_COLOR"):
            options["color"] = False
        try:
            code = super().main(*args, **options)
        except click.UsageError as exc:
            code = _print_usage(exc)
        except click.Abort:
            code = failures.INTERRUPTED
        except click.ClickException as exc:
            click.echo(f"{failures.red('error:')} {failures.printable(exc.format_message())}", err=True)
            code = exc.exit_code
        sys.exit(code)


def _print_usage(exc: click.UsageError) -> int:
    click.echo(f"{failures.red('error:')} {failures.printable(exc.format_message())}", err=True)
    if exc.ctx is not None:
        click.echo(exc.ctx.get_usage() + f"\nTry '{exc.ctx.command_path} --help'.", err=True)
    return exc.exit_code


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"accord {accord_version}")
        ctx.exit()


@click.group(
    cls=Commands,
    epilog=f"{TARGETS}\n\n{EXIT_CODES}",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Print the version and exit.",
)
def accord() -> None:
    """Run, call, check and watch servers of the Model Context Protocol."""
