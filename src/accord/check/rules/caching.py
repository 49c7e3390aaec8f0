"""Hints how long a result may be kept, and by whom (2026-07-28)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.engine.rule import JudgedItems, NotApplicable, rule
from accord.check.probes.content import complete_result, get_object, preview_json
from accord.check.probes.lists import LIST_KINDS
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, answered_requests
from accord.check.probes.probe import Probe

BORN = "2026-07-28"
CACHED = ("server/discover", *(listing.method for listing in LIST_KINDS), "resources/read")
SCOPES = ("public", "private")


@rule(
    "caching/hints",
    "must",
    case="all results that may be kept",
    at="server/utilities/caching#cacheable-results",
    since=BORN,
    cause="`ttlMs` and `cacheScope` came with 2026-07-28: 0 and private promise nothing.",
)
def caching_hints(logs: Sequence[MessageLog]) -> JudgedItems:
    """The results of server/discover, the lists and resources/read say how long they may be kept, and by whom."""
    for each in _cacheable_results(logs):
        yield
        missing = [name for name in ("ttlMs", "cacheScope") if name not in each.result]
        if missing:
            raise each.violation(f"the result of {each.request['method']} has no {' and no '.join(missing)}")


@rule(
    "caching/ttl",
    "must",
    case="all results that may be kept",
    at="server/utilities/caching#time-to-live-ttl-field",
    since=BORN,
    cause="A moment, or -1 for no limit, stands where a duration should.",
)
def caching_ttl(logs: Sequence[MessageLog]) -> JudgedItems:
    """`ttlMs` is a whole number of milliseconds, and not negative."""
    for each in _cacheable_results(logs):
        if "ttlMs" in each.result:
            yield
            ttl = each.result["ttlMs"]
            if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl != int(ttl) or ttl < 0:
                raise each.violation(f"ttlMs is {preview_json(ttl)}")


@rule(
    "caching/scope",
    "must",
    case="all results that may be kept",
    at="server/utilities/caching#cache-scope-field",
    since=BORN,
    cause="A word of HTTP stands there that is none of these two (`no-store`).",
)
def caching_scope(logs: Sequence[MessageLog]) -> JudgedItems:
    """`cacheScope` is public or private."""
    for each in _cacheable_results(logs):
        if "cacheScope" in each.result:
            yield
            if each.result["cacheScope"] not in SCOPES:
                raise each.violation(f"cacheScope is {preview_json(each.result['cacheScope'])}")


@rule(
    "caching/one-scope",
    "must",
    case="each list that has several pages",
    at="server/utilities/caching#interaction-with-pagination",
    since=BORN,
    cause="The scope is found for each page by what stands on it: take the narrowest for all.",
)
async def caching_one_scope(probe: Probe) -> None:
    """All pages of a list have the same `cacheScope`."""
    judged = 0
    for listing in LIST_KINDS:
        if probe.has_capability(listing.capability):
            pages = await probe.pages(listing.method, listing.key, optional=True)
            scopes = [preview_json(page.get("cacheScope")) for page in pages]
            judged += len(pages) > 1
            if len(set(scopes)) > 1:
                raise probe.violation(f"the pages of {listing.method} have the scopes {', '.join(scopes)}")
    if not judged:
        raise NotApplicable("every list has one page")


@rule(
    "caching/interim",
    "should",
    case="all results that ask for input",
    at="server/utilities/caching#cacheable-results",
    since=BORN,
    cause="The hints are added to every result of the method, and not to final ones only.",
)
def caching_interim(logs: Sequence[MessageLog]) -> JudgedItems:
    """A result that asks for input does not say how long it may be kept."""
    for each in answered_requests(logs):
        if _kind(each) == "input_required":
            yield
            for name in ("ttlMs", "cacheScope"):
                if name in each.result:
                    raise each.violation(f"it has {name}")


def _cacheable_results(logs: Sequence[MessageLog]) -> Iterator[AnsweredRequest]:
    return (each for each in answered_requests(logs, *CACHED) if complete_result(each.result))


def _kind(each: AnsweredRequest) -> object:
    return get_object(each.result).get("resultType")
