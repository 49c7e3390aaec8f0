"""Subscriptions (2026-07-28): a request that stays open, what is acknowledged first, and what it is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from accord.check.reading import Heard, heard, key, messages
from accord.check.record import Record
from accord.check.rule import LINES, NotApplicable, Rule
from accord.check.talk import Pending, Talk, shown
from accord.errors import METHOD_NOT_FOUND
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID
from accord.wire.transcript import SENT

_PLACE = "basic/patterns/subscriptions"
_NEWS = ("tools.listChanged", "prompts.listChanged", "resources.listChanged", "resources.subscribe")
"""Capabilities of those that have something to tell."""
_UNACKNOWLEDGED = "subscriptions/acknowledged"
"""What fails when a subscription does not begin as it should is one finding, whatever was to come of it."""
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_WISH: JSONObject = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
_KINDS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}


class Told(NamedTuple):
    """A notification that bears the id of a subscription."""

    heard: Heard
    id: Any

    @property
    def method(self) -> str:
        return str(self.heard.message.get("method"))


FIRST = Rule(
    "subscriptions/acknowledged",
    "must",
    "A subscription is acknowledged before anything else is told on it, with the id of its request.",
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
    cause="The request is kept open without a word, or answered at once as if it were over.",
)


@FIRST.case("a subscription to all lists", kind="own")
async def _(talk: Talk) -> None:
    pending = await _listen(talk, _WISH)
    said = await _acknowledged(talk, pending)
    granted = said.get("params", {}).get("notifications")
    if not isinstance(granted, dict):
        raise talk.broken(f"what is granted is {shown(granted)}")


@FIRST.case("one whose id is a text", kind="own")
async def _(talk: Talk) -> None:
    await _acknowledged(talk, await _listen(talk, _WISH, id="accord-check-7"))


@FIRST.case("one that wants nothing", kind="own")
async def _(talk: Talk) -> None:
    await _acknowledged(talk, await _listen(talk, {}))


GRANTED = Rule(
    "subscriptions/granted",
    "must",
    "What is granted is no more than what was wanted.",
    at=f"{_PLACE}#acknowledgment",
    since="2026-07-28",
    cause="The server grants all that it has, whatever is asked.",
)


@GRANTED.case("a subscription to one list", kind="own")
async def _(talk: Talk) -> None:
    said = await _acknowledged(talk, await _listen(talk, {"toolsListChanged": True}))
    granted = said.get("params", {}).get("notifications") or {}
    more = [name for name, value in granted.items() if name in _KINDS.values() and value and name != "toolsListChanged"]
    if more:
        raise talk.broken(f"{', '.join(more)} is granted, and was not wanted")


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
        wishes = _wishes(record)
        for told in _told(record):
            kind = _KINDS.get(told.method)
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
        wishes = _wishes(record)
        for each in heard([record]):
            method = each.message.get("method")
            if method in _KINDS or method == _ACKNOWLEDGED:
                judged += 1
                if key(_id(each.message)) not in wishes:
                    raise each.broken(f"{method} has the subscription id {shown(_id(each.message))}")
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
        for told in _told(record):
            if told.method == _ACKNOWLEDGED:
                acknowledged.add(key(told.id))
            elif told.method in _KINDS:
                judged += 1
                if key(told.id) not in acknowledged:
                    raise told.heard.broken(f"{told.method} came before the acknowledgment")
    return judged or sum(told.method == _ACKNOWLEDGED for record in records for told in _told(record))


SEVERAL = Rule(
    "subscriptions/several",
    "must",
    "A client may have several subscriptions at once, each by its own id.",
    at=f"{_PLACE}#multiple-subscriptions",
    since="2026-07-28",
    cause="A second subscription takes the place of the first.",
)


@SEVERAL.case("two at once", kind="own")
async def _(talk: Talk) -> None:
    first = await _listen(talk, {"toolsListChanged": True})
    await _acknowledged(talk, first)
    second = await _listen(talk, {"promptsListChanged": True})
    await _acknowledged(talk, second)
    await talk.tide()
    if first.arrived:
        raise talk.broken("the first subscription ended when the second began")


ENDED = Rule(
    "subscriptions/ended",
    "should",
    "A subscription that its client cancels is over: it is answered or not, and the connection goes on.",
    at=(f"{_PLACE}#ending-a-subscription", "basic/patterns/cancellation"),
    since="2026-07-28",
    over=LINES,
)


@ENDED.case("a subscription that is cancelled", kind="own")
async def _(talk: Talk) -> None:
    pending = await _listen(talk, _WISH)
    await _acknowledged(talk, pending)
    talk.notify("notifications/cancelled", {"requestId": pending.id})
    await talk.tide()
    late = [each for each in await talk.tide() if each.get("method") in _KINDS and key(_id(each)) == key(pending.id)]
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
        wishes = _wishes(record)
        for each in heard([record]):
            result = each.message.get("result")
            if isinstance(result, dict) and key(each.message.get("id")) in wishes:
                judged += 1
                meta = result.get("_meta")
                id = meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
                if key(id) != key(each.message.get("id")):
                    raise each.broken(f"its result has the subscription id {shown(id)}")
    return judged


async def _listen(talk: Talk, wish: JSONObject, **more: Any) -> Pending:
    return talk.begin("subscriptions/listen", {"notifications": wish}, **more)


async def _acknowledged(talk: Talk, pending: Pending) -> JSONObject:
    """The acknowledgment of a subscription. Raises `Broken` when none comes, or something else before."""
    said = next((each for each in talk.others(pending.since, pending.id) if _id(each) is not None), None)
    if said is None:
        said = await talk.hear(lambda each: _id(each) is not None or _is_answer_to(each, pending.id))
    if said is None:
        raise talk.broken("a subscription is not acknowledged", since=pending.since, symptom=_UNACKNOWLEDGED)
    if "method" not in said:
        if _code(said) == METHOD_NOT_FOUND and not any(talk.has(path) for path in _NEWS):
            raise NotApplicable("the server does not know the method, and declares nothing to subscribe to")
        text = f"it is answered with {shown(said.get('error', said.get('result')))} at once"
        raise talk.broken(text, since=pending.since, symptom=_UNACKNOWLEDGED)
    if said["method"] != _ACKNOWLEDGED or key(_id(said)) != key(pending.id):
        text = f"{said['method']} came first, for {shown(_id(said))}"
        raise talk.broken(text, since=pending.since, symptom=_UNACKNOWLEDGED)
    return said


def _code(message: JSONObject) -> Any:
    error = message.get("error")
    return error.get("code") if isinstance(error, dict) else None


def _is_answer_to(message: JSONObject, id: Any) -> bool:
    return "method" not in message and key(message.get("id")) == key(id)


def _told(record: Record) -> Iterator[Told]:
    for each in heard([record]):
        id = _id(each.message)
        if id is not None and "method" in each.message:
            yield Told(each, id)


def _wishes(record: Record) -> dict[tuple[type, Any], JSONObject]:
    """What each subscription of ours wanted, by its id."""
    found: dict[tuple[type, Any], JSONObject] = {}
    for said, message in messages(record):
        if said.direction == SENT and message.get("method") == "subscriptions/listen":
            params = message.get("params")
            wish = params.get("notifications") if isinstance(params, dict) else None
            found[key(message.get("id"))] = wish if isinstance(wish, dict) else {}
    return found


def _id(message: JSONObject) -> Any:
    """The id of the subscription that a notification bears; None without one."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(SUBSCRIPTION_ID) if isinstance(meta, dict) else None
