"""The tasks extension (2026-07-28): how a client that declares it deals with calls that become tasks."""

from __future__ import annotations

import base64
import uuid
from itertools import pairwise

from accord.check.blocks import inside
from accord.check.clients.ask import Ask
from accord.check.clients.offer import Offer, called
from accord.check.clients.run import Run
from accord.check.clients.scene import Answer, Refuse, Scene
from accord.check.clients.tasks import about, asking, looked, made, results, told, updates
from accord.check.extension_tasks import EXTENSION, PAGE, SINCE, TASK_METHODS
from accord.check.reading import key
from accord.check.rule import HTTP, Broken, NotObserved, Rule
from accord.check.tasked import FINISHED
from accord.errors import INVALID_PARAMS
from accord.messages.base import JSONObject

_INTERVAL = 400
"""Milliseconds that we wish for between two looks at a task."""
_TOO_SOON = 0.5
"""Of that: clocks differ, and messages take their time."""
_TIME = "2026-07-28T00:00:00Z"
_FORM: JSONObject = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}}
_OFFER = Offer(capabilities={"tools": {}, "resources": {}, "prompts": {}, "extensions": {EXTENSION: {}}})

HANDLED = Rule(
    "client-ext-tasks/handled",
    "must",
    "A client that declares the extension looks after the tasks that calls become.",
    at=f"{PAGE}#capability-negotiation",
    role="client",
    since=SINCE,
    cause="The extension is declared, and only plain results are understood.",
)

CALLS_ONLY = Rule(
    "client-ext-tasks/calls-only",
    "must",
    "A task in answer to a request that cannot become one is an invalid answer: the client does not look after it.",
    at=f"{PAGE}#capability-negotiation",
    role="client",
    since=SINCE,
    cause="The resultType is looked at before the method.",
)

INTERVAL = Rule(
    "client-ext-tasks/interval",
    "should",
    "A client looks at a task no more often than its pollIntervalMs wishes.",
    at=(f"{PAGE}#task-polling", f"{PAGE}#tasks"),
    role="client",
    since=SINCE,
    cause="The client has an interval of its own, or takes milliseconds for seconds.",
)

TO_THE_END = Rule(
    "client-ext-tasks/to-the-end",
    "should",
    "A client looks at a task until it is over, or cancels it.",
    at=(f"{PAGE}#task-polling", f"{PAGE}#task-update-requests"),
    role="client",
    since=SINCE,
    cause="The first state is handed on as the result.",
)

ANSWERS = Rule(
    "client-ext-tasks/answers",
    "should",
    "What a task asks is answered by tasks/update, if the client has declared that it can be asked.",
    at=(f"{PAGE}#task-update-requests", f"{PAGE}#task-status"),
    role="client",
    since=SINCE,
    cause="Only requests, and results of calls, are looked at for questions.",
)

KEYS = Rule(
    "client-ext-tasks/keys",
    "must",
    "Answers stand under the keys under which the task asks.",
    at=f"{PAGE}#task-update-requests",
    role="client",
    since=SINCE,
    cause="Answers come in a list, or under keys of the client's own.",
)

ONCE = Rule(
    "client-ext-tasks/once",
    "should",
    "A question is answered once, though the task may show it for a while.",
    at=f"{PAGE}#task-update-requests",
    role="client",
    since=SINCE,
    cause="Each look at the task is taken for a new question: people are asked twice.",
)

CANCELLED = Rule(
    "client-ext-tasks/cancelled",
    "must",
    "A task is given up by tasks/cancel, never by notifications/cancelled for the call that became it.",
    at=f"{PAGE}#task-cancellation",
    role="client",
    since=SINCE,
    cause="The call counts as open until the task is over, and is cancelled as every other.",
)

NAME = Rule(
    "client-ext-tasks/name-header",
    "must",
    "Over HTTP the Mcp-Name of a request about a task is the id of the task.",
    at=f"{PAGE}#streamable-http-routing-headers",
    role="client",
    since=SINCE,
    over=HTTP,
    cause="The header is known for tools, prompts and resources only: a proxy cannot find who has the task.",
)

WORK = Scene("extension-tasks", "calls become tasks of the extension, one question in each", since=SINCE, offer=_OFFER)


@WORK.on("tools/call")
async def _(ask: Ask) -> Answer:
    if EXTENSION not in inside(ask.declared, "extensions"):
        return await ask.usual()
    id = str(uuid.uuid4())
    result = called(str(ask.params.get("name")), ask.params.get("arguments"), ask.rules.revision)
    ask.conversation.stand.kept[id] = {"result": ask.dressed(result), "looks": 0, "shown": 0}
    return ask.dressed({"resultType": "task", **_known(id), "status": "working"})


@WORK.on("tasks/get")
async def _(ask: Ask) -> Answer:
    id, work = _work(ask)
    work["looks"] += 1
    if work["looks"] == 1:
        return ask.dressed({**_known(id), "status": "working"})
    # the question stays for one look more than its answer: "The acknowledgement is _eventually consistent_"
    if isinstance(ask.declared.get("elicitation"), dict) and work["shown"] < 2:
        work["shown"] += bool(work.get("answered"))
        asked = {f"who {id}": {"method": "elicitation/create", "params": _FORM}}
        if work["shown"] < 2:
            return ask.dressed({**_known(id), "status": "input_required", "inputRequests": asked})
    return ask.dressed({**_known(id), "status": "completed", "result": work["result"]})


@WORK.on("tasks/update")
async def _(ask: Ask) -> Answer:
    _, work = _work(ask)
    work["answered"] = True
    return ask.dressed({})


@WORK.on("tasks/cancel")
async def _(ask: Ask) -> Answer:
    _work(ask)
    return ask.dressed({})


def _work(ask: Ask) -> tuple[str, JSONObject]:
    id = ask.params.get("taskId")
    work = ask.conversation.stand.kept.get(id) if isinstance(id, str) else None
    if work is None:
        raise Refuse(INVALID_PARAMS, "Task not found")
    return str(id), work


def _known(id: str) -> JSONObject:
    times = {"createdAt": _TIME, "lastUpdatedAt": _TIME}
    return {"taskId": id, **times, "ttlMs": None, "pollIntervalMs": _INTERVAL}


@WORK.judges(HANDLED, "all calls that became tasks")
def _(run: Run) -> None:
    ids = made(run)
    asked_for = {request.params.get("taskId") for request in run.requests(*TASK_METHODS)}
    listened = [inside(each.params, "notifications").get("taskIds") for each in run.requests("subscriptions/listen")]
    if not asked_for & ids and not any(listened):
        raise Broken("a call became a task, and the client never asks for it", evidence=run.evidence())
    run.got_away()


@WORK.judges(INTERVAL, "all looks at tasks")
def _(run: Run) -> None:
    judged = 0
    for id in made(run):
        for first, second in pairwise(about(run, id, "tasks/get", "tasks/update")):
            if first.method == second.method == "tasks/get":
                judged += 1
                pause = (second.said.at - first.said.at) * 1000
                if pause < _INTERVAL * _TOO_SOON:
                    text = f"{pause:.0f} ms after a look comes the next, and pollIntervalMs is {_INTERVAL}"
                    raise Broken(text, evidence=run.evidence(first.said, second.said))
    if not judged:
        raise NotObserved("the client looks at no task twice")


@WORK.judges(TO_THE_END, "all tasks that it looked at")
def _(run: Run) -> None:
    over = {state.get("taskId") for state in told(run) if state.get("status") in FINISHED}
    for id in looked(run):
        if id not in over and not about(run, id, "tasks/cancel"):
            raise Broken("a task was looked at, and left before its end", evidence=run.evidence())


@WORK.judges(ANSWERS, "a question in each task")
def _(run: Run) -> None:
    for id in asking(run):
        if not about(run, id, "tasks/update") and not about(run, id, "tasks/cancel"):
            raise Broken("a task asks, and no answer comes", evidence=run.evidence())


@WORK.judges(KEYS, "all answers")
def _(run: Run) -> None:
    for update in updates(run):
        given = update.params.get("inputResponses")
        if not isinstance(given, dict) or given.keys() - {f"who {update.params.get('taskId')}"}:
            raise Broken("what comes is under no key that was asked", evidence=run.evidence(update.said))


@WORK.judges(ONCE, "a question that is shown for a while after its answer")
def _(run: Run) -> None:
    given: set[tuple[str, str]] = set()
    for update in updates(run):
        keys = {(str(update.params.get("taskId")), name) for name in inside(update.params, "inputResponses")}
        if keys & given:
            raise Broken("a question is answered again", evidence=run.evidence(update.said))
        given |= keys


@WORK.judges(CANCELLED, "all calls that became tasks")
def _(run: Run) -> None:
    made(run)
    calls = {key(id) for id, result in results(run) if result.get("resultType") == "task"}
    for each in run.notifications("notifications/cancelled"):
        if key(each.params.get("requestId")) in calls:
            raise Broken("a call that became a task is cancelled", evidence=run.evidence(each.said))


@WORK.judges(NAME, "all requests about tasks", over=HTTP)
def _(run: Run) -> None:
    carried = [each for each in run.requests(*TASK_METHODS) if 0 < each.said.stream <= len(run.exchanges)]
    for request in carried:
        exchange, id = run.exchanges[request.said.stream - 1], str(request.params.get("taskId"))
        said = exchange.headers.get("mcp-name")
        if said not in (id, f"=?base64?{base64.b64encode(id.encode()).decode()}?="):
            raise Broken(f"Mcp-Name is {said!r} for {id!r}", evidence=[exchange.line(), request.said.line()])
    if not carried:
        raise NotObserved("the client looks at no task")


MISPLACED = Scene(
    "extension-task-elsewhere", "a prompt and a resource become tasks, which cannot be", since=SINCE, offer=_OFFER
)


@MISPLACED.on("prompts/get", "resources/read")
async def _(ask: Ask) -> Answer:
    if EXTENSION not in inside(ask.declared, "extensions"):
        return await ask.usual()
    return ask.dressed({"resultType": "task", **_known(str(uuid.uuid4())), "status": "working"})


@MISPLACED.judges(CALLS_ONLY, "a prompt and a resource")
def _(run: Run) -> None:
    ids = made(run)
    for request in run.requests(*TASK_METHODS):
        if request.params.get("taskId") in ids:
            raise Broken("it is looked after", evidence=run.evidence(request.said))
    run.got_away()
