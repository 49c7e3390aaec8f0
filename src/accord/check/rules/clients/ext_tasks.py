"""The tasks extension (2026-07-28): how a client handles calls that become tasks."""

from __future__ import annotations

import base64
import uuid
from itertools import pairwise

from accord.check.clients.features import ScriptedFeatures, call_result
from accord.check.clients.incoming_request import IncomingRequest
from accord.check.clients.run import ClientRun
from accord.check.clients.scenario import Scenario, ScriptedAnswer, ScriptedError
from accord.check.clients.tasks import (
    created_tasks,
    polled_tasks,
    sent_results,
    sent_task_states,
    task_requests,
    task_updates,
    tasks_requiring_input,
)
from accord.check.engine.rule import HTTP, NotObserved, Violation
from accord.check.probes.content import get_object
from accord.check.probes.extension_tasks import EXTENSION, PAGE, SINCE, TASK_METHODS
from accord.check.probes.message_log import id_key
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject
from accord.messages.tasks import TERMINAL_STATUSES

_INTERVAL = 400
"""The poll interval in milliseconds."""
_TOO_SOON = 0.5
"""The accepted part of it: clocks differ, and messages take time."""
_TIME = "2026-07-28T00:00:00Z"
_FORM: JSONObject = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
_FEATURES = ScriptedFeatures(capabilities={"tools": {}, "resources": {}, "prompts": {}, "extensions": {EXTENSION: {}}})


EXTENSION_TASKS_SCENARIO = Scenario(
    "extension-tasks",
    "calls become tasks of the extension, each with an input request",
    since=SINCE,
    features=_FEATURES,
)


@EXTENSION_TASKS_SCENARIO.on("tools/call")
async def answer_extension_tasks_tools_call(request: IncomingRequest) -> ScriptedAnswer:
    if EXTENSION not in get_object(request.client_capabilities, "extensions"):
        return await request.default_result()
    id = str(uuid.uuid4())
    result = call_result(str(request.params.get("name")), request.params.get("arguments"), request.rules.revision)
    request.conversation.server.state[id] = {"result": request.with_result_fields(result), "looks": 0, "shown": 0}
    return request.with_result_fields({"resultType": "task", **_task_fields(id), "status": "working"})


@EXTENSION_TASKS_SCENARIO.on("tasks/get")
async def answer_extension_tasks_tasks_get(request: IncomingRequest) -> ScriptedAnswer:
    id, work = _find_task(request)
    work["looks"] += 1
    if work["looks"] == 1:
        return request.with_result_fields({**_task_fields(id), "status": "working"})
    # the question stays for one look more than its answer: "The acknowledgement is _eventually consistent_"
    if isinstance(request.client_capabilities.get("elicitation"), dict) and work["shown"] < 2:
        work["shown"] += bool(work.get("answered"))
        asked = {f"who {id}": {"method": "elicitation/create", "params": _FORM}}
        if work["shown"] < 2:
            return request.with_result_fields({**_task_fields(id), "status": "input_required", "inputRequests": asked})
    return request.with_result_fields({**_task_fields(id), "status": "completed", "result": work["result"]})


@EXTENSION_TASKS_SCENARIO.on("tasks/update")
async def answer_extension_tasks_tasks_update(request: IncomingRequest) -> ScriptedAnswer:
    _, work = _find_task(request)
    work["answered"] = True
    return request.with_result_fields({})


@EXTENSION_TASKS_SCENARIO.on("tasks/cancel")
async def answer_extension_tasks_tasks_cancel(request: IncomingRequest) -> ScriptedAnswer:
    _find_task(request)
    return request.with_result_fields({})


def _find_task(request: IncomingRequest) -> tuple[str, JSONObject]:
    id = request.params.get("taskId")
    work = request.conversation.server.state.get(id) if isinstance(id, str) else None
    if work is None:
        raise ScriptedError(INVALID_PARAMS, "Task not found")
    return str(id), work


def _task_fields(id: str) -> JSONObject:
    times = {"createdAt": _TIME, "lastUpdatedAt": _TIME}
    return {"taskId": id, **times, "ttlMs": None, "pollIntervalMs": _INTERVAL}


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/handled",
    "must",
    case="all calls that became tasks",
    at=f"{PAGE}#capability-negotiation",
    since=SINCE,
    cause="The extension is declared, but only ordinary results are supported.",
)
def client_ext_tasks_handled(run: ClientRun) -> None:
    """A client that declares the extension polls the tasks of its calls."""
    ids = created_tasks(run)
    asked_for = {request.params.get("taskId") for request in run.requests(*TASK_METHODS)}
    listened = [
        get_object(each.params, "notifications").get("taskIds") for each in run.requests("subscriptions/listen")
    ]
    if not asked_for & ids and not any(listened):
        raise Violation("a call became a task, but the client never sent tasks/get", evidence=run.evidence())
    run.require_progress()


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/interval",
    "should",
    case="all tasks/get requests",
    at=(f"{PAGE}#task-polling", f"{PAGE}#tasks"),
    since=SINCE,
    cause="The client has its own interval, or takes milliseconds for seconds.",
)
def client_ext_tasks_interval(run: ClientRun) -> None:
    """A client polls a task no more often than its pollIntervalMs."""
    judged = 0
    for id in created_tasks(run):
        for first, second in pairwise(task_requests(run, id, "tasks/get", "tasks/update")):
            if first.method == second.method == "tasks/get":
                judged += 1
                pause = (second.entry.at - first.entry.at) * 1000
                if pause < _INTERVAL * _TOO_SOON:
                    text = f"the client polled again after {pause:.0f} ms, but pollIntervalMs is {_INTERVAL}"
                    raise Violation(text, evidence=run.evidence(first.entry, second.entry))
    if not judged:
        raise NotObserved("the client polls no task twice")


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/to-the-end",
    "should",
    case="all polled tasks",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests"),
    since=SINCE,
    cause="The first state is returned as the result.",
)
def client_ext_tasks_to_the_end(run: ClientRun) -> None:
    """A client polls a task until it ends, or cancels it."""
    over = {state.get("taskId") for state in sent_task_states(run) if state.get("status") in TERMINAL_STATUSES}
    for id in polled_tasks(run):
        if id not in over and not task_requests(run, id, "tasks/cancel"):
            raise Violation("the client stopped polling before the end of the task", evidence=run.evidence())


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/answers",
    "should",
    case="an input request in each task",
    at=(f"{PAGE}#task-update-requests", f"{PAGE}#task-status"),
    since=SINCE,
    cause="Only requests, and results of calls, are checked for input requests.",
)
def client_ext_tasks_answers(run: ClientRun) -> None:
    """A client answers the input requests of a task by tasks/update, if it declares the capability."""
    for id in tasks_requiring_input(run):
        if not task_requests(run, id, "tasks/update") and not task_requests(run, id, "tasks/cancel"):
            raise Violation("a task has an input request, but the client did not answer", evidence=run.evidence())


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/keys",
    "must",
    case="all input responses",
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="The responses are a list, or have other keys.",
)
def client_ext_tasks_keys(run: ClientRun) -> None:
    """Input responses have the keys of their input requests."""
    for update in task_updates(run):
        given = update.params.get("inputResponses")
        if not isinstance(given, dict) or given.keys() - {f"who {update.params.get('taskId')}"}:
            raise Violation("an input response has a key without an input request", evidence=run.evidence(update.entry))


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/once",
    "should",
    case="an input request that stays in the task after its response",
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="Each poll is taken for a new input request: users are asked twice.",
)
def client_ext_tasks_once(run: ClientRun) -> None:
    """A client answers an input request once, even if the task shows it again."""
    given: set[tuple[str, str]] = set()
    for update in task_updates(run):
        keys = {(str(update.params.get("taskId")), name) for name in get_object(update.params, "inputResponses")}
        if keys & given:
            raise Violation("the client answered an input request again", evidence=run.evidence(update.entry))
        given |= keys


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/cancelled",
    "must",
    case="all calls that became tasks",
    at=f"{PAGE}#task-cancellation",
    since=SINCE,
    cause="The call is pending until the task ends, and is cancelled like others.",
)
def client_ext_tasks_cancelled(run: ClientRun) -> None:
    """A client cancels a task by tasks/cancel, not by notifications/cancelled for its call."""
    created_tasks(run)
    calls = {id_key(id) for id, result in sent_results(run) if result.get("resultType") == "task"}
    for each in run.notifications("notifications/cancelled"):
        if id_key(each.params.get("requestId")) in calls:
            raise Violation("the client cancelled a call that became a task", evidence=run.evidence(each.entry))


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/name-header",
    "must",
    case="all requests about tasks",
    at=f"{PAGE}#streamable-http-routing-headers",
    since=SINCE,
    over=HTTP,
    cause="The header is set for tools, prompts and resources only: a proxy cannot route the request.",
)
def client_ext_tasks_name_header(run: ClientRun) -> None:
    """Over HTTP, the Mcp-Name of a request about a task is the id of the task."""
    carried = [each for each in run.requests(*TASK_METHODS) if 0 < each.entry.stream <= len(run.exchanges)]
    for request in carried:
        exchange, id = run.exchanges[request.entry.stream - 1], str(request.params.get("taskId"))
        entry = exchange.headers.get("mcp-name")
        if entry not in (id, f"=?base64?{base64.b64encode(id.encode()).decode()}?="):
            raise Violation(
                f"Mcp-Name is {entry!r}, but the task is {id!r}", evidence=[exchange.line(), request.entry.line()]
            )
    if not carried:
        raise NotObserved("the client polls no task")


EXTENSION_TASK_ELSEWHERE_SCENARIO = Scenario(
    "extension-task-elsewhere",
    "a prompt and a resource become tasks, which is not allowed",
    since=SINCE,
    features=_FEATURES,
)


@EXTENSION_TASK_ELSEWHERE_SCENARIO.on("prompts/get", "resources/read")
async def answer_extension_task_elsewhere(request: IncomingRequest) -> ScriptedAnswer:
    if EXTENSION not in get_object(request.client_capabilities, "extensions"):
        return await request.default_result()
    return request.with_result_fields({"resultType": "task", **_task_fields(str(uuid.uuid4())), "status": "working"})


@EXTENSION_TASK_ELSEWHERE_SCENARIO.rule(
    "client-ext-tasks/calls-only",
    "must",
    case="a prompt and a resource",
    at=f"{PAGE}#capability-negotiation",
    since=SINCE,
    cause="The resultType is checked without the method.",
)
def client_ext_tasks_calls_only(run: ClientRun) -> None:
    """A task as the result of another method than tools/call is invalid: the client does not poll it."""
    ids = created_tasks(run)
    for request in run.requests(*TASK_METHODS):
        if request.params.get("taskId") in ids:
            raise Violation("the client polled the task", evidence=run.evidence(request.entry))
    run.require_progress()
