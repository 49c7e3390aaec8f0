"""A diagnosis: steps in order, each with its evidence and a remedy. The first one that fails ends it.

A step is a function that takes what is known so far, adds what it finds, and returns a `StepResult`. Texts of a result
may come from a peer: `diagnose` redacts secrets, escapes hidden characters, and bounds their number and length.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from accord.client.target import Command, Remote
from accord.host.doctor.known_facts import KnownFacts, Subject
from accord.redaction import redact
from accord.visible_text import single_line, truncate

StepState: TypeAlias = Literal["passed", "failed", "warning", "not-checked"]

CHALLENGE = "www-authenticate: "
"""The beginning of evidence with a challenge, which has no secret but those of this client."""

_MAX_LINES = 40
_MAX_CHARACTERS = 600


class StepResult(msgspec.Struct, frozen=True):
    """The result of one step."""

    step: str
    state: StepState
    evidence: list[str] = []
    """What was found, a line each; of a step that was not checked, why."""
    remedy: str = ""
    """What to do."""


class Diagnosis(msgspec.Struct, frozen=True):
    """The steps for one server."""

    name: str
    """The name in its file, or the target."""
    host: str
    """The host whose file it is; empty for another file."""
    file: str
    """The file; empty for a command or a URL."""
    steps: list[StepResult]

    @property
    def failed(self) -> StepResult | None:
        """Return the step that failed, or None."""
        return next((step for step in self.steps if step.state == "failed"), None)


class Step(NamedTuple):
    """A step by name."""

    name: str
    check: Callable[[KnownFacts], Awaitable[StepResult]]


class StepTable(NamedTuple):
    """The steps for each kind of server, in order."""

    file: Sequence[Step]
    """For a server in a file."""
    target: Sequence[Step]
    """For a target of its own."""
    program: Sequence[Step]
    url: Sequence[Step]
    protocol: Sequence[Step]

    def of(self, target: Command | Remote | None) -> Sequence[Step]:
        """Return the steps for the kind of a target."""
        if isinstance(target, Command):
            return self.program
        return self.url if isinstance(target, Remote) else ()


async def diagnose(subject: Subject, table: StepTable) -> Diagnosis:
    """Return the diagnosis of one server. The processes and connections of it have ended."""
    facts = KnownFacts(subject)
    try:
        results = await _run(table.file if subject.path is not None else table.target, facts, [])
        results = await _run([*table.of(facts.target), *table.protocol], facts, results)
    finally:
        await facts.close()
    return Diagnosis(
        readable(subject.name, facts), subject.host, "" if subject.path is None else str(subject.path), results
    )


async def _run(steps: Sequence[Step], facts: KnownFacts, results: list[StepResult]) -> list[StepResult]:
    """Return the results so far with those of further steps."""
    for step in steps:
        reason = _obstacle(results)
        result = StepResult(step.name, "not-checked", [reason]) if reason else await step.check(facts)
        results = [*results, _readable(result, facts)]
    return results


def _obstacle(results: list[StepResult]) -> str:
    """Return why no further step is checked; empty if it is."""
    for result in results:
        if result.state == "failed":
            return f"the step before it failed: {result.step}"
        if result.state == "not-checked":
            return result.evidence[0]
    return ""


def _readable(result: StepResult, facts: KnownFacts) -> StepResult:
    evidence = [readable(line, facts) for line in result.evidence[:_MAX_LINES]]
    if (left_out := len(result.evidence) - _MAX_LINES) > 0:
        evidence.append(f"… and {left_out:,} more lines")
    return StepResult(result.step, result.state, evidence, readable(result.remedy, facts))


def readable(text: str, facts: KnownFacts) -> str:
    """Return a text in one line, without secrets and hidden characters."""
    shown = facts.redactor.redact(text[: 10 * _MAX_CHARACTERS])
    if not shown.startswith(CHALLENGE):  # "Bearer" in it is followed by parameters of the server
        shown = redact(shown)
    return single_line(truncate(shown, _MAX_CHARACTERS))
