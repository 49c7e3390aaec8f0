"""One sequence of calls, run from its beginning: each answer is judged, and what it holds goes where later calls want
it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from accord.check.generated import troubles as judged
from accord.check.generated.calling import Caller
from accord.check.generated.faults import Explored
from accord.check.generated.pool import Pool
from accord.check.generated.sequences import Missing, Step, Steps, resolved
from accord.check.generated.subjects import Subject
from accord.check.generated.trials import Plan
from accord.check.generated.troubles import Trouble, troubles
from accord.check.talk import Talk
from accord.check.waiting import Answer

_ALWAYS = (judged.CRASH, judged.HANG, judged.UNANSWERED, judged.INTERNALS)
_OF_TOOLS = {True: (judged.REFUSED, judged.OUTPUT), False: (judged.ACCEPTED, judged.LIMITS, judged.ARGUMENT_ERRORS)}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """One trouble: with which call of a sequence, and how many calls the conversation had by then."""

    at: int
    trouble: Trouble
    evidence: tuple[str, ...]
    calls: int


class Ran(msgspec.Struct, kw_only=True):
    """What came of one sequence."""

    results: list[Any] = msgspec.field(default_factory=list)
    """Of each call that was answered; None for an error."""
    seen: list[Seen] = msgspec.field(default_factory=list)


class Running:
    """Runs sequences of calls of what has a plan."""

    def __init__(self, caller: Caller, plans: dict[tuple[str, str], Plan], pool: Pool, explored: Explored) -> None:
        self._caller = caller
        self._plans = plans
        self._pool = pool
        self._explored = explored
        self._talk: Talk | None = None
        self._history: list[Step] = []

    @property
    def history(self) -> Steps:
        """All calls of this conversation, with the arguments that were sent."""
        return tuple(self._history)

    async def run(self, steps: Steps) -> Ran:
        """Run them as far as they go: until one is not answered, or has nothing of what the next one wants."""
        ran = Ran()
        await self._begin()
        since = self._caller.since
        for number, step in enumerate(steps):
            plan = self._plans.get((step.kind, step.name))
            arguments = _given(step, ran.results)
            if plan is None or (step.wrong is None and not plan.allows(step, arguments)):
                break
            if not await self._take(steps[: number + 1], plan, arguments, ran, since):
                break
        return ran

    async def _begin(self) -> None:
        talk = await self._caller.talk()
        if talk is not self._talk:
            self._talk, self._history = talk, []

    async def _take(self, steps: Steps, plan: Plan, arguments: Any, ran: Ran, since: int) -> bool:
        """Make the last of these calls; whether it was answered."""
        self._history.append(msgspec.structs.replace(steps[-1], arguments=arguments))
        record = (await self._caller.talk()).record
        answer = await self._caller.call(plan.name, *plan.subject.asks(arguments))
        self._explored.calls = self._caller.calls
        said = record.entries[since:]
        found = [answer] if isinstance(answer, Trouble) else []
        if isinstance(answer, Answer):
            ran.results.append(answer.result if answer.error is None else None)
            found = await self._judged(plan.subject, steps, arguments, answer)
        evidence = record.evidence(since, said if isinstance(answer, Answer) else ()) if found else ()
        ran.seen += [
            Seen(at=len(steps) - 1, trouble=each, evidence=evidence, calls=len(self._history)) for each in found
        ]
        return isinstance(answer, Answer)

    async def _judged(self, subject: Subject, steps: Steps, arguments: Any, answer: Answer) -> list[Trouble]:
        """What is wrong with an answer; what is in it is kept."""
        talk, step = await self._caller.talk(), steps[-1]
        self._note(subject, step)
        if step.wrong is None and answer.error is None:
            self._pool.learn(steps, answer.result)
        found = troubles(subject, step, arguments, answer, talk.revision)
        return [each for each in found if await _is_true(talk, subject, each)]

    def _note(self, subject: Subject, step: Step) -> None:
        is_valid = step.wrong is None
        self._explored.note(*_ALWAYS)
        if subject.kind == "tool":
            rules = [rule for rule in _OF_TOOLS[is_valid] if rule != judged.OUTPUT or "outputSchema" in subject.item]
            self._explored.note(*rules)
        elif subject.kind == "prompt" and not is_valid:
            self._explored.note(judged.PROMPT_ARGUMENTS)
        elif is_valid:
            self._explored.note(judged.CODES)


def _given(step: Step, results: list[Any]) -> Any:
    """Its arguments, with what earlier results had; None where they had it not."""
    try:
        return resolved(step.arguments, results)
    except Missing:
        return None


async def _is_true(talk: Talk, subject: Subject, trouble: Trouble) -> bool:
    """A tool that is not there any more may be refused as it likes."""
    if trouble.rule not in (judged.REFUSED, judged.ARGUMENT_ERRORS):
        return True
    pages = await talk.pages("tools/list", "tools")
    return any(each.get("name") == subject.name for page in pages for each in page["tools"] if isinstance(each, dict))
