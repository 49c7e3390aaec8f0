"""Checking a server: every revision that it speaks, over every transport by which it is reached."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from accord.check.begun import Begun
from accord.check.discreet import Discreet, without
from accord.check.notes import Watcher
from accord.check.opening import Doors
from accord.check.reach import Reach
from accord.check.report import Outcome, Report, TransportName, Visit
from accord.check.rule import Rule
from accord.check.rules import server_rules
from accord.check.runner import Visiting
from accord.check.selection import selected
from accord.check.settings import CheckSettings
from accord.errors import ConnectError, TargetError
from accord.messages.revision import REVISIONS, RULES


class Unwatched:
    """Nobody looks on."""

    def visit_began(self, revision: str, transport: str, total: int) -> None:
        return

    def case_done(self, outcome: Outcome) -> None:
        return

    def visit_ended(self, visit: Visit) -> None:
        return


async def check_server(
    target: Any, settings: CheckSettings | None = None, watcher: Watcher | None = None, *, label: str = ""
) -> Report:
    """Check a server: a command, a URL, FILE.py[:server], or a `Server`; `label` is what to call it.

    Raises `TargetError` for settings that fit nothing, `ConnectError` when it cannot be reached, or speaks none of the
    revisions.
    """
    settings = settings or CheckSettings()
    reach = Reach(target, settings.headers)
    called = reach.called(label or (target if isinstance(target, str) else reach.name))
    rules = selected(server_rules(), settings)
    begun = Begun("server", called, rules, settings)
    check = _Check(reach, rules, settings, Discreet(watcher or Unwatched(), reach.secrets))
    if not list(check.places()):
        ways = {way for revision in settings.revisions or REVISIONS for way in reach.transports(revision)}
        over = f"over {' and '.join(sorted(ways))}" if ways else "in no revision that is wanted"
        asked = "--transport, --revision, --only, --skip, --level"
        raise TargetError(f"nothing to try: {called} is reached {over}, and no rule is left to try there ({asked})")
    try:
        await reach.open()
        await check.run()
    except ConnectError as exc:
        raise ConnectError(reach.secrets.hidden(str(exc))) from exc.__cause__
    finally:
        await reach.close()
    if not check.visits:
        raise ConnectError(reach.secrets.hidden(f"{called} {check.excuse}"))
    seed = settings.seed if check.generated else None
    report = begun.report(check.name, check.visits, check.outcomes, seed=seed, generated=check.generated)
    return without(reach.secrets, report)


class _Check:
    """The visits of one check, one after the other."""

    def __init__(self, reach: Reach, rules: list[Rule], settings: CheckSettings, watcher: Watcher) -> None:
        self._reach = reach
        self._rules = rules
        self._settings = settings
        self._watcher = watcher
        self.visits: list[Visit] = []
        self.outcomes: list[Outcome] = []
        self.name: str = ""
        self.generated: int = 0
        self._reached = False
        self._opening = settings.opening
        """Seconds: a server that let a whole opening pass without a word is not waited for as long again."""
        self._unspoken: dict[tuple[str, str], list[str]] = {}
        """Over what, and why, which revisions are not spoken."""

    @property
    def excuse(self) -> str:
        """Why there was no visit, each reason once."""
        wanted = ", ".join(self._settings.revisions or REVISIONS)
        what = f"speaks none of {wanted}" if self._reached else "gives no answer that is MCP"
        return what + "".join(
            f"\n  {', '.join(revisions)} over {over}: {why}" for (over, why), revisions in self._unspoken.items()
        )

    async def run(self) -> None:
        """The newest revision first: there calls are generated, once."""
        visits: list[tuple[Visit, list[Outcome]]] = []
        for revision, transport in self.places():
            cases = 0 if self.generated else self._settings.cases
            settings = replace(self._settings, cases=cases, opening=self._opening)
            doors = Doors(self._reach, revision, transport, settings)
            visiting = Visiting(doors, self._rules, self._watcher)
            try:
                visit = await visiting.run()
            finally:
                await doors.close()
            self.name = self.name or visiting.name
            self._reached |= visiting.reached
            if not visiting.reached and RULES[revision].handshake:
                self._opening = min(self._opening, settings.timeout)
            if visit is None:
                self._unspoken.setdefault((transport, visiting.unspoken), []).append(revision)
            else:
                visits.append((visit, visiting.outcomes))
                self.generated += visiting.explored.cases if visiting.explored else 0
        for visit, outcomes in sorted(visits, key=lambda each: REVISIONS.index(each[0].revision)):
            self.visits.append(visit)
            self.outcomes += outcomes

    def places(self) -> Iterator[tuple[str, TransportName]]:
        """Where there is something to try."""
        for revision in reversed(self._settings.revisions or REVISIONS):
            for transport in self._reach.transports(revision):
                wanted = not self._settings.transports or transport in self._settings.transports
                if wanted and any(rule.cases_in(revision, transport) for rule in self._rules):
                    yield revision, transport
