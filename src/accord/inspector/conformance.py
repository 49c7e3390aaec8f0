"""The commands of the screen Conformance: start and stop a check, its results by rule, findings with their evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Literal

import msgspec

from accord.check.engine.baseline import Baseline, decode as decode_baseline
from accord.check.engine.report import VERDICTS, Level, Verdict
from accord.check.reports.wording import remarks, worst_first
from accord.check.settings import CheckSettings
from accord.client.target import Command, Remote
from accord.errors import TargetError
from accord.host.command_approval import describe_target
from accord.inspector.check_evidence import read_entries
from accord.inspector.check_runs import CheckRun, check_settings, write_baseline, write_report
from accord.inspector.check_views import (
    CheckProgress,
    CheckResults,
    EvidenceView,
    NoCheck,
    OpenedSession,
    RuleView,
    case_view,
    display_text,
    finding_view,
    rule_row,
)
from accord.inspector.commands import CommandParams, Download, InspectorError, PageCommand, ServerParams
from accord.inspector.repeat_command import repeat_options
from accord.inspector.servers import InspectedServer
from accord.inspector.stored_tokens import stored_token
from accord.inspector.workspace import Workspace
from accord.messages.revision import REVISIONS

MOST_ROWS = 500
"""Rules in one answer."""
MOST_CASES = 200
"""Cases of a rule in one answer."""
MOST_ENTRIES = 50
"""Entries of the evidence in one answer."""

FAILED: tuple[Verdict, ...] = ("fail", "warn")
_WATCH_SECONDS = 1.0
_NOTHING_RECORDED = ("the check has recorded nothing yet", "wait for its first message")

ToolCalls = Literal["none", "read-only", "named", "all"]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class StartParams(ServerParams, frozen=True):
    """The options of `accord check`. Tools are called only if `tool_calls` allows it."""

    revisions: tuple[str, ...] = ()
    full: bool = False
    transports: tuple[Literal["stdio", "http", "sse", "memory"], ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    level: Level = "may"
    passive: bool = False
    timeout: Annotated[float, msgspec.Meta(gt=0, le=600)] = 5.0
    jobs: Annotated[int, msgspec.Meta(ge=1, le=16)] = 2
    tool_calls: ToolCalls = "none"
    tools: tuple[str, ...] = ()
    """The tools that may be called, with `tool_calls` "named"."""
    cases: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 700
    """Generated calls, if tools may be called."""
    seed: int = 0
    sequence: str = ""
    tokens: Annotated[tuple[str, ...], msgspec.Meta(max_length=2)] = ()
    """Bearer tokens of one or two principals, for a URL."""
    issuer: str = ""
    """Where the check is the issuer of the server's tokens: `:9400`; for a URL."""
    audience: str = ""
    stored_login: bool = False
    """Whether the token of the stored login is sent, if there is one and no other is given; for a URL."""
    baseline: Annotated[str, msgspec.Meta(max_length=1 << 20)] = ""
    """The content of the file of a baseline; empty for none."""

    def __repr__(self) -> str:
        return "StartParams(...)"  # without tokens

    @property
    def may_call(self) -> bool:
        """Return whether any tool may be called."""
        return self.tool_calls != "none" and not self.passive


class RunParams(CommandParams, frozen=True):
    """The number of a check."""

    run: int


class ResultsParams(ServerParams, frozen=True):
    """A range of the rules with a result, the worst first; `run` or the last one of `server`."""

    run: int | None = None
    verdicts: tuple[Verdict, ...] = ()
    """Only rules with this worst verdict; empty for all."""
    revision: str = ""
    transport: str = ""
    text: str = ""
    """Only rules whose id or sentence contains it."""
    start: _Count = 0
    count: _Count = MOST_ROWS


class RuleParams(RunParams, frozen=True):
    """A rule of a check."""

    rule: str


class ReportParams(RunParams, frozen=True):
    """The format of the report of a check; `baseline` is the file that accepts its findings."""

    format: Literal["html", "json", "junit", "markdown", "sarif", "badge", "baseline"] = "html"


class EvidenceParams(RunParams, frozen=True):
    """Entries of the session file of a check, by number."""

    entries: tuple[int, ...]


async def start(workspace: Workspace, params: StartParams) -> CheckProgress:
    """Start a check, after an approval in the terminal where the server needs one. Raises `InspectorError`."""
    server = workspace.server(params.server)
    params = await _with_stored_token(server, params)
    settings = _settings(server, params)
    baseline = _baseline(params)
    approved = await _digest(server) if server.needs_approval else ""
    await workspace.approve(server)
    run = workspace.checks.start(server, settings, workspace.folder, baseline)
    workspace.start_task(run.run())
    if approved:
        workspace.start_task(_stop_on_change(run, server, approved))
    return run.progress()


async def _with_stored_token(server: InspectedServer, params: StartParams) -> StartParams:
    """Return parameters with the token of the stored login, if it is wanted. Raises `InspectorError`."""
    if not (params.stored_login and isinstance(server.target, Remote)) or params.tokens or params.issuer:
        return params
    token = await stored_token(server.target)
    return params if token is None else msgspec.structs.replace(params, tokens=(token,))


def _baseline(params: StartParams) -> Baseline | None:
    """Return the baseline. Raises `InspectorError` for an invalid one."""
    if not params.baseline:
        return None
    try:
        return decode_baseline(params.baseline.encode(errors="replace"), "the file")
    except TargetError as exc:
        raise InspectorError(str(exc), "choose a file that accord check --update-baseline wrote", status=400) from exc


async def _stop_on_change(run: CheckRun, server: InspectedServer, approved: str) -> None:
    """End a check once the command or its program is not the one that was approved: a check starts many processes."""
    while run.is_running:
        await asyncio.sleep(_WATCH_SECONDS)
        if await _digest(server) != approved:
            run.stop("the command or its program changed: check again, and approve it in the terminal")


async def _digest(server: InspectedServer) -> str:
    assert isinstance(server.target, Command | Remote), "a server in this process needs no approval"
    return (await asyncio.to_thread(describe_target, server.target)).digest


def _settings(server: InspectedServer, params: StartParams) -> CheckSettings:
    """Return the settings of a check. Raises `InspectorError` for invalid ones."""
    if unknown := [each for each in params.revisions if each not in REVISIONS]:
        raise InspectorError(f"{unknown[0]!r:.50} is not a revision", f"choose of {', '.join(REVISIONS)}", status=400)
    if params.issuer and (params.tokens or params.passive):
        raise InspectorError("the issuer issues the tokens", "leave out the tokens, and 'only connect'", status=400)
    if isinstance(server.target, Remote) and server.target.auth is not None and not (params.tokens or params.issuer):
        cure = "log in on the page Authorization and save the login, or give it a bearer token, under Options"
        raise InspectorError("the check does not log in", cure, status=400)
    if params.tool_calls == "named" and not params.tools:
        raise InspectorError("no tool is named", "name the tools that may be called", status=400)
    settings = CheckSettings(
        revisions=params.revisions,
        full=params.full,
        passive=params.passive,
        transports=params.transports,
        only=params.only,
        skip=params.skip,
        level=params.level,
        timeout=params.timeout,
        jobs=params.jobs,
        tokens=params.tokens,
        issuer=params.issuer,
        audience=params.audience,
        call_tools=params.may_call and (params.tools if params.tool_calls == "named" else params.tool_calls == "all"),
        trusted=params.may_call and params.tool_calls == "read-only",
        seed=params.seed,
        cases=params.cases if params.may_call else 0,
        sequence=params.sequence if params.may_call else "",
        again=tuple(_repeat_arguments(server, params)),
    )
    try:
        check_settings(settings)
    except TargetError as exc:
        raise InspectorError(str(exc), "correct the options", status=400) from exc
    return settings


def _repeat_arguments(server: InspectedServer, params: StartParams) -> Iterator[str]:
    """Yield the further arguments of a command that repeats a finding, with secrets replaced by `...`."""
    yield from repeat_options(server)
    for _ in params.tokens:
        yield from ("--token", "...")
    for option, value in (("--as-issuer", params.issuer), ("--audience", params.audience)):
        if value:
            yield from (option, value)
    if params.timeout != CheckSettings().timeout:
        yield from ("--timeout", f"{params.timeout:g}")


async def stop(workspace: Workspace, params: RunParams) -> CheckProgress:
    """End a check; its results so far stay."""
    run = workspace.checks.get(params.run)
    run.stop()
    return run.progress()


async def results(workspace: Workspace, params: ResultsParams) -> CheckResults | NoCheck:
    """Return the state of a check, and the rules that fit a filter, the worst first."""
    workspace.server(params.server)
    run = workspace.checks.last(params.server) if params.run is None else workspace.checks.get(params.run)
    if run is None:
        return NoCheck()
    every = list(run.results())
    limits = {"text": params.text, "revision": params.revision, "transport": params.transport}
    found = [row for each in every if (row := rule_row(each, **limits))]
    found.sort(key=lambda row: VERDICTS.index(row.verdict))
    rows = [row for row in found if not params.verdicts or row.verdict in params.verdicts]
    end = params.start + min(params.count, MOST_ROWS)
    report = run.report
    return CheckResults(
        progress=run.progress(),
        error=run.error,
        visits=list(run.visits.values()),
        remarks=[display_text(f"{each.mark} {each.text}") for each in islice(remarks(report), 100)] if report else [],
        score=report.score if report else None,
        sdk=report.sdk if report else "",
        seconds=report.seconds if report else 0.0,
        total=len(every),
        matching=len(rows),
        counts={verdict: sum(row.verdict == verdict for row in found) for verdict in VERDICTS},
        rows=[
            msgspec.structs.replace(row, accepted=run.is_accepted(row.rule)) if row.verdict in FAILED else row
            for row in rows[params.start : end]
        ],
    )


async def finding(workspace: Workspace, params: RuleParams) -> RuleView:
    """Return the findings about a rule, with their evidence, and all its cases. Raises `InspectorError`."""
    run = workspace.checks.get(params.run)
    result = run.result(params.rule)
    cases = sorted(result.outcomes, key=lambda each: VERDICTS.index(each.verdict))
    return RuleView(
        rule=result.rule.id,
        level=result.rule.level,
        says=result.rule.says,
        findings=[finding_view(each) for each in worst_first(run.findings(params.rule))],
        cases=[case_view(each) for each in cases[:MOST_CASES]],
        left_out=max(0, len(cases) - MOST_CASES),
    )


async def evidence(workspace: Workspace, params: EvidenceParams) -> EvidenceView:
    """Return entries of the session file of a check. Raises `InspectorError`."""
    file = workspace.checks.get(params.run).file
    wanted = sorted(set(params.entries))
    found = await asyncio.to_thread(read_entries, file, wanted[-MOST_ENTRIES:])
    return EvidenceView(found, len(wanted) - len(found))


async def session(workspace: Workspace, params: RunParams) -> Download:
    """Return the session file of a check."""
    run = workspace.checks.get(params.run)
    if not run.file.exists():
        raise InspectorError(*_NOTHING_RECORDED)
    return Download(run.file.name, run.file, "application/x-ndjson")


async def report(workspace: Workspace, params: ReportParams) -> Download:
    """Return the report of a check that has ended, in a format of `accord check --report`, or a baseline that accepts
    its findings. Raises `InspectorError`.
    """
    run = workspace.checks.get(params.run)
    if run.report is None:
        raise InspectorError("the check has no report yet", "wait for its end, or stop it")
    if params.format == "baseline":
        file = await asyncio.to_thread(write_baseline, run.report, run.baseline, run.file)
    else:
        file = await asyncio.to_thread(write_report, run.report, params.format, run.file)
    return Download(file.name, file)


async def open_session(workspace: Workspace, params: RunParams) -> OpenedSession:
    """Open the session of a check on the timeline: the entries of a finding are its rows. Raises `InspectorError`."""
    run = workspace.checks.get(params.run)
    if not run.file.exists():
        raise InspectorError(*_NOTHING_RECORDED)
    size = run.file.stat().st_size
    if run.opened.session not in workspace.sessions.sources or run.opened.size != size:
        session = await workspace.sessions.open(run.file, f"check {run.number} of {run.server}")
        run.opened = OpenedSession(session, size)
    return run.opened


COMMANDS: Mapping[str, PageCommand] = {
    "check/start": PageCommand(StartParams, start),
    "check/stop": PageCommand(RunParams, stop),
    "check/results": PageCommand(ResultsParams, results),
    "check/finding": PageCommand(RuleParams, finding),
    "check/evidence": PageCommand(EvidenceParams, evidence),
    "check/report": PageCommand(ReportParams, report),
    "check/session": PageCommand(RunParams, session),
    "check/open": PageCommand(RunParams, open_session),
}
