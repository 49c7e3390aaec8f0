"""Checking a client: run it against the scripted server in every revision it speaks, scene by scene, and judge it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Literal

from accord.check.begun import Begun
from accord.check.clients.judge import Judge
from accord.check.clients.ordinary import ORDINARY, name_of, speaks
from accord.check.clients.play import Client, play
from accord.check.clients.run import Run
from accord.check.clients.scene import Scene
from accord.check.notes import Notes, Watcher
from accord.check.report import Outcome, Report, Visit, counts, score
from accord.check.rule import Rule
from accord.check.rules import CLIENT_AREAS, client_rules
from accord.check.selection import selected
from accord.check.server import Unwatched
from accord.check.settings import CheckSettings
from accord.errors import ConnectError
from accord.messages.revision import REVISIONS, RULES, lives_in

_PATIENCE = 3.5
"""Seconds without a word after which a client is ended, at least."""
_AT_ONCE = 2
"""Runs for each of `CheckSettings.jobs`: a run is mostly waiting."""
_HTTP_SINCE = "2025-03-26"
"""There is no Streamable HTTP before."""


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

    The names of scene, revision and target stand in its environment: ACCORD_CHECK_SCENE, ACCORD_CHECK_REVISION,
    ACCORD_CHECK_URL or ACCORD_CHECK_SERVER. Raises `TargetError` for settings that fit nothing, `ConnectError` when
    the client cannot be started, or speaks none of the revisions.
    """
    settings = settings or CheckSettings()
    rules = selected(client_rules(), settings)
    called = label or (client if isinstance(client, str) else getattr(client, "__name__", "client"))
    begun = Begun("client", called, rules, settings)
    check = _Check(client, transport, settings, rules, watcher or Unwatched())
    await check.run()
    if not check.visits:
        spoken = ", ".join(settings.revisions or REVISIONS)
        raise ConnectError(f"{called} opened a connection in none of {spoken}{check.words}")
    return begun.report(check.name, check.visits, check.outcomes)


@cache
def scenes() -> tuple[Scene, ...]:
    """Every scene but the ordinary one."""
    modules = [import_module(f"accord.check.rules.{area}") for area in CLIENT_AREAS]
    found = (value for module in modules for value in vars(module).values() if isinstance(value, Scene))
    return tuple(dict.fromkeys(found))


class _Check:
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
        self._gate = asyncio.Semaphore(settings.jobs * _AT_ONCE)
        self._played: dict[str, dict[str, Run]] = {}
        self._notes: dict[str, Notes] = {}
        self._judges: dict[str, Judge] = {}
        self.visits: list[Visit] = []
        self.outcomes: list[Outcome] = []
        self.name: str = ""
        self.words: str = ""
        """What the client wrote to stderr where it opened nothing."""

    async def run(self) -> None:
        """Every run, and what is to be said of it."""
        for run in await self._all((ORDINARY, revision) for revision in self._revisions()):
            if speaks(run):
                self._begin(run)
            else:
                self.words = self.words or (f"; it said:\n{run.stderr}" if run.stderr else "")
        await self._all(self._plan())
        for revision, runs in self._played.items():
            self._end(revision, list(runs.values()))

    def _begin(self, ordinary: Run) -> None:
        """A revision that is spoken: from now on its runs are judged as they end."""
        revision = ordinary.revision
        self._played[revision] = {ordinary.scene: ordinary}
        self._notes[revision] = Notes(revision, self._transport, self._watcher)
        self._judges[revision] = Judge(self._rules, scenes(), self._notes[revision])
        cases = sum(len(rule.cases_in(revision, self._transport)) for rule in self._rules)
        self._watcher.visit_began(revision, self._transport, cases)
        self._judges[revision].look(ordinary)

    def _revisions(self) -> Iterator[str]:
        for revision in self._settings.revisions or REVISIONS:
            if self._transport == "stdio" or lives_in(revision, _HTTP_SINCE, None):
                yield revision

    def _plan(self) -> Iterator[tuple[Scene, str]]:
        """Each scene in the newest revision with a handshake in which it lives, and in those without."""
        for scene in self._wanted():
            spoken = [revision for revision in self._played if scene.plays_in(revision, self._transport)]
            with_handshake = [revision for revision in spoken if RULES[revision].handshake]
            for revision in [*with_handshake[-1:], *(each for each in spoken if not RULES[each].handshake)]:
                yield scene, revision

    def _wanted(self) -> list[Scene]:
        wanted = {id(rule) for rule in self._rules}
        reads = any(case.kind == "reading" for rule in self._rules for case in rule.cases)
        return [
            scene
            for scene in scenes()
            if any(id(rule) in wanted for rule, _ in scene.judgements) or (reads and scene.asks)
        ]

    async def _all(self, plan: Iterable[tuple[Scene, str]]) -> list[Run]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(scene, revision)) for scene, revision in plan]
        except* ConnectError as failed:  # it cannot be started, which is the same for every run
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _one(self, scene: Scene, revision: str) -> Run:
        async with self._gate:
            run = await play(self._client, scene, revision, self._transport, self._settings, self._patience(revision))
        if scene is not ORDINARY:
            run.usual = self._played[revision][ORDINARY.name]
            self._played[revision][run.scene] = run
            self._judges[revision].look(run)
        return run

    def _patience(self, revision: str) -> float:
        """Longer for a client that is slow by itself."""
        usual = self._played.get(revision, {}).get(ORDINARY.name)
        return _PATIENCE if usual is None else max(_PATIENCE, 2 * usual.silence)

    def _end(self, revision: str, runs: list[Run]) -> None:
        """All its runs are over: what is read from them, and the visit. Outcomes stand in the order of the rules."""
        notes = self._notes[revision]
        self._judges[revision].read(runs)
        order = {rule.id: number for number, rule in enumerate(self._rules)}
        outcomes = sorted(notes.outcomes, key=lambda each: order[each.rule])
        visit = Visit(
            revision=revision,
            transport=self._transport,
            score=score(outcomes),
            seconds=round(sum(run.finished - run.began for run in runs), 3),
            counts=counts(outcomes),
            error="; ".join(notes.defects),
        )
        self._watcher.visit_ended(visit)
        self.visits.append(visit)
        self.outcomes += outcomes
        self.name = self.name or name_of(self._played[revision][ORDINARY.name])
