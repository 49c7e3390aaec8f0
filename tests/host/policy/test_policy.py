"""Policies: which rule decides, in any order, and which mistakes in rules are errors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from accord.errors import PolicyError
from accord.host.policy.call import ProposedCall
from accord.host.policy.policy import Policy
from accord.messages.tools import ToolAnnotations

from tests.measure import processor_seconds


def rule(name: str, decision: str, **conditions: Any) -> dict[str, Any]:
    return {"name": name, "decision": decision, **conditions}


def decide(rules: list[dict[str, Any]], **call: Any) -> tuple[str, str]:
    verdict = Policy.from_settings(rules).decide(ProposedCall(**{"server": "files", "tool": "read_text", **call}))
    return verdict.decision, verdict.rule


def test_without_a_matching_rule_the_decision_is_ask() -> None:
    assert decide([]) == ("ask", "")
    assert decide([rule("other", "allow", tools="write_*")]) == ("ask", "")


def test_deny_overrides_ask_which_overrides_allow() -> None:
    allow, ask, deny = (rule(decision, decision, tools="read_*") for decision in ("allow", "ask", "deny"))
    assert decide([allow]) == ("allow", "allow")
    assert decide([allow, ask]) == ("ask", "ask")
    assert decide([allow, deny, ask]) == ("deny", "deny")


@pytest.mark.parametrize(
    ("conditions", "matching", "other"),
    [
        ({"server": "files"}, {}, {"server": "files2"}),
        ({"server": ["files", "git*"]}, {"server": "github"}, {"server": "mail"}),
        ({"tools": ["read_*", "list"]}, {"tool": "list"}, {"tool": "lists"}),
        ({"principal": "ann"}, {"principal": "ann"}, {"principal": ""}),
        ({"principal": ""}, {"principal": ""}, {"principal": "ann"}),
        ({"arguments": {"mode": {"equals": "fast"}}}, {"arguments": {"mode": "fast"}}, {"arguments": {}}),
        ({"arguments": {"n": {"equals": 1}}}, {"arguments": {"n": 1.0}}, {"arguments": {"n": 2}}),
        ({"arguments": {"n": {"one_of": [1, 2]}}}, {"arguments": {"n": [2, 1]}}, {"arguments": {"n": 3}}),
        ({"arguments": {"b": {"pattern": "feature/*"}}}, {"arguments": {"b": "feature/x"}}, {"arguments": {"b": "x"}}),
        ({"arguments": {"n": {"minimum": 1, "maximum": 3}}}, {"arguments": {"n": 3}}, {"arguments": {"n": 3.5}}),
        ({"arguments": {"n": {"not": {"minimum": 1}}}}, {"arguments": {"n": 0}}, {"arguments": {"n": 1}}),
        (
            {"arguments": {"url": {"host": ["*.example.com", "example.com"]}}},
            {"arguments": {"url": "https://docs.example.com/x"}},
            {"arguments": {"url": "https://example.com.evil.example/x"}},
        ),
        (
            {"arguments": {"/files/*/path": {"under": "/srv/data"}}},
            {"arguments": {"files": [{"path": "/srv/data/a"}, {"path": "/srv/data/b"}]}},
            {"arguments": {"files": [{"path": "/etc/passwd"}]}},
        ),
        (
            {"annotations": {"read_only": True, "destructive": False}},
            {"annotations": ToolAnnotations(read_only_hint=True)},
            {"annotations": ToolAnnotations(read_only_hint=False)},
        ),
        (
            {"annotations": {"destructive": True, "open_world": True, "idempotent": False}},
            {"annotations": ToolAnnotations()},
            {"annotations": ToolAnnotations(open_world_hint=False)},
        ),
    ],
)
@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_rule_matches_calls_that_meet_all_conditions(
    decision: str, conditions: dict[str, Any], matching: dict[str, Any], other: dict[str, Any]
) -> None:
    assert decide([rule("it", decision, **conditions)], **matching) == (decision, "it")
    assert decide([rule("it", decision, **conditions)], **other) == ("ask", "")


@pytest.mark.parametrize(
    ("test", "value"),
    [
        ({"equals": True}, "true"),
        ({"equals": "1"}, 1),
        ({"equals": 2**53}, 2**53 + 1),
        ({"one_of": [1]}, "1"),
        ({"pattern": "*"}, 7),
        ({"under": "/srv"}, None),
        ({"under": "/srv"}, ["/srv/a", "/etc"]),
        ({"host": "*"}, "https://a@b/"),
        ({"minimum": 1}, "5"),
        ({"minimum": 1}, True),
        ({"minimum": 1}, [5, 0]),
        ({"pattern": "*"}, ["x"] * 257),
        ({"not": {"equals": 1}}, "2"),
    ],
)
def test_an_unclear_value_never_matches_an_allow_and_always_a_deny(test: dict[str, Any], value: object) -> None:
    call: dict[str, Any] = {"arguments": {"value": value}}
    assert decide([rule("it", "allow", arguments={"value": test})], **call) == ("ask", "")
    assert decide([rule("it", "ask", arguments={"value": test})], **call) == ("ask", "it")
    assert decide([rule("it", "deny", arguments={"value": test})], **call) == ("deny", "it")


def test_annotations_of_a_server_that_is_not_trusted_never_allow() -> None:
    allow = rule("reading", "allow", annotations={"read_only": True})
    assert decide([allow], annotations=None) == ("ask", "")
    assert decide([rule("it", "deny", annotations={"destructive": True})], annotations=None) == ("deny", "it")


CONDITIONS = st.fixed_dictionaries(
    {},
    optional={
        "server": st.sampled_from(["files", "git*", ["files", "mail"]]),
        "tools": st.sampled_from(["read_*", "*", ["write", "read_text"]]),
        "arguments": st.sampled_from(
            [
                {"path": {"under": "/srv"}},
                {"path": {"not": {"under": ["/srv", "/data"]}}},
                {"path": {"equals": 1}},
                {"n": {"minimum": 1}, "path": {"pattern": "/srv*"}},
            ]
        ),
        "annotations": st.sampled_from([{"read_only": True}, {"destructive": True}]),
    },
)
RULES = st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), CONDITIONS), max_size=6).map(
    lambda several: [rule(f"rule {n}", decision, **each) for n, (decision, each) in enumerate(several)]
)
CALLS = st.builds(
    ProposedCall,
    server=st.sampled_from(["files", "github"]),
    tool=st.sampled_from(["read_text", "write"]),
    arguments=st.sampled_from([{}, {"path": "/srv/x"}, {"path": "x", "n": 2}, {"path": "/etc/x", "n": 0}]),
    annotations=st.sampled_from([None, ToolAnnotations(), ToolAnnotations(read_only_hint=True)]),
)


@settings(max_examples=300, deadline=None)
@given(RULES.flatmap(lambda rules: st.tuples(st.just(rules), st.permutations(rules))), CALLS)
def test_the_order_of_rules_changes_nothing(both: tuple[list[Any], list[Any]], call: ProposedCall) -> None:
    one, other = (Policy.from_settings(rules) for rules in both)
    assert one.version == other.version
    assert one.decide(call) == other.decide(call)


@settings(max_examples=300, deadline=None)
@given(RULES, CALLS, st.data())
def test_a_further_ask_or_deny_rule_never_makes_a_policy_less_strict(
    rules: list[Any], call: ProposedCall, data: st.DataObject
) -> None:
    decision = data.draw(st.sampled_from(["ask", "deny"]))
    more = [*rules, rule("more", decision, **data.draw(CONDITIONS))]
    order = ["allow", "ask", "deny"]
    before, after = (Policy.from_settings(each).decide(call).decision for each in (rules, more))
    assert order.index(after) >= order.index(before)


def test_equal_rules_have_equal_versions_and_others_do_not() -> None:
    version = Policy.from_settings([rule("it", "deny", tools="x", server=["a", "b"])]).version
    assert Policy.from_settings([rule("it", "deny", server=["b", "a", "a"], tools=["x"])]).version == version
    for changed in (
        rule("it", "ask", tools="x", server=["a", "b"]),
        rule("other", "deny", tools="x", server=["a", "b"]),
        rule("it", "deny", tools="x"),
        rule("it", "deny", tools="x", server=["a", "b"], arguments={"n": {"equals": [2, 1]}}),
    ):
        assert Policy.from_settings([changed]).version != version
    one, other = (Policy.from_settings([rule("it", "deny", arguments={"n": {"equals": n}})]) for n in ([1, 2], [2, 1]))
    assert one.version != other.version


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        ({"decision": "deny"}, "missing required field `name`"),
        (rule("", "deny"), "length >= 1"),
        (rule("x", "block"), "decision"),
        (rule("x", "deny", tool="read"), "unknown field `tool`; expected one of name, decision, server, tools"),
        (rule("x", "deny", tools=7), "Expected `str | array`, got `int` - at `$.tools`"),
        (rule("x", "deny", tools=[]), "length >= 1"),
        (rule("x", "deny", tools=["a", 1]), "Expected `str`, got `int` - at `$.tools[1]`"),
        (rule("x", "deny", annotations={"readonly": True}), "expected one of read_only, destructive"),
        (rule("x", "deny", annotations={"read_only": "yes"}), "Expected `bool`"),
        (rule("x", "deny", annotations={}), "empty"),
        (rule("x", "deny", arguments={}), "length >= 1"),
        (rule("x", "deny", arguments={"a": {}}), "argument 'a': it has no test: expected one of equals, one_of"),
        (rule("x", "deny", arguments={"a": {"equal": 1}}), "expected one of equals, one_of"),
        (rule("x", "deny", arguments={"a": {"not": {}}}), "it has no test"),
        (rule("x", "deny", arguments={"a": {"under": "data"}}), "needs an absolute folder"),
        (rule("x", "deny", arguments={"a": {"under": "~ann/x"}}), "needs an absolute folder"),
        (rule("x", "deny", arguments={"a": {"host": "https://example.com"}}), "must be written as example.com"),
        (rule("x", "deny", arguments={"a": {"host": "*example.com"}}), "must be written as example.com"),
        (rule("x", "deny", arguments={"a": {"host": "10.0.0"}}), "must be written as example.com"),
        (rule("x", "deny", arguments={"a": {"minimum": "1"}}), "Expected `int | float`"),
        (rule("x", "deny", arguments={"a": {"minimum": 2, "maximum": 1}}), "minimum 2 is above maximum 1"),
        ("deny", "Expected `object`, got `str`"),
    ],
)
def test_an_invalid_rule_refuses_the_whole_policy_and_is_named(broken: Any, expected: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.from_settings([rule("fine", "allow"), broken], file="mcp.json")
    assert str(caught.value).startswith("mcp.json: rule 2")
    assert expected in str(caught.value)


def test_two_rules_of_one_name_are_an_error() -> None:
    with pytest.raises(PolicyError, match="two rules have the name 'x'"):
        Policy.from_settings([rule("x", "allow"), rule("x", "deny")])


def test_a_policy_that_is_no_list_is_an_error() -> None:
    with pytest.raises(PolicyError, match=r'mcp.json: "policy" must be a list of rules, not an object'):
        Policy.from_settings({"rules": []}, file="mcp.json")


def test_the_verdict_has_the_result_of_each_rule() -> None:
    rules = [
        rule("no secrets", "deny", arguments={"path": {"under": "/srv/secret"}}),
        rule("reading", "allow", tools="read_*", arguments={"path": {"under": "/srv"}}),
        rule("mail", "ask", server="mail"),
    ]
    verdict = Policy.from_settings(rules).decide(
        ProposedCall(server="files", tool="read_text", arguments={"path": "/srv/a"})
    )
    assert verdict.reason == "the rule 'reading' allows the call"
    assert [(each.rule, each.matches, each.reason) for each in verdict.rules] == [
        ("mail", False, "server files does not match mail"),
        ("no secrets", False, "path is not under /srv/secret"),
        ("reading", True, "tool read_text matches and path is under /srv"),
    ]


def path_rules(count: int) -> Policy:
    under = [f"/srv/{number}" for number in range(10)]
    return Policy.from_settings(
        [rule(f"rule {number}", "deny", arguments={"paths": {"under": under}}) for number in range(count)]
    )


def cost(policy: Policy, call: ProposedCall) -> float:
    return min(processor_seconds(lambda: policy.decide(call)) for _ in range(5))


def test_many_rules_about_paths_cost_little_more_than_one() -> None:
    call = ProposedCall(
        server="files", tool="read", arguments={"paths": [f"/x{number}" + "/é%20" * 100 for number in range(50)]}
    )
    one, many = path_rules(1), path_rules(30)
    assert cost(many, call) < 6 * cost(one, call)


def test_the_paths_of_one_decision_are_limited() -> None:
    policy = path_rules(1)
    allowed, beyond = (
        ProposedCall(server="files", tool="read", arguments={"paths": [f"/{n}" + "/x" * parts for n in range(250)]})
        for parts in (10, 240)
    )
    assert policy.decide(allowed).decision == "ask"
    verdict = policy.decide(beyond)
    assert (verdict.decision, verdict.rules[0].is_unclear) == ("deny", True)
    assert cost(policy, beyond) < 10 * cost(policy, allowed)


def test_long_names_are_cut_in_reasons() -> None:
    verdict = Policy.from_settings([rule("it", "deny", tools="x")]).decide(ProposedCall(server="f", tool="t" * 100_000))
    assert len(verdict.rules[0].reason) < 300
