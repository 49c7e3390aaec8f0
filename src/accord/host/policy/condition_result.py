"""The outcome of comparing a call with a condition.

A condition of a rule is met, unmet, or unclear: unclear if the value cannot be read in one safe way, for instance a URL
that two parsers read differently. An `allow` rule matches only what is met; a `deny` or `ask` rule also matches what is
unclear. So doubt never makes a policy less strict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple


class ConditionResult(NamedTuple):
    """The result of a condition: it is met or not, and the reason as a clause: "path is not under /srv"."""

    state: Literal["met", "unmet", "unclear"]
    reason: str


def negated(result: ConditionResult) -> ConditionResult:
    """Return the result of the opposite condition: what is unclear remains unclear."""
    if result.state == "unclear":
        return result
    return ConditionResult("unmet" if result.state == "met" else "met", result.reason)


def all_of(results: Iterable[ConditionResult]) -> ConditionResult:
    """Return the result of conditions that must all be met; the first that is unmet ends the comparison."""
    unclear, reasons = None, []
    for result in results:
        if result.state == "unmet":
            return result
        if result.state == "unclear":
            unclear = unclear or result
        reasons.append(result.reason)
    return unclear or ConditionResult("met", " and ".join(filter(None, reasons)))


def each_of(results: Iterable[ConditionResult]) -> ConditionResult:
    """Return the result of one condition on several values: met or unmet if it is so for each, else unclear."""
    several = list(results)
    for state in ("met", "unmet"):
        if all(result.state == state for result in several):
            return several[0]
    doubtful = next((result for result in several if result.state == "unclear"), None)
    return doubtful or ConditionResult("unclear", f"{_one(several, 'met')}, but {_one(several, 'unmet')}")


def _one(results: list[ConditionResult], state: str) -> str:
    return next(result.reason for result in results if result.state == state)
