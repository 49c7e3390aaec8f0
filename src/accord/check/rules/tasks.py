"""Tasks (2025-11-25): which calls become one, what is said of it at once, and who gets at it."""

from __future__ import annotations

from collections.abc import Sequence

from accord.check.engine.rule import HTTP, JudgedItems, NotApplicable, NotObserved, rule
from accord.check.probes.content import declares, get_object, get_objects, preview_json
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests, received_messages
from accord.check.probes.probe import Probe
from accord.check.probes.tasks import (
    CAPABILITY,
    call_as_task,
    call_params,
    cancel_tasks,
    created_task_id,
    start_task,
    task_support,
    tools_with_support,
)
from accord.errors import INVALID_REQUEST, METHOD_NOT_FOUND

_PLACE = "basic/utilities/tasks"
_SINCE, _UNTIL = "2025-11-25", "2026-07-28"
_SHORTEST_ID = 16
"""Characters: 128 random bits have 22 in Base64, and a UUID has 36."""


@rule(
    "tasks/created",
    "must",
    case="all calls that asked to be a task",
    needs=CAPABILITY,
    at=(f"{_PLACE}#creating-tasks", f"{_PLACE}#result-retrieval"),
    since=_SINCE,
    until=_UNTIL,
    cause="`task` in the params is not looked at, or the call is finished before it is answered.",
)
def tasks_created(logs: Sequence[MessageLog]) -> JudgedItems:
    """A call that asks to be a task, of a tool that can be one, is answered with the task, and nothing else."""
    for log in logs:
        able = _task_capable_tools(log)
        for answered in answered_requests([log], "tools/call"):
            params = get_object(answered.request, "params")
            if "task" not in params or params.get("name") not in able or answered.result is None:
                continue
            yield
            id = get_object(answered.result, "task").get("taskId")
            if not isinstance(id, str) or not id:
                raise answered.violation(f"it is answered with no task, but with {preview_json(answered.result)}")
            if "content" in answered.result:
                raise answered.violation("it is answered with a task and with the result of the call")


def _task_capable_tools(log: MessageLog) -> set[object]:
    """The names of the tools that were listed as able to be tasks."""
    listed = [tool for each in answered_requests([log], "tools/list") for tool in get_objects(each.result, "tools")]
    return {tool.get("name") for tool in listed if task_support(tool) != "forbidden"}


@rule(
    "tasks/begins",
    "should",
    case="all calls that became a task",
    needs=CAPABILITY,
    at=f"{_PLACE}#task-status-lifecycle",
    since=_SINCE,
    until=_UNTIL,
    cause="The call is finished before it is answered: a client waits as long as without a task.",
)
def tasks_begins(logs: Sequence[MessageLog]) -> JudgedItems:
    """A new task is at work: its status is `working`."""
    for answered in answered_requests(logs, "tools/call"):
        task = get_object(answered.result, "task")
        if task and "task" in get_object(answered.request, "params"):
            yield
            if task.get("status") != "working":
                raise answered.violation(f"a new task is {preview_json(task.get('status'))}")


@rule(
    "tasks/required",
    "must",
    case="a call without `task`",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#tool-level-negotiation",
    since=_SINCE,
    until=_UNTIL,
    cause="`execution.taskSupport` is told to clients, and not looked at when the tool is called.",
)
async def tasks_required(probe: Probe) -> None:
    """A tool that can only be run as a task refuses a plain call with error -32601."""
    for tool in await tools_with_support(probe, "required"):
        answer = await probe.send(probe.build_request("tools/call", call_params(tool)), misbehaved=True).wait()
        # "Non-task-augmented request when receiver requires task augmentation for that request type: -32600"
        if answer.code not in (METHOD_NOT_FOUND, INVALID_REQUEST):
            raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}")


@rule(
    "tasks/forbidden",
    "should",
    case="a call with `task`",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#tool-level-negotiation",
    since=_SINCE,
    until=_UNTIL,
    cause="A tool without `execution.taskSupport` cannot be a task: that is the default.",
)
async def tasks_forbidden(probe: Probe) -> None:
    """A tool that cannot be run as a task refuses a call that asks for it with error -32601."""
    tool = (await tools_with_support(probe, "forbidden"))[0]
    message = probe.build_request("tools/call", {**call_params(tool), "task": {}})
    answer = await probe.send(message, misbehaved=True).wait()
    if answer.code != METHOD_NOT_FOUND:
        raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}")


@rule(
    "tasks/undeclared",
    "must",
    case="a call with `task`",
    needs="tools",
    calls=True,
    at=(f"{_PLACE}#task-support-and-handling", f"{_PLACE}#capabilities"),
    since=_SINCE,
    until=_UNTIL,
    cause="Params that are not known are refused, or tasks are made and not declared.",
)
async def tasks_undeclared(probe: Probe) -> None:
    """A server that does not declare tasks for calls takes no notice of `task`: the call is a plain one."""
    if probe.has_capability(CAPABILITY):
        raise NotApplicable("it declares tasks for calls")
    for tool in await tools_with_support(probe, "forbidden", "optional"):
        plain = await probe.request("tools/call", call_params(tool))
        if not isinstance(plain.result, dict) or plain.result.get("isError"):
            continue
        message = probe.build_request("tools/call", {**call_params(tool), "task": {}})
        answer = await probe.send(message, misbehaved=True).wait()
        if answer.error is not None or "task" in answer.result:
            raise probe.violation(f"it is answered with {preview_json(answer.error or answer.result)}")
        return
    raise NotObserved("no plain call succeeds")


@rule(
    "tasks/unique-ids",
    "must",
    case="three tasks of one tool",
    kind="own",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#task-id-requirements",
    since=_SINCE,
    until=_UNTIL,
    cause="The id is made of the request id or the name of the tool, which come again.",
)
async def tasks_unique_ids(probe: Probe) -> None:
    """Each task has an id of its own."""
    tool, first = await start_task(probe)
    more = [created_task_id(await call_as_task(probe, tool)) for _ in range(2)]
    ids = [first, *(id for id in more if id is not None)]
    await cancel_tasks(probe, *ids)
    if len(set(ids)) < len(ids):
        raise probe.violation(f"two tasks have the id {max(ids, key=ids.count)!r}")


@rule(
    "tasks/unguessable",
    "should",
    case="the ids of all new tasks",
    needs=CAPABILITY,
    at=f"{_PLACE}#task-isolation-and-access-control",
    since=_SINCE,
    until=_UNTIL,
    cause="Tasks are counted: take a random UUID, since whoever knows an id gets at the result.",
)
def tasks_unguessable(logs: Sequence[MessageLog]) -> JudgedItems:
    """Nobody can guess the id of a task."""
    for answered in answered_requests(logs, "tools/call"):
        id = get_object(answered.result, "task").get("taskId")
        if isinstance(id, str):
            yield
            if len(id) < _SHORTEST_ID or id.isdigit():
                raise answered.violation(f"the id of a task is {id!r}")


@rule(
    "tasks/listed-apart",
    "should",
    case="a task of one session, and the list of another",
    kind="own",
    needs="tasks.list",
    calls=True,
    at=f"{_PLACE}#task-isolation-and-access-control",
    since=_SINCE,
    until=_UNTIL,
    over=HTTP,
    cause="All tasks are in one list, whoever asks: keep them by session or by principal.",
)
async def tasks_listed_apart(probe: Probe) -> None:
    """A server that cannot tell its clients apart lists nobody's tasks: it does not declare `tasks.list`."""
    if probe.settings.headers:
        raise NotApplicable("both sessions may be of one principal (--header)")
    if not declares(probe.capabilities, CAPABILITY):
        raise NotApplicable(f"it does not declare {CAPABILITY}")
    _, id = await start_task(probe)
    other = await probe.open_another()
    listed = [task.get("taskId") for page in await other.pages("tasks/list", "tasks") for task in page["tasks"]]
    await cancel_tasks(probe, id)
    if id in listed:
        raise other.violation("the task of another session is in the list")


@rule(
    "tasks/own-requests",
    "should",
    case="all questions of the server",
    at=f"{_PLACE}#capability-negotiation",
    since=_SINCE,
    until=_UNTIL,
    cause="`task` is put into each question: look at the `tasks` capability of the client first.",
)
def tasks_own_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server does not ask its client to run a question as a task, where the client has not declared that."""
    for each in received_messages(logs):
        if "method" in each.message and "id" in each.message:
            yield
            if "task" in get_object(each.message, "params") and "tasks" not in each.log.client_capabilities:
                raise each.violation(
                    f"{preview_json(each.message['method'])} asks a client for a task that declared none"
                )
