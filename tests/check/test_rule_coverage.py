"""No rule that nobody has seen to fail: for each, of whatever level, a wrong peer stands somewhere that it catches."""

from __future__ import annotations

from pathlib import Path

from accord.check.rules import all_rules, authorization_server_rules, client_rules, server_rules

from tests.check.authorization_servers.mutants import MUTANTS as AUTHORIZATION_SERVERS
from tests.check.clients import test_mutants as wrong_clients
from tests.check.clients.wrong import MUTANTS as CLIENTS
from tests.check.mutants import test_mutants as wrong_servers
from tests.check.mutants.table import MUTANTS as SERVERS

assert all((wrong_clients, wrong_servers)), "the tables are full once these are loaded"

HERE = Path(__file__).parent
EXPLORING, FLOWS, CRASHES = "fuzz/test_fuzz_run.py", "fuzz/test_sequences.py", "clients/test_crashes.py"
ELSEWHERE = {
    "generated/crash": EXPLORING,
    "generated/hang": EXPLORING,
    "generated/unanswered": EXPLORING,
    "generated/output": EXPLORING,
    "generated/refused": FLOWS,
    "generated/memory": EXPLORING,
    "generated/read-only": EXPLORING,
    "generated/idempotent": EXPLORING,
    "generated/codes": FLOWS,
    "generated/prompt-arguments": FLOWS,
    "client-robust/timeouts": CRASHES,
}
"""Rules whose wrong peer is in no table of mutants, since it needs a process of its own, and the test that has it."""


def test_every_rule_about_servers_is_seen_to_fail() -> None:
    seen = {mutant.rule for mutant in SERVERS} | ELSEWHERE.keys()
    assert {rule.id for rule in server_rules()} - seen == set()


def test_every_rule_about_clients_is_seen_to_fail() -> None:
    seen = {mutant.rule for mutant in CLIENTS} | ELSEWHERE.keys()
    assert {rule.id for rule in client_rules()} - seen == set()


def test_every_rule_about_authorization_servers_is_seen_to_fail() -> None:
    seen = {mutant.rule for mutant in AUTHORIZATION_SERVERS}
    assert {rule.id for rule in authorization_server_rules()} ^ seen == set()


def test_each_mutant_is_one_of_a_rule_that_there_is() -> None:
    rules = {rule.id for rule in all_rules()}
    mutants = {mutant.rule for mutant in SERVERS} | {mutant.rule for mutant in CLIENTS}
    assert (mutants | ELSEWHERE.keys()) - rules == set()


def test_what_is_seen_elsewhere_is_named_there_and_has_no_mutant() -> None:
    for rule, file in ELSEWHERE.items():
        assert f'"{rule}"' in (HERE / file).read_text(encoding="utf-8"), rule
    assert not ELSEWHERE.keys() & {mutant.rule for mutant in SERVERS}
