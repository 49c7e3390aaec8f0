"""The options of `accord check` and their frozen value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import click

from accord.check.engine.report import FailOn, Level, TransportName
from accord.check.fuzz.sequences import decode_steps
from accord.check.settings import LEVELS, CheckSettings
from accord.cli.run_client import with_environment
from accord.cli.settings import (
    Decorator,
    header_option,
    json_option,
    options_as,
    passed_variables,
    positive_seconds,
    traceback_option,
)
from accord.client.target import Command, parse
from accord.errors import TargetError
from accord.messages.revision import REVISIONS

_TRANSPORTS: tuple[TransportName, ...] = ("stdio", "http", "sse")
_FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class CheckOptions:
    """The options on the command line."""

    client: str | None
    client_stdio: str | None
    full: bool
    passive: bool
    fail_on: FailOn
    runs: int
    fleet: Path | None
    diff: str | None
    revisions: tuple[str, ...]
    transports: tuple[TransportName, ...]
    only: tuple[str, ...]
    skip: tuple[str, ...]
    level: Level
    call_tools: bool
    call_tool: tuple[str, ...]
    trusted: bool
    cases: int
    seed: int
    sequence: str
    reports: tuple[str, ...]
    baseline: Path | None
    update_baseline: bool
    history: Path | None
    jobs: int
    timeout: float
    headers: tuple[tuple[str, str], ...]
    bearer: str | None
    env: tuple[tuple[str, str], ...]
    cwd: str | None
    verbose: bool
    as_json: bool

    @property
    def settings(self) -> CheckSettings:
        """Return the settings of the check."""
        token = {"Authorization": f"Bearer {self.bearer}"} if self.bearer else {}
        may_call = bool(self.call_tools or self.call_tool or self.trusted) and not self.passive
        return CheckSettings(
            revisions=self.revisions,
            full=self.full,
            passive=self.passive,
            transports=self.transports,
            only=self.only,
            skip=self.skip,
            level=self.level,
            timeout=self.timeout,
            jobs=self.jobs,
            headers={**token, **dict(self.headers)} or None,
            call_tools=self.call_tool or self.call_tools,
            trusted=self.trusted,
            seed=self.seed,
            cases=self.cases if may_call else 0,
            sequence=self.sequence if may_call else "",
            again=tuple(self._repeat_arguments()),
        )

    def _repeat_arguments(self) -> Iterator[str]:
        """Yield the further arguments of a command that repeats a finding, with secrets replaced by `...`."""
        for option, values in (("--header", self.headers), ("--env", self.env)):
            for name, _ in values:
                yield from (option, f"{name}=...")
        if self.bearer:
            yield from ("--bearer", "...")
        if self.cwd:
            yield from ("--cwd", self.cwd)
        if self.timeout != CheckSettings().timeout:
            yield from ("--timeout", f"{self.timeout:g}")

    def check(self, target: str | None) -> None:
        """Raise `UsageError` for options that exclude each other, and `TargetError` for an invalid `--sequence`."""
        peers = [self.client, self.client_stdio, self.fleet, self.diff or target]
        if sum(each is not None for each in peers) != 1 or (self.diff and target is None):
            raise click.UsageError(
                "give one TARGET, or --client COMMAND, --client-stdio COMMAND, --fleet FILE, or --diff OLD NEW"
            )
        if self.update_baseline and self.baseline is None:
            raise click.UsageError("--update-baseline needs --baseline FILE")
        if self.runs > 1 and not self.update_baseline:
            raise click.UsageError("--runs is for --update-baseline")
        if self.passive and (self.call_tools or self.call_tool or self.trusted):
            raise click.UsageError("--passive calls no tool: leave out --call-tools, --call-tool and --trusted")
        if self.sequence:
            decode_steps(self.sequence)
        if self.history is not None and self.fleet is None:
            raise click.UsageError("--history is for --fleet")
        server_only = [*self._server_only_options()]
        if server_only and (self.client or self.client_stdio):
            raise click.UsageError(f"{', '.join(server_only)}: this is for servers, and a client is checked")

    def _server_only_options(self) -> Iterator[str]:
        """Yield the given options that do not apply to a client."""
        extent = {"--full": self.full, "--passive": self.passive, "--fail-on": self.fail_on != "any"}
        reach = {"--header": self.headers, "--env": self.env, "--cwd": self.cwd, "--trusted": self.trusted}
        calls = {"--call-tools": self.call_tools, "--call-tool": self.call_tool, "--sequence": self.sequence}
        return (option for option, value in (extent | reach | calls).items() if value)

    def target(self, text: str) -> Any:
        """Return the target with the environment and working directory of the options."""
        parsed = parse(text)
        if isinstance(parsed, Command):
            return with_environment(parsed, self.env, self.cwd)
        if self.env or self.cwd:
            raise TargetError("--env and --cwd are for servers that are started here")
        return parsed


_OPTIONS = (
    click.option("--client", metavar="COMMAND", help="Check this client over HTTP; {url} is where we serve."),
    click.option(
        "--client-stdio",
        metavar="COMMAND",
        help="Check this client over stdio; {server} is the command of the test server.",
    ),
    click.option("--fleet", type=_FILE, metavar="FILE", help='Check all servers of a configuration ("mcpServers").'),
    click.option(
        "--diff", metavar="OLD",
        help="Compare: what breaks, what may, and what does not, from OLD to TARGET; each a target or a surface file.",
    ),
    click.option(
        "--full", is_flag=True,
        help="Every revision that the server speaks. Without it, the newest with a handshake and the one without.",
    ),
    click.option(
        "--passive", is_flag=True,
        help="Only connect, ping and list: no calls, no reads, no prompts, no malformed messages.",
    ),
    click.option(
        "--fail-on", type=click.Choice(get_args(FailOn)), default="any",
        help="any: each broken MUST gives exit code 1. mine: only those that are not known faults of the SDK.",
    ),
    click.option(
        "--runs", type=click.IntRange(1, 20), default=1,
        help="With --update-baseline: number of runs; findings that are not in all runs are marked as occasional.",
    ),
    click.option(
        "--revision", "revisions", multiple=True, type=click.Choice(REVISIONS), metavar="REVISION",
        help="Only this revision; may be repeated. Without it, see --full; of a client, all that it speaks.",
    ),
    click.option(
        "--transport", "transports", multiple=True, type=click.Choice(_TRANSPORTS), metavar="TRANSPORT",
        help="Only this transport: stdio, http or sse; may be repeated.",
    ),
    click.option("--only", multiple=True, metavar="RULE", help="Only this rule or area of rules; * matches any text."),
    click.option("--skip", multiple=True, metavar="RULE", help="Skip this rule or area."),
    click.option("--level", type=click.Choice(LEVELS), default="may", help="Rules of this level and stricter ones."),
    click.option("--call-tools", is_flag=True, help="Allow calls of all tools, also with generated arguments."),
    click.option("--call-tool", multiple=True, metavar="NAME", help="Allow calls of this tool; may be repeated."),
    click.option("--trusted", is_flag=True, help="Allow calls of tools that are annotated as read-only."),
    click.option("--cases", type=click.IntRange(0), default=700, help="Number of generated calls; default 700."),
    click.option("--seed", type=int, default=0, help="Seed of the generated calls."),
    click.option(
        "--sequence", default="", metavar="JSON", help="Run only these calls, as printed by a finding."
    ),
    click.option(
        "--report", "reports", multiple=True, metavar="FILE",
        help="Write a report: .json, .xml (JUnit), .sarif, .md, .html, .svg (a badge); or FORM=FILE.",
    ),
    click.option(
        "--baseline", type=_FILE, metavar="FILE",
        help="File of accepted findings; entries that are no longer found fail.",
    ),
    click.option("--update-baseline", is_flag=True, help="Write the findings to the baseline."),
    click.option("--history", type=_FILE, metavar="FILE", help="With --fleet: append a line of JSON for each run."),
    click.option("--jobs", type=click.IntRange(1), default=2, help="Number of concurrent connections; default 2."),
    click.option(
        "--timeout", type=float, default=5.0, metavar="SECONDS", callback=positive_seconds,
        help="Timeout of one response; default 5.",
    ),
    header_option,
    click.option(
        "--bearer", metavar="TOKEN", envvar="ACCORD_BEARER", show_envvar=True, help="Send a bearer token to a URL."
    ),
    click.option(
        "--env", multiple=True, metavar="KEY[=VALUE]", callback=passed_variables,
        help="Set for the server; KEY alone passes yours on.",
    ),
    click.option(
        "--cwd", type=click.Path(exists=True, file_okay=False), help="Working directory of the server."
    ),
    click.option("-v", "--verbose", is_flag=True, help="Print all evidence in full, and the baseline."),
    json_option,
    traceback_option,
)  # fmt: skip

check_options: Decorator = options_as("options", CheckOptions, _OPTIONS)
"""Add the options of `CheckOptions` to a command, as the argument `options`."""
