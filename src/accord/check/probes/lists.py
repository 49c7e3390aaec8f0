"""What the lists of tools, prompts, resources and templates have in common, and how they are judged."""

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
    """One kind of list. `id_field` is what tells its items apart, `filter_field` what asks for its changes
    (2026-07-28)."""

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
"""A tool with one of these in its name may change what is listed, or what is watched."""
_MOST = 10
_LATE_SECONDS = 1.0


async def require_declared(probe: Probe, listing: ListKind) -> None:
    """Break the rule for a server that has such things and does not say so."""
    if probe.has_capability(listing.capability):
        return
    found = get_objects((await probe.request(listing.method)).result, listing.key)
    if found:
        raise probe.violation(f"it lists {len(found)} {listing.key}, and does not declare {listing.capability!r}")


async def require_list(probe: Probe, listing: ListKind) -> None:
    """Break the rule for a list that is not given."""
    result = await probe.result(listing.method)
    if not isinstance(result.get(listing.key), list):
        raise probe.violation(f"the result of {listing.method} has no array {listing.key!r}")


async def require_same_list(probe: Probe, listing: ListKind) -> None:
    """Break the rule for a list that differs between two connections at the same time."""
    await _send_harmless_requests(probe)
    before = await list_names(probe, listing)
    there = await list_names(await probe.second(), listing)
    if before == await list_names(probe, listing) and sorted(before) != sorted(there):
        differing = sorted(set(before) ^ set(there))
        raise probe.violation(f"another connection has another list; not in both: {preview_json(differing)}")


async def _send_harmless_requests(probe: Probe) -> None:
    """Requests that should leave no trace."""
    for listing in LIST_KINDS:
        await probe.request(listing.method)
    for resource in (await probe.resources())[:1]:
        await probe.request("resources/read", {"uri": resource.get("uri")})
    await probe.request("prompts/get", {"name": probe.unknown_name})
    await probe.request("tools/call", {"name": probe.unknown_name, "arguments": {}})


async def list_names(probe: Probe, listing: ListKind) -> list[str]:
    """What is listed now, in its order."""
    pages = await probe.pages(listing.method, listing.key, optional=True)
    return [str(each.get(listing.id_field)) for page in pages for each in get_objects(page, listing.key)]


def duplicate_name(found: Sequence[JSONObject], listing: ListKind) -> str | None:
    """A name that stands in a list more than once."""
    known = [str(each.get(listing.id_field)) for each in found]
    return next((name for name in known if known.count(name) > 1), None)


async def require_change_notification(probe: Probe, listing: ListKind) -> None:
    """Break the rule for a list that is changed by a call, of which nothing is said."""
    await subscribe_to_changes(probe, {listing.filter_field: True})
    since = len(probe.log.entries)
    before = await list_names(probe, listing)
    await trigger_changes(probe)
    after = await list_names(probe, listing)
    if await was_notified(probe, since, listing.change_notification):
        return
    if before == after:
        raise NotObserved("nothing that may be called changed the list")
    if not await wait_for_notification(probe, listing.change_notification):
        raise probe.violation(
            f"{listing.method} gives another list than before, and {listing.change_notification} did not come"
        )


async def subscribe_to_changes(probe: Probe, wanted: JSONObject) -> None:
    """Ask for notifications, where the revision wants to be asked."""
    if not probe.rules.handshake:
        probe.begin("subscriptions/listen", {"notifications": wanted})
        await probe.wait_for_message(
            lambda message: message.get("method") == "notifications/subscriptions/acknowledged"
        )


async def trigger_changes(probe: Probe) -> None:
    """Call what may change something, as far as it may be called."""
    likely = [tool for tool in await probe.callable_tools() if _may_change_lists(str(tool.get("name")).lower())]
    for tool in likely[:_MOST]:
        await call_tool(probe, tool)


def _may_change_lists(name: str) -> bool:
    return any(word in name for word in _CHANGING_WORDS)


async def was_notified(probe: Probe, since: int, method: str) -> bool:
    """Whether a notification has come since then."""
    await probe.fence()
    return any(message.get("method") == method for message in probe.other_messages(since, None))


async def wait_for_notification(probe: Probe, method: str) -> bool:
    """Whether it comes in a moment: over HTTP it has a stream of its own."""
    return await probe.wait_for_message(lambda message: message.get("method") == method, _LATE_SECONDS) is not None


async def call_tool(
    probe: Probe, tool: JSONObject, arguments: JSONObject | None = None, meta: JSONObject | None = None
) -> Answer | None:
    """Call a tool, with the least that it takes; None where nothing fits, or no answer comes in time."""
    try:
        given = smallest(get_object(tool, "inputSchema")) if arguments is None else arguments
        return await probe.request("tools/call", {"name": tool.get("name"), "arguments": given}, meta=meta)
    except GenerationError:
        return None
    except Violation as exc:  # a tool may take its time
        if not exc.symptom.startswith(NO_ANSWER):
            raise
        return None
