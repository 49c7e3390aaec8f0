"""What a server tells unasked: of changes, in log messages, of progress. None of it throws a client off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.clients.ask import Ask
from accord.check.clients.run import Run
from accord.check.clients.scene import FIRST, Answer, Refuse, Scene
from accord.check.rule import LINES, Broken, NotObserved, Rule
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID

_SINCE = "2026-07-28"
_PAGES = "2025-11-25"
_STORM = 300
_RAIN = 20
"""Requests more than usual that a storm may cause."""

UNKNOWN = Rule(
    "client-changes/unknown-notification",
    "must",
    "A notification that the client does not know is passed over.",
    at="basic#notifications",
    role="client",
    cause="Every method has to be in a list, and what is not in it ends the connection.",
)

LOGS = Rule(
    "client-changes/log-messages",
    "must",
    "Log messages may come at any time, with data of any kind.",
    at=("server/utilities/logging#log-message-notifications", "server/utilities/logging#per-request-log-level"),
    role="client",
    cause="Their data is taken for text.",
)

PROGRESS = Rule(
    "client-progress/unknown",
    "must",
    "Progress with a token that belongs to no request is passed over.",
    at=("basic/utilities/progress#behavior-requirements", "basic/patterns/progress#behavior-requirements"),
    role="client",
    cause="The token is looked up without a thought that it may not be there.",
)

CANCELLED = Rule(
    "client-cancel/by-server",
    "must",
    "A cancellation of a request that nobody has is passed over.",
    at=("basic/utilities/cancellation#behavior-requirements", "basic/patterns/cancellation#behavior-requirements"),
    role="client",
    cause="The id is looked up without a thought that it may not be there.",
)

COMPLETED = Rule(
    "client-answers/unknown-completion",
    "must",
    "The end of an elicitation that nobody has is passed over.",
    at="client/elicitation#completion-notifications-for-url-mode-elicitation",
    role="client",
    since=_PAGES,
    until=_SINCE,
    cause="The id is looked up without a thought that it may not be there.",
)

TAGS = Rule(
    "client-changes/subscription-tag",
    "must",
    "Changes that belong to no subscription of the client, or to none at all, are passed over.",
    at="basic/patterns/subscriptions#receiving-notifications",
    role="client",
    since=_SINCE,
    cause="The subscription id is taken for one that exists.",
)

CALM = Rule(
    "client-changes/storm",
    "may",
    "A storm of changes is no storm of requests.",
    at=("server/tools#list-changed-notification", "basic/utilities/progress#implementation-notes"),
    role="client",
    cause="Each notification lists everything again.",
)

ROOTS = Rule(
    "client-changes/roots-changed",
    "must",
    "Only a client that declares roots.listChanged tells that its roots have changed.",
    at="client/roots#root-list-changes",
    role="client",
    until=_SINCE,
    cause="The notification is sent whatever was declared.",
)

LISTEN = Rule(
    "client-changes/listen",
    "should",
    "A subscription that is refused is not asked for again and again.",
    at="basic/patterns/subscriptions#opening-a-stream",
    role="client",
    since=_SINCE,
    cause="The end of the stream is always taken for a broken connection.",
)

AGAIN = Rule(
    "client-changes/resubscribe",
    "must",
    "Where a client starts an ended server again, it subscribes again.",
    at="basic/patterns/subscriptions#graceful-closure",
    role="client",
    since=_SINCE,
    over=LINES,
    cause="The new process is taken to know what the old one did.",
)


def _telling(rule: Rule, name: str, says: str, *told: tuple[str, JSONObject | None], **life: Any) -> Scene:
    """A scene in which these notifications come before the first answer."""
    scene = Scene(name, says, **life)

    @scene.on(FIRST)
    async def _(ask: Ask) -> Answer:
        for method, params in told:
            await ask.tell(method, params)
        return await ask.usual()

    @scene.judges(rule, says)
    def _(run: Run) -> None:
        run.as_usual()

    return scene


STRANGE = _telling(
    UNKNOWN,
    "unknown-notification",
    "notifications that nobody knows",
    ("notifications/unheard-of", {"deep": {"er": [1, None]}}),
    ("com.example/told", None),
)
LOGGING = _telling(
    LOGS,
    "log-messages",
    "log messages with data of every kind",
    *(
        ("notifications/message", {"level": level, "logger": "check", "data": data})
        for level, data in (
            ("debug", None),
            ("emergency", {"a": [1, {}]}),
            ("notice", 7),
            ("info", ["x"]),
            ("error", ""),
        )
    ),
    ("notifications/message", {"level": "warning", "data": "no logger"}),
)
STEPPING = _telling(
    PROGRESS,
    "unknown-progress",
    "progress of requests that nobody has",
    ("notifications/progress", {"progressToken": "nobody", "progress": 1}),
    ("notifications/progress", {"progressToken": 987_654_321, "progress": 0.5, "total": 1}),
)
CANCELLING = _telling(
    CANCELLED,
    "unknown-cancel",
    "cancellations of requests that nobody has",
    ("notifications/cancelled", {"requestId": "nobody", "reason": "check"}),
    ("notifications/cancelled", {"requestId": 987_654_321}),
)
ENDING = _telling(
    COMPLETED,
    "unknown-completion",
    "the end of an elicitation that nobody has",
    ("notifications/elicitation/complete", {"elicitationId": "nobody"}),
    since=_PAGES,
    until=_SINCE,
)
TAGGED = _telling(
    TAGS,
    "unknown-subscription",
    "changes that belong to no subscription",
    ("notifications/tools/list_changed", None),
    ("notifications/resources/updated", {"uri": "notes://today", "_meta": {SUBSCRIPTION_ID: "nobody"}}),
    ("notifications/subscriptions/acknowledged", {"notifications": {}, "_meta": {SUBSCRIPTION_ID: 987_654_321}}),
    since=_SINCE,
)

STORM = Scene("list-changed-storm", f"{_STORM} times in a row, the lists have changed")
_CHANGES = ("tools", "prompts", "resources")


@STORM.on(FIRST)
async def _(ask: Ask) -> Answer:
    for number in range(_STORM):
        await ask.tell(f"notifications/{_CHANGES[number % 3]}/list_changed")
    return await ask.usual()


@STORM.judges(CALM, f"{_STORM} changes in a row")
def _(run: Run) -> None:
    run.got_away()
    lists = [f"{name}/list" for name in _CHANGES]
    more = len(run.requests(*lists)) - len(run.usual.requests(*lists))
    if more > _RAIN:
        raise Broken(f"the client listed {more} times more than usual", evidence=run.evidence())


@ROOTS.reading("every change of the roots")
def _(runs: Sequence[Run]) -> int:
    told = [each for run in runs for each in run.notifications("notifications/roots/list_changed")]
    for each in told:
        declared = each.conversation.declared.get("roots")
        if not isinstance(declared, dict) or declared.get("listChanged") is not True:
            raise Broken("a change was told that is not declared", evidence=[each.said.line()])
    return len(told)


# --- subscriptions -----------------------------------------------------------------------------------------------

UNHEARD = Scene("listen-refused", "subscriptions are refused", since=_SINCE)


@UNHEARD.on("subscriptions/listen")
async def _(ask: Ask) -> Answer:
    raise Refuse(-32603, "Internal error: nothing to listen to")


@UNHEARD.judges(LISTEN, "a subscription that is refused")
def _(run: Run) -> None:
    run.got_away()
    asked = len(run.requests("subscriptions/listen"))
    if asked > len(run.usual.requests("subscriptions/listen")) + _RAIN:
        raise Broken(f"the client asked {asked} times", evidence=run.evidence())


DYING = Scene("server-exits-while-listening", "the server exits once somebody listens", since=_SINCE, over=LINES)


@DYING.on("subscriptions/listen")
async def _(ask: Ask) -> Answer:
    if not ask.conversation.stand.once("exit"):
        return await ask.usual()
    await ask.tell(
        "notifications/subscriptions/acknowledged",
        {"_meta": {SUBSCRIPTION_ID: ask.id}, "notifications": ask.params.get("notifications", {})},
    )
    await ask.way.drop()
    return None


@DYING.judges(AGAIN, "a server that exits while somebody listens")
def _(run: Run) -> None:
    run.survived()
    later = [each for each in run.requests() if each.conversation.number > 1]
    if not later:
        raise NotObserved("the client does not start the server again")
    if not any(each.method == "subscriptions/listen" for each in later):
        raise Broken("the server was started again, and nobody listened", evidence=run.evidence())
