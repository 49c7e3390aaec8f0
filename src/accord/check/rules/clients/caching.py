"""Cache hints (2026-07-28): how long a client may cache results."""

from __future__ import annotations

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer
from accord.check.engine.rule import Violation

_SINCE = "2026-07-28"
_AT = "server/utilities/caching#time-to-live-ttl-field"
_LISTS = ("tools/list", "resources/list", "prompts/list", "resources/templates/list")
_MORE = 10
"""Number of additional requests that may have another reason."""


SHORT_LIVED_SCENARIO = Scenario("short-lived", "results that may be cached for a short time", since=_SINCE)


@SHORT_LIVED_SCENARIO.on(*_LISTS)
async def answer_short_lived(request: IncomingRequest) -> ScriptedAnswer:
    return {**await request.default_result(), "ttlMs": 50}


@SHORT_LIVED_SCENARIO.rule(
    "client-caching/no-polling",
    "should",
    case="results with a ttlMs of 50",
    at="server/utilities/caching#freshness-calculation",
    since=_SINCE,
    cause="A timer is started for the end of each result.",
)
def client_caching_no_polling(run: ClientRun) -> None:
    """ttlMs is not a polling interval."""
    run.require_progress()
    more = len(run.requests(*_LISTS)) - len(run.ordinary_run.requests(*_LISTS))
    if more > _MORE:
        raise Violation(f"the client listed {more} times more than usual", evidence=run.evidence())


NEGATIVE_TTL_SCENARIO = Scenario("negative-ttl", "results that have expired when they arrive", since=_SINCE)


@NEGATIVE_TTL_SCENARIO.on(*_LISTS)
async def answer_negative_ttl(request: IncomingRequest) -> ScriptedAnswer:
    return {**await request.default_result(), "ttlMs": -1}


@NEGATIVE_TTL_SCENARIO.rule(
    "client-caching/negative",
    "should",
    case="a ttlMs of -1",
    at=_AT,
    since=_SINCE,
    cause="The number is used without a check, or refused.",
)
def client_caching_negative(run: ClientRun) -> None:
    """A client treats a negative ttlMs as 0."""
    run.require_ordinary_behavior()


NO_HINTS_SCENARIO = Scenario("no-hints", "results without cache hints", since=_SINCE)


@NO_HINTS_SCENARIO.on(*_LISTS)
async def answer_no_hints(request: IncomingRequest) -> ScriptedAnswer:
    return {
        name: value for name, value in (await request.default_result()).items() if name not in ("ttlMs", "cacheScope")
    }


@NO_HINTS_SCENARIO.rule(
    "client-caching/absent",
    "should",
    case="lists without ttlMs and cacheScope",
    at=_AT,
    since=_SINCE,
    cause="ttlMs or cacheScope is required when results are decoded.",
)
def client_caching_absent(run: ClientRun) -> None:
    """A client accepts results without cache hints."""
    run.require_ordinary_behavior()
