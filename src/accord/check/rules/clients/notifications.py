"""What a server tells unasked: of changes, in log messages, of progress. None of it throws a client off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer, ScriptedError
from accord.check.engine.rule import LINE_TRANSPORTS, JudgedItems, NotObserved, Rule, Violation, rule
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID

_SINCE = "2026-07-28"
_PAGES = "2025-11-25"
_NOTIFICATIONS = 300
_EXTRA_REQUESTS = 20
"""Requests more than usual that a storm may cause."""


@rule(
    "client-changes/unknown-notification",
    "must",
    role="client",
    at="basic#notifications",
    cause="Every method has to be in a list, and what is not in it ends the connection.",
)
def client_changes_unknown_notification(run: ClientRun) -> None:
    """A notification that the client does not know is passed over."""
    run.require_ordinary_behavior()


@rule(
    "client-changes/log-messages",
    "must",
    role="client",
    at=("server/utilities/logging#log-message-notifications", "server/utilities/logging#per-request-log-level"),
    cause="Their data is taken for text.",
)
def client_changes_log_messages(run: ClientRun) -> None:
    """Log messages may come at any time, with data of any kind."""
    run.require_ordinary_behavior()


@rule(
    "client-progress/unknown",
    "must",
    role="client",
    at=("basic/utilities/progress#behavior-requirements", "basic/patterns/progress#behavior-requirements"),
    cause="The token is looked up without a thought that it may not be there.",
)
def client_progress_unknown(run: ClientRun) -> None:
    """Progress with a token that belongs to no request is passed over."""
    run.require_ordinary_behavior()


@rule(
    "client-cancel/by-server",
    "must",
    role="client",
    at=("basic/utilities/cancellation#behavior-requirements", "basic/patterns/cancellation#behavior-requirements"),
    cause="The id is looked up without a thought that it may not be there.",
)
def client_cancel_by_server(run: ClientRun) -> None:
    """A cancellation of a request that nobody has is passed over."""
    run.require_ordinary_behavior()


@rule(
    "client-answers/unknown-completion",
    "must",
    role="client",
    at="client/elicitation#completion-notifications-for-url-mode-elicitation",
    since=_PAGES,
    until=_SINCE,
    cause="The id is looked up without a thought that it may not be there.",
)
def client_answers_unknown_completion(run: ClientRun) -> None:
    """The end of an elicitation that nobody has is passed over."""
    run.require_ordinary_behavior()


@rule(
    "client-changes/subscription-tag",
    "must",
    role="client",
    at="basic/patterns/subscriptions#receiving-notifications",
    since=_SINCE,
    cause="The subscription id is taken for one that exists.",
)
def client_changes_subscription_tag(run: ClientRun) -> None:
    """Changes that belong to no subscription of the client, or to none at all, are passed over."""
    run.require_ordinary_behavior()


def _notification_scenario(
    rule: Rule, name: str, says: str, *told: tuple[str, JSONObject | None], **life: Any
) -> Scenario:
    """A scenario in which these notifications come before the first answer."""
    scenario = Scenario(name, says, **life)

    @scenario.on(FIRST_REQUEST)
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        for method, params in told:
            await request.notify(method, params)
        return await request.default_result()

    scenario.case(rule, says)(rule.check)
    return scenario


UNKNOWN_NOTIFICATION_SCENARIO = _notification_scenario(
    client_changes_unknown_notification,
    "unknown-notification",
    "notifications that nobody knows",
    ("notifications/unheard-of", {"deep": {"er": [1, None]}}),
    ("com.example/told", None),
)
LOG_MESSAGES_SCENARIO = _notification_scenario(
    client_changes_log_messages,
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
UNKNOWN_PROGRESS_SCENARIO = _notification_scenario(
    client_progress_unknown,
    "unknown-progress",
    "progress of requests that nobody has",
    ("notifications/progress", {"progressToken": "nobody", "progress": 1}),
    ("notifications/progress", {"progressToken": 987_654_321, "progress": 0.5, "total": 1}),
)
UNKNOWN_CANCEL_SCENARIO = _notification_scenario(
    client_cancel_by_server,
    "unknown-cancel",
    "cancellations of requests that nobody has",
    ("notifications/cancelled", {"requestId": "nobody", "reason": "check"}),
    ("notifications/cancelled", {"requestId": 987_654_321}),
)
UNKNOWN_COMPLETION_SCENARIO = _notification_scenario(
    client_answers_unknown_completion,
    "unknown-completion",
    "the end of an elicitation that nobody has",
    ("notifications/elicitation/complete", {"elicitationId": "nobody"}),
    since=_PAGES,
    until=_SINCE,
)
UNKNOWN_SUBSCRIPTION_SCENARIO = _notification_scenario(
    client_changes_subscription_tag,
    "unknown-subscription",
    "changes that belong to no subscription",
    ("notifications/tools/list_changed", None),
    ("notifications/resources/updated", {"uri": "notes://today", "_meta": {SUBSCRIPTION_ID: "nobody"}}),
    ("notifications/subscriptions/acknowledged", {"notifications": {}, "_meta": {SUBSCRIPTION_ID: 987_654_321}}),
    since=_SINCE,
)

LIST_CHANGED_STORM_SCENARIO = Scenario("list-changed-storm", f"{_NOTIFICATIONS} times in a row, the lists have changed")
_CHANGES = ("tools", "prompts", "resources")


@LIST_CHANGED_STORM_SCENARIO.on(FIRST_REQUEST)
async def answer_list_changed_storm(request: IncomingRequest) -> ScriptedAnswer:
    for number in range(_NOTIFICATIONS):
        await request.notify(f"notifications/{_CHANGES[number % 3]}/list_changed")
    return await request.default_result()


@LIST_CHANGED_STORM_SCENARIO.rule(
    "client-changes/storm",
    "may",
    case=f"{_NOTIFICATIONS} changes in a row",
    at=("server/tools#list-changed-notification", "basic/utilities/progress#implementation-notes"),
    cause="Each notification lists everything again.",
)
def client_changes_storm(run: ClientRun) -> None:
    """A storm of changes is no storm of requests."""
    run.require_progress()
    lists = [f"{name}/list" for name in _CHANGES]
    more = len(run.requests(*lists)) - len(run.ordinary_run.requests(*lists))
    if more > _EXTRA_REQUESTS:
        raise Violation(f"the client listed {more} times more than usual", evidence=run.evidence())


@rule(
    "client-changes/roots-changed",
    "must",
    case="every change of the roots",
    role="client",
    at="client/roots#root-list-changes",
    until=_SINCE,
    cause="The notification is sent whatever was declared.",
)
def client_changes_roots_changed(runs: Sequence[ClientRun]) -> JudgedItems:
    """Only a client that declares roots.listChanged tells that its roots have changed."""
    for run in runs:
        for each in run.notifications("notifications/roots/list_changed"):
            yield
            declared = each.conversation.client_capabilities.get("roots")
            if not isinstance(declared, dict) or declared.get("listChanged") is not True:
                raise Violation("a change was told that is not declared", evidence=[each.entry.line()])


# --- subscriptions -----------------------------------------------------------------------------------------------

LISTEN_REFUSED_SCENARIO = Scenario("listen-refused", "subscriptions are refused", since=_SINCE)


@LISTEN_REFUSED_SCENARIO.on("subscriptions/listen")
async def answer_listen_refused(request: IncomingRequest) -> ScriptedAnswer:
    raise ScriptedError(-32603, "Internal error: nothing to listen to")


@LISTEN_REFUSED_SCENARIO.rule(
    "client-changes/listen",
    "should",
    case="a subscription that is refused",
    at="basic/patterns/subscriptions#opening-a-stream",
    since=_SINCE,
    cause="The end of the stream is always taken for a broken connection.",
)
def client_changes_listen(run: ClientRun) -> None:
    """A subscription that is refused is not asked for again and again."""
    run.require_progress()
    asked = len(run.requests("subscriptions/listen"))
    if asked > len(run.ordinary_run.requests("subscriptions/listen")) + _EXTRA_REQUESTS:
        raise Violation(f"the client asked {asked} times", evidence=run.evidence())


SERVER_EXITS_WHILE_LISTENING_SCENARIO = Scenario(
    "server-exits-while-listening", "the server exits once somebody listens", since=_SINCE, over=LINE_TRANSPORTS
)


@SERVER_EXITS_WHILE_LISTENING_SCENARIO.on("subscriptions/listen")
async def answer_server_exits_while_listening(request: IncomingRequest) -> ScriptedAnswer:
    if not request.conversation.server.is_first_time("exit"):
        return await request.default_result()
    await request.notify(
        "notifications/subscriptions/acknowledged",
        {"_meta": {SUBSCRIPTION_ID: request.id}, "notifications": request.params.get("notifications", {})},
    )
    await request.channel.abort()
    return None


@SERVER_EXITS_WHILE_LISTENING_SCENARIO.rule(
    "client-changes/resubscribe",
    "must",
    case="a server that exits while somebody listens",
    at="basic/patterns/subscriptions#graceful-closure",
    since=_SINCE,
    over=LINE_TRANSPORTS,
    cause="The new process is taken to know what the old one did.",
)
def client_changes_resubscribe(run: ClientRun) -> None:
    """Where a client starts an ended server again, it subscribes again."""
    run.require_no_crash()
    later = [each for each in run.requests() if each.conversation.number > 1]
    if not later:
        raise NotObserved("the client does not start the server again")
    if not any(each.method == "subscriptions/listen" for each in later):
        raise Violation("the server was started again, and nobody listened", evidence=run.evidence())
