"""Subscriptions (2026-07-28): a request that stays open, what is acknowledged first, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.engine.rule import LINE_TRANSPORTS, STDIO, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.lists import PROMPTS, RESOURCES, TOOLS
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import id_key, received_messages
from accord.check.probes.probe import Probe
from accord.check.probes.subscriptions import (
    ACKNOWLEDGED,
    ALL_LISTS,
    FILTER_FIELDS,
    requested_filters,
    require_subscriptions,
    subscribe,
    subscription_id,
    subscription_notifications,
    unsubscribe,
    wait_for_acknowledgment,
)
from accord.check.wires.child import ChildWire
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID

_PLACE = "basic/patterns/subscriptions"


@rule(
    "subscriptions/acknowledged",
    "must",
    case="a subscription to all lists",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
    cause="The request is kept open without a word, or answered at once as if it were over.",
)
async def subscriptions_acknowledged(probe: Probe) -> None:
    """A subscription is acknowledged before anything else is told on it, with the id of its request."""
    entry = await _acknowledge_and_end(probe, ALL_LISTS)
    granted = entry.get("params", {}).get("notifications")
    if not isinstance(granted, dict):
        raise probe.violation(f"what is granted is {preview_json(granted)}")


@subscriptions_acknowledged.case("one whose id is a text", kind="own", shares=True, applies=require_subscriptions)
async def subscriptions_acknowledged_acknowledged_whose_id_text(probe: Probe) -> None:
    await _acknowledge_and_end(probe, ALL_LISTS, id="accord-check-subscription")


@subscriptions_acknowledged.case("one that wants nothing", kind="own", shares=True, applies=require_subscriptions)
async def subscriptions_acknowledged_acknowledged_wants_nothing(probe: Probe) -> None:
    await _acknowledge_and_end(probe, {})


async def _acknowledge_and_end(probe: Probe, wish: JSONObject, **more: Any) -> JSONObject:
    """The acknowledgment of a subscription, which is ended then."""
    pending = await subscribe(probe, wish, **more)
    entry = await wait_for_acknowledgment(probe, pending)
    await unsubscribe(probe, pending)
    return entry


@rule(
    "subscriptions/granted",
    "must",
    case="a subscription to one list",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
    cause="The server grants all that it has, whatever is asked.",
)
async def subscriptions_granted(probe: Probe) -> None:
    """What is granted is no more than what was wanted."""
    entry = await _acknowledge_and_end(probe, {"toolsListChanged": True})
    granted = entry.get("params", {}).get("notifications") or {}
    more = [
        name
        for name, value in granted.items()
        if name in FILTER_FIELDS.values() and value and name != "toolsListChanged"
    ]
    if more:
        raise probe.violation(f"{', '.join(more)} is granted, and was not wanted")


@rule(
    "subscriptions/supported",
    "should",
    case="a subscription to all lists",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at="schema#subscriptionsacknowledgednotification",
    since="2026-07-28",
    cause="The wish is given back as it came: the client waits for what never comes.",
)
async def subscriptions_supported(probe: Probe) -> None:
    """What the server does not have is not granted."""
    entry = await _acknowledge_and_end(probe, ALL_LISTS)
    granted = entry.get("params", {}).get("notifications") or {}
    for listing in (TOOLS, PROMPTS, RESOURCES):
        if granted.get(listing.filter_field) and not probe.has_capability(listing.capability):
            raise probe.violation(f"{listing.filter_field} is granted, and {listing.capability} are not declared")


@rule(
    "subscriptions/wanted-only",
    "must",
    case="all that was told",
    at=f"{_PLACE}#subscribing",
    since="2026-07-28",
)
def subscriptions_wanted_only(logs: Sequence[MessageLog]) -> JudgedItems:
    """Nothing is told on a subscription that it did not want."""
    for log in logs:
        wishes = requested_filters(log)
        for told in subscription_notifications(log):
            kind = FILTER_FIELDS.get(told.method)
            if kind is not None and id_key(told.subscription_id) in wishes:
                yield
                if not wishes[id_key(told.subscription_id)].get(kind):
                    raise told.received.violation(f"{told.method} came on a subscription that did not want it")


@rule(
    "subscriptions/tagged",
    "must",
    case="all that was told",
    at=f"{_PLACE}#notifications",
    since="2026-07-28",
    cause='Notifications are sent as in earlier revisions, to whoever is connected; or 7 has become "7".',
)
def subscriptions_tagged(logs: Sequence[MessageLog]) -> JudgedItems:
    """What is told of changes bears the id of a subscription, as the request had it."""
    for log in logs:
        wishes = requested_filters(log)
        for each in received_messages([log]):
            method = each.message.get("method")
            if method in FILTER_FIELDS or method == ACKNOWLEDGED:
                yield
                if id_key(subscription_id(each.message)) not in wishes:
                    raise each.violation(
                        f"{method} has the subscription id {preview_json(subscription_id(each.message))}"
                    )


@rule(
    "subscriptions/order",
    "must",
    case="all that was told",
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
)
def subscriptions_order(logs: Sequence[MessageLog]) -> JudgedItems:
    """Nothing is told on a subscription before it is acknowledged."""
    for log in logs:
        acknowledged = set()
        for told in subscription_notifications(log):
            if told.method == ACKNOWLEDGED:
                yield
                acknowledged.add(id_key(told.subscription_id))
            elif told.method in FILTER_FIELDS:
                yield
                if id_key(told.subscription_id) not in acknowledged:
                    raise told.received.violation(f"{told.method} came before the acknowledgment")


@rule(
    "subscriptions/several",
    "must",
    case="two at once",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=f"{_PLACE}#multiple-subscriptions",
    since="2026-07-28",
    cause="A second subscription takes the place of the first.",
)
async def subscriptions_several(probe: Probe) -> None:
    """A client may have several subscriptions at once, each by its own id."""
    first = await subscribe(probe, {"toolsListChanged": True})
    await wait_for_acknowledgment(probe, first)
    second = await subscribe(probe, {"promptsListChanged": True})
    await wait_for_acknowledgment(probe, second)
    await probe.fence()
    has_ended = first.is_done
    for pending in (first, second):
        await unsubscribe(probe, pending)
    if has_ended:
        raise probe.violation("the first subscription ended when the second began")


@rule(
    "subscriptions/ended",
    "should",
    case="a subscription that is cancelled",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=(f"{_PLACE}#ending-a-subscription", "basic/patterns/cancellation"),
    since="2026-07-28",
    over=LINE_TRANSPORTS,
)
async def subscriptions_ended(probe: Probe) -> None:
    """A subscription that its client cancels is over: it is answered or not, and the connection goes on."""
    pending = await subscribe(probe, ALL_LISTS)
    await wait_for_acknowledgment(probe, pending)
    probe.notify("notifications/cancelled", {"requestId": pending.id})
    await probe.fence()
    late = [
        each
        for each in await probe.fence()
        if each.get("method") in FILTER_FIELDS and id_key(subscription_id(each)) == id_key(pending.id)
    ]
    if late:
        raise probe.violation("it is still told of changes")


@rule(
    "subscriptions/result",
    "must",
    case="all answers to subscriptions",
    at=f"{_PLACE}#graceful-closure",
    since="2026-07-28",
)
def subscriptions_result(logs: Sequence[MessageLog]) -> JudgedItems:
    """A subscription that ends well is answered with a result that bears its id."""
    for log in logs:
        wishes = requested_filters(log)
        for each in received_messages([log]):
            result = each.message.get("result")
            if isinstance(result, dict) and id_key(each.message.get("id")) in wishes:
                yield
                meta = result.get("_meta")
                id = meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
                if id_key(id) != id_key(each.message.get("id")):
                    raise each.violation(f"its result has the subscription id {preview_json(id)}")


@rule(
    "subscriptions/graceful",
    "should",
    case="a subscription, and SIGTERM",
    kind="own",
    applies=require_subscriptions,
    at=(f"{_PLACE}#graceful-closure", f"{_PLACE}#cancellation"),
    since="2026-07-28",
    over=STDIO,
    cause="The process ends on the signal, or the answer is not written before it does.",
)
async def subscriptions_graceful(probe: Probe) -> None:
    """A server that is told to end (SIGTERM) answers its subscriptions, so that clients know that nothing broke."""
    pending = await subscribe(probe, ALL_LISTS)
    await wait_for_acknowledgment(probe, pending)
    if not isinstance(probe.wire, ChildWire):
        raise NotObserved("it is not a process of ours")
    probe.wire.terminate()
    try:
        await pending.wait(probe.settings.timeout)
    except Violation as exc:
        raise probe.violation("it ends, and a subscription is not answered", since=pending.since) from exc
