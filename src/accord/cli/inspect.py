"""`accord inspect`: the inspector, in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accord.cli import completion
from accord.cli.approver import TerminalApprover
from accord.cli.failures import EXIT_CODES
from accord.cli.interrupts import Interrupts, run_interruptible
from accord.cli.keyboard import is_interactive
from accord.cli.run_client import warn_on_stderr
from accord.cli.screen import screen
from accord.cli.settings import traceback_option
from accord.errors import TargetError

if TYPE_CHECKING:
    from socket import socket

    from accord.inspector.app import Inspector

_REPLACE = "t"


@click.command(epilog=EXIT_CODES)
@click.argument("targets", nargs=-1, metavar="[TARGET...]", shell_complete=completion.target)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The servers of this configuration; none starts unasked.",
)
@click.option(
    "--session",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Show this session file; no server is needed.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="The port on 127.0.0.1; by default a free one.",
)
@click.option("--no-open", is_flag=True, help="Print the link, and do not open a browser.")
@click.option("--unredacted", is_flag=True, help="Do not replace secrets in the traffic that is shown and saved.")
@traceback_option
def command(
    targets: tuple[str, ...], config: Path | None, session: Path | None, port: int, no_open: bool, unredacted: bool
) -> int:
    """Inspect servers in a browser: their tools, all their traffic, and any request.

    Only the link that is printed opens the page: it has a secret in its fragment.
    """
    from accord.server.http.serving.address import Address, bind_loopback, bound_address

    warn_on_stderr()
    try:
        sockets = bind_loopback(port)  # frames of apps load from localhost
    except OSError as exc:
        raise TargetError(str(exc.strerror)) from exc
    base = f"http://{bound_address(Address('127.0.0.1', port), sockets)}"

    async def work(interrupts: Interrupts) -> int:
        from accord.inspector.app import Inspector

        approver = TerminalApprover(interrupts) if is_interactive() else None
        inspector = await interrupts.contexts.enter_async_context(
            Inspector(*targets, configuration=config, session=session, approver=approver, redacted=not unredacted)
        )
        await interrupts.contexts.enter_async_context(_serving(inspector, sockets))
        await _show(inspector, base, approver, opens=not no_open)
        return 0

    return run_interruptible(work)


def _serving(inspector: Inspector, sockets: Sequence[socket]) -> contextlib.AbstractAsyncContextManager[object]:
    from accord.inspector.transfers import MAX_UPLOAD
    from accord.limits import HTTPLimits, Limits
    from accord.server.http.serving.serve import serving

    # a session file is uploaded as one body; the inspector bounds the bodies of commands itself
    return serving(inspector, sockets, Limits(http=HTTPLimits(body_bytes=MAX_UPLOAD)))


async def _show(inspector: Inspector, base: str, approver: TerminalApprover | None, *, opens: bool) -> None:
    _print_link(inspector, base)
    if opens:
        await _open_browser(inspector, base)
    if approver is None:
        await asyncio.Event().wait()
    else:
        await _read_keys(inspector, base, approver)


def _print_link(inspector: Inspector, base: str) -> None:
    """Print the link to stdout, so that a program can read it."""
    click.echo(inspector.link(base))
    sys.stdout.flush()


async def _read_keys(inspector: Inspector, base: str, approver: TerminalApprover) -> None:
    """Read lines from the terminal: `t` replaces the token. Approvals are asked there too."""
    screen.print_line(click.style(f"{_REPLACE} and Enter: a new link; Ctrl-C: stop", dim=True))
    while (line := await approver.read_line("")) is not None:
        if line.strip() == _REPLACE:
            inspector.replace_token()
            _print_link(inspector, base)
    await asyncio.Event().wait()


async def _open_browser(inspector: Inspector, base: str) -> None:
    """Open the page. The link goes through a file of the user: all users can read the arguments of a browser."""
    import webbrowser

    file = inspector.workspace.folder / "open.html"
    link = escape(inspector.link(base), quote=True)
    await asyncio.to_thread(file.write_text, f'<meta http-equiv="refresh" content="0; url={link}">', "utf-8")
    with contextlib.suppress(webbrowser.Error):
        if await asyncio.to_thread(webbrowser.open, file.as_uri()):
            return
    screen.warn("no browser could be opened: open the link yourself")
