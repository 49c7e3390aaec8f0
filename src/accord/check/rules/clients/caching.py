"""From 2026-07-28 on: how long results may be kept, and what that does not mean."""

from __future__ import annotations

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run
from accord.check.clients.scene import Answer, Scene
from accord.check.rule import Broken, Rule

_SINCE = "2026-07-28"
_AT = "server/utilities/caching#time-to-live-ttl-field"
_LISTS = ("tools/list", "resources/list", "prompts/list", "resources/templates/list")
_MORE = 10
"""Requests more than usual that may have another reason."""

POLLING = Rule(
    "client-caching/no-polling",
    "should",
    "ttlMs is not the interval at which a client asks again by itself.",
    at="server/utilities/caching#freshness-calculation",
    role="client",
    since=_SINCE,
    cause="A timer is set for the end of each result.",
)

NEGATIVE = Rule(
    "client-caching/negative",
    "should",
    "A negative ttlMs is taken for 0.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="The number is used as it is, or refused.",
)

ABSENT = Rule(
    "client-caching/absent",
    "should",
    "Results without hints are taken as before.",
    at=_AT,
    role="client",
    since=_SINCE,
    cause="ttlMs or cacheScope is required when results are read.",
)

SHORT = Scene("short-lived", "results that may be kept for a moment", since=_SINCE)


@SHORT.on(*_LISTS)
async def _(ask: Ask) -> Answer:
    return {**await ask.usual(), "ttlMs": 50}


@SHORT.judges(POLLING, "results that may be kept for 50 ms")
def _(run: Run) -> None:
    run.got_away()
    more = len(run.requests(*_LISTS)) - len(run.usual.requests(*_LISTS))
    if more > _MORE:
        raise Broken(f"the client listed {more} times more than usual", evidence=run.evidence())


PAST = Scene("negative-ttl", "results that were too old before they came", since=_SINCE)


@PAST.on(*_LISTS)
async def _(ask: Ask) -> Answer:
    return {**await ask.usual(), "ttlMs": -1}


@PAST.judges(NEGATIVE, "a ttlMs of -1")
def _(run: Run) -> None:
    run.as_usual()


BARE = Scene("no-hints", "results that do not say how long they may be kept", since=_SINCE)


@BARE.on(*_LISTS)
async def _(ask: Ask) -> Answer:
    return {name: value for name, value in (await ask.usual()).items() if name not in ("ttlMs", "cacheScope")}


@BARE.judges(ABSENT, "lists without ttlMs and cacheScope")
def _(run: Run) -> None:
    run.as_usual()
