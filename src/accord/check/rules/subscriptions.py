"""Subscriptions (2026-07-28): acknowledgment, filter, notifications and end."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from accord.check.engine.rule import LINE_TRANSPORTS, STDIO, JudgedItems, NotObserved, Violation, rule
from accord.check.probes.content import preview_json
from accord.check.probes.lists import PROMPTS, RESOURCES, TOOLS
from accord.check.probes.message_log import MessageLog, id_key
from accord.check.probes.message_reader import received_messages
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


_rule = partial(rule, since="2026-07-28")


@_rule(
    "subscriptions/acknowledged",
    "must",
    case="a subscription to all lists",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=f"{_PLACE}#acknowledgment",
    cause="The request stays open without an acknowledgment, or gets a result immediately.",
)
async def subscriptions_acknowledged(probe: Probe) -> None:
    """The first message on a subscription is the acknowledgment, with the id of its request."""
    entry = await _acknowledge_and_end(probe, ALL_LISTS)
    granted = entry.get("params", {}).get("notifications")
    if not isinstance(granted, dict):
        raise probe.violation(f"the acknowledged filter is {preview_json(granted)}")


@subscriptions_acknowledged.case(
    "a subscription whose id is a string", kind="own", shares=True, applies=require_subscriptions
)
async def subscriptions_acknowledged_string_id(probe: Probe) -> None:
    await _acknowledge_and_end(probe, ALL_LISTS, id="accord-check-subscription")


@subscriptions_acknowledged.case(
    "a subscription with an empty filter", kind="own", shares=True, applies=require_subscriptions
)
async def subscriptions_acknowledged_empty_filter(probe: Probe) -> None:
    await _acknowledge_and_end(probe, {})


async def _acknowledge_and_end(probe: Probe, wish: JSONObject, **more: Any) -> JSONObject:
    """Return the acknowledgment of a subscription, and end the subscription."""
    pending = await subscribe(probe, wish, **more)
    entry = await wait_for_acknowledgment(probe, pending)
    await unsubscribe(probe, pending)
    return entry


@_rule(
    "subscriptions/granted",
    "must",
    case="a subscription to one list",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=f"{_PLACE}#acknowledgment",
    cause="The server acknowledges all notifications that it has, whatever the filter is.",
)
async def subscriptions_granted(probe: Probe) -> None:
    """The acknowledged filter has only requested fields."""
    entry = await _acknowledge_and_end(probe, {"toolsListChanged": True})
    granted = entry.get("params", {}).get("notifications") or {}
    more = [
        name
        for name, value in granted.items()
        if name in FILTER_FIELDS.values() and value and name != "toolsListChanged"
    ]
    if more:
        raise probe.violation(f"{', '.join(more)} was acknowledged, but not requested")


@_rule(
    "subscriptions/supported",
    "should",
    case="a subscription to all lists",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at="schema#subscriptionsacknowledgednotification",
    cause="The requested filter is returned: the client waits for notifications that never come.",
)
async def subscriptions_supported(probe: Probe) -> None:
    """The acknowledged filter has only notifications that the server supports."""
    entry = await _acknowledge_and_end(probe, ALL_LISTS)
    granted = entry.get("params", {}).get("notifications") or {}
    for listing in (TOOLS, PROMPTS, RESOURCES):
        if granted.get(listing.filter_field) and not probe.has_capability(listing.capability):
            raise probe.violation(
                f"{listing.filter_field} was acknowledged, but the server does not declare {listing.capability}"
            )


@_rule(
    "subscriptions/wanted-only",
    "must",
    case="all notifications",
    at=f"{_PLACE}#subscribing",
)
def subscriptions_wanted_only(logs: Sequence[MessageLog]) -> JudgedItems:
    """A subscription receives only notifications of its filter."""
    for log in logs:
        wishes = requested_filters(log)
        for notification in subscription_notifications(log):
            kind = FILTER_FIELDS.get(notification.method)
            if kind is not None and id_key(notification.subscription_id) in wishes:
                yield
                if not wishes[id_key(notification.subscription_id)].get(kind):
                    raise notification.received.violation(
                        f"{notification.method} came on a subscription that did not request it"
                    )


@_rule(
    "subscriptions/tagged",
    "must",
    case="all notifications",
    at=f"{_PLACE}#notifications",
    cause='Notifications are sent as in earlier revisions, to all connections; or the id 7 becomes "7".',
)
def subscriptions_tagged(logs: Sequence[MessageLog]) -> JudgedItems:
    """Each notification has the id of its subscription, with the same type."""
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


@_rule(
    "subscriptions/order",
    "must",
    case="all notifications",
    at=f"{_PLACE}#acknowledgment",
)
def subscriptions_order(logs: Sequence[MessageLog]) -> JudgedItems:
    """A subscription receives no notifications before the acknowledgment."""
    for log in logs:
        acknowledged = set()
        for notification in subscription_notifications(log):
            if notification.method == ACKNOWLEDGED:
                yield
                acknowledged.add(id_key(notification.subscription_id))
            elif notification.method in FILTER_FIELDS:
                yield
                if id_key(notification.subscription_id) not in acknowledged:
                    raise notification.received.violation(f"{notification.method} came before the acknowledgment")


@_rule(
    "subscriptions/several",
    "must",
    case="two concurrent subscriptions",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=f"{_PLACE}#multiple-subscriptions",
    cause="A second subscription replaces the first.",
)
async def subscriptions_several(probe: Probe) -> None:
    """A client may have several concurrent subscriptions, each with its own id."""
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


@_rule(
    "subscriptions/ended",
    "should",
    case="a cancelled subscription",
    kind="own",
    shares=True,
    applies=require_subscriptions,
    at=(f"{_PLACE}#ending-a-subscription", "basic/patterns/cancellation"),
    over=LINE_TRANSPORTS,
)
async def subscriptions_ended(probe: Probe) -> None:
    """After the cancellation of a subscription, the server sends no notifications for it, and the connection stays
    open.
    """
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
        raise probe.violation("a notification came after the cancellation")


@_rule(
    "subscriptions/result",
    "must",
    case="all results of subscriptions",
    at=f"{_PLACE}#graceful-closure",
)
def subscriptions_result(logs: Sequence[MessageLog]) -> JudgedItems:
    """The result of a subscription has the id of the subscription."""
    for log in logs:
        wishes = requested_filters(log)
        for each in received_messages([log]):
            result = each.message.get("result")
            if isinstance(result, dict) and id_key(each.message.get("id")) in wishes:
                yield
                meta = result.get("_meta")
                id = meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
                if id_key(id) != id_key(each.message.get("id")):
                    raise each.violation(f"the result has the subscription id {preview_json(id)}")


@_rule(
    "subscriptions/graceful",
    "should",
    case="a subscription and SIGTERM",
    kind="own",
    applies=require_subscriptions,
    at=(f"{_PLACE}#graceful-closure", f"{_PLACE}#cancellation"),
    over=STDIO,
    cause="The process exits on the signal, or before the response is written.",
)
async def subscriptions_graceful(probe: Probe) -> None:
    """On SIGTERM, the server answers its subscriptions, so that clients can tell shutdown from failure."""
    pending = await subscribe(probe, ALL_LISTS)
    await wait_for_acknowledgment(probe, pending)
    if not isinstance(probe.wire, ChildWire):
        raise NotObserved("the server is not a process of the checker")
    probe.wire.terminate()
    try:
        await pending.wait(probe.settings.timeout)
    except Violation as exc:
        raise probe.violation("the server exited without a response to a subscription", since=pending.since) from exc
