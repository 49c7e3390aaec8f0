"""Lists in pages: cursors that lead on, that lead to the same place twice, and that lead nowhere."""

from __future__ import annotations

from typing import Any

from accord.check.blocks import inside
from accord.check.lists import LISTINGS, Listing
from accord.check.rule import NotApplicable, Rule
from accord.check.talk import Talk
from accord.check.values import shown
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND

ENDS = Rule(
    "pagination/ends",
    "should",
    "Following the cursors leads to the end of a list, and to no page twice.",
    at=("server/utilities/pagination#implementation-guidelines", "server/utilities/pagination#response-format"),
    cause="The last page has a cursor, too, or the cursor that came with the request is given back.",
)


@ENDS.case("each list, page by page")
async def _(talk: Talk) -> None:
    for listing in _declared(talk):
        seen: list[str] = []
        for page in await talk.pages(listing.method, listing.key, optional=True):
            cursor = page.get("nextCursor")
            if cursor in seen:
                raise talk.broken(f"{listing.method} gives the cursor {cursor!r} again: it has no end")
            seen += [cursor] if isinstance(cursor, str) else []


STABLE = Rule(
    "pagination/stable",
    "should",
    "A cursor leads to the same page when it is used again.",
    at="server/utilities/pagination#implementation-guidelines",
    cause="A cursor is an iterator on the server that is used up, or is forgotten with the next request.",
)


@STABLE.case("the second page of each list, twice, with the first one again between")
async def _(talk: Talk) -> None:
    judged = 0
    for listing in _declared(talk):
        first = await talk.request(listing.method)
        cursor = inside(first.result).get("nextCursor")
        if isinstance(cursor, str):
            judged += 1
            second = await talk.result(listing.method, {"cursor": cursor})
            await talk.result(listing.method)
            again = await talk.result(listing.method, {"cursor": cursor})
            if _names(second, listing) != _names(again, listing):
                raise talk.broken(f"{listing.method} gives another page for the cursor {cursor!r} than before")
    if not judged:
        raise NotApplicable("every list has one page")


INVALID = Rule(
    "pagination/invalid-cursor",
    "should",
    "A cursor that the server never gave is answered with the error -32602.",
    at="server/utilities/pagination#error-handling",
    cause="Cursors are not looked at: the first page comes again, as if it were the next.",
)


@INVALID.case("a cursor that nobody gave, for each list")
async def _(talk: Talk) -> None:
    for listing in _declared(talk):
        await _refused(talk, listing, talk.nobody)


@INVALID.case("a cursor with something at its end, for each list")
async def _(talk: Talk) -> None:
    judged = 0
    for listing in _declared(talk):
        cursor = inside((await talk.request(listing.method)).result).get("nextCursor")
        if isinstance(cursor, str):
            judged += 1
            await _refused(talk, listing, f"{cursor}/{talk.nobody}")
    if not judged:
        raise NotApplicable("every list has one page")


TYPE = Rule(
    "pagination/cursor-type",
    "should",
    "A cursor that is no text does not get a page.",
    at=("server/utilities/pagination#request-format", "schema#paginatedrequestparams"),
    cause="Params are used as they come.",
)


@TYPE.case("a number and an object for a cursor, for each list")
async def _(talk: Talk) -> None:
    wrong: tuple[Any, ...] = (5, {})
    for listing in _declared(talk):
        for cursor in wrong:
            answer = await talk.request(listing.method, {"cursor": cursor})
            if answer.error is None:
                raise talk.broken(f"{listing.method} answers the cursor {shown(cursor)} with {shown(answer.result)}")


async def _refused(talk: Talk, listing: Listing, cursor: str) -> None:
    answer = await talk.request(listing.method, {"cursor": cursor})
    if answer.code not in (INVALID_PARAMS, METHOD_NOT_FOUND):
        raise talk.broken(f"{listing.method} with the cursor {cursor!r} gives {shown(answer.error or answer.result)}")


def _declared(talk: Talk) -> list[Listing]:
    found = [listing for listing in LISTINGS if talk.has(listing.capability)]
    if not found:
        raise NotApplicable("it declares nothing that is listed")
    return found


def _names(page: dict[str, object], listing: Listing) -> list[str]:
    found = page.get(listing.key)
    return [shown(inside(each).get(listing.name)) for each in found] if isinstance(found, list) else []
