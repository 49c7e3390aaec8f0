"""Subscriptions (2026-07-28): opening one, and reading what a server told on them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from accord.check.reading import Heard, heard, key, messages
from accord.check.record import Record
from accord.check.rule import NotApplicable
from accord.check.symptoms import UNACKNOWLEDGED
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.waiting import Pending
from accord.errors import METHOD_NOT_FOUND
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID
from accord.wire.transcript import SENT

_NEWS = ("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe")
"""Capabilities of those that have something to tell."""
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
WISH: JSONObject = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
"""A subscription to all lists."""
KINDS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}


_LIMIT = re.compile(r"\b(limit|too many|quota|maximum)", re.IGNORECASE)
"""How a refusal reads that is about a limit of the server, not about the request."""


class Told(NamedTuple):
    """A notification that bears the id of a subscription."""

    heard: Heard
    id: Any

    @property
    def method(self) -> str:
        """The method of the notification."""
        return str(self.heard.message.get("method"))


async def subscribe(talk: Talk, wish: JSONObject, **more: Any) -> Pending:
    """Ask for a subscription, and do not wait for anything."""
    return talk.begin("subscriptions/listen", {"notifications": wish}, **more)


async def acknowledgment(talk: Talk, pending: Pending) -> JSONObject:
    """The acknowledgment of a subscription. Raises `Broken` when none comes, or something else before."""
    said = next((each for each in talk.others(pending.since, pending.id) if subscription_of(each) is not None), None)
    if said is None:
        said = await talk.hear(lambda each: subscription_of(each) is not None or _is_answer_to(each, pending.id))
    if said is None:
        raise talk.broken("a subscription is not acknowledged", since=pending.since, symptom=UNACKNOWLEDGED)
    if "method" not in said:
        if _code(said) == METHOD_NOT_FOUND and not any(talk.has(path) for path in _NEWS):
            raise NotApplicable("the server does not know the method, and declares nothing to subscribe to")
        answer = shown(said.get("error", said.get("result")))
        if _LIMIT.search(answer):
            raise NotApplicable(f"the server refuses it for a limit of its own, which it may: {answer}")
        text = f"it is answered with {answer} at once"
        raise talk.broken(text, since=pending.since, symptom=UNACKNOWLEDGED)
    if said["method"] != ACKNOWLEDGED or key(subscription_of(said)) != key(pending.id):
        text = f"{said['method']} came first, for {shown(subscription_of(said))}"
        raise talk.broken(text, since=pending.since, symptom=UNACKNOWLEDGED)
    return said


async def subscribes(talk: Talk) -> None:
    """Raises `NotApplicable` where the server has nothing to subscribe to, and does not know the method."""
    if not any(talk.has(path) for path in _NEWS):
        pending = await subscribe(talk, {})
        await acknowledgment(talk, pending)
        await unsubscribe(talk, pending)


async def unsubscribe(talk: Talk, pending: Pending) -> None:
    """Leave nothing open for the cases that follow in the same process."""
    if talk.transport == "stdio":
        talk.notify("notifications/cancelled", {"requestId": pending.id})
        await talk.tide()


def _code(message: JSONObject) -> Any:
    error = message.get("error")
    return error.get("code") if isinstance(error, dict) else None


def _is_answer_to(message: JSONObject, id: Any) -> bool:
    return "method" not in message and key(message.get("id")) == key(id)


def all_told(record: Record) -> Iterator[Told]:
    """Every notification that bears the id of a subscription."""
    for each in heard([record]):
        id = subscription_of(each.message)
        if id is not None and "method" in each.message:
            yield Told(each, id)


def wishes_of(record: Record) -> dict[tuple[type, Any], JSONObject]:
    """What each subscription of ours wanted, by its id."""
    found: dict[tuple[type, Any], JSONObject] = {}
    for said, message in messages(record):
        if said.direction == SENT and message.get("method") == "subscriptions/listen":
            params = message.get("params")
            wish = params.get("notifications") if isinstance(params, dict) else None
            found[key(message.get("id"))] = wish if isinstance(wish, dict) else {}
    return found


def subscription_of(message: JSONObject) -> Any:
    """The id of the subscription that a notification bears; None without one."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
