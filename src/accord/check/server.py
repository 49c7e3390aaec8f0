"""Checking a server: the revisions that it speaks, over every transport by which it is reached."""

from __future__ import annotations

import asyncio
from typing import Any

from accord.check.begun import Begun
from accord.check.discreet import Discreet, without
from accord.check.notes import Unwatched, Watcher
from accord.check.reach import Reach
from accord.check.report import Report
from accord.check.rules import server_rules
from accord.check.sdks import attributed
from accord.check.selection import company, selected
from accord.check.settings import CheckSettings
from accord.check.visits import Visits
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
    """Check a server: a command, a URL, FILE.py[:server], or a `Server`; `label` is what to call it.

    When `stop` is set, the check ends, and the report holds what was found until then. Raises `TargetError` for
    settings that fit nothing, `ConnectError` when the server cannot be reached, or speaks none of the revisions.
    """
    settings = settings or CheckSettings()
    reach = Reach(target, settings.headers)
    called = reach.called(label or (target if isinstance(target, str) else reach.name))
    rules = selected(server_rules(), settings)
    begun = Begun("server", called, rules, settings)
    others = company(server_rules(), rules, settings)
    visits = Visits(reach, rules, others, settings, Discreet(watcher or Unwatched(), reach.secrets))
    if not list(visits.places()):
        ways = {way for revision in settings.revisions or REVISIONS for way in reach.transports(revision)}
        over = f"over {' and '.join(sorted(ways))}" if ways else "in no revision that is wanted"
        asked = "--transport, --revision, --only, --skip, --level"
        raise TargetError(f"nothing to try: {called} is reached {over}, and no rule is left to try there ({asked})")
    interrupted = False
    try:
        await reach.open()
        interrupted = await _until(stop, visits)
    except ConnectError as exc:
        raise ConnectError(reach.secrets.hidden(str(exc))) from exc.__cause__
    finally:
        await reach.close()
    if not visits.visits and not interrupted:
        raise ConnectError(reach.secrets.hidden(f"{called} {visits.excuse}"))
    more = visits.told | {"interrupted": interrupted}
    report = begun.report(visits.name, visits.visits, visits.outcomes, **more)
    return without(reach.secrets, attributed(report, visits.sdk))


async def _until(stop: asyncio.Event | None, visits: Visits) -> bool:
    """Make the visits. Returns whether they were stopped before they were done."""
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
