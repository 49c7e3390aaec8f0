"""The map of the specification is complete: each sentence of each revision is judged by a rule, or it says why not.

The list of sentences is read from `ACCORD_SPEC_REQUIREMENTS`, else from `shared/spec` beside the checkout.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

from accord.check.requirements import sentences
from accord.check.rules import client_rules, server_rules
from accord.messages.revision import lives_in

LIST = Path(
    os.environ.get("ACCORD_SPEC_REQUIREMENTS") or Path(__file__).parents[3] / "shared" / "spec" / "requirements.jsonl"
)


def test_each_sentence_has_one_line() -> None:
    wanted = [json.loads(line)["id"] for line in LIST.read_text(encoding="utf-8").splitlines()]
    lines = Counter(sentence.id for sentence in sentences())
    assert sorted(set(wanted) - set(lines)) == []
    assert sorted(set(lines) - set(wanted)) == []
    assert [id for id, count in lines.items() if count > 1] == []


def test_each_line_names_rules_that_have_cases_in_its_revision() -> None:
    rules = {rule.id: rule for rule in (*server_rules(), *client_rules())}
    wrong = []
    for sentence in sentences():
        for id in sentence.rules:
            rule = rules.get(id)
            if rule is None:
                wrong.append(f"{sentence.id}: there is no rule {id}")
            elif not any(lives_in(sentence.revision, *case.life) for case in rule.cases):
                wrong.append(f"{sentence.id}: {id} has no case in that revision")
    assert wrong == []


def test_each_rule_has_a_name_of_its_own_and_a_case() -> None:
    rules = [*server_rules(), *client_rules()]
    assert [id for id, count in Counter(rule.id for rule in rules).items() if count > 1] == []
    assert all(rule.cases and rule.says.endswith(".") and rule.at for rule in rules)
