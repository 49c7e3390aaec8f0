"""Subscriptions (2026-07-28): a request that stays open, what is acknowledged first, and what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.listening import (
    ACKNOWLEDGED,
    KINDS,
    WISH,
    acknowledgment,
    all_told,
    subscribe,
    subscribes,
    subscription_of,
    unsubscribe,
    wishes_of,
)
from accord.check.lists import PROMPTS, RESOURCES, TOOLS
from accord.check.reading import heard, key
from accord.check.record import Record
from accord.check.rule import LINES, STDIO, Broken, NotObserved, Rule
from accord.check.talk import Talk
from accord.check.values import shown
from accord.check.wires.child import ChildWire
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID

_PLACE = "basic/patterns/subscriptions"

FIRST = Rule(
    "subscriptions/acknowledged",
    "must",
    "A subscription is acknowledged before anything else is told on it, with the id of its request.",
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
    cause="The request is kept open without a word, or answered at once as if it were over.",
)


@FIRST.case("a subscription to all lists", kind="own", shares=True, applies=subscribes)
async def _(talk: Talk) -> None:
    said = await _acknowledged(talk, WISH)
    granted = said.get("params", {}).get("notifications")
    if not isinstance(granted, dict):
        raise talk.broken(f"what is granted is {shown(granted)}")


@FIRST.case("one whose id is a text", kind="own", shares=True, applies=subscribes)
async def _(talk: Talk) -> None:
    await _acknowledged(talk, WISH, id="accord-check-subscription")


@FIRST.case("one that wants nothing", kind="own", shares=True, applies=subscribes)
async def _(talk: Talk) -> None:
    await _acknowledged(talk, {})


async def _acknowledged(talk: Talk, wish: JSONObject, **more: Any) -> JSONObject:
    """The acknowledgment of a subscription, which is ended then."""
    pending = await subscribe(talk, wish, **more)
    said = await acknowledgment(talk, pending)
    await unsubscribe(talk, pending)
    return said


GRANTED = Rule(
    "subscriptions/granted",
    "must",
    "What is granted is no more than what was wanted.",
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
    cause="The server grants all that it has, whatever is asked.",
)


@GRANTED.case("a subscription to one list", kind="own", shares=True, applies=subscribes)
async def _(talk: Talk) -> None:
    said = await _acknowledged(talk, {"toolsListChanged": True})
    granted = said.get("params", {}).get("notifications") or {}
    more = [name for name, value in granted.items() if name in KINDS.values() and value and name != "toolsListChanged"]
    if more:
        raise talk.broken(f"{', '.join(more)} is granted, and was not wanted")


SUPPORTED = Rule(
    "subscriptions/supported",
    "should",
    "What the server does not have is not granted.",
    at="schema#subscriptionsacknowledgednotification",
    since="2026-07-28",
    cause="The wish is given back as it came: the client waits for what never comes.",
)


@SUPPORTED.case("a subscription to all lists", kind="own", shares=True, applies=subscribes)
async def _(talk: Talk) -> None:
    said = await _acknowledged(talk, WISH)
    granted = said.get("params", {}).get("notifications") or {}
    for listing in (TOOLS, PROMPTS, RESOURCES):
        if granted.get(listing.flag) and not talk.has(listing.capability):
            raise talk.broken(f"{listing.flag} is granted, and {listing.capability} are not declared")


WANTED = Rule(
    "subscriptions/wanted-only",
    "must",
    "Nothing is told on a subscription that it did not want.",
    at=f"{_PLACE}#subscribing",
    since="2026-07-28",
)


@WANTED.reading("all that was told")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        wishes = wishes_of(record)
        for told in all_told(record):
            kind = KINDS.get(told.method)
            if kind is not None and key(told.id) in wishes:
                judged += 1
                if not wishes[key(told.id)].get(kind):
                    raise told.heard.broken(f"{told.method} came on a subscription that did not want it")
    return judged


TAGGED = Rule(
    "subscriptions/tagged",
    "must",
    "What is told of changes bears the id of a subscription, as the request had it.",
    at=f"{_PLACE}#notifications",
    since="2026-07-28",
    cause='Notifications are sent as in earlier revisions, to whoever is connected; or 7 has become "7".',
)


@TAGGED.reading("all that was told")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        wishes = wishes_of(record)
        for each in heard([record]):
            method = each.message.get("method")
            if method in KINDS or method == ACKNOWLEDGED:
                judged += 1
                if key(subscription_of(each.message)) not in wishes:
                    raise each.broken(f"{method} has the subscription id {shown(subscription_of(each.message))}")
    return judged


ORDER = Rule(
    "subscriptions/order",
    "must",
    "Nothing is told on a subscription before it is acknowledged.",
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
)


@ORDER.reading("all that was told")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        acknowledged = set()
        for told in all_told(record):
            if told.method == ACKNOWLEDGED:
                acknowledged.add(key(told.id))
            elif told.method in KINDS:
                judged += 1
                if key(told.id) not in acknowledged:
                    raise told.heard.broken(f"{told.method} came before the acknowledgment")
    return judged or sum(told.method == ACKNOWLEDGED for record in records for told in all_told(record))


SEVERAL = Rule(
    "subscriptions/several",
    "must",
    "A client may have several subscriptions at once, each by its own id.",
    at=f"{_PLACE}#multiple-subscriptions",
    since="2026-07-28",
    cause="A second subscription takes the place of the first.",
)


@SEVERAL.case("two at once", kind="own", shares=True, applies=subscribes)
async def _(talk: Talk) -> None:
    first = await subscribe(talk, {"toolsListChanged": True})
    await acknowledgment(talk, first)
    second = await subscribe(talk, {"promptsListChanged": True})
    await acknowledgment(talk, second)
    await talk.tide()
    has_ended = first.arrived
    for pending in (first, second):
        await unsubscribe(talk, pending)
    if has_ended:
        raise talk.broken("the first subscription ended when the second began")


ENDED = Rule(
    "subscriptions/ended",
    "should",
    "A subscription that its client cancels is over: it is answered or not, and the connection goes on.",
    at=(f"{_PLACE}#ending-a-subscription", "basic/patterns/cancellation"),
    since="2026-07-28",
    over=LINES,
)


@ENDED.case("a subscription that is cancelled", kind="own", shares=True, applies=subscribes)
async def _(talk: Talk) -> None:
    pending = await subscribe(talk, WISH)
    await acknowledgment(talk, pending)
    talk.notify("notifications/cancelled", {"requestId": pending.id})
    await talk.tide()
    late = [
        each
        for each in await talk.tide()
        if each.get("method") in KINDS and key(subscription_of(each)) == key(pending.id)
    ]
    if late:
        raise talk.broken("it is still told of changes")


RESULT = Rule(
    "subscriptions/result",
    "must",
    "A subscription that ends well is answered with a result that bears its id.",
    at=f"{_PLACE}#graceful-closure",
    since="2026-07-28",
)


@RESULT.reading("all answers to subscriptions")
def _(records: Sequence[Record]) -> int:
    judged = 0
    for record in records:
        wishes = wishes_of(record)
        for each in heard([record]):
            result = each.message.get("result")
            if isinstance(result, dict) and key(each.message.get("id")) in wishes:
                judged += 1
                meta = result.get("_meta")
                id = meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
                if key(id) != key(each.message.get("id")):
                    raise each.broken(f"its result has the subscription id {shown(id)}")
    return judged


GRACEFUL = Rule(
    "subscriptions/graceful",
    "should",
    "A server that is told to end (SIGTERM) answers its subscriptions, so that clients know that nothing broke.",
    at=(f"{_PLACE}#graceful-closure", f"{_PLACE}#cancellation"),
    since="2026-07-28",
    over=STDIO,
    cause="The process ends on the signal, or the answer is not written before it does.",
)


@GRACEFUL.case("a subscription, and SIGTERM", kind="own", applies=subscribes)
async def _(talk: Talk) -> None:
    pending = await subscribe(talk, WISH)
    await acknowledgment(talk, pending)
    if not isinstance(talk.wire, ChildWire):
        raise NotObserved("it is not a process of ours")
    talk.wire.terminate()
    try:
        await pending.answer(talk.settings.timeout)
    except Broken as exc:
        raise talk.broken("it ends, and a subscription is not answered", since=pending.since) from exc
