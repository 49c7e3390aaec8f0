"""A rule of a policy: conditions, and the decision for calls that meet them all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from accord.host.policy import patterns
from accord.host.policy.call import ProposedCall
from accord.host.policy.condition_result import ConditionResult, all_of
from accord.host.policy.paths import PathReader
from accord.host.policy.value_tests import ArgumentCondition
from accord.messages.tools import ToolAnnotations

PolicyDecision: TypeAlias = Literal["allow", "ask", "deny"]


class PolicyRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule. A condition that is None or empty is met by all calls."""

    name: str
    decision: PolicyDecision
    servers: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    principals: tuple[str, ...] | None = None
    annotations: dict[str, bool] = {}
    arguments: tuple[ArgumentCondition, ...] = ()

    def check(self, call: ProposedCall, paths: PathReader) -> ConditionResult:
        """Return whether a call meets the conditions. The first that is unmet ends the comparison."""
        return all_of(self._results(call, paths))

    def matches(self, result: ConditionResult) -> bool:
        """Return whether the rule matches: an `allow` only if it is met, others also if it is unclear."""
        return result.state == "met" or (result.state == "unclear" and self.decision != "allow")

    def _results(self, call: ProposedCall, paths: PathReader) -> Iterator[ConditionResult]:
        yield _name_result("server", self.servers, call.server)
        yield _name_result("tool", self.tools, call.tool)
        yield _name_result("principal", self.principals, call.principal)
        for name, expected in self.annotations.items():
            yield _annotation_result(name, expected, call.annotations)
        for condition in self.arguments:
            yield condition.check(call.arguments, paths)


def _name_result(kind: str, allowed: tuple[str, ...] | None, name: str) -> ConditionResult:
    if allowed is None or patterns.matches_any(allowed, name):
        return ConditionResult("met", "" if allowed is None else f"{kind} {name:.100} matches")
    return ConditionResult("unmet", f"{kind} {name[:100] or '(none)'} does not match {', '.join(allowed) or '(none)'}")


def _annotation_result(name: str, expected: bool, annotations: ToolAnnotations | None) -> ConditionResult:
    """Return whether a tool has an annotation.

    "clients MUST consider tool annotations to be untrusted unless they come from trusted servers" (server, Tools).
    """
    if annotations is None:
        return ConditionResult("unclear", f"annotation {name} is not known: the server is not trusted")
    actual = annotation(annotations, name)
    text = f"the tool is {'' if actual else 'not '}{name}"
    return ConditionResult("met" if actual == expected else "unmet", text)


def annotation(annotations: ToolAnnotations, name: str) -> bool:
    """Return an annotation, or its default: a tool may write, destroy, and reach anything, unless it says otherwise."""
    read_only = annotations.read_only_hint is True
    if name == "read_only":
        return read_only
    if name == "destructive":  # "meaningful only when `readOnlyHint == false`", as the next one
        return not read_only and annotations.destructive_hint is not False
    if name == "idempotent":
        return read_only or annotations.idempotent_hint is True
    return annotations.open_world_hint is not False
