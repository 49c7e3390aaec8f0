"""Cache hints: how long, and by whom, a result may be cached (2026-07-28)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from accord.check.engine.rule import JudgedItems, NotApplicable, rule
from accord.check.probes.content import complete_result, get_object, preview_json
from accord.check.probes.lists import LIST_KINDS
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import AnsweredRequest, answered_requests
from accord.check.probes.probe import Probe

BORN = "2026-07-28"
CACHED = ("server/discover", *(listing.method for listing in LIST_KINDS), "resources/read")
SCOPES = ("public", "private")


_rule = partial(rule, since=BORN)


@_rule(
    "caching/hints",
    "must",
    case="all cacheable results",
    at="server/utilities/caching#cacheable-results",
    cause='`ttlMs` and `cacheScope` are new in 2026-07-28: use 0 and "private" if the result must not be cached.',
)
def caching_hints(logs: Sequence[MessageLog]) -> JudgedItems:
    """The results of server/discover, list methods and resources/read have `ttlMs` and `cacheScope`."""
    for each in _cacheable_results(logs):
        yield
        missing = [name for name in ("ttlMs", "cacheScope") if name not in each.result]
        if missing:
            raise each.violation(f"the result of {each.request['method']} has no {' and no '.join(missing)}")


@_rule(
    "caching/ttl",
    "must",
    case="all cacheable results",
    at="server/utilities/caching#time-to-live-ttl-field",
    cause="The value is a point in time, or -1 for no limit, instead of a duration.",
)
def caching_ttl(logs: Sequence[MessageLog]) -> JudgedItems:
    """`ttlMs` is a non-negative integer number of milliseconds."""
    for each in _cacheable_results(logs):
        if "ttlMs" in each.result:
            yield
            ttl = each.result["ttlMs"]
            if isinstance(ttl, bool) or not isinstance(ttl, int | float) or ttl != int(ttl) or ttl < 0:
                raise each.violation(f"ttlMs is {preview_json(ttl)}")


@_rule(
    "caching/scope",
    "must",
    case="all cacheable results",
    at="server/utilities/caching#cache-scope-field",
    cause="The value is an HTTP directive such as `no-store`.",
)
def caching_scope(logs: Sequence[MessageLog]) -> JudgedItems:
    """`cacheScope` is "public" or "private"."""
    for each in _cacheable_results(logs):
        if "cacheScope" in each.result:
            yield
            if each.result["cacheScope"] not in SCOPES:
                raise each.violation(f"cacheScope is {preview_json(each.result['cacheScope'])}")


@_rule(
    "caching/one-scope",
    "must",
    case="each list with several pages",
    at="server/utilities/caching#interaction-with-pagination",
    cause="The scope is computed for each page from its items: use the narrowest scope for all pages.",
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
        raise NotApplicable("each list has one page")


@_rule(
    "caching/interim",
    "should",
    case="all results with `input_required`",
    at="server/utilities/caching#cacheable-results",
    cause="The hints are added to every result of the method, not only to final results.",
)
def caching_interim(logs: Sequence[MessageLog]) -> JudgedItems:
    """A result that requires input (`input_required`) has no cache hints."""
    for each in answered_requests(logs):
        if _kind(each) == "input_required":
            yield
            for name in ("ttlMs", "cacheScope"):
                if name in each.result:
                    raise each.violation(f"the result has {name}")


def _cacheable_results(logs: Sequence[MessageLog]) -> Iterator[AnsweredRequest]:
    return (each for each in answered_requests(logs, *CACHED) if complete_result(each.result))


def _kind(each: AnsweredRequest) -> object:
    return get_object(each.result).get("resultType")
