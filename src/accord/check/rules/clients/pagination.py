"""Pagination: cursors of a client, and endless lists."""

from __future__ import annotations

from accord.check.clients.features import PROMPTS, RESOURCES, TOOLS
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientMessage, ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer
from accord.check.engine.rule import NotObserved, Rule, Violation, client_rule
from accord.messages.base import JSONObject

_AT = "server/utilities/pagination#implementation-guidelines"
_SINCE = "2026-07-28"
_AWKWARD = 'cursor "1" \\ \u00e9 {"page": 2} %20=='
_ENDLESS = 1_500
_LISTS = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
_ITEMS = {"tools/list": TOOLS, "resources/list": RESOURCES, "prompts/list": PROMPTS}


@client_rule(
    "client-pages/bounded",
    "may",
    at=_AT,
    cause="The pages are not counted.",
)
def client_pages_bounded(run: ClientRun) -> None:
    """A client stops reading an endless list."""
    _require_bounded_reading(run)


@client_rule(
    "client-pages/repeated-cursor",
    "may",
    at=_AT,
    cause="The pages are not counted.",
)
def client_pages_repeated_cursor(run: ClientRun) -> None:
    """A client stops reading a list whose cursors repeat."""
    _require_bounded_reading(run)


PAGES_SCENARIO = Scenario("pages", "lists with pages of all sizes and special cursors")


@PAGES_SCENARIO.on(*_LISTS)
async def answer_pages(request: IncomingRequest) -> ScriptedAnswer:
    items, cursor = [*_ITEMS[request.method]], request.params.get("cursor")
    if cursor is None:
        return _page(request, items[:1], _AWKWARD)
    if cursor == _AWKWARD:
        return _page(request, [], "third")
    if cursor == "third":
        return _page(request, items[1:], "" if not request.rules.handshake else None)
    return _page(request, [], None)


def _page(request: IncomingRequest, items: list[JSONObject], cursor: str | None) -> JSONObject:
    page = {_LISTS[request.method]: items} | ({} if cursor is None else {"nextCursor": cursor})
    return request.with_result_fields(page)


@PAGES_SCENARIO.rule(
    "client-pages/cursor",
    "must",
    case="a cursor with special characters",
    at=_AT,
    cause="The cursor is decoded, incremented, or used for another list.",
)
def client_pages_cursor(run: ClientRun) -> None:
    """A client sends cursors without changes, and does not invent any."""
    followed = _page_requests(run)
    for each in followed:
        if each.params["cursor"] not in (_AWKWARD, "third", ""):
            raise Violation(f"no list returned the cursor {each.params['cursor']!r}", evidence=[each.entry.line()])


@PAGES_SCENARIO.rule(
    "client-pages/page-size",
    "must",
    case="a page of one item, an empty page, and a page of all other items",
    at=("server/utilities/pagination#pagination-model", _AT),
    cause="A short or empty page is taken for the last one.",
)
def client_pages_page_size(run: ClientRun) -> None:
    """A page may have any number of items: the list ends with a page without a cursor."""
    if not any(each.params["cursor"] == "third" for each in _page_requests(run)):
        raise Violation("the client stopped at an empty page with a cursor")


@PAGES_SCENARIO.rule(
    "client-pages/empty-cursor",
    "must",
    case="an empty cursor",
    at=_AT,
    since=_SINCE,
    cause="The cursor is tested for truth, not for presence.",
)
def client_pages_empty_cursor(run: ClientRun) -> None:
    """An empty cursor does not end a list."""
    if not any(each.params["cursor"] == "" for each in _page_requests(run)):
        raise Violation("the client stopped at an empty cursor")


def _page_requests(run: ClientRun) -> list[ClientMessage]:
    """Return the requests for further pages."""
    run.require_no_crash()
    found = [each for each in run.requests(*_LISTS) if "cursor" in each.params and each.params["cursor"] is not None]
    if not found:
        raise NotObserved("the client reads only first pages")
    return found


def _endless_list_scenario(rule: Rule, name: str, says: str, cursor: str) -> Scenario:
    """Return a scenario with an endless list."""
    scenario = Scenario(name, says)

    @scenario.on("tools/list")
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        last = request.index >= _ENDLESS
        return _page(request, [], None if last else cursor.format(request.index))

    scenario.case(rule, says)(rule.check)
    return scenario


def _require_bounded_reading(run: ClientRun) -> None:
    _page_requests(run)
    pages = len(run.requests("tools/list"))
    if pages > _ENDLESS:
        raise Violation(f"the client read {pages} pages, and would continue", evidence=run.evidence())


ENDLESS_LIST_SCENARIO = _endless_list_scenario(client_pages_bounded, "endless-list", "an endless list", "page {}")
REPEATED_CURSOR_SCENARIO = _endless_list_scenario(
    client_pages_repeated_cursor, "repeated-cursor", "a list whose cursor never changes", "again"
)
