"""Every mutant is caught by the rule it breaks, and by few others."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from accord.check.engine.report import Report
from accord.check.engine.rule import Rule
from accord.check.issuer.issuer_server import issuer_url
from accord.check.rules import AREAS
from accord.check.server import check_server
from accord.check.settings import CheckSettings

from tests.check.mutants.by_hand import posted, respond
from tests.check.mutants.byte_relay import fronted
from tests.check.mutants.change import Change, Changed, ChangedApp
from tests.check.mutants.correct_server import right, served
from tests.check.mutants.guarded import (
    AUDIENCE,
    KEYS,
    KeyGuard,
    guarded_ext_tasks,
    guarded_tasks,
    trusting,
    with_keys,
    with_login,
)
from tests.check.mutants.table import MUTANTS, Mutant
from tests.interop.serving import free_port

_NO_TABLE = {"__init__", "change", "front", "right", "table", "test_mutants", "program", "guarded"}
for _file in sorted(Path(__file__).parent.glob("*.py")):
    if _file.stem not in _NO_TABLE:
        import_module(f"tests.check.mutants.{_file.stem}")

MOST_FINDINGS = 3


async def check(mutant: Mutant | None, settings: CheckSettings, over: str = "memory") -> Report:
    """Check a mutant, or the right server."""
    if mutant and over == "stdio":
        command = [sys.executable, str(Path(__file__).with_name("program.py")), mutant.name]
        return await check_server(command, settings, label="mutant")
    change = Change()
    server = (mutant.server or right)(*issuer_of(settings)) if mutant else right()
    if mutant:
        mutant.make(change)
    if over == "memory":
        return await check_server(Changed(server, change), settings, label="mutant")
    async with served(ChangedApp(server.app, change)) as behind, fronted(behind, change.treat) as url:
        change.port = urlsplit(url).port or 0
        return await check_server(f"{url}/{'sse' if over == 'sse' else 'mcp'}", settings, label="mutant")


def issuer_of(settings: CheckSettings) -> list[str]:
    """The URL of the issuer, if the checker is one."""
    return [issuer_url(settings.issuer)] if settings.issuer else []


def neighbours(rule: str) -> tuple[str, ...]:
    """The rules that stand in the same file."""
    modules = [import_module(f"accord.check.rules.{area}") for area in AREAS]
    files = [[each.id for each in vars(module).values() if isinstance(each, Rule)] for module in modules]
    return tuple(next(ids for ids in files if rule in ids))


def settings_for(mutant: Mutant, timeout: float) -> CheckSettings:
    """Only the rule and its neighbours, and where it is broken. What mutants leave unanswered takes the timeout."""
    only = (*neighbours(mutant.rule), "shapes")
    times: dict[str, Any] = {"timeout": timeout, "opening": min(5 * timeout, 30)}
    bounds: dict[str, Any] = {**times, "jobs": 4, "cases": mutant.cases, "whole_traffic": False}
    issuer = f":{free_port()}" if mutant.trusts_checker else ""
    access: dict[str, Any] = {"tokens": mutant.tokens, "issuer": issuer, "audience": AUDIENCE if issuer else ""}
    return CheckSettings(revisions=(mutant.revision,), only=only, call_tools=mutant.calls, **bounds, **access)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
async def test_a_mutant_is_caught_by_the_rule_that_it_breaks(
    mutant: Mutant, record_property: Callable[[str, object], None]
) -> None:
    record_property("counted", "mutants caught")
    for timeout in (1, 15):  # a busy machine may need more than a second for an answer
        report = await check(mutant, settings_for(mutant, timeout), mutant.over)
        caught: list[Any] = [found for found in report.findings if mutant.rule in (found.rule, *found.also)]
        if caught and len(report.findings) <= MOST_FINDINGS:
            return
    assert caught, f"not caught; found: {[(each.rule, each.text) for each in report.findings]}"
    assert len(report.findings) <= MOST_FINDINGS, [(each.rule, each.text) for each in report.findings]


@pytest.mark.parametrize("over", ["memory", "http", "sse"])
async def test_the_right_server_is_right(over: str) -> None:
    report = await check(None, CheckSettings(call_tools=True, timeout=10, jobs=4, full=True), over)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    assert report.score == 100


BOTH = ("2025-11-25", "2026-07-28")


async def test_the_right_server_with_two_principals_is_right() -> None:
    bounds: dict[str, Any] = {"call_tools": True, "timeout": 10, "jobs": 4, "tokens": KEYS, "revisions": BOTH}
    async with served(with_keys().app) as url:
        report = await check_server(f"{url}/mcp", CheckSettings(skip=("authorization/conforms",), **bounds))
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    verdicts = {(each.rule, each.verdict) for each in report.outcomes if each.rule.startswith("principals/")}
    assert {verdict for rule, verdict in verdicts if "tasks" not in rule} == {"pass"}


@pytest.mark.parametrize(
    ("rule", "server"), [("principals/tasks", guarded_tasks), ("principals/ext-tasks", guarded_ext_tasks)]
)
async def test_tasks_that_belong_to_their_principal_are_right(rule: str, server: Callable[[], KeyGuard]) -> None:
    bounds: dict[str, Any] = {"call_tools": True, "timeout": 10, "tokens": KEYS, "whole_traffic": False}
    async with served(ChangedApp(server().app, Change())) as url:
        report = await check_server(f"{url}/mcp", CheckSettings(only=(rule,), **bounds))
    assert [(each.rule, each.verdict, each.text) for each in report.outcomes] == [(rule, "pass", "")]


async def test_the_right_server_refuses_each_forged_token() -> None:
    issuer, only = f":{free_port()}", ("authorization", "tokens")
    settings = CheckSettings(timeout=10, revisions=BOTH, only=only, issuer=issuer, audience=AUDIENCE)
    async with served(trusting(issuer_url(issuer)).app) as url:
        report = await check_server(f"{url}/mcp", settings)
    assert [(each.rule, each.text, each.evidence) for each in report.findings] == []
    assert {each.verdict for each in report.outcomes if each.rule.startswith("tokens/")} == {"pass"}


async def test_what_needs_no_login_is_judged_without_a_token() -> None:
    async with served(with_login().app) as url:
        report = await check_server(f"{url}/mcp", CheckSettings(timeout=10, only=("authorization", "tools")))
    assert report.findings == ()
    assert {visit.revision for visit in report.visits} == set(BOTH)
    assert all(visit.error.startswith("the server requires authorization: ") for visit in report.visits)
    verdicts = {each.rule: each.verdict for each in report.outcomes}
    assert verdicts["authorization/resource"] == "pass"
    assert verdicts["tools/unknown-name"] == "not-observed"


async def test_the_body_of_a_refusal_is_no_message_of_the_protocol() -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await posted(scope, receive)
        await respond(send, 401, {"error": "invalid_token"}, {b"www-authenticate": b"Bearer"})

    async with served(refuse) as url:
        report = await check_server(f"{url}/mcp", CheckSettings(timeout=2))
    assert {each.rule.partition("/")[0] for each in report.findings} == {"authorization"}


async def test_a_server_without_authorization_gets_no_request_about_it() -> None:
    async with served(right().app) as url:
        report = await check_server(f"{url}/mcp", CheckSettings(timeout=10, only=("authorization", "tokens")))
    assert {each.verdict for each in report.outcomes} == {"not-applicable"}
    assert report.findings == ()
