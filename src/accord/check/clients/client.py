"""Check a client: run it against the scripted server in each revision that it speaks, once for each scenario.

Why a client opened nothing, in words that tell what to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Literal

from accord.check.clients.client_process import build_argv
from accord.check.clients.http_listener import ClientExchange
from accord.check.clients.http_requests import describe_exchange
from accord.check.clients.ordinary_scenario import LOGIN, ORDINARY, client_name, logs_in, speaks_revision
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario
from accord.check.clients.scenario_runner import Client, run_scenario
from accord.check.clients.visit import ClientVisit
from accord.check.engine.outcomes import NullWatcher, Watcher
from accord.check.engine.report import Outcome, Report, TransportName, Visit
from accord.check.engine.report_builder import ReportBuilder
from accord.check.engine.rule import Rule
from accord.check.engine.selection import select_rules
from accord.check.probes.message_log import LogEntry, MemoryBudget
from accord.check.rules import CLIENT_AREAS, client_rules
from accord.check.settings import CheckSettings
from accord.errors import ConnectError, TargetError
from accord.messages.revision import REVISIONS, RULES

_PLACES = {"http": "{url}", "sse": "{url}", "stdio": "{server}"}
_SHOWN = 200
_REQUESTS = 4
_LOGIN_AREA = "client-auth"


def describe_failure(runs: Sequence[ClientRun]) -> str:
    """Describe why a client opened nothing, from the run in which it came furthest. There is at least one run."""
    best = max(runs, key=lambda run: (len([*run.messages()]), len(_received_entries(run)), len(run.exchanges)))
    words = f"; it said:\n{best.output}" if best.output else ""
    return f"opened a connection in none of {', '.join(run.revision for run in runs)}: {_reason(best)}{words}"


def _reason(run: ClientRun) -> str:
    methods = [str(each.method) for each in run.messages() if each.method is not None]
    if methods:
        entry = ", ".join(dict.fromkeys(methods))
        return f"in {run.revision} it sent {entry}, did not go on, and {_ending(run)}"
    if heard := _received_entries(run):
        line = heard[0].raw
        shown = line.decode(errors="replace") if isinstance(line, bytes) else line.reason
        return f"what it sent is no message of MCP: {shown!r:.{_SHOWN}}"
    if run.exchanges:
        last = "; ".join(_exchange_line(each) for each in run.exchanges[-_REQUESTS:])
        return f"in {run.revision} its requests led nowhere ({last}), and it {_ending(run)}"
    begun = "started the server, said nothing" if run.conversations else "never connected"
    begun = "connected, sent no HTTP" if run.connections else begun
    place = _PLACES[run.transport]
    return f"it {begun}, and {_ending(run)}; does it speak to what stands in place of {place}, without being asked to?"


def _received_entries(run: ClientRun) -> list[LogEntry]:
    return [entry for each in run.conversations for entry in each.log.entries if entry.direction == "←"]


def _exchange_line(exchange: ClientExchange) -> str:
    """Describe the last HTTP request: `POST /sse with initialize: 405`."""
    carried = "" if describe_exchange(exchange) == exchange.verb else f" with {describe_exchange(exchange):.{_SHOWN}}"
    return f"{exchange.verb} {exchange.target:.{_SHOWN}}{carried}: {exchange.status or 'no answer'}"


def _ending(run: ClientRun) -> str:
    """Describe how the client ended, without its subject."""
    seconds = run.finished_at - run.started_at
    if run.ending == "itself":
        return f"ended by itself with {run.exit_code} after {seconds:.1f} s"
    return f"had to be ended after {seconds:.0f} s"


_SILENCE_LIMIT = 3.5
"""Seconds of silence after which a client is ended, at least."""
_AT_ONCE = 2
"""Runs for each of `CheckSettings.jobs`: a run mostly waits."""
_MEMORY = 96 << 20
"""Bytes of memory for the messages of a client in all runs."""


async def check_client(
    client: Client,
    transport: Literal["http", "stdio"] = "http",
    settings: CheckSettings | None = None,
    watcher: Watcher | None = None,
    *,
    label: str = "",
) -> Report:
    """Check a client: an async function of the target, or a command line with `{url}` in it, over stdio with `{server}`
    (the command line of a server as one word) or `{server*}` (its words). `label` is what to call it.

    The names of scenario, revision and target stand in its environment: ACCORD_CHECK_SCENARIO, ACCORD_CHECK_REVISION,
    ACCORD_CHECK_URL or ACCORD_CHECK_SERVER. Raises `TargetError` for settings that fit nothing, `ConnectError` when
    the client cannot be started, or speaks none of the revisions.
    """
    settings = settings or CheckSettings()
    rules = select_rules(client_rules(), settings)
    if isinstance(client, str):
        build_argv(client, "")  # it raises before anything is opened
    called = label or (client if isinstance(client, str) else getattr(client, "__name__", "client"))
    begun = ReportBuilder("client", called, rules, settings)
    check = _ClientCheck(client, transport, settings, rules, watcher or NullWatcher())
    await check.run()
    if not check.visits:
        raise ConnectError(f"{called} {describe_failure(check.failed_runs)}")
    return begun.build(check.name, check.visits, check.outcomes)


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Return all scenarios except the ordinary one."""
    modules = [import_module(f"accord.check.rules.clients.{area}") for area in CLIENT_AREAS]
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Scenario))
    return tuple(dict.fromkeys(found))


class _ClientCheck:
    """The runs of one check."""

    def __init__(
        self,
        client: Client,
        transport: Literal["http", "stdio"],
        settings: CheckSettings,
        rules: Sequence[Rule],
        watcher: Watcher,
    ) -> None:
        self._client = client
        self._transport: Literal["http", "stdio"] = transport
        self._settings = settings
        self._rules = rules
        self._watcher = watcher
        self._slots = asyncio.Semaphore(settings.jobs * _AT_ONCE)
        self._memory = MemoryBudget(_MEMORY, "a check")
        self._visits_by_revision: dict[str, ClientVisit] = {}
        self.failed_runs: list[ClientRun] = []
        """The first runs in which nothing was opened."""
        self.visits: list[Visit] = []
        self.outcomes: list[Outcome] = []
        self.name: str = ""

    async def run(self) -> None:
        """Run all scenarios, and collect the visits and outcomes."""
        for run in await self._run_all((ORDINARY, revision) for revision in self._revisions()):
            if run is not None and speaks_revision(run):
                self._visits_by_revision[run.revision] = ClientVisit(run, self._rules, scenarios(), self._watcher)
            elif run is not None:
                self.failed_runs.append(run)
        wanted = self._wanted_scenarios()
        await self._run_all(self._plan(each for each in wanted if each is LOGIN))
        await self._run_all(self._possible([each for each in wanted if each is not LOGIN]))
        for visiting in self._visits_by_revision.values():
            self.visits.append(visiting.end(self._memory.exhausted))
            self.outcomes += visiting.outcomes
            self.name = self.name or client_name(visiting.ordinary_run)

    def _revisions(self) -> list[str]:
        """Return the revisions to try. Raises `TargetError` if none has a selected transport."""
        wanted = self._settings.transports
        tried = self._settings.revisions or REVISIONS
        found = [revision for revision in tried if not wanted or self._transport_for(revision) in wanted]
        if not found:
            served = " and ".join(dict.fromkeys(map(self._transport_for, tried)))
            raise TargetError(f"{', '.join(tried)}: served to this client over {served}, not over {', '.join(wanted)}")
        return found

    def _transport_for(self, revision: str) -> TransportName:
        """Return the transport of a revision: before Streamable HTTP, HTTP+SSE."""
        return "sse" if self._transport == "http" and not RULES[revision].streamable else self._transport

    def _possible(self, wanted: Sequence[Scenario]) -> Iterator[tuple[Scenario, str]]:
        """Yield the runs of scenarios; those with authorization only if the client logs in."""
        runs = [run for visiting in self._visits_by_revision.values() for run in visiting.runs]
        able = any(logs_in(run) for run in runs)
        for scenario, revision in self._plan(wanted):
            if able or scenario.authorization is None:
                yield scenario, revision
            else:
                self._visits_by_revision[revision].skip(scenario, "the client does not log in")

    def _plan(self, wanted: Iterable[Scenario]) -> Iterator[tuple[Scenario, str]]:
        """Yield each scenario with its revisions: for each transport the newest with a handshake, and all without."""
        for scenario in wanted:
            spoken = [
                revision
                for revision in self._visits_by_revision
                if scenario.runs_in(revision, self._transport_for(revision))
            ]
            newest = {self._transport_for(revision): revision for revision in spoken if RULES[revision].handshake}
            for revision in [*newest.values(), *(each for each in spoken if not RULES[each].handshake)]:
                yield scenario, revision

    def _wanted_scenarios(self) -> list[Scenario]:
        wanted = {id(rule) for rule in self._rules}
        reading = {rule.area for rule in self._rules for case in rule.cases if case.kind == "reading"}
        chosen = [
            scenario
            for scenario in scenarios()
            if any(id(rule) in wanted for rule, _ in scenario.cases)
            or (_LOGIN_AREA in reading and scenario.authorization is not None)
            or (reading and scenario.asks)
        ]
        with_login = any(scenario.authorization is not None for scenario in chosen)
        return [LOGIN, *(each for each in chosen if each is not LOGIN)] if with_login else chosen

    async def _run_all(self, plan: Iterable[tuple[Scenario, str]]) -> list[ClientRun | None]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._run_one(scenario, revision)) for scenario, revision in plan]
        except* ConnectError as failed:  # it cannot be started, which is the same for every run
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _run_one(self, scenario: Scenario, revision: str) -> ClientRun | None:
        """Run one scenario; None if the memory limit is reached, because an incomplete run cannot be judged."""
        async with self._slots:
            if self._memory.exhausted:
                return None
            over, patience = self._transport_for(revision), self._silence_limit(revision)
            run = await run_scenario(self._client, scenario, revision, over, self._settings, patience, self._memory)
        if scenario is not ORDINARY and not self._memory.exhausted:
            self._visits_by_revision[revision].add(run)
        return run

    def _silence_limit(self, revision: str) -> float:
        """Return a longer limit for a slow client."""
        visiting = self._visits_by_revision.get(revision)
        return _SILENCE_LIMIT if visiting is None else max(_SILENCE_LIMIT, 2 * visiting.ordinary_run.longest_silence)
