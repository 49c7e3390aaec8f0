"""What the lists of tools, prompts, resources and templates have in common, and how they are judged."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from accord.check.blocks import inside, items
from accord.check.generated.document import Unserved
from accord.check.generated.smallest import smallest
from accord.check.rule import Broken, NotObserved
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import SILENT, Answer
from accord.messages.base import JSONObject


class Listing(msgspec.Struct, frozen=True):
    """One kind of list. `name` is what tells its items apart, `flag` what asks for its changes (2026-07-28)."""

    capability: str
    method: str
    key: str
    name: str = "name"
    changed: str = ""
    flag: str = ""


TOOLS = Listing("tools", "tools/list", "tools", "name", "notifications/tools/list_changed", "toolsListChanged")
PROMPTS = Listing(
    "prompts", "prompts/list", "prompts", "name", "notifications/prompts/list_changed", "promptsListChanged"
)
RESOURCES = Listing(
    "resources",
    "resources/list",
    "resources",
    "uri",
    "notifications/resources/list_changed",
    "resourcesListChanged",
)
TEMPLATES = Listing("resources", "resources/templates/list", "resourceTemplates", "uriTemplate")
LISTINGS = (TOOLS, PROMPTS, RESOURCES, TEMPLATES)

_CHANGERS = ("change", "trigger", "toggle", "add", "remove", "register", "touch", "update")
"""A tool with one of these in its name may change what is listed, or what is watched."""
_MOST = 10
_LATE_SECONDS = 1.0


async def undeclared(talk: Talk, listing: Listing) -> None:
    """Break the rule for a server that has such things and does not say so."""
    if talk.has(listing.capability):
        return
    found = items((await talk.request(listing.method)).result, listing.key)
    if found:
        raise talk.broken(f"it lists {len(found)} {listing.key}, and does not declare {listing.capability!r}")


async def answered(talk: Talk, listing: Listing) -> None:
    """Break the rule for a list that is not given."""
    result = await talk.result(listing.method)
    if not isinstance(result.get(listing.key), list):
        raise talk.broken(f"the result of {listing.method} has no array {listing.key!r}")


async def same_everywhere(talk: Talk, listing: Listing) -> None:
    """Break the rule for a list that differs between two connections at the same time."""
    await _look_around(talk)
    before = await names(talk, listing)
    there = await names(await talk.second(), listing)
    if before == await names(talk, listing) and sorted(before) != sorted(there):
        differing = sorted(set(before) ^ set(there))
        raise talk.broken(f"another connection has another list; not in both: {shown(differing)}")


async def _look_around(talk: Talk) -> None:
    """Requests that should leave no trace."""
    for listing in LISTINGS:
        await talk.request(listing.method)
    for resource in (await talk.resources())[:1]:
        await talk.request("resources/read", {"uri": resource.get("uri")})
    await talk.request("prompts/get", {"name": talk.nobody})
    await talk.request("tools/call", {"name": talk.nobody, "arguments": {}})


async def names(talk: Talk, listing: Listing) -> list[str]:
    """What is listed now, in its order."""
    pages = await talk.pages(listing.method, listing.key, optional=True)
    return [str(each.get(listing.name)) for page in pages for each in items(page, listing.key)]


def twice(found: Sequence[JSONObject], listing: Listing) -> str | None:
    """A name that stands in a list more than once."""
    known = [str(each.get(listing.name)) for each in found]
    return next((name for name in known if known.count(name) > 1), None)


async def tells_of_changes(talk: Talk, listing: Listing) -> None:
    """Break the rule for a list that is changed by a call, of which nothing is said."""
    await watch(talk, {listing.flag: True})
    since = len(talk.record.entries)
    before = await names(talk, listing)
    await change(talk)
    after = await names(talk, listing)
    if await told(talk, since, listing.changed):
        return
    if before == after:
        raise NotObserved("nothing that may be called changed the list")
    if not await comes(talk, listing.changed):
        raise talk.broken(f"{listing.method} gives another list than before, and {listing.changed} did not come")


async def watch(talk: Talk, wanted: JSONObject) -> None:
    """Ask for notifications, where the revision wants to be asked."""
    if not talk.rules.handshake:
        talk.begin("subscriptions/listen", {"notifications": wanted})
        await talk.hear(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")


async def change(talk: Talk) -> None:
    """Call what may change something, as far as it may be called."""
    likely = [tool for tool in await talk.callable() if _changes(str(tool.get("name")).lower())]
    for tool in likely[:_MOST]:
        await called(talk, tool)


def _changes(name: str) -> bool:
    return any(word in name for word in _CHANGERS)


async def told(talk: Talk, since: int, method: str) -> bool:
    """Whether a notification has come since then."""
    await talk.tide()
    return any(message.get("method") == method for message in talk.others(since, None))


async def comes(talk: Talk, method: str) -> bool:
    """Whether it comes in a moment: over HTTP it has a stream of its own."""
    return await talk.hear(lambda message: message.get("method") == method, _LATE_SECONDS) is not None


async def called(
    talk: Talk, tool: JSONObject, arguments: JSONObject | None = None, meta: JSONObject | None = None
) -> Answer | None:
    """Call a tool, with the least that it takes; None where nothing fits, or no answer comes in time."""
    try:
        given = smallest(inside(tool, "inputSchema")) if arguments is None else arguments
        return await talk.request("tools/call", {"name": tool.get("name"), "arguments": given}, meta=meta)
    except Unserved:
        return None
    except Broken as exc:  # a tool may take its time
        if not exc.symptom.startswith(SILENT):
            raise
        return None
