"""Resources as a server lists them, and the changes of which it tells."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accord.check import lists
from accord.check.blocks import blocks, contents, inside, items, texts, uri_fault
from accord.check.lists import RESOURCES, TEMPLATES
from accord.check.reading import answers, heard
from accord.check.record import Record
from accord.check.rule import NotApplicable, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.values import shown
from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.server.templates import Template

UPDATED = "notifications/resources/updated"

DECLARED = Rule(
    "resources/declared",
    "must",
    "A server that has resources declares the capability `resources`.",
    at="server/resources#capabilities",
    cause="The capabilities are written by hand: add `resources`, or clients will not look for any.",
)


@DECLARED.case("resources/list, whatever is declared")
async def _(talk: Talk) -> None:
    await lists.undeclared(talk, RESOURCES)


@DECLARED.case("resources/templates/list, whatever is declared")
async def _(talk: Talk) -> None:
    await lists.undeclared(talk, TEMPLATES)


LISTED = Rule(
    "resources/listed",
    "must",
    "A server that declares the capability `resources` lists its resources.",
    at="server/resources#listing-resources",
    cause="Only templates are offered, or only reading: an empty list is an answer, too.",
)


@LISTED.case("resources/list", needs="resources")
async def _(talk: Talk) -> None:
    await lists.answered(talk, RESOURCES)


SAME = Rule(
    "resources/same-everywhere",
    "must",
    "The list of resources depends neither on the connection nor on earlier requests.",
    at="server/resources#capabilities",
    since="2026-07-28",
    cause="The list is kept for each connection: let it depend on the authorization, or on nothing.",
)


@SAME.case("two connections at the same time", needs="resources")
async def _(talk: Talk) -> None:
    await lists.same_everywhere(talk, RESOURCES)


CHANGES = Rule(
    "resources/list-changed",
    "should",
    "A server that declares `resources.listChanged` says so when its list of resources changes.",
    at="server/resources#list-changed-notification",
    cause="The list is changed without a notification, or it is sent to nobody who listens.",
)


@CHANGES.case("calls that may change the list", kind="own", needs="resources.listChanged", calls=True)
async def _(talk: Talk) -> None:
    await lists.tells_of_changes(talk, RESOURCES)


UNIQUE = Rule(
    "resources/unique-uris",
    "should",
    "No two resources have the same URI.",
    at=("server/resources#resource", "server/resources"),
    cause="Resources of several sources are put together without a prefix.",
)


@UNIQUE.case("all URIs", needs="resources")
async def _(talk: Talk) -> None:
    uri = lists.twice(await talk.resources(), RESOURCES)
    if uri is not None:
        raise talk.broken(f"two resources have the URI {uri!r}")


URIS = Rule(
    "resources/uris",
    "must",
    "Every resource has a URI as RFC 3986 writes it.",
    at=("server/resources#custom-uri-schemes", "server/resources"),
    cause="A path or a name stands where a URI should, or a character in it is not escaped (a space is %20).",
)


@URIS.reading("all resources that were listed, read, linked or held in results")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for each in answers(records):
        ours = set(texts(each.request))
        for resource in _resources(inside(each.result)):
            judged += 1
            if resource.get("uri") not in ours and (fault := uri_fault(resource.get("uri"))):
                raise each.broken(f"a resource {fault}")
    return judged


def _resources(result: JSONObject) -> Iterator[JSONObject]:
    yield from items(result, "resources")
    yield from contents(result)
    yield from (block for block in blocks(result) if block.get("type") == "resource_link")


TEMPLATE = Rule(
    "resources/templates",
    "must",
    "The URI template of a resource template is one of RFC 6570.",
    at=("server/resources#resource-templates", "schema#resourcetemplate"),
    cause="Routes of a web framework look alike (`:id`, `<id>`): write `{id}`.",
)


@TEMPLATE.case("every template", needs="resources")
async def _(talk: Talk) -> None:
    found = [text for each in await talk.templates() if isinstance(text := each.get("uriTemplate"), str)]
    if not found:
        raise NotApplicable("it has no resource templates")
    for text in found:
        try:
            Template(text)
        except DeclarationError as exc:
            raise talk.broken(f"{text[:100]!r}: {exc}") from None


MODIFIED = Rule(
    "resources/last-modified",
    "should",
    "When something was changed is said as ISO 8601 does.",
    at=("server/resources#annotations", "schema#annotations"),
    since="2025-06-18",
    cause="A date is written as people of one country do, or in seconds.",
)

_DATE = r"(\d{4}|[+-]\d{4,6})(-?\d\d(-?\d\d)?|-?W\d\d(-?\d)?|-?\d{3})?"
_TIME = r"\d\d(:?\d\d(:?\d\d)?)?([.,]\d+)?(Z|[+-]\d\d(:?\d\d)?)?"
_MOMENT = re.compile(rf"{_DATE}([T ]{_TIME})?").fullmatch


@MODIFIED.reading("annotations of all resources, templates and blocks of content")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for each in answers(records):
        result = inside(each.result)
        for annotated in (*_resources(result), *items(result, "resourceTemplates"), *blocks(result)):
            when = inside(annotated, "annotations").get("lastModified")
            if isinstance(when, str):
                judged += 1
                if not _MOMENT(when):
                    raise each.broken(f"lastModified is {when!r}")
    return judged


SUBSCRIBE = Rule(
    "resources/subscribe",
    "must",
    "A server that declares `resources.subscribe` accepts subscriptions to listed resources, and ends them on request.",
    at=("server/resources#subscriptions", "server/resources#capabilities"),
    until="2026-07-28",
    cause="The capability is declared, and no handler answers `resources/subscribe` or `resources/unsubscribe`.",
)


@SUBSCRIBE.case("subscribe and unsubscribe", needs="resources.subscribe")
async def _(talk: Talk) -> None:
    uri = await _some_uri(talk)
    await talk.result("resources/subscribe", {"uri": uri})
    await talk.result("resources/unsubscribe", {"uri": uri})


TOLD = Rule(
    "resources/updated",
    "should",
    "A client that has subscribed to a resource is notified when it changes.",
    at="server/resources#subscriptions",
    cause="The resource is changed without a notification, or it is sent to nobody who listens.",
)


@TOLD.case("calls that may change what is watched", kind="own", needs="resources.subscribe", calls=True)
async def _(talk: Talk) -> None:
    watched = [str(each.get("uri")) for each in (await talk.resources())[:_MOST]]
    await lists.watch(talk, {"resourceSubscriptions": watched})
    if talk.rules.handshake:
        for uri in watched:
            await talk.request("resources/subscribe", {"uri": uri})
    before = await _settled(talk, watched)
    since = len(talk.record.entries)
    await lists.change(talk)
    if await lists.told(talk, since, UPDATED):
        return
    changed = [uri for uri in watched if before[uri] != await _read(talk, uri)]
    if not changed:
        raise NotObserved("nothing that may be called changed a resource that can be watched")
    if not await lists.comes(talk, UPDATED):
        raise talk.broken(f"{changed[0]!r} has changed, and {UPDATED} did not come")


UNASKED = Rule(
    "resources/updated-unasked",
    "should",
    "Only clients that have subscribed to a resource are notified of its changes.",
    at=("server/resources#subscriptions", "schema#resourceupdatednotification"),
    until="2026-07-28",
    cause="Every client is told of every change: keep who has subscribed to what.",
)


@UNASKED.reading("all that was said of changes", needs="resources")
def _(records: Sequence[Record]) -> int:
    found = [each for each in heard(records) if each.message.get("method") == UPDATED]
    for each in found:
        before = each.record.entries[: each.record.entries.index(each.said)]
        if not any(inside(said.message).get("method") == "resources/subscribe" for said in before):
            raise each.broken("nobody has subscribed in this conversation")
    return len(found)


_MOST = 10
_TRIES = 5


async def _some_uri(talk: Talk) -> str:
    for resource in await talk.resources():
        return str(resource.get("uri"))
    raise NotObserved("it lists no resource")


async def _settled(talk: Talk, uris: Sequence[str]) -> dict[str, str]:
    """Return the contents of the resources. Raises `NotObserved` if they change all the time."""
    before = {uri: await _read(talk, uri) for uri in uris}
    for _ in range(_TRIES):
        again = {uri: await _read(talk, uri) for uri in uris}
        if again == before:
            return before
        before = again
    raise NotObserved("what can be watched changes all the time")


async def _read(talk: Talk, uri: str) -> str:
    answer = await talk.request("resources/read", {"uri": uri})
    return shown(inside(answer.result).get("contents"), 1 << 20)
