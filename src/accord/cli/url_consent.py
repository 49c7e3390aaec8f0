"""A page that a server sends a person to: the whole URL, where it leads, and what is odd about it (URL mode).

"Clients MUST NOT open the URL without explicit consent", and "MUST NOT automatically pre-fetch the URL": it is opened
only with `--open`, after a yes to the question that shows it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import webbrowser
from urllib.parse import urlsplit

import click

from accord.cli.failures import printable
from accord.cli.forms import confirm
from accord.cli.screen import screen


async def confirm_url(url: str, *, opens: bool) -> None:
    """Let the person decide about a page. Raises `PromptRefused`."""
    screen.print_prompt()
    for line in url_lines(url):
        screen.print_prompt(line)
    await confirm("Open it in the browser?" if opens else "Agree to go there? (It is not opened for you.)")
    if opens and not await asyncio.to_thread(webbrowser.open, url):
        screen.print_prompt("  no browser could be started; open it yourself")


def url_lines(url: str) -> list[str]:
    """The whole URL, then its host, then a warning for each thing that may mislead."""
    host = _host(url)
    return [
        f"  {printable(url)}",
        f"  host: {click.style(printable(host), bold=True) if host else 'cannot be told'}",
        *(f"  {click.style('take care:', fg='yellow')} {doubt}" for doubt in _warnings(url, host)),
    ]


def _host(url: str) -> str | None:
    """The host that a browser would go to; None where browsers may differ."""
    if "\\" in url:  # a browser reads it as a slash
        return None
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _warnings(url: str, host: str | None) -> list[str]:
    """ "Clients SHOULD have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)"."""
    if host is None:
        return ["it is not clear where this URL leads"]
    doubts = {
        "the host is in other letters than it may seem": not host.isascii() or "xn--" in host or "%" in host,
        "the host is a number, not a name": _is_address(host),
        "what stands before the @ is no host": "@" in urlsplit(url).netloc,
        "what you send there is not encrypted": urlsplit(url).scheme != "https",
        "it has characters that cannot be shown": not url.isprintable(),
    }
    return [doubt for doubt, holds in doubts.items() if holds]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.replace(".", "").isdigit()
    return True
