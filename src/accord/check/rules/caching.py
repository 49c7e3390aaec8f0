"""Hints how long a result may be kept, and by whom (2026-07-28)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from accord.check.engine.rule import NotApplicable, Rule
from accord.check.probes.content import complete_result, get_object, preview_json
from accord.check.probes.lists import LIST_KINDS
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, answered_requests
from accord.check.probes.probe import Probe

BORN = "2026-07-28"
CACHED = ("server/discover", *(listing.method for listing in LIST_KINDS), "resources/read")
SCOPES = ("public", "private")

HINTS = Rule(
    "caching/hints",
    "must",
    "The results of server/discover, the lists and resources/read say how long they may be kept, and by whom.",
    at="server/utilities/caching#cacheable-results",
    since=BORN,
    cause="`ttlMs` and `cacheScope` came with 2026-07-28: 0 and private promise nothing.",
)


@HINTS.reading("all results that may be kept")
def read_hints(records: Sequence[MessageLog]) -> int:
    found = list(_cacheable_results(records))
    for each in found:
        missing = [name for name in ("ttlMs", "cacheScope") if name not in each.result]
        if missing:
            raise each.violation(f"the result of {each.request['method']} has no {' and no '.join(missing)}")
    return len(found)


TTL = Rule(
    "caching/ttl",
    "must",
    "`ttlMs` is a whole number of milliseconds, and not negative.",
    at="server/utilities/caching#time-to-live-ttl-field",
    since=BORN,
    cause="A moment, or -1 for no limit, stands where a duration should.",
)


@TTL.reading("all results that may be kept")
def read_ttl(records: Sequence[MessageLog]) -> int:
    found = [each for each in _cacheable_results(records) if "ttlMs" in each.result]
    for each in found:
        ttl = each.result["ttlMs"]
        if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl != int(ttl) or ttl < 0:
            raise each.violation(f"ttlMs is {preview_json(ttl)}")
    return len(found)


SCOPE = Rule(
    "caching/scope",
    "must",
    "`cacheScope` is public or private.",
    at="server/utilities/caching#cache-scope-field",
    since=BORN,
    cause="A word of HTTP stands there that is none of these two (`no-store`).",
)


@SCOPE.reading("all results that may be kept")
def read_scope(records: Sequence[MessageLog]) -> int:
    found = [each for each in _cacheable_results(records) if "cacheScope" in each.result]
    for each in found:
        if each.result["cacheScope"] not in SCOPES:
            raise each.violation(f"cacheScope is {preview_json(each.result['cacheScope'])}")
    return len(found)


ONE_SCOPE = Rule(
    "caching/one-scope",
    "must",
    "All pages of a list have the same `cacheScope`.",
    at="server/utilities/caching#interaction-with-pagination",
    since=BORN,
    cause="The scope is found for each page by what stands on it: take the narrowest for all.",
)


@ONE_SCOPE.case("each list that has several pages")
async def check_one_scope(talk: Probe) -> None:
    judged = 0
    for listing in LIST_KINDS:
        if talk.has_capability(listing.capability):
            pages = await talk.pages(listing.method, listing.key, optional=True)
            scopes = [preview_json(page.get("cacheScope")) for page in pages]
            judged += len(pages) > 1
            if len(set(scopes)) > 1:
                raise talk.violation(f"the pages of {listing.method} have the scopes {', '.join(scopes)}")
    if not judged:
        raise NotApplicable("every list has one page")


INTERIM = Rule(
    "caching/interim",
    "should",
    "A result that asks for input does not say how long it may be kept.",
    at="server/utilities/caching#cacheable-results",
    since=BORN,
    cause="The hints are added to every result of the method, and not to final ones only.",
)


@INTERIM.reading("all results that ask for input")
def read_interim(records: Sequence[MessageLog]) -> int:
    found = [each for each in answered_requests(records) if _kind(each) == "input_required"]
    for each in found:
        for name in ("ttlMs", "cacheScope"):
            if name in each.result:
                raise each.violation(f"it has {name}")
    return len(found)


def _cacheable_results(records: Sequence[MessageLog]) -> Iterator[AnsweredRequest]:
    return (each for each in answered_requests(records, *CACHED) if complete_result(each.result))


def _kind(each: AnsweredRequest) -> object:
    return get_object(each.result).get("resultType")
