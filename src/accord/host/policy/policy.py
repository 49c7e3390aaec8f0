"""A policy: rules that decide which calls are allowed, denied, or need an approval.

    policy = Policy.from_settings([{"name": "reading", "decision": "allow", "tools": ["read_*"]}])
    policy.decide(ProposedCall(server="files", tool="read_text", arguments={})).decision     "allow"

`deny` overrides `ask`, and `ask` overrides `allow`, in any order of rules. Without a matching rule, the decision is
`ask`. A policy does no I/O of its own; it asks a `PathSystem` where paths lead.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection

import msgspec

from accord.host.policy.call import ProposedCall
from accord.host.policy.paths import PathReader
from accord.host.policy.real_paths import LocalPaths, PathSystem
from accord.host.policy.rule import PolicyDecision, PolicyRule
from accord.host.policy.rule_settings import canonical_form, check_servers, parse_rules

_STRICTNESS: tuple[PolicyDecision, ...] = ("deny", "ask", "allow")


class RuleResult(msgspec.Struct, frozen=True):
    """The result of a rule for a call: it matches or not, and the reason, which may contain values of the call."""

    rule: str
    decision: PolicyDecision
    matches: bool
    reason: str
    is_unclear: bool = False
    """Whether the call could not be compared safely: then an `allow` does not match, and an `ask` or `deny` does."""


class Verdict(msgspec.Struct, frozen=True):
    """The decision about a call.

    `rule` is the name of the rule that decides, empty without a matching rule; of several, it is the first in order of
    names. `reason` is a sentence for people, without values of the call. `rules` has the result of each rule.
    """

    decision: PolicyDecision
    rule: str
    reason: str
    rules: tuple[RuleResult, ...] = ()


class Policy:
    """The rules `rules`; immutable. `system` returns the file system for one decision."""

    def __init__(
        self, rules: tuple[PolicyRule, ...], version: str, system: Callable[[], PathSystem] = LocalPaths
    ) -> None:
        self.rules: tuple[PolicyRule, ...] = rules
        self.version: str = version
        """The SHA-256 of the rules in their canonical form, in hexadecimal. The order of rules does not change it."""
        self._system = system

    @classmethod
    def from_settings(
        cls,
        settings: object,
        *,
        file: str = "policy",
        servers: Collection[str] | None = None,
        system: Callable[[], PathSystem] = LocalPaths,
    ) -> Policy:
        """Return the policy of a configuration: a list of rules, as JSON values. `servers` are the names of the
        configured servers: a rule about another one is an error.

        Raises `PolicyError` if any rule is invalid: then there is no policy at all, so that a mistake never makes it
        less strict. The error names `file`, the rule, and what was expected.
        """
        rules = parse_rules(settings, file, system())
        if servers is not None:
            check_servers(rules, servers, file)
        canonical = msgspec.json.encode(["accord policy 1", canonical_form(settings)], order="deterministic")  # type: ignore[arg-type]
        return cls(rules, hashlib.sha256(canonical).hexdigest(), system)

    def decide(self, call: ProposedCall) -> Verdict:
        """Return the decision about a call."""
        paths = PathReader(self._system(), call.folder)
        results = tuple(_check(rule, call, paths) for rule in self.rules)
        for decision in _STRICTNESS:
            for result in results:
                if result.matches and result.decision == decision:
                    return Verdict(decision, result.rule, f"the rule {result.rule!r} {_VERBS[decision]}", results)
        return Verdict("ask", "", "no rule matches, so the call needs an approval", results)


_VERBS: dict[PolicyDecision, str] = {
    "allow": "allows the call",
    "ask": "asks for an approval of the call",
    "deny": "denies the call",
}


def _check(rule: PolicyRule, call: ProposedCall, paths: PathReader) -> RuleResult:
    result = rule.check(call, paths)
    return RuleResult(rule.name, rule.decision, rule.matches(result), result.reason, result.state == "unclear")
