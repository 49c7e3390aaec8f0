"""Options of the commands that are a host, and the host that they create."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from accord.cli.approver import TerminalApprover
from accord.cli.columns import one_line
from accord.cli.failures import printable
from accord.cli.keyboard import is_interactive
from accord.cli.screen import screen
from accord.cli.settings import Decorator
from accord.errors import TargetError
from accord.host.host import Host

FILES = ("mcp.json", ".mcp.json")
"""The configurations that are found in the working directory."""

config_option: Decorator = click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE",
    help=f"The configuration, by default {' or '.join(FILES)} here.",
)  # fmt: skip


class HostConfiguration(NamedTuple):
    """The file of a configuration; `found` unless the user named it, so that its commands need an approval."""

    file: Path
    found: bool


def configuration_file(given: Path | None) -> HostConfiguration:
    """Return the configuration that the user named, or that of the working directory. Raises `TargetError`."""
    if given is not None:
        return HostConfiguration(given, False)
    for name in FILES:
        if (file := Path(name)).is_file():
            return HostConfiguration(file, True)
    raise TargetError(f"there is no {' or '.join(FILES)} here; name a configuration: --config FILE")


def host_for(configuration: HostConfiguration, approver: TerminalApprover, **options: Any) -> Host:
    """Return a host whose questions the user answers at the terminal. Raises `TargetError`, `PolicyError`."""
    options = {"approve": approver, "elicitation": approver.elicit if is_interactive() else None} | options
    return Host(configuration.file, found=configuration.found, **options)


def warn_unavailable(host: Host) -> None:
    """Warn about each server that could not be started."""
    for name, status in host.servers.items():
        if status.state not in ("connected", "idle"):
            screen.warn(f"{name} is not available: {one_line(status.reason or status.state, 400)}")
            for line in status.stderr[-3:]:
                screen.print_line(click.style(f"  {printable(line)}", dim=True))
