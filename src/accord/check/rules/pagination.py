"""Pagination: valid, reused and unknown cursors."""

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
    cause="The last page has a cursor, too, or the cursor of the request is returned.",
)
async def pagination_ends(probe: Probe) -> None:
    """The cursors of a list lead to its end, and to each page once."""
    for listing in _declared(probe):
        seen: list[str] = []
        for page in await probe.pages(listing.method, listing.key, optional=True):
            cursor = page.get("nextCursor")
            if cursor in seen:
                raise probe.violation(f"{listing.method} returned the cursor {cursor!r} again: the list has no end")
            seen += [cursor] if isinstance(cursor, str) else []


@rule(
    "pagination/stable",
    "should",
    case="the second page of each list twice, with the first page in between",
    at="server/utilities/pagination#implementation-guidelines",
    cause="The cursor is an iterator that is used up, or is deleted by the next request.",
)
async def pagination_stable(probe: Probe) -> None:
    """A reused cursor returns the same page."""
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
                raise probe.violation(f"{listing.method} returned different pages for the cursor {cursor!r}")
    if not judged:
        raise NotApplicable("each list has one page")


@rule(
    "pagination/invalid-cursor",
    "should",
    case="an unknown cursor for each list",
    at="server/utilities/pagination#error-handling",
    cause="Cursors are ignored: the first page is returned again.",
)
async def pagination_invalid_cursor(probe: Probe) -> None:
    """An unknown cursor returns error -32602."""
    for listing in _declared(probe):
        await _require_refused(probe, listing, probe.unknown_name)


@pagination_invalid_cursor.case("a cursor with additional characters for each list")
async def pagination_invalid_cursor_extended(probe: Probe) -> None:
    judged = 0
    for listing in _declared(probe):
        cursor = get_object((await probe.request(listing.method)).result).get("nextCursor")
        if isinstance(cursor, str):
            judged += 1
            await _require_refused(probe, listing, f"{cursor}/{probe.unknown_name}")
    if not judged:
        raise NotApplicable("each list has one page")


@rule(
    "pagination/cursor-type",
    "should",
    case="a number and an object as a cursor for each list",
    at=("server/utilities/pagination#request-format", "schema#paginatedrequestparams"),
    cause="Params are not validated.",
)
async def pagination_cursor_type(probe: Probe) -> None:
    """The server refuses a cursor that is not a string."""
    wrong: tuple[Any, ...] = (5, {})
    for listing in _declared(probe):
        for cursor in wrong:
            answer = await probe.request(listing.method, {"cursor": cursor})
            if answer.error is None:
                raise probe.violation(
                    f"{listing.method} with the cursor {preview_json(cursor)} returned {preview_json(answer.result)}"
                )


async def _require_refused(probe: Probe, listing: ListKind, cursor: str) -> None:
    answer = await probe.request(listing.method, {"cursor": cursor})
    if answer.code not in (INVALID_PARAMS, METHOD_NOT_FOUND):
        raise probe.violation(
            f"{listing.method} with the cursor {cursor!r} returned {preview_json(answer.error or answer.result)}"
        )


def _declared(probe: Probe) -> list[ListKind]:
    found = [listing for listing in LIST_KINDS if probe.has_capability(listing.capability)]
    if not found:
        raise NotApplicable("the server declares no capability with a list")
    return found


def _names(page: dict[str, object], listing: ListKind) -> list[str]:
    found = page.get(listing.key)
    return [preview_json(get_object(each).get(listing.id_field)) for each in found] if isinstance(found, list) else []
