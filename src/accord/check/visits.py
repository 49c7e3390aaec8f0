"""The visits of one check: which revisions over which transports, one after the other, and what becomes of the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.check.notes import Watcher
from accord.check.opening import Doors
from accord.check.reach import Reach
from accord.check.report import Outcome, TransportName, Untested, Visit
from accord.check.rule import Case, Rule
from accord.check.runner import Cases, Visiting
from accord.check.sdks import Sdk, recognised
from accord.check.settings import CheckSettings
from accord.messages.revision import REVISIONS, RULES

_STARTS = 6
"""A server that could not be opened is given so many times its slowest start when it is tried again."""


class Spot(NamedTuple):
    """One revision over one transport."""

    revision: str
    transport: TransportName

    @property
    def has_handshake(self) -> bool:
        """Whether `initialize` opens a conversation there."""
        return RULES[self.revision].handshake

    @property
    def wire(self) -> str:
        """The transport; Streamable HTTP and HTTP+SSE are one."""
        return "http" if self.transport == "sse" else self.transport


class Visits:
    """Visits the server that `reach` leads to, to try `rules`; those of `company` only make traffic."""

    def __init__(
        self, reach: Reach, rules: Sequence[Rule], company: Sequence[Rule], settings: CheckSettings, watcher: Watcher
    ) -> None:
        self._reach = reach
        self._rules = rules
        self._company = company
        self._settings = settings
        self._watcher = watcher
        self._done: dict[Spot, tuple[Visit, list[Outcome]]] = {}
        self._failed: dict[Spot, str] = {}
        """Where the server could not be opened, and why."""
        self._refused: dict[Spot, str] = {}
        """Where it said that it does not speak the revision."""
        self._left: dict[Spot, int] = {}
        """What a full check would try as well: how many rules."""
        self._reached = False
        self._slowest = 0.0
        self._opening = settings.opening
        self.sdk: Sdk | None = None
        """What the server is made with, where its wording tells."""
        self.name: str = ""
        self.generated: int = 0

    @property
    def visits(self) -> list[Visit]:
        """The visits that were made, the oldest revision first."""
        return [visit for visit, _ in self._sorted()]

    @property
    def outcomes(self) -> list[Outcome]:
        """What came of every case."""
        return [each for _, outcomes in self._sorted() for each in outcomes]

    def _sorted(self) -> list[tuple[Visit, list[Outcome]]]:
        return [self._done[spot] for spot in sorted(self._done, key=lambda each: REVISIONS.index(each.revision))]

    @property
    def told(self) -> dict[str, Any]:
        """Further fields of the report."""
        return {
            "seed": self._settings.seed if self.generated else None,
            "generated": self.generated,
            "untested": _untested(self._failed),
            "unspoken": _untested(self._refused),
            "full_adds": tuple(self._full_adds()),
        }

    @property
    def excuse(self) -> str:
        """Why no visit was made, each reason once."""
        wanted = ", ".join(self._settings.revisions or REVISIONS)
        what = f"speaks none of {wanted}" if self._reached else "gives no answer that is MCP"
        reasons: dict[tuple[str, str], list[str]] = {}
        for spot, why in {**self._refused, **self._failed}.items():
            reasons.setdefault((spot.transport, why), []).append(spot.revision)
        return what + "".join(
            f"\n  {', '.join(revisions)} over {over}: {why}" for (over, why), revisions in reasons.items()
        )

    def places(self) -> Iterator[Spot]:
        """Yield the places where a rule applies, the newest revision first."""
        for revision in reversed(self._settings.revisions or REVISIONS):
            for transport in self._reach.transports(revision):
                wanted = not self._settings.transports or transport in self._settings.transports
                if wanted and any(rule.cases_in(revision, transport) for rule in self._rules):
                    yield Spot(revision, transport)

    async def run(self) -> None:
        """Make the visits, the newest revision first. A place that cannot be opened is tried twice."""
        for spot in self.places():
            if self._is_enough(spot):
                self._left[spot] = len({rule.id for rule, _ in self._cases(self._rules, spot)})
            else:
                await self._visit(spot)
        if self._reached:
            self._opening = max(2 * self._settings.timeout, min(self._settings.opening, _STARTS * self._slowest))
            for spot in list(self._failed):
                await self._visit(spot)
        self._believe_silence()

    def _is_enough(self, spot: Spot) -> bool:
        """Whether this older revision is left out: a newer one with a handshake was visited over the same transport."""
        newer = any(each.has_handshake and each.wire == spot.wire for each in self._done)
        return self._settings.brief and spot.has_handshake and newer

    async def _visit(self, spot: Spot) -> None:
        cases = 0 if self.generated else self._settings.cases
        doors = Doors(self._reach, *spot, replace(self._settings, cases=cases, opening=self._opening))
        visiting = Visiting(doors, self._to_try(spot), self._watcher, self._cases(self._company, spot))
        try:
            await visiting.run()
            await doors.close()
        finally:
            self._note(spot, visiting)
            self.sdk = self.sdk or recognised(doors.records)
            self._slowest = max(self._slowest, doors.slowest_start)

    def _note(self, spot: Spot, visiting: Visiting) -> None:
        self._failed.pop(spot, None)
        self.name = self.name or visiting.name
        self._reached |= visiting.reached
        if visiting.visit is not None:
            self._done[spot] = visiting.visit, visiting.outcomes
            self.generated += visiting.explored.cases if visiting.explored else 0
        elif visiting.unspoken and visiting.reached:
            self._refused[spot] = visiting.unspoken
        elif visiting.unspoken:
            self._failed[spot] = visiting.unspoken
            if spot.has_handshake:  # a server that let a whole opening pass is not waited for as long each time
                self._opening = min(self._opening, self._settings.timeout)

    def _to_try(self, spot: Spot) -> Cases:
        """Return the cases to try; those about the process are tried once over a transport, unless `full` is set."""
        cases = self._cases(self._rules, spot)
        if not (self._settings.brief and any(each.transport == spot.transport for each in self._done)):
            return cases
        left = [(rule, case) for rule, case in cases if case.concerns_process]
        self._left[spot] = len({rule.id for rule, _ in left})
        return [(rule, case) for rule, case in cases if not case.concerns_process]

    def _cases(self, rules: Sequence[Rule], spot: Spot) -> list[tuple[Rule, Case]]:
        return [(rule, case) for rule in rules for case in rule.cases_in(*spot)]

    def _believe_silence(self) -> None:
        """A revision without a handshake is not spoken by a server that is silent to it and has another one.

        "does not respond within a reasonable timeout": the server is of an earlier revision.
        """
        for spot in list(self._failed):
            if not spot.has_handshake and any(each.transport == spot.transport for each in self._done):
                self._refused[spot] = self._failed.pop(spot)

    def _full_adds(self) -> Iterator[str]:
        revisions: dict[str, list[str]] = {}
        for spot, rules in self._left.items():
            if rules and spot in self._done:
                counted = "1 rule" if rules == 1 else f"{rules} rules"
                yield f"{counted} about the process, again in {spot.revision} over {spot.transport}"
            elif rules and spot not in self._refused and spot not in self._failed:
                revisions.setdefault(spot.transport, []).append(spot.revision)
        for transport, found in revisions.items():
            yield f"{', '.join(sorted(found))} over {transport}, where the server speaks them"


def _untested(spots: dict[Spot, str]) -> tuple[Untested, ...]:
    return tuple(Untested(revision=spot.revision, transport=spot.transport, text=why) for spot, why in spots.items())
