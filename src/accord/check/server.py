"""Check a server in the revisions that it supports, over every transport that reaches it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from accord.check.engine.outcomes import NullWatcher, Watcher
from accord.check.engine.report import Report
from accord.check.engine.report_builder import ReportBuilder
from accord.check.engine.sdks import attribute_to_sdk
from accord.check.engine.selection import background_rules, select_rules
from accord.check.engine.server_target import RedactingWatcher, ServerTarget, redact
from accord.check.engine.token_issue import issue_tokens
from accord.check.engine.visits import ServerVisits
from accord.check.rules import server_rules
from accord.check.settings import CheckSettings
from accord.errors import ConnectError, TargetError
from accord.messages.revision import REVISIONS


async def check_server(
    target: Any,
    settings: CheckSettings | None = None,
    watcher: Watcher | None = None,
    *,
    label: str = "",
    stop: asyncio.Event | None = None,
) -> Report:
    """Check a server: a command, a URL, FILE.py[:server], or a `Server`; `label` is its name in the report.

    When `stop` is set, the check ends, and the report has the findings so far. Raises `TargetError` for settings that
    select nothing, `ConnectError` if the server cannot be reached, or supports none of the revisions.
    """
    settings = settings or CheckSettings()
    reach = ServerTarget(target, settings.headers)
    name = reach.display_name(label or (target if isinstance(target, str) else reach.name))
    rules = select_rules(server_rules(), settings)
    builder = ReportBuilder("server", name, rules, settings)
    others = background_rules(server_rules(), rules, settings)
    redacting = RedactingWatcher(watcher or NullWatcher(), reach.secrets)
    visits = ServerVisits(reach, rules, others, settings, redacting)
    if not list(visits.targets()):
        transports = {each for revision in settings.revisions or REVISIONS for each in reach.transports(revision)}
        over = f"over {' and '.join(sorted(transports))}" if transports else "in none of the selected revisions"
        options = "--transport, --revision, --only, --skip, --level"
        raise TargetError(f"nothing to check: {name} is reachable {over}, with no rule selected; see {options}")
    interrupted = False
    try:
        await reach.open()
        reach.authorize(settings.tokens)
        async with AsyncExitStack() as stack:
            if settings.issuer:
                settings = await stack.enter_async_context(issue_tokens(reach, settings))
                visits = ServerVisits(reach, rules, others, settings, redacting)
            interrupted = await _run_until_stopped(stop, visits)
    except ConnectError as exc:
        raise ConnectError(reach.secrets.redact(str(exc))) from exc.__cause__
    finally:
        await reach.close()
    if not visits.visits and not interrupted:
        raise ConnectError(reach.secrets.redact(f"{name} {visits.no_visit_reason}"))
    more = visits.report_fields | {"interrupted": interrupted}
    report = builder.build(visits.name, visits.visits, visits.outcomes, **more)
    return redact(reach.secrets, attribute_to_sdk(report, visits.sdk))


async def _run_until_stopped(stop: asyncio.Event | None, visits: ServerVisits) -> bool:
    """Make the visits, and return whether they were stopped before their end."""
    if stop is None:
        await visits.run()
        return False
    working, stopping = asyncio.create_task(visits.run()), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
        interrupted = not working.done() and stopping.result()
    finally:
        working.cancel()
        stopping.cancel()
        await asyncio.wait([working, stopping])
    if not working.cancelled():
        working.result()
    return interrupted
