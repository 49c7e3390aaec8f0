"""Checking a client: run it against the scripted server in every revision it speaks, scene by scene, and judge it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Literal

from accord.check.begun import Begun
from accord.check.clients.ordinary import ORDINARY, name_of, speaks
from accord.check.clients.play import Client, play
from accord.check.clients.run import Run
from accord.check.clients.scene import Scene
from accord.check.clients.unopened import nothing_opened
from accord.check.clients.visit import Visiting
from accord.check.notes import Unwatched, Watcher
from accord.check.record import Room
from accord.check.report import Outcome, Report, TransportName, Visit
from accord.check.rule import Rule
from accord.check.rules import CLIENT_AREAS, client_rules
from accord.check.selection import selected
from accord.check.settings import CheckSettings
from accord.errors import ConnectError, TargetError
from accord.messages.revision import REVISIONS, RULES

_PATIENCE = 3.5
"""Seconds without a word after which a client is ended, at least."""
_AT_ONCE = 2
"""Runs for each of `CheckSettings.jobs`: a run is mostly waiting."""
_KEPT = 96 << 20
"""Bytes of memory for what the client says in all its runs."""


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
        raise ConnectError(f"{called} {nothing_opened(check.unopened)}")
    return begun.report(check.name, check.visits, check.outcomes)


@cache
def scenes() -> tuple[Scene, ...]:
    """Every scene but the ordinary one."""
    modules = [import_module(f"accord.check.rules.clients.{area}") for area in CLIENT_AREAS]
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
        self._room = Room(_KEPT, "a check")
        self._visiting: dict[str, Visiting] = {}
        self.unopened: list[Run] = []
        """The first runs in which nothing was opened."""
        self.visits: list[Visit] = []
        self.outcomes: list[Outcome] = []
        self.name: str = ""

    async def run(self) -> None:
        """Every run, and what is to be said of it."""
        for run in await self._all((ORDINARY, revision) for revision in self._revisions()):
            if run is not None and speaks(run):
                self._visiting[run.revision] = Visiting(run, self._rules, scenes(), self._watcher)
            elif run is not None:
                self.unopened.append(run)
        await self._all(self._plan())
        for visiting in self._visiting.values():
            self.visits.append(visiting.end(self._room.full))
            self.outcomes += visiting.outcomes
            self.name = self.name or name_of(visiting.usual)

    def _revisions(self) -> list[str]:
        """Those to try. Raises `TargetError` where none has a transport that is wanted."""
        wanted = self._settings.transports
        tried = self._settings.revisions or REVISIONS
        found = [revision for revision in tried if not wanted or self._over(revision) in wanted]
        if not found:
            served = " and ".join(dict.fromkeys(map(self._over, tried)))
            raise TargetError(f"{', '.join(tried)}: served to this client over {served}, not over {', '.join(wanted)}")
        return found

    def _over(self, revision: str) -> TransportName:
        """By what a revision is served: before Streamable HTTP there was HTTP+SSE."""
        return "sse" if self._transport == "http" and not RULES[revision].streamable else self._transport

    def _plan(self) -> Iterator[tuple[Scene, str]]:
        """Each scene in the newest revision with a handshake in which it lives, by transport, and in those without."""
        for scene in self._wanted():
            spoken = [revision for revision in self._visiting if scene.plays_in(revision, self._over(revision))]
            newest = {self._over(revision): revision for revision in spoken if RULES[revision].handshake}
            for revision in [*newest.values(), *(each for each in spoken if not RULES[each].handshake)]:
                yield scene, revision

    def _wanted(self) -> list[Scene]:
        wanted = {id(rule) for rule in self._rules}
        reads = any(case.kind == "reading" for rule in self._rules for case in rule.cases)
        return [
            scene
            for scene in scenes()
            if any(id(rule) in wanted for rule, _ in scene.judgements) or (reads and scene.asks)
        ]

    async def _all(self, plan: Iterable[tuple[Scene, str]]) -> list[Run | None]:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._one(scene, revision)) for scene, revision in plan]
        except* ConnectError as failed:  # it cannot be started, which is the same for every run
            raise failed.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _one(self, scene: Scene, revision: str) -> Run | None:
        """One run; None where there is no room for it any more: what was cut off by us is not judged."""
        async with self._gate:
            if self._room.full:
                return None
            over, patience = self._over(revision), self._patience(revision)
            run = await play(self._client, scene, revision, over, self._settings, patience, self._room)
        if scene is not ORDINARY and not self._room.full:
            self._visiting[revision].add(run)
        return run

    def _patience(self, revision: str) -> float:
        """Longer for a client that is slow by itself."""
        visiting = self._visiting.get(revision)
        return _PATIENCE if visiting is None else max(_PATIENCE, 2 * visiting.usual.silence)
