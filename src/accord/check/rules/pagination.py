"""Lists in pages: cursors that lead on, that lead to the same place twice, and that lead nowhere."""

from __future__ import annotations

from typing import Any

from accord.check.engine.rule import NotApplicable, rule
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.lists import LIST_KINDS, ListKind
from accord.check.probes.probe import Probe
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND


@rule(
    "pagination/ends",
    "should",
    case="each list, page by page",
    at=("server/utilities/pagination#implementation-guidelines", "server/utilities/pagination#response-format"),
    cause="The last page has a cursor, too, or the cursor that came with the request is given back.",
)
async def pagination_ends(probe: Probe) -> None:
    """Following the cursors leads to the end of a list, and to no page twice."""
    for listing in _declared(probe):
        seen: list[str] = []
        for page in await probe.pages(listing.method, listing.key, optional=True):
            cursor = page.get("nextCursor")
            if cursor in seen:
                raise probe.violation(f"{listing.method} gives the cursor {cursor!r} again: it has no end")
            seen += [cursor] if isinstance(cursor, str) else []


@rule(
    "pagination/stable",
    "should",
    case="the second page of each list, twice, with the first one again between",
    at="server/utilities/pagination#implementation-guidelines",
    cause="A cursor is an iterator on the server that is used up, or is forgotten with the next request.",
)
async def pagination_stable(probe: Probe) -> None:
    """A cursor leads to the same page when it is used again."""
    judged = 0
    for listing in _declared(probe):
        first = await probe.request(listing.method)
        cursor = get_object(first.result).get("nextCursor")
        if isinstance(cursor, str):
            judged += 1
            second = await probe.result(listing.method, {"cursor": cursor})
            await probe.result(listing.method)
            again = await probe.result(listing.method, {"cursor": cursor})
            if _names(second, listing) != _names(again, listing):
                raise probe.violation(f"{listing.method} gives another page for the cursor {cursor!r} than before")
    if not judged:
        raise NotApplicable("every list has one page")


@rule(
    "pagination/invalid-cursor",
    "should",
    case="a cursor that nobody gave, for each list",
    at="server/utilities/pagination#error-handling",
    cause="Cursors are not looked at: the first page comes again, as if it were the next.",
)
async def pagination_invalid_cursor(probe: Probe) -> None:
    """A cursor that the server never gave is answered with the error -32602."""
    for listing in _declared(probe):
        await _require_refused(probe, listing, probe.unknown_name)


@pagination_invalid_cursor.case("a cursor with something at its end, for each list")
async def pagination_invalid_cursor_cursor_something_end_list(probe: Probe) -> None:
    judged = 0
    for listing in _declared(probe):
        cursor = get_object((await probe.request(listing.method)).result).get("nextCursor")
        if isinstance(cursor, str):
            judged += 1
            await _require_refused(probe, listing, f"{cursor}/{probe.unknown_name}")
    if not judged:
        raise NotApplicable("every list has one page")


@rule(
    "pagination/cursor-type",
    "should",
    case="a number and an object for a cursor, for each list",
    at=("server/utilities/pagination#request-format", "schema#paginatedrequestparams"),
    cause="Params are used as they come.",
)
async def pagination_cursor_type(probe: Probe) -> None:
    """A cursor that is no text does not get a page."""
    wrong: tuple[Any, ...] = (5, {})
    for listing in _declared(probe):
        for cursor in wrong:
            answer = await probe.request(listing.method, {"cursor": cursor})
            if answer.error is None:
                raise probe.violation(
                    f"{listing.method} answers the cursor {preview_json(cursor)} with {preview_json(answer.result)}"
                )


async def _require_refused(probe: Probe, listing: ListKind, cursor: str) -> None:
    answer = await probe.request(listing.method, {"cursor": cursor})
    if answer.code not in (INVALID_PARAMS, METHOD_NOT_FOUND):
        raise probe.violation(
            f"{listing.method} with the cursor {cursor!r} gives {preview_json(answer.error or answer.result)}"
        )


def _declared(probe: Probe) -> list[ListKind]:
    found = [listing for listing in LIST_KINDS if probe.has_capability(listing.capability)]
    if not found:
        raise NotApplicable("it declares nothing that is listed")
    return found


def _names(page: dict[str, object], listing: ListKind) -> list[str]:
    found = page.get(listing.key)
    return [preview_json(get_object(each).get(listing.id_field)) for each in found] if isinstance(found, list) else []
