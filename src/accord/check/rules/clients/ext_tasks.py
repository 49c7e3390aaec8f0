"""The tasks extension (2026-07-28): how a client that declares it deals with calls that become tasks."""

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
from accord.check.probes.message_reader import id_key
from accord.check.probes.tasks import TERMINAL_STATUSES
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject

_INTERVAL = 400
"""Milliseconds that we wish for between two looks at a task."""
_TOO_SOON = 0.5
"""Of that: clocks differ, and messages take their time."""
_TIME = "2026-07-28T00:00:00Z"
_FORM: JSONObject = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
_FEATURES = ScriptedFeatures(capabilities={"tools": {}, "resources": {}, "prompts": {}, "extensions": {EXTENSION: {}}})


EXTENSION_TASKS_SCENARIO = Scenario(
    "extension-tasks", "calls become tasks of the extension, one question in each", since=SINCE, features=_FEATURES
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
    cause="The extension is declared, and only plain results are understood.",
)
def client_ext_tasks_handled(run: ClientRun) -> None:
    """A client that declares the extension looks after the tasks that calls become."""
    ids = created_tasks(run)
    asked_for = {request.params.get("taskId") for request in run.requests(*TASK_METHODS)}
    listened = [
        get_object(each.params, "notifications").get("taskIds") for each in run.requests("subscriptions/listen")
    ]
    if not asked_for & ids and not any(listened):
        raise Violation("a call became a task, and the client never asks for it", evidence=run.evidence())
    run.require_progress()


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/interval",
    "should",
    case="all looks at tasks",
    at=(f"{PAGE}#task-polling", f"{PAGE}#tasks"),
    since=SINCE,
    cause="The client has an interval of its own, or takes milliseconds for seconds.",
)
def client_ext_tasks_interval(run: ClientRun) -> None:
    """A client looks at a task no more often than its pollIntervalMs wishes."""
    judged = 0
    for id in created_tasks(run):
        for first, second in pairwise(task_requests(run, id, "tasks/get", "tasks/update")):
            if first.method == second.method == "tasks/get":
                judged += 1
                pause = (second.entry.at - first.entry.at) * 1000
                if pause < _INTERVAL * _TOO_SOON:
                    text = f"{pause:.0f} ms after a look comes the next, and pollIntervalMs is {_INTERVAL}"
                    raise Violation(text, evidence=run.evidence(first.entry, second.entry))
    if not judged:
        raise NotObserved("the client looks at no task twice")


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/to-the-end",
    "should",
    case="all tasks that it looked at",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests"),
    since=SINCE,
    cause="The first state is handed on as the result.",
)
def client_ext_tasks_to_the_end(run: ClientRun) -> None:
    """A client looks at a task until it is over, or cancels it."""
    over = {state.get("taskId") for state in sent_task_states(run) if state.get("status") in TERMINAL_STATUSES}
    for id in polled_tasks(run):
        if id not in over and not task_requests(run, id, "tasks/cancel"):
            raise Violation("a task was looked at, and left before its end", evidence=run.evidence())


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/answers",
    "should",
    case="a question in each task",
    at=(f"{PAGE}#task-update-requests", f"{PAGE}#task-status"),
    since=SINCE,
    cause="Only requests, and results of calls, are looked at for questions.",
)
def client_ext_tasks_answers(run: ClientRun) -> None:
    """What a task asks is answered by tasks/update, if the client has declared that it can be asked."""
    for id in tasks_requiring_input(run):
        if not task_requests(run, id, "tasks/update") and not task_requests(run, id, "tasks/cancel"):
            raise Violation("a task asks, and no answer comes", evidence=run.evidence())


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/keys",
    "must",
    case="all answers",
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="Answers come in a list, or under keys of the client's own.",
)
def client_ext_tasks_keys(run: ClientRun) -> None:
    """Answers stand under the keys under which the task asks."""
    for update in task_updates(run):
        given = update.params.get("inputResponses")
        if not isinstance(given, dict) or given.keys() - {f"who {update.params.get('taskId')}"}:
            raise Violation("what comes is under no key that was asked", evidence=run.evidence(update.entry))


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/once",
    "should",
    case="a question that is shown for a while after its answer",
    at=f"{PAGE}#task-update-requests",
    since=SINCE,
    cause="Each look at the task is taken for a new question: people are asked twice.",
)
def client_ext_tasks_once(run: ClientRun) -> None:
    """A question is answered once, though the task may show it for a while."""
    given: set[tuple[str, str]] = set()
    for update in task_updates(run):
        keys = {(str(update.params.get("taskId")), name) for name in get_object(update.params, "inputResponses")}
        if keys & given:
            raise Violation("a question is answered again", evidence=run.evidence(update.entry))
        given |= keys


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/cancelled",
    "must",
    case="all calls that became tasks",
    at=f"{PAGE}#task-cancellation",
    since=SINCE,
    cause="The call counts as open until the task is over, and is cancelled as every other.",
)
def client_ext_tasks_cancelled(run: ClientRun) -> None:
    """A task is given up by tasks/cancel, never by notifications/cancelled for the call that became it."""
    created_tasks(run)
    calls = {id_key(id) for id, result in sent_results(run) if result.get("resultType") == "task"}
    for each in run.notifications("notifications/cancelled"):
        if id_key(each.params.get("requestId")) in calls:
            raise Violation("a call that became a task is cancelled", evidence=run.evidence(each.entry))


@EXTENSION_TASKS_SCENARIO.rule(
    "client-ext-tasks/name-header",
    "must",
    case="all requests about tasks",
    at=f"{PAGE}#streamable-http-routing-headers",
    since=SINCE,
    over=HTTP,
    cause="The header is known for tools, prompts and resources only: a proxy cannot find who has the task.",
)
def client_ext_tasks_name_header(run: ClientRun) -> None:
    """Over HTTP the Mcp-Name of a request about a task is the id of the task."""
    carried = [each for each in run.requests(*TASK_METHODS) if 0 < each.entry.stream <= len(run.exchanges)]
    for request in carried:
        exchange, id = run.exchanges[request.entry.stream - 1], str(request.params.get("taskId"))
        entry = exchange.headers.get("mcp-name")
        if entry not in (id, f"=?base64?{base64.b64encode(id.encode()).decode()}?="):
            raise Violation(f"Mcp-Name is {entry!r} for {id!r}", evidence=[exchange.line(), request.entry.line()])
    if not carried:
        raise NotObserved("the client looks at no task")


EXTENSION_TASK_ELSEWHERE_SCENARIO = Scenario(
    "extension-task-elsewhere", "a prompt and a resource become tasks, which cannot be", since=SINCE, features=_FEATURES
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
    cause="The resultType is looked at before the method.",
)
def client_ext_tasks_calls_only(run: ClientRun) -> None:
    """A task in answer to a request that cannot become one is an invalid answer: the client does not look after it."""
    ids = created_tasks(run)
    for request in run.requests(*TASK_METHODS):
        if request.params.get("taskId") in ids:
            raise Violation("it is looked after", evidence=run.evidence(request.entry))
    run.require_progress()
