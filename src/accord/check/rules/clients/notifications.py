"""Notifications from a server, expected and unexpected, and subscriptions of a client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import FIRST_REQUEST, Scenario, ScriptedAnswer, ScriptedError
from accord.check.engine.rule import LINE_TRANSPORTS, JudgedItems, NotObserved, Rule, Violation, client_rule
from accord.messages.base import JSONObject
from accord.messages.meta import SUBSCRIPTION_ID

_SINCE = "2026-07-28"
_PAGES = "2025-11-25"
_NOTIFICATIONS = 300
_EXTRA_REQUESTS = 20
"""Number of additional requests that a flood of notifications may cause."""


@client_rule(
    "client-changes/unknown-notification",
    "must",
    at="basic#notifications",
    cause="An unknown method ends the connection.",
)
def client_changes_unknown_notification(run: ClientRun) -> None:
    """A client ignores unknown notifications."""
    run.require_ordinary_behavior()


@client_rule(
    "client-changes/log-messages",
    "must",
    at=("server/utilities/logging#log-message-notifications", "server/utilities/logging#per-request-log-level"),
    cause="The data is assumed to be a string.",
)
def client_changes_log_messages(run: ClientRun) -> None:
    """A client accepts log messages at any time, with data of any type."""
    run.require_ordinary_behavior()


@client_rule(
    "client-progress/unknown",
    "must",
    at=("basic/utilities/progress#behavior-requirements", "basic/patterns/progress#behavior-requirements"),
    cause="A missing token is not handled.",
)
def client_progress_unknown(run: ClientRun) -> None:
    """A client ignores progress with an unknown token."""
    run.require_ordinary_behavior()


@client_rule(
    "client-cancel/by-server",
    "must",
    at=("basic/utilities/cancellation#behavior-requirements", "basic/patterns/cancellation#behavior-requirements"),
    cause="A missing id is not handled.",
)
def client_cancel_by_server(run: ClientRun) -> None:
    """A client ignores the cancellation of an unknown request."""
    run.require_ordinary_behavior()


@client_rule(
    "client-answers/unknown-completion",
    "must",
    at="client/elicitation#completion-notifications-for-url-mode-elicitation",
    since=_PAGES,
    until=_SINCE,
    cause="A missing id is not handled.",
)
def client_answers_unknown_completion(run: ClientRun) -> None:
    """A client ignores the completion of an unknown elicitation."""
    run.require_ordinary_behavior()


@client_rule(
    "client-changes/subscription-tag",
    "must",
    at="basic/patterns/subscriptions#receiving-notifications",
    since=_SINCE,
    cause="A subscription with this id is assumed to exist.",
)
def client_changes_subscription_tag(run: ClientRun) -> None:
    """A client ignores notifications without a subscription, or with an unknown one."""
    run.require_ordinary_behavior()


def _notification_scenario(
    rule: Rule, name: str, says: str, *notifications: tuple[str, JSONObject | None], **life: Any
) -> Scenario:
    """Return a scenario with these notifications before the first response."""
    scenario = Scenario(name, says, **life)

    @scenario.on(FIRST_REQUEST)
    async def answer(request: IncomingRequest) -> ScriptedAnswer:
        for method, params in notifications:
            await request.notify(method, params)
        return await request.default_result()

    scenario.case(rule, says)(rule.check)
    return scenario


UNKNOWN_NOTIFICATION_SCENARIO = _notification_scenario(
    client_changes_unknown_notification,
    "unknown-notification",
    "unknown notifications",
    ("notifications/unheard-of", {"deep": {"er": [1, None]}}),
    ("com.example/told", None),
)
LOG_MESSAGES_SCENARIO = _notification_scenario(
    client_changes_log_messages,
    "log-messages",
    "log messages with data of all types",
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
    "progress of unknown requests",
    ("notifications/progress", {"progressToken": "nobody", "progress": 1}),
    ("notifications/progress", {"progressToken": 987_654_321, "progress": 0.5, "total": 1}),
)
UNKNOWN_CANCEL_SCENARIO = _notification_scenario(
    client_cancel_by_server,
    "unknown-cancel",
    "cancellations of unknown requests",
    ("notifications/cancelled", {"requestId": "nobody", "reason": "check"}),
    ("notifications/cancelled", {"requestId": 987_654_321}),
)
UNKNOWN_COMPLETION_SCENARIO = _notification_scenario(
    client_answers_unknown_completion,
    "unknown-completion",
    "the completion of an unknown elicitation",
    ("notifications/elicitation/complete", {"elicitationId": "nobody"}),
    since=_PAGES,
    until=_SINCE,
)
UNKNOWN_SUBSCRIPTION_SCENARIO = _notification_scenario(
    client_changes_subscription_tag,
    "unknown-subscription",
    "notifications for unknown subscriptions",
    ("notifications/tools/list_changed", None),
    ("notifications/resources/updated", {"uri": "notes://today", "_meta": {SUBSCRIPTION_ID: "nobody"}}),
    ("notifications/subscriptions/acknowledged", {"notifications": {}, "_meta": {SUBSCRIPTION_ID: 987_654_321}}),
    since=_SINCE,
)

LIST_CHANGED_STORM_SCENARIO = Scenario("list-changed-storm", f"{_NOTIFICATIONS} list_changed notifications in sequence")
_CHANGES = ("tools", "prompts", "resources")


@LIST_CHANGED_STORM_SCENARIO.on(FIRST_REQUEST)
async def answer_list_changed_storm(request: IncomingRequest) -> ScriptedAnswer:
    for number in range(_NOTIFICATIONS):
        await request.notify(f"notifications/{_CHANGES[number % 3]}/list_changed")
    return await request.default_result()


@LIST_CHANGED_STORM_SCENARIO.rule(
    "client-changes/storm",
    "may",
    case=f"{_NOTIFICATIONS} list_changed notifications in sequence",
    at=("server/tools#list-changed-notification", "basic/utilities/progress#implementation-notes"),
    cause="Each notification causes a request.",
)
def client_changes_storm(run: ClientRun) -> None:
    """A flood of notifications does not cause a flood of requests."""
    run.require_progress()
    lists = [f"{name}/list" for name in _CHANGES]
    more = len(run.requests(*lists)) - len(run.ordinary_run.requests(*lists))
    if more > _EXTRA_REQUESTS:
        raise Violation(f"the client listed {more} times more than usual", evidence=run.evidence())


@client_rule(
    "client-changes/roots-changed",
    "must",
    case="all notifications/roots/list_changed",
    at="client/roots#root-list-changes",
    until=_SINCE,
    cause="The notification is sent without regard to the capabilities.",
)
def client_changes_roots_changed(runs: Sequence[ClientRun]) -> JudgedItems:
    """Only a client that declares roots.listChanged sends notifications/roots/list_changed."""
    for run in runs:
        for each in run.notifications("notifications/roots/list_changed"):
            yield
            declared = each.conversation.client_capabilities.get("roots")
            if not isinstance(declared, dict) or declared.get("listChanged") is not True:
                raise Violation("the client sent a notification that it does not declare", evidence=[each.entry.line()])


# --- subscriptions -----------------------------------------------------------------------------------------------

LISTEN_REFUSED_SCENARIO = Scenario("listen-refused", "subscriptions return an error", since=_SINCE)


@LISTEN_REFUSED_SCENARIO.on("subscriptions/listen")
async def answer_listen_refused(request: IncomingRequest) -> ScriptedAnswer:
    raise ScriptedError(-32603, "Internal error: nothing to listen to")


@LISTEN_REFUSED_SCENARIO.rule(
    "client-changes/listen",
    "should",
    case="a subscription that returns an error",
    at="basic/patterns/subscriptions#opening-a-stream",
    since=_SINCE,
    cause="The end of the stream is taken for a broken connection.",
)
def client_changes_listen(run: ClientRun) -> None:
    """After an error, a client does not repeat a subscription again and again."""
    run.require_progress()
    asked = len(run.requests("subscriptions/listen"))
    if asked > len(run.ordinary_run.requests("subscriptions/listen")) + _EXTRA_REQUESTS:
        raise Violation(f"the client subscribed {asked} times", evidence=run.evidence())


SERVER_EXITS_WHILE_LISTENING_SCENARIO = Scenario(
    "server-exits-while-listening", "the server exits after a subscription", since=_SINCE, over=LINE_TRANSPORTS
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
    case="a server that exits after a subscription",
    at="basic/patterns/subscriptions#graceful-closure",
    since=_SINCE,
    over=LINE_TRANSPORTS,
    cause="The new process is assumed to have the subscriptions of the old one.",
)
def client_changes_resubscribe(run: ClientRun) -> None:
    """A client that restarts a server subscribes again."""
    run.require_no_crash()
    later = [each for each in run.requests() if each.conversation.number > 1]
    if not later:
        raise NotObserved("the client does not restart the server")
    if not any(each.method == "subscriptions/listen" for each in later):
        raise Violation("the client restarted the server, but did not subscribe again", evidence=run.evidence())
