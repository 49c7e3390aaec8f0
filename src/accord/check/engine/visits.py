"""The visits of a check: revisions and transports, in sequence, and those that are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from accord.check.engine.outcomes import Watcher
from accord.check.engine.report import Outcome, TransportName, UntestedRevision, Visit
from accord.check.engine.rule import Case, Rule
from accord.check.engine.runner import Cases, VisitRunner
from accord.check.engine.sdks import Sdk, detect_sdk
from accord.check.engine.server_target import ServerTarget
from accord.check.engine.session_factory import SessionFactory
from accord.check.settings import CheckSettings
from accord.messages.revision import REVISIONS, RULES

_STARTS = 6
"""A server that could not be opened has this many times its slowest start in the second attempt."""


class VisitTarget(NamedTuple):
    """One revision over one transport."""

    revision: str
    transport: TransportName

    @property
    def has_handshake(self) -> bool:
        """Whether `initialize` opens a session there."""
        return RULES[self.revision].handshake

    @property
    def wire_name(self) -> str:
        """The transport; Streamable HTTP and HTTP+SSE are one."""
        return "http" if self.transport == "sse" else self.transport


class ServerVisits:
    """Visits the server of `reach` with `rules`; `background_rules` only send messages for reading rules."""

    def __init__(
        self,
        reach: ServerTarget,
        rules: Sequence[Rule],
        company: Sequence[Rule],
        settings: CheckSettings,
        watcher: Watcher,
    ) -> None:
        self._target = reach
        self._rules = rules
        self._background_rules = company
        self._settings = settings
        self._watcher = watcher
        self._done: dict[VisitTarget, tuple[Visit, list[Outcome]]] = {}
        self._failed: dict[VisitTarget, str] = {}
        """Places where the server could not be opened, with the reason."""
        self._unsupported: dict[VisitTarget, str] = {}
        """Places whose revision the server does not speak."""
        self._skipped_rules: dict[VisitTarget, int] = {}
        """Numbers of rules that only a full check tries."""
        self._is_mcp = False
        self._slowest = 0.0
        self._opening = settings.opening
        self.sdk: Sdk | None = None
        """The SDK of the server, if its error messages show it."""
        self.name: str = ""
        self.generated: int = 0

    @property
    def visits(self) -> list[Visit]:
        """The visits, the oldest revision first."""
        return [visit for visit, _ in self._sorted()]

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all cases."""
        return [each for _, outcomes in self._sorted() for each in outcomes]

    def _sorted(self) -> list[tuple[Visit, list[Outcome]]]:
        return [self._done[spot] for spot in sorted(self._done, key=lambda each: REVISIONS.index(each.revision))]

    @property
    def report_fields(self) -> dict[str, Any]:
        """Further fields of the report."""
        return {
            "seed": self._settings.seed if self.generated else None,
            "generated": self.generated,
            "untested": _untested(self._failed),
            "unspoken": _untested(self._unsupported),
            "full_adds": tuple(self._full_adds()),
        }

    @property
    def no_visit_reason(self) -> str:
        """Why there was no visit: each reason once."""
        wanted = ", ".join(self._settings.revisions or REVISIONS)
        what = f"speaks none of {wanted}" if self._is_mcp else "gives no answer that is MCP"
        reasons: dict[tuple[str, str], list[str]] = {}
        for spot, why in {**self._unsupported, **self._failed}.items():
            reasons.setdefault((spot.transport, why), []).append(spot.revision)
        return what + "".join(
            f"\n  {', '.join(revisions)} over {over}: {why}" for (over, why), revisions in reasons.items()
        )

    def targets(self) -> Iterator[VisitTarget]:
        """Yield the places where a rule applies, the newest revision first."""
        for revision in reversed(self._settings.revisions or REVISIONS):
            for transport in self._target.transports(revision):
                wanted = not self._settings.transports or transport in self._settings.transports
                if wanted and any(rule.cases_in(revision, transport) for rule in self._rules):
                    yield VisitTarget(revision, transport)

    async def run(self) -> None:
        """Make the visits, the newest revision first. A place that cannot be opened is tried twice."""
        for spot in self.targets():
            if self._can_skip(spot):
                self._skipped_rules[spot] = len({rule.id for rule, _ in self._cases(self._rules, spot)})
            else:
                await self._visit(spot)
        if self._is_mcp:
            self._opening = max(2 * self._settings.timeout, min(self._settings.opening, _STARTS * self._slowest))
            for spot in list(self._failed):
                await self._visit(spot)
        self._treat_silence_as_unsupported()

    def _can_skip(self, spot: VisitTarget) -> bool:
        """Return whether this older revision is left out: a newer one with a handshake was visited over the same
        transport.
        """
        newer = any(each.has_handshake and each.wire_name == spot.wire_name for each in self._done)
        return self._settings.brief and spot.has_handshake and newer

    async def _visit(self, spot: VisitTarget) -> None:
        cases = 0 if self.generated else self._settings.cases
        factory = SessionFactory(self._target, *spot, replace(self._settings, cases=cases, opening=self._opening))
        visiting = VisitRunner(
            factory, self._cases_to_try(spot), self._watcher, self._cases(self._background_rules, spot)
        )
        try:
            await visiting.run()
            await factory.close()
        finally:
            self._add_result(spot, visiting)
            self.sdk = self.sdk or detect_sdk(factory.logs)
            self._slowest = max(self._slowest, factory.slowest_start)

    def _add_result(self, spot: VisitTarget, visiting: VisitRunner) -> None:
        self._failed.pop(spot, None)
        self.name = self.name or visiting.name
        self._is_mcp |= visiting.is_mcp
        if visiting.visit is not None:
            self._done[spot] = visiting.visit, visiting.outcomes
            self.generated += visiting.fuzz_result.cases if visiting.fuzz_result else 0
        elif visiting.unsupported_reason and visiting.is_mcp:
            self._unsupported[spot] = visiting.unsupported_reason
        elif visiting.unsupported_reason:
            self._failed[spot] = visiting.unsupported_reason
            if spot.has_handshake:  # a server that let a whole opening pass is not waited for as long each time
                self._opening = min(self._opening, self._settings.timeout)

    def _cases_to_try(self, spot: VisitTarget) -> Cases:
        """Return the cases to try; those about the process are tried once for a transport, unless `full` is set."""
        cases = self._cases(self._rules, spot)
        if not (self._settings.brief and any(each.transport == spot.transport for each in self._done)):
            return cases
        left = [(rule, case) for rule, case in cases if case.concerns_process]
        self._skipped_rules[spot] = len({rule.id for rule, _ in left})
        return [(rule, case) for rule, case in cases if not case.concerns_process]

    def _cases(self, rules: Sequence[Rule], spot: VisitTarget) -> list[tuple[Rule, Case]]:
        return [(rule, case) for rule in rules for case in rule.cases_in(*spot)]

    def _treat_silence_as_unsupported(self) -> None:
        """Return whether a server without a response to a revision without a handshake speaks another revision.

        "does not respond within a reasonable timeout": the server is of an earlier revision.
        """
        for spot in list(self._failed):
            if not spot.has_handshake and any(each.transport == spot.transport for each in self._done):
                self._unsupported[spot] = self._failed.pop(spot)

    def _full_adds(self) -> Iterator[str]:
        revisions: dict[str, list[str]] = {}
        for spot, rules in self._skipped_rules.items():
            if rules and spot in self._done:
                counted = "1 rule" if rules == 1 else f"{rules} rules"
                yield f"{counted} about the process, again in {spot.revision} over {spot.transport}"
            elif rules and spot not in self._unsupported and spot not in self._failed:
                revisions.setdefault(spot.transport, []).append(spot.revision)
        for transport, found in revisions.items():
            yield f"{', '.join(sorted(found))} over {transport}, where the server speaks them"


def _untested(spots: dict[VisitTarget, str]) -> tuple[UntestedRevision, ...]:
    return tuple(
        UntestedRevision(revision=spot.revision, transport=spot.transport, text=why) for spot, why in spots.items()
    )
