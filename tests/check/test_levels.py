"""Rules are as strict as the sentences they judge: no MUST is a warning, no SHOULD a failure, without a reason.

Only words in capitals count (BCP 14). A rule for which no sentence has one is as strict as its author thinks right.
"""

from __future__ import annotations

from collections import defaultdict

from accord.check.engine.report import Level
from accord.check.requirements import sentences
from accord.check.rules import all_rules

from tests.check.sources import wanted

LEVELS: dict[str, Level] = {
    "MUST": "must",
    "SHALL": "must",
    "REQUIRED": "must",
    "SHOULD": "should",
    "RECOMMENDED": "should",
    "MAY": "may",
    "OPTIONAL": "may",
}

OTHERWISE = {
    "asking/page-ids": "that the ids differ is said in small letters; the MUST beside it is for clients",
    "authorization/error-code": "RFC 6750 says SHOULD of the error codes that the sentences refer to",
    "batch/empty": "it is JSON-RPC that shows it, in an example",
    "batch/invalid-items": "it is JSON-RPC that shows it, in an example",
    "caching/interim": "the sentence says which results have hints, and not that no others have",
    "client-answers/sampling-content": "the MUST is for servers; that a client refuses what breaks it is an example",
    "client-meta/result-type": "the sentence speaks of servers of earlier revisions: one of this may be refused",
    "codes/closed-range": "whether an implementation is new, and where its code comes from, nobody sees",
    "discover/anonymous-client": "clientInfo is optional by its type, which binds more than the SHOULD about its use",
    "errors/invalid-request": "JSON-RPC says what -32600 means, and not that every mistake is told by it",
    "http/bad-body": "the MUST is about notifications; what is no message at all is not spoken of",
    "icons/data": "the MUST is for who shows an icon: who offers another kind finds nobody who does",
    "icons/source": "the MUST is for who shows an icon: who offers another kind finds nobody who does",
    "lifecycle/handshake-first": "the MUST is for clients: a server that serves more breaks nothing",
    "ping/while-busy": "promptly is not a number of seconds, and a call may keep the only worker there is",
    "principals/session-hidden": "the MUST is that a session of another is refused, and not with which status",
    "rounds/state": "a MUST only where something hangs on the state, which the server alone knows",
    "rounds/state-elsewhere": "a MUST only where something hangs on the state, which the server alone knows",
    "schemas/references": "whoever uses a schema may know what it refers to",
    "subscriptions/ended": "the MUST is for who ends a subscription; nothing is said of the other side",
    "subscriptions/several": "a client MAY have several: the server has to let it",
    "tasks/begins": "a quick task may be further by the time its first answer is written",
    "tokens/kind": "RFC 8725 recommends to tell the kinds of tokens apart; the sentences speak of access tokens",
}
"""Rules that are stricter than all of their sentences, or less strict than one of these, and why."""

RULES = {rule.id: rule for rule in all_rules()}


def levels_of(words: tuple[str, ...]) -> set[Level]:
    """`MUST NOT` and `RECOMMENDED` are must and should; words in small letters are nothing."""
    return {LEVELS[word.removeprefix("NOT ").split()[0]] for word in words if word.isupper()}


SAID = {each.id: levels_of(each.levels) for each in wanted()}


def at_odds() -> dict[str, set[Level]]:
    """The rules whose level is none of those of their sentences, and these."""
    found: dict[str, set[Level]] = defaultdict(set)
    for sentence in sentences():
        for id in sentence.rules:
            found[id] |= SAID[sentence.id]
    return {id: levels for id, levels in found.items() if levels and RULES[id].level not in levels}


def weak() -> dict[str, tuple[str, ...]]:
    """The sentences with a MUST, and no other word, that no rule of that level judges; and the rules that do."""
    return {
        sentence.id: sentence.rules
        for sentence in sentences()
        if sentence.rules and SAID[sentence.id] == {"must"}
        if not any(RULES[id].level == "must" for id in sentence.rules)
    }


def test_a_rule_has_a_level_of_its_sentences() -> None:
    assert {id: levels for id, levels in at_odds().items() if id not in OTHERWISE} == {}


def test_what_must_be_is_judged_by_a_rule_that_says_so() -> None:
    assert {id: rules for id, rules in weak().items() if not OTHERWISE.keys() & set(rules)} == {}


def test_no_exception_is_stale() -> None:
    needed = {*at_odds(), *(id for rules in weak().values() for id in rules)}
    assert OTHERWISE.keys() - needed == set()
