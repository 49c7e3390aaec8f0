"""The map of the specification is complete: each sentence of each source is judged by a rule, or it says why not."""

from __future__ import annotations

from collections import Counter

from accord.check.requirements import sentences
from accord.check.rules import all_rules
from accord.messages.revision import is_in_revision

from tests.check.sources import wanted


def test_each_sentence_has_one_line() -> None:
    ids = [each.id for each in wanted()]
    lines = Counter(sentence.id for sentence in sentences())
    assert [id for id, count in Counter(ids).items() if count > 1] == []
    assert sorted(set(ids) - set(lines)) == []
    assert sorted(set(lines) - set(ids)) == []
    assert [id for id, count in lines.items() if count > 1] == []


def test_each_line_names_rules_that_have_cases_in_its_revision() -> None:
    rules = {rule.id: rule for rule in all_rules()}
    wrong = []
    for sentence in sentences():
        for id in sentence.rules:
            rule = rules.get(id)
            if rule is None:
                wrong.append(f"{sentence.id}: there is no rule {id}")
            elif not any(is_in_revision(sentence.revision, *case.life) for case in rule.cases):
                wrong.append(f"{sentence.id}: {id} has no case in that revision")
    assert wrong == []


def test_each_rule_has_a_name_of_its_own_and_a_case() -> None:
    rules = all_rules()
    assert [id for id, count in Counter(rule.id for rule in rules).items() if count > 1] == []
    assert all(rule.cases and rule.says.endswith(".") and rule.at for rule in rules)


def test_the_function_of_a_rule_is_named_after_its_id() -> None:
    for rule in all_rules():
        assert rule.check.__name__ == rule.id.replace("/", "_").replace("-", "_")
