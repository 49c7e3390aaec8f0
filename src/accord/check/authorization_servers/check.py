"""Check an authorization server: its metadata, its registration, its endpoints, and logins as far as they succeed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from accord.auth.urls import check_url
from accord.check.authorization_servers.probe import AuthServerProbe, AuthServerState, LoginSettings
from accord.check.authorization_servers.user_agent import UserAgent
from accord.check.engine.outcomes import NullWatcher, OutcomeCollector, Watcher
from accord.check.engine.report import Report, Visit, counts, score
from accord.check.engine.report_builder import ReportBuilder
from accord.check.engine.rule import Case, NotObserved, Rule
from accord.check.engine.selection import select_rules
from accord.check.rules import authorization_server_rules
from accord.check.settings import CheckSettings
from accord.errors import AuthorizationError, ConnectError, TargetError
from accord.messages.revision import LATEST

_CASE_SECONDS = 600.0
"""A user may have to log in."""


async def check_authorization_server(
    issuer: str,
    settings: CheckSettings | None = None,
    watcher: Watcher | None = None,
    *,
    login: LoginSettings | None = None,
) -> Report:
    """Check the authorization server with this issuer identifier, a URL.

    Without `login`, clients are registered, and cases that need a user are not observed. Raises `TargetError` for an
    invalid URL and for settings that select nothing, `ConnectError` if the server cannot be reached.
    """
    import aiohttp

    settings, login = settings or CheckSettings(), login or LoginSettings()
    try:
        check_url(issuer, "issuer")
    except AuthorizationError as exc:
        raise TargetError(str(exc)) from exc
    rules = select_rules(authorization_server_rules(), settings)
    builder = ReportBuilder("authorization server", issuer, rules, settings)
    agent = UserAgent(login.authorize)
    await agent.open()
    timeout = aiohttp.ClientTimeout(total=settings.timeout)
    try:
        async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
            state = AuthServerState(issuer, login, session, agent)
            try:
                await AuthServerProbe(state).discover()
            except NotObserved as exc:
                raise ConnectError(str(exc)) from exc
            found = [await _visit(revision, rules, state, watcher) for revision in settings.revisions or (LATEST,)]
    finally:
        await agent.close()
    outcomes = [outcome for _, collector in found for outcome in collector.outcomes]
    return builder.build("", [visit for visit, _ in found], outcomes)


async def _visit(
    revision: str, rules: Sequence[Rule], state: AuthServerState, watcher: Watcher | None
) -> tuple[Visit, OutcomeCollector]:
    """Judge all rules in one revision, one after the other."""
    watcher = watcher or NullWatcher()
    collector = OutcomeCollector(revision, "http", watcher)
    cases = [(rule, case) for rule in rules for case in rule.cases_in(revision, "http")]
    watcher.visit_began(revision, "http", len(cases))
    began = time.monotonic()
    for rule, case in cases:
        await _judge(rule, case, state, collector)
    visit = Visit(
        revision=revision,
        transport="http",
        score=score(collector.outcomes),
        seconds=round(time.monotonic() - began, 3),
        counts=counts(collector.outcomes),
        error="; ".join(collector.defects),
    )
    watcher.visit_ended(visit)
    return visit, collector


async def _judge(rule: Rule, case: Case, state: AuthServerState, collector: OutcomeCollector) -> None:
    probe = AuthServerProbe(state)
    began = time.monotonic()
    try:
        async with asyncio.timeout(_CASE_SECONDS):
            await case.run(probe)
    except Exception as exc:  # the collector knows what is a verdict, and what a defect of the checker
        collector.add_exception(rule, case, exc, seconds=time.monotonic() - began)
    else:
        collector.add(rule, case, "pass", seconds=time.monotonic() - began)
