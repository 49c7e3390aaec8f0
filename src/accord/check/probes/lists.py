"""Lists of tools, prompts, resources and templates: what their rules share."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from accord.check.engine.rule import NotObserved, Violation
from accord.check.fuzz.schema_document import GenerationError
from accord.check.fuzz.smallest import smallest
from accord.check.probes.content import get_object, get_objects, preview_json
from accord.check.probes.pending_answer import NO_ANSWER, Answer
from accord.check.probes.probe import Probe
from accord.messages.base import JSONObject


class ListKind(msgspec.Struct, frozen=True):
    """A kind of list. `id_field` identifies its items, `filter_field` subscribes to its changes (2026-07-28)."""

    capability: str
    method: str
    key: str
    id_field: str = "name"
    change_notification: str = ""
    filter_field: str = ""


TOOLS = ListKind("tools", "tools/list", "tools", "name", "notifications/tools/list_changed", "toolsListChanged")
PROMPTS = ListKind(
    "prompts", "prompts/list", "prompts", "name", "notifications/prompts/list_changed", "promptsListChanged"
)
RESOURCES = ListKind(
    "resources",
    "resources/list",
    "resources",
    "uri",
    "notifications/resources/list_changed",
    "resourcesListChanged",
)
TEMPLATES = ListKind("resources", "resources/templates/list", "resourceTemplates", "uriTemplate")
LIST_KINDS = (TOOLS, PROMPTS, RESOURCES, TEMPLATES)

_CHANGING_WORDS = ("change", "trigger", "toggle", "add", "remove", "register", "touch", "update")
"""A tool with one of these words in its name may change a list or a resource."""
_MOST = 10
_LATE_SECONDS = 1.0


async def require_declared(probe: Probe, listing: ListKind) -> None:
    """Raise `Violation` if the server has items of a list, but does not declare its capability."""
    if probe.has_capability(listing.capability):
        return
    found = get_objects((await probe.request(listing.method)).result, listing.key)
    if found:
        raise probe.violation(
            f"the server lists {len(found)} {listing.key}, but does not declare {listing.capability!r}"
        )


async def require_list(probe: Probe, listing: ListKind) -> None:
    """Raise `Violation` if the list method does not return a list."""
    result = await probe.result(listing.method)
    if not isinstance(result.get(listing.key), list):
        raise probe.violation(f"the result of {listing.method} has no array {listing.key!r}")


async def require_same_list(probe: Probe, listing: ListKind) -> None:
    """Raise `Violation` if a list differs between two concurrent sessions."""
    await _send_harmless_requests(probe)
    before = await list_names(probe, listing)
    there = await list_names(await probe.second(), listing)
    if before == await list_names(probe, listing) and sorted(before) != sorted(there):
        differing = sorted(set(before) ^ set(there))
        raise probe.violation(f"another session has another list; the difference is {preview_json(differing)}")


async def _send_harmless_requests(probe: Probe) -> None:
    """Send requests that must not have an effect."""
    for listing in LIST_KINDS:
        await probe.request(listing.method)
    for resource in (await probe.resources())[:1]:
        await probe.request("resources/read", {"uri": resource.get("uri")})
    await probe.request("prompts/get", {"name": probe.unknown_name})
    await probe.request("tools/call", {"name": probe.unknown_name, "arguments": {}})


async def list_names(probe: Probe, listing: ListKind) -> list[str]:
    """Return the ids of all listed items, in order."""
    pages = await probe.pages(listing.method, listing.key, optional=True)
    return [str(each.get(listing.id_field)) for page in pages for each in get_objects(page, listing.key)]


def duplicate_name(found: Sequence[JSONObject], listing: ListKind) -> str | None:
    """Return an id that is in a list more than once."""
    known = [str(each.get(listing.id_field)) for each in found]
    return next((name for name in known if known.count(name) > 1), None)


async def require_change_notification(probe: Probe, listing: ListKind) -> None:
    """Raise `Violation` if a call changes a list, but no notification is sent."""
    await subscribe_to_changes(probe, {listing.filter_field: True})
    since = len(probe.log.entries)
    before = await list_names(probe, listing)
    await trigger_changes(probe)
    after = await list_names(probe, listing)
    if await was_notified(probe, since, listing.change_notification):
        return
    if before == after:
        raise NotObserved("no callable tool changed the list")
    if not await wait_for_notification(probe, listing.change_notification):
        raise probe.violation(f"{listing.method} returned another list, but {listing.change_notification} was not sent")


async def subscribe_to_changes(probe: Probe, wanted: JSONObject) -> None:
    """Subscribe to notifications, if the revision requires that."""
    if not probe.rules.handshake:
        probe.begin("subscriptions/listen", {"notifications": wanted})
        await probe.wait_for_message(
            lambda message: message.get("method") == "notifications/subscriptions/acknowledged"
        )


async def trigger_changes(probe: Probe) -> None:
    """Call the tools that may change something."""
    likely = [tool for tool in await probe.callable_tools() if _may_change_lists(str(tool.get("name")).lower())]
    for tool in likely[:_MOST]:
        await call_tool(probe, tool)


def _may_change_lists(name: str) -> bool:
    return any(word in name for word in _CHANGING_WORDS)


async def was_notified(probe: Probe, since: int, method: str) -> bool:
    """Return whether a notification has been received since then."""
    await probe.fence()
    return any(message.get("method") == method for message in probe.other_messages(since, None))


async def wait_for_notification(probe: Probe, method: str) -> bool:
    """Wait a moment for a notification: over HTTP, it has its own stream."""
    return await probe.wait_for_message(lambda message: message.get("method") == method, _LATE_SECONDS) is not None


async def call_tool(
    probe: Probe, tool: JSONObject, arguments: JSONObject | None = None, meta: JSONObject | None = None
) -> Answer | None:
    """Call a tool with minimal arguments; return None if there are none, or after a timeout."""
    try:
        given = smallest(get_object(tool, "inputSchema")) if arguments is None else arguments
        return await probe.request("tools/call", {"name": tool.get("name"), "arguments": given}, meta=meta)
    except GenerationError:
        return None
    except Violation as exc:  # a tool may take its time
        if not exc.symptom.startswith(NO_ANSWER):
            raise
        return None
