"""The options of `accord check` and their frozen value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import click

from accord.check.authorization_servers.probe import LoginSettings
from accord.check.engine.report import FailOn, Level, TransportName
from accord.check.fuzz.sequences import decode_steps
from accord.check.settings import LEVELS, CheckSettings
from accord.cli.run_client import with_environment
from accord.cli.settings import (
    RECORD_OPTIONS,
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
from accord.redaction import secret_values
from accord.transport.recording import SessionRecorder
from accord.transport.session_queue import SessionQueue
from accord.transport.session_writer import SessionFileWriter

_TRANSPORTS: tuple[TransportName, ...] = ("stdio", "http", "sse")
_PRINCIPALS = 2
_FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True)
class CheckOptions:
    """The options on the command line."""

    client: str | None
    client_stdio: str | None
    authorization_server: str | None
    authorize: str
    resource: str
    client_id: str
    redirect_uri: str
    scope: str
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
    tokens: tuple[str, ...]
    as_issuer: str
    audience: str
    env: tuple[tuple[str, str], ...]
    cwd: str | None
    verbose: bool
    as_json: bool
    record: str | None
    unredacted: bool

    def __repr__(self) -> str:
        return "CheckOptions(...)"  # without tokens

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
            tokens=self.tokens,
            issuer=self.as_issuer,
            audience=self.audience,
            call_tools=self.call_tool or self.call_tools,
            trusted=self.trusted,
            seed=self.seed,
            cases=self.cases if may_call else 0,
            sequence=self.sequence if may_call else "",
            again=tuple(self._repeat_arguments()),
            record=None if self.record is None else _recorder(self.record, self.unredacted, self._secrets()),
        )

    def _secrets(self) -> tuple[str, ...]:
        return (*secret_values(dict(self.env)), *self.tokens, *([self.bearer] if self.bearer else ()))

    def _repeat_arguments(self) -> Iterator[str]:
        """Yield the further arguments of a command that repeats a finding, with secrets replaced by `...`."""
        for option, values in (("--header", self.headers), ("--env", self.env)):
            for name, _ in values:
                yield from (option, f"{name}=...")
        if self.bearer:
            yield from ("--bearer", "...")
        for _ in self.tokens:
            yield from ("--token", "...")
        for option, value in (("--as-issuer", self.as_issuer), ("--audience", self.audience)):
            if value:
                yield from (option, value)
        if self.authorization_server:
            yield from self._login_arguments()
        if self.cwd:
            yield from ("--cwd", self.cwd)
        if self.timeout != CheckSettings().timeout:
            yield from ("--timeout", f"{self.timeout:g}")

    def _login_arguments(self) -> Iterator[str]:
        """Yield the options about logins at an authorization server."""
        values = {"--authorize": self.authorize, "--resource": self.resource, "--client-id": self.client_id}
        values |= {"--redirect-uri": self.redirect_uri, "--scope": self.scope}
        for option, value in values.items():
            if value:
                yield from (option, value)

    @property
    def login(self) -> LoginSettings:
        """Return how the checker logs in at an authorization server."""
        return LoginSettings(
            authorize=self.authorize,
            resource=self.resource,
            client_id=self.client_id,
            redirect_uri=self.redirect_uri,
            scope=self.scope,
        )

    def check(self, target: str | None) -> None:
        """Raise `UsageError` for options that exclude each other, and `TargetError` for an invalid `--sequence`."""
        peers = [self.client, self.client_stdio, self.authorization_server, self.fleet, self.diff or target]
        if sum(each is not None for each in peers) != 1 or (self.diff and target is None):
            raise click.UsageError(
                "give one TARGET, or --client COMMAND, --client-stdio COMMAND, --authorization-server URL, "
                "--fleet FILE, or --diff OLD NEW"
            )
        if self.update_baseline and self.baseline is None:
            raise click.UsageError("--update-baseline needs --baseline FILE")
        if self.runs > 1 and not self.update_baseline:
            raise click.UsageError("--runs is for --update-baseline")
        if self.passive and (self.call_tools or self.call_tool or self.trusted):
            raise click.UsageError("--passive calls no tool: leave out --call-tools, --call-tool and --trusted")
        if self.sequence:
            decode_steps(self.sequence)
        if len(self.tokens) > _PRINCIPALS:
            raise click.UsageError("--token is given for one or two principals")
        if self.as_issuer and (self.tokens or self.bearer or self.passive):
            raise click.UsageError("--as-issuer issues the tokens: leave out --token, --bearer and --passive")
        if (self.tokens or self.as_issuer) and (self.fleet or self.diff):
            raise click.UsageError("--token and --as-issuer are for one TARGET")
        if self.audience and not self.as_issuer:
            raise click.UsageError("--audience is for --as-issuer")
        if self.record is not None and self.diff is not None:
            raise click.UsageError("--record is not for --diff")
        if self.history is not None and self.fleet is None:
            raise click.UsageError("--history is for --fleet")
        if not self.authorization_server and (given := [*self._login_arguments()]):
            raise click.UsageError(f"{given[0]} is for --authorization-server")
        server_only = [*self._server_only_options()]
        if server_only and (self.client or self.client_stdio or self.authorization_server):
            raise click.UsageError(f"{', '.join(server_only)}: this is for MCP servers")

    def _server_only_options(self) -> Iterator[str]:
        """Yield the given options that do not apply to a client."""
        extent = {"--full": self.full, "--passive": self.passive, "--fail-on": self.fail_on != "any"}
        reach = {"--header": self.headers, "--env": self.env, "--cwd": self.cwd, "--trusted": self.trusted}
        access = {"--token": self.tokens, "--as-issuer": self.as_issuer}
        calls = {"--call-tools": self.call_tools, "--call-tool": self.call_tool, "--sequence": self.sequence}
        return (option for option, value in (extent | reach | access | calls).items() if value)

    def target(self, text: str) -> Any:
        """Return the target with the environment and working directory of the options."""
        parsed = parse(text)
        if isinstance(parsed, Command):
            return with_environment(parsed, self.env, self.cwd)
        if self.env or self.cwd:
            raise TargetError("--env and --cwd are for servers that are started here")
        return parsed


@cache
def _recorder(file: str, unredacted: bool, secrets: tuple[str, ...]) -> SessionRecorder:
    """Return what records all sessions, in all runs. Raises `ConnectError` if the file cannot be written."""
    recorder = SessionRecorder(SessionQueue(SessionFileWriter(file, redacted=not unredacted)))
    recorder.begin("accord check")
    recorder.add_secrets(secrets)
    return recorder


_OPTIONS: Sequence[Decorator] = (
    click.option("--client", metavar="COMMAND", help="Check this client over HTTP; {url} is where we serve."),
    click.option(
        "--client-stdio",
        metavar="COMMAND",
        help="Check this client over stdio; {server} is the command of the test server.",
    ),
    click.option(
        "--authorization-server", metavar="URL", help="Check the authorization server with this issuer identifier."
    ),
    click.option(
        "--authorize", default="", metavar="HOW",
        help="Who logs in there: forms, to submit every form; or a command with {url}, as xdg-open {url}.",
    ),
    click.option("--resource", default="", metavar="URL", help="MCP server for which tokens are requested there."),
    click.option("--client-id", default="", metavar="ID", help="Public client there; by default, one is registered."),
    click.option("--redirect-uri", default="", metavar="URI", help="Redirect URI of --client-id."),
    click.option("--scope", default="", metavar="SCOPES", help="Scopes that are requested there."),
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
        "--token", "tokens", multiple=True, metavar="TOKEN", envvar="ACCORD_TOKENS", show_envvar=True,
        help="Bearer token of a principal for a URL; given twice, what belongs to one is tried with the other.",
    ),
    click.option(
        "--as-issuer", default="", metavar="[HOST]:PORT",
        help="Be the issuer that the server trusts, on loopback, and send it forged tokens; needs accord[auth].",
    ),
    click.option("--audience", default="", metavar="TEXT", help="Audience of the tokens of --as-issuer."),
    click.option(
        "--env", multiple=True, metavar="KEY[=VALUE]", callback=passed_variables,
        help="Set for the server; KEY alone passes yours on.",
    ),
    click.option(
        "--cwd", type=click.Path(exists=True, file_okay=False), help="Working directory of the server."
    ),
    click.option("-v", "--verbose", is_flag=True, help="Print all evidence in full, and the baseline."),
    *RECORD_OPTIONS,
    json_option,
    traceback_option,
)  # fmt: skip

check_options: Decorator = options_as("options", CheckOptions, _OPTIONS)
"""Add the options of `CheckOptions` to a command, as the argument `options`."""
