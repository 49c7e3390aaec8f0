"""Resources: the lists of resources and templates, and notifications about changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from accord.check.engine.rule import JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes import lists
from accord.check.probes.content import (
    all_strings,
    content_blocks,
    get_object,
    get_objects,
    preview_json,
    resource_contents,
    uri_fault,
)
from accord.check.probes.lists import RESOURCES, TEMPLATES
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests, received_messages
from accord.check.probes.probe import Probe
from accord.errors import DeclarationError
from accord.messages.base import JSONObject
from accord.server.declare.templates import Template

UPDATED = "notifications/resources/updated"


@rule(
    "resources/declared",
    "must",
    case="resources/list, without regard to the capabilities",
    at="server/resources#capabilities",
    cause="The capabilities are written by hand: add `resources`, or clients will not list any.",
)
async def resources_declared(probe: Probe) -> None:
    """A server that has resources declares the capability `resources`."""
    await lists.require_declared(probe, RESOURCES)


@resources_declared.case("resources/templates/list, without regard to the capabilities")
async def resources_declared_templates(probe: Probe) -> None:
    await lists.require_declared(probe, TEMPLATES)


@rule(
    "resources/listed",
    "must",
    case="resources/list",
    needs="resources",
    at="server/resources#listing-resources",
    cause="Only templates or only resources/read are implemented: return an empty list.",
)
async def resources_listed(probe: Probe) -> None:
    """A server that declares the capability `resources` lists its resources."""
    await lists.require_list(probe, RESOURCES)


@rule(
    "resources/same-everywhere",
    "must",
    case="two concurrent sessions",
    needs="resources",
    at="server/resources#capabilities",
    since="2026-07-28",
    cause="The list is stored for each connection: it may depend on the authorization only.",
)
async def resources_same_everywhere(probe: Probe) -> None:
    """The list of resources does not depend on the connection or on earlier requests."""
    await lists.require_same_list(probe, RESOURCES)


@rule(
    "resources/list-changed",
    "should",
    case="calls that may change the list",
    kind="own",
    needs="resources.listChanged",
    calls=True,
    at="server/resources#list-changed-notification",
    cause="The list changes without a notification, or the notification is not sent to subscribers.",
)
async def resources_list_changed(probe: Probe) -> None:
    """A server that declares `resources.listChanged` sends a notification when its list of resources changes."""
    await lists.require_change_notification(probe, RESOURCES)


@rule(
    "resources/unique-uris",
    "should",
    case="all URIs",
    needs="resources",
    at=("server/resources#resource", "server/resources"),
    cause="Resources of several sources are combined without a prefix.",
)
async def resources_unique_uris(probe: Probe) -> None:
    """The URIs of resources are unique."""
    uri = lists.duplicate_name(await probe.resources(), RESOURCES)
    if uri is not None:
        raise probe.violation(f"two resources have the URI {uri!r}")


@rule(
    "resources/uris",
    "must",
    case="all resources in lists, contents, links and results",
    at=("server/resources#custom-uri-schemes", "server/resources"),
    cause="The URI is a path or a name, or a character is not escaped (a space is %20).",
)
def resources_uris(logs: Sequence[MessageLog]) -> JudgedItems:
    """The URI of a resource is valid according to RFC 3986."""
    for each in answered_requests(logs):
        ours = set(all_strings(each.request))
        for resource in _resources(get_object(each.result)):
            yield
            if resource.get("uri") not in ours and (fault := uri_fault(resource.get("uri"))):
                raise each.violation(f"a resource {fault}")


def _resources(result: JSONObject) -> Iterator[JSONObject]:
    yield from get_objects(result, "resources")
    yield from resource_contents(result)
    yield from (block for block in content_blocks(result) if block.get("type") == "resource_link")


@rule(
    "resources/templates",
    "must",
    case="each template",
    needs="resources",
    at=("server/resources#resource-templates", "schema#resourcetemplate"),
    cause="The syntax of web frameworks is used (`:id`, `<id>`): write `{id}`.",
)
async def resources_templates(probe: Probe) -> None:
    """The URI template of a resource template is valid according to RFC 6570."""
    found = [text for each in await probe.templates() if isinstance(text := each.get("uriTemplate"), str)]
    if not found:
        raise NotApplicable("the server has no resource templates")
    for text in found:
        try:
            Template(text)
        except DeclarationError as exc:
            raise probe.violation(f"{text[:100]!r}: {exc}") from None


_DATE = r"(\d{4}|[+-]\d{4,6})(-?\d\d(-?\d\d)?|-?W\d\d(-?\d)?|-?\d{3})?"
_TIME = r"\d\d(:?\d\d(:?\d\d)?)?([.,]\d+)?(Z|[+-]\d\d(:?\d\d)?)?"
_MOMENT = re.compile(rf"{_DATE}([T ]{_TIME})?").fullmatch


@rule(
    "resources/last-modified",
    "should",
    case="annotations of all resources, templates and content blocks",
    at=("server/resources#annotations", "schema#annotations"),
    since="2025-06-18",
    cause="The date has a local format, or is in seconds.",
)
def resources_last_modified(logs: Sequence[MessageLog]) -> JudgedItems:
    """The time of the last change is in ISO 8601."""
    for each in answered_requests(logs):
        result = get_object(each.result)
        for annotated in (*_resources(result), *get_objects(result, "resourceTemplates"), *content_blocks(result)):
            when = get_object(annotated, "annotations").get("lastModified")
            if isinstance(when, str):
                yield
                if not _MOMENT(when):
                    raise each.violation(f"lastModified is {when!r}")


@rule(
    "resources/subscribe",
    "must",
    case="resources/subscribe and resources/unsubscribe",
    needs="resources.subscribe",
    at=("server/resources#subscriptions", "server/resources#capabilities"),
    until="2026-07-28",
    cause="The capability is declared, but no handler answers `resources/subscribe` or `resources/unsubscribe`.",
)
async def resources_subscribe(probe: Probe) -> None:
    """A server that declares `resources.subscribe` answers resources/subscribe and resources/unsubscribe."""
    uri = await _some_uri(probe)
    await probe.result("resources/subscribe", {"uri": uri})
    await probe.result("resources/unsubscribe", {"uri": uri})


@rule(
    "resources/updated",
    "should",
    case="calls that may change subscribed resources",
    kind="own",
    needs="resources.subscribe",
    calls=True,
    at="server/resources#subscriptions",
    cause="The resource changes without a notification, or the notification is not sent to subscribers.",
)
async def resources_updated(probe: Probe) -> None:
    """A client that has subscribed to a resource receives a notification when it changes."""
    watched = [str(each.get("uri")) for each in (await probe.resources())[:_MOST]]
    await lists.subscribe_to_changes(probe, {"resourceSubscriptions": watched})
    if probe.rules.handshake:
        for uri in watched:
            await probe.request("resources/subscribe", {"uri": uri})
    before = await _stable_contents(probe, watched)
    since = len(probe.log.entries)
    await lists.trigger_changes(probe)
    if await lists.was_notified(probe, since, UPDATED):
        return
    changed = [uri for uri in watched if before[uri] != await _read(probe, uri)]
    if not changed:
        raise NotObserved("no callable tool changed a resource with a subscription")
    if not await lists.wait_for_notification(probe, UPDATED):
        raise probe.violation(f"{changed[0]!r} changed, but {UPDATED} was not sent")


@rule(
    "resources/updated-unasked",
    "should",
    case="all notifications about resources",
    needs="resources",
    at=("server/resources#subscriptions", "schema#resourceupdatednotification"),
    until="2026-07-28",
    cause="All clients receive all notifications: store the subscriptions of each client.",
)
def resources_updated_unasked(logs: Sequence[MessageLog]) -> JudgedItems:
    """Only clients that have subscribed to a resource receive notifications about it."""
    for each in received_messages(logs):
        if each.message.get("method") == UPDATED:
            yield
            before = each.log.entries[: each.log.entries.index(each.entry)]
            if not any(get_object(entry.message).get("method") == "resources/subscribe" for entry in before):
                raise each.violation("this session has no subscription to the resource")


_MOST = 10
_TRIES = 5


async def _some_uri(probe: Probe) -> str:
    for resource in await probe.resources():
        return str(resource.get("uri"))
    raise NotObserved("the server lists no resources")


async def _stable_contents(probe: Probe, uris: Sequence[str]) -> dict[str, str]:
    """Return the contents of the resources. Raises `NotObserved` if they always change."""
    before = {uri: await _read(probe, uri) for uri in uris}
    for _ in range(_TRIES):
        again = {uri: await _read(probe, uri) for uri in uris}
        if again == before:
            return before
        before = again
    raise NotObserved("the contents of the resources always change")


async def _read(probe: Probe, uri: str) -> str:
    answer = await probe.request("resources/read", {"uri": uri})
    return preview_json(get_object(answer.result).get("contents"), 1 << 20)
