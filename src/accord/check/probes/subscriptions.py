"""Subscriptions (2026-07-28): opening them, and reading their notifications."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from accord.check.engine.rule import NotApplicable
from accord.check.probes.content import UNACKNOWLEDGED, preview_json
from accord.check.probes.message_log import MessageLog, id_key
from accord.check.probes.message_reader import ObservedMessage, received_messages
from accord.check.probes.pending_answer import PendingAnswer
from accord.check.probes.probe import Probe
from accord.errors import METHOD_NOT_FOUND
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID
from accord.wire.transcript import SENT

_NOTIFYING = ("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe")
"""Capabilities with notifications."""
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
ALL_LISTS: JSONObject = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
"""The filter of a subscription to all lists."""
FILTER_FIELDS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}


_LIMIT = re.compile(r"\b(limit|too many|quota|maximum)", re.IGNORECASE)
"""Words of a refusal because of a limit of the server, not because of the request."""


class SubscriptionNotification(NamedTuple):
    """A notification with the id of a subscription."""

    received: ObservedMessage
    subscription_id: Any

    @property
    def method(self) -> str:
        """The method of the notification."""
        return str(self.received.message.get("method"))


async def subscribe(probe: Probe, wish: JSONObject, **more: Any) -> PendingAnswer:
    """Send the request for a subscription, without waiting."""
    return probe.begin("subscriptions/listen", {"notifications": wish}, **more)


async def wait_for_acknowledgment(probe: Probe, pending: PendingAnswer) -> JSONObject:
    """Return the acknowledgment of a subscription. Raises `Violation` after a timeout, or if another message comes
    first.
    """
    entry = next(
        (each for each in probe.other_messages(pending.since, pending.id) if subscription_id(each) is not None), None
    )
    if entry is None:
        entry = await probe.wait_for_message(
            lambda each: subscription_id(each) is not None or _is_answer_to(each, pending.id)
        )
    if entry is None:
        raise probe.violation(
            "the server did not acknowledge a subscription", since=pending.since, symptom=UNACKNOWLEDGED
        )
    if "method" not in entry:
        if _code(entry) == METHOD_NOT_FOUND and not any(probe.has_capability(path) for path in _NOTIFYING):
            raise NotApplicable("the server does not have the method, and declares no capability with notifications")
        answer = preview_json(entry.get("error", entry.get("result")))
        if _LIMIT.search(answer):
            raise NotApplicable(f"the server refuses it because of a limit, which is allowed: {answer}")
        text = f"the server answered with {answer} immediately"
        raise probe.violation(text, since=pending.since, symptom=UNACKNOWLEDGED)
    if entry["method"] != ACKNOWLEDGED or id_key(subscription_id(entry)) != id_key(pending.id):
        text = f"{entry['method']} came first, for the subscription {preview_json(subscription_id(entry))}"
        raise probe.violation(text, since=pending.since, symptom=UNACKNOWLEDGED)
    return entry


async def require_subscriptions(probe: Probe) -> None:
    """Raise `NotApplicable` if the server declares no capability with notifications, and does not have the method."""
    if not any(probe.has_capability(path) for path in _NOTIFYING):
        pending = await subscribe(probe, {})
        await wait_for_acknowledgment(probe, pending)
        await unsubscribe(probe, pending)


async def unsubscribe(probe: Probe, pending: PendingAnswer) -> None:
    """End a subscription, so that later cases in the same process are not affected."""
    if probe.transport == "stdio":
        probe.notify("notifications/cancelled", {"requestId": pending.id})
        await probe.fence()


def _code(message: JSONObject) -> Any:
    error = message.get("error")
    return error.get("code") if isinstance(error, dict) else None


def _is_answer_to(message: JSONObject, id: Any) -> bool:
    return "method" not in message and id_key(message.get("id")) == id_key(id)


def subscription_notifications(log: MessageLog) -> Iterator[SubscriptionNotification]:
    """Yield each notification with the id of a subscription."""
    for each in received_messages([log]):
        id = subscription_id(each.message)
        if id is not None and "method" in each.message:
            yield SubscriptionNotification(each, id)


def requested_filters(log: MessageLog) -> dict[tuple[type, Any], JSONObject]:
    """Return the filter of each subscription, by its id."""
    found: dict[tuple[type, Any], JSONObject] = {}
    for entry, message in log.messages:
        if entry.direction == SENT and message.get("method") == "subscriptions/listen":
            params = message.get("params")
            wish = params.get("notifications") if isinstance(params, dict) else None
            found[id_key(message.get("id"))] = wish if isinstance(wish, dict) else {}
    return found


def subscription_id(message: JSONObject) -> Any:
    """Return the subscription id of a notification; None without one."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
