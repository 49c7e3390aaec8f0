"""`accord pins`: the definitions of a host's servers that wait for an approval."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from accord.cli.approver import TerminalApprover
from accord.cli.columns import heading
from accord.cli.content import echo_json
from accord.cli.failures import EXIT_CODES, TOOL_FAILED, printable
from accord.cli.host_options import config_option, configuration_file, host_for, warn_unavailable
from accord.cli.interrupts import Interrupts, run_interruptible
from accord.cli.run_client import warn_on_stderr
from accord.cli.screen import quoted
from accord.cli.settings import json_option
from accord.errors import InvalidParams, NotConnected
from accord.host.approvers import PromptAnswer
from accord.host.host import Host
from accord.host.prompts import DefinitionsPrompt, Prompt

_EPILOG = EXIT_CODES.replace("the tool returned an error", "definitions wait for an approval")

Waiting = Mapping[str, DefinitionsPrompt]
"""The definitions that wait for an approval, by server."""


@click.group(epilog=_EPILOG)
def command() -> None:
    """Show and approve the definitions of a host's servers: tools, prompts and instructions.

    A host uses a definition once you have approved it, and again when it changes.
    """


_servers = click.argument("servers", nargs=-1, metavar="[SERVER]...")


@command.command(epilog=_EPILOG)
@_servers
@config_option
@json_option
def show(servers: tuple[str, ...], config: Path | None, as_json: bool) -> int:
    """Show the definitions that wait for an approval, with their differences; hidden characters are escaped."""
    waiting = _review(servers, config, lambda prompt: False)
    if as_json:
        echo_json([_record(prompt, change) for prompt in waiting.values() for change in prompt.changes])
        return TOOL_FAILED if waiting else 0
    for prompt in waiting.values():
        _print(prompt)
    if not waiting:
        click.echo("no definition waits for an approval")
    return TOOL_FAILED if waiting else 0


@command.command(epilog=_EPILOG)
@_servers
@config_option
@click.option("--yes", is_flag=True, help="Approve all of them without a question.")
def approve(servers: tuple[str, ...], config: Path | None, yes: bool) -> int:
    """Approve definitions that wait for it, server by server."""
    denied = _review(servers, config, lambda prompt: True if yes else None)
    for name, prompt in denied.items():
        click.echo(f"{name}: {len(prompt.changes)} definitions still wait for an approval", err=True)
    return TOOL_FAILED if denied else 0


class _Reviewer:
    """Answers prompts about definitions with `answer(prompt)`, and asks the user about None and all other prompts."""

    is_waited_for = True

    def __init__(self, servers: tuple[str, ...], answer: Any, terminal: TerminalApprover) -> None:
        self._servers = servers
        self._answer = answer
        self._terminal = terminal
        self.denied: dict[str, DefinitionsPrompt] = {}

    async def ask(self, prompt: Prompt, seconds: float) -> PromptAnswer:
        """See `Approver.ask`."""
        if not isinstance(prompt, DefinitionsPrompt):
            return await self._terminal.ask(prompt, seconds)
        if self._servers and prompt.server not in self._servers:
            return PromptAnswer(approved=False, reason="it is not asked about")
        answer: PromptAnswer
        decided = self._answer(prompt)
        if decided is None:
            answer = await self._terminal.ask(prompt, seconds)
        else:
            answer = PromptAnswer(approved=decided, by="command line")
        if answer.approved:
            self.denied.pop(prompt.server, None)
            click.echo(f"{prompt.server}: approved {len(prompt.changes)} definitions")
        else:
            self.denied[prompt.server] = prompt
        return answer


def _review(servers: tuple[str, ...], config: Path | None, answer: Any) -> Waiting:
    """Start the servers, and return the definitions that were not approved."""
    warn_on_stderr()
    configuration = configuration_file(config)
    denied: dict[str, DefinitionsPrompt] = {}

    async def work(interrupts: Interrupts) -> int:
        terminal = TerminalApprover(interrupts)
        reviewer = _Reviewer(servers, answer, terminal)
        async with host_for(configuration, terminal, approve=reviewer) as host:
            await _start_all(host, servers)
            warn_unavailable(host)
        denied.update(reviewer.denied)
        return 0

    code = run_interruptible(work)
    if code:
        raise click.exceptions.Exit(code)
    return denied


async def _start_all(host: Host, servers: tuple[str, ...]) -> None:
    """Start the servers that start when they are used, too. Raises `InvalidParams` for an unknown server."""
    if unknown := set(servers) - host.servers.keys():
        raise InvalidParams(f"there is no server {min(unknown)!r}; there are {', '.join(host.servers)}")
    for name, status in host.servers.items():
        if status.state == "idle" and (not servers or name in servers):
            try:
                await host.start(name)
            except NotConnected:
                continue  # its state has the reason
    await host.settled()


def _print(prompt: DefinitionsPrompt) -> None:
    click.echo(heading(f"{prompt.server}:"))
    for change in prompt.changes:
        definition = change.definition
        state = "new" if change.before is None else "CHANGED since you approved it"
        click.echo(f"  {' '.join(filter(None, (definition.kind, printable(definition.name))))}, {state}")
        for line in change.lines():
            click.echo(quoted(line, "    │ "))


def _record(prompt: DefinitionsPrompt, change: Any) -> dict[str, Any]:
    return {
        "server": prompt.server,
        "kind": change.definition.kind,
        "name": change.definition.name,
        "state": "new" if change.before is None else "changed",
        "digest": change.definition.digest,
        "difference": change.lines(),
    }
