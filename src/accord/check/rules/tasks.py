"""Tasks (2025-11-25): the creation of tasks, their ids, and access control."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from accord.check.engine.rule import HTTP, JudgedItems, NotApplicable, NotObserved, RuleFamily, rule
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
"""Number of characters: 128 random bits have 22 in Base64, and a UUID has 36."""


task_rule: RuleFamily = partial(rule, since=_SINCE, until=_UNTIL)


@task_rule(
    "tasks/created",
    "must",
    case="all calls with `task`",
    needs=CAPABILITY,
    at=(f"{_PLACE}#creating-tasks", f"{_PLACE}#result-retrieval"),
    cause="`task` in the params is not read, or the call runs before the response.",
)
def tasks_created(logs: Sequence[MessageLog]) -> JudgedItems:
    """A call with `task`, of a tool that supports tasks, returns the task only."""
    for log in logs:
        able = _task_capable_tools(log)
        for answered in answered_requests([log], "tools/call"):
            params = get_object(answered.request, "params")
            if "task" not in params or params.get("name") not in able or answered.result is None:
                continue
            yield
            id = get_object(answered.result, "task").get("taskId")
            if not isinstance(id, str) or not id:
                raise answered.violation(f"the server returned no task, but {preview_json(answered.result)}")
            if "content" in answered.result:
                raise answered.violation("the server returned a task together with the result of the call")


def _task_capable_tools(log: MessageLog) -> set[object]:
    """Return the names of the listed tools that support tasks."""
    listed = [tool for each in answered_requests([log], "tools/list") for tool in get_objects(each.result, "tools")]
    return {tool.get("name") for tool in listed if task_support(tool) != "forbidden"}


@task_rule(
    "tasks/begins",
    "should",
    case="all calls that became a task",
    needs=CAPABILITY,
    at=f"{_PLACE}#task-status-lifecycle",
    cause="The call runs before the response: the client waits as long as without a task.",
)
def tasks_begins(logs: Sequence[MessageLog]) -> JudgedItems:
    """A new task has the status "working"."""
    for answered in answered_requests(logs, "tools/call"):
        task = get_object(answered.result, "task")
        if task and "task" in get_object(answered.request, "params"):
            yield
            if task.get("status") != "working":
                raise answered.violation(f"a new task is {preview_json(task.get('status'))}")


@task_rule(
    "tasks/required",
    "must",
    case="a call without `task`",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#tool-level-negotiation",
    cause="`execution.taskSupport` is listed, but not checked when the tool is called.",
)
async def tasks_required(probe: Probe) -> None:
    """A call without `task`, of a tool that requires tasks, returns error -32601."""
    for tool in await tools_with_support(probe, "required"):
        answer = await probe.send(probe.build_request("tools/call", call_params(tool)), misbehaved=True).wait()
        # "Non-task-augmented request when receiver requires task augmentation for that request type: -32600"
        if answer.code not in (METHOD_NOT_FOUND, INVALID_REQUEST):
            raise probe.violation(f"the server answered with {preview_json(answer.error or answer.result)}")


@task_rule(
    "tasks/forbidden",
    "should",
    case="a call with `task`",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#tool-level-negotiation",
    cause="A tool without `execution.taskSupport` does not support tasks: that is the default.",
)
async def tasks_forbidden(probe: Probe) -> None:
    """A call with `task`, of a tool that does not support tasks, returns error -32601."""
    tool = (await tools_with_support(probe, "forbidden"))[0]
    message = probe.build_request("tools/call", {**call_params(tool), "task": {}})
    answer = await probe.send(message, misbehaved=True).wait()
    probe.require_error(answer, METHOD_NOT_FOUND)


@task_rule(
    "tasks/undeclared",
    "must",
    case="a call with `task`",
    needs="tools",
    calls=True,
    at=(f"{_PLACE}#task-support-and-handling", f"{_PLACE}#capabilities"),
    cause="Unknown params are refused, or tasks are created without the capability.",
)
async def tasks_undeclared(probe: Probe) -> None:
    """A server that does not declare tasks for calls ignores `task`."""
    if probe.has_capability(CAPABILITY):
        raise NotApplicable("the server declares tasks for calls")
    for tool in await tools_with_support(probe, "forbidden", "optional"):
        plain = await probe.request("tools/call", call_params(tool))
        if not isinstance(plain.result, dict) or plain.result.get("isError"):
            continue
        message = probe.build_request("tools/call", {**call_params(tool), "task": {}})
        answer = await probe.send(message, misbehaved=True).wait()
        if answer.error is not None or "task" in answer.result:
            raise probe.violation(f"the server answered with {preview_json(answer.error or answer.result)}")
        return
    raise NotObserved("no ordinary call succeeds")


@task_rule(
    "tasks/unique-ids",
    "must",
    case="three tasks of one tool",
    kind="own",
    needs=CAPABILITY,
    calls=True,
    at=f"{_PLACE}#task-id-requirements",
    cause="The id is derived from the request id or from the name of the tool, which can repeat.",
)
async def tasks_unique_ids(probe: Probe) -> None:
    """Each task has a unique id."""
    tool, first = await start_task(probe)
    more = [created_task_id(await call_as_task(probe, tool)) for _ in range(2)]
    ids = [first, *(id for id in more if id is not None)]
    await cancel_tasks(probe, *ids)
    require_unique_ids(probe, ids)


def require_unique_ids(probe: Probe, ids: Sequence[str]) -> None:
    """Raise `Violation` if two tasks have the same id."""
    if len(set(ids)) < len(ids):
        raise probe.violation(f"two tasks have the id {max(ids, key=ids.count)!r}")


@task_rule(
    "tasks/unguessable",
    "should",
    case="the ids of all new tasks",
    needs=CAPABILITY,
    at=f"{_PLACE}#task-isolation-and-access-control",
    cause="The id is a counter: use a random UUID, since the id may be enough to read the result.",
)
def tasks_unguessable(logs: Sequence[MessageLog]) -> JudgedItems:
    """The id of a task cannot be guessed."""
    for answered in answered_requests(logs, "tools/call"):
        id = get_object(answered.result, "task").get("taskId")
        if isinstance(id, str):
            yield
            if len(id) < _SHORTEST_ID or id.isdigit():
                raise answered.violation(f"the id of a task is {id!r}")


@task_rule(
    "tasks/listed-apart",
    "should",
    case="a task of one session, and tasks/list in another",
    kind="own",
    needs="tasks.list",
    calls=True,
    at=f"{_PLACE}#task-isolation-and-access-control",
    over=HTTP,
    cause="All tasks are in one list: separate them by session or by principal.",
)
async def tasks_listed_apart(probe: Probe) -> None:
    """A server that cannot identify its clients does not declare `tasks.list`."""
    if probe.settings.headers:
        raise NotApplicable("both sessions may have the same principal (--header)")
    if not declares(probe.capabilities, CAPABILITY):
        raise NotApplicable(f"the server does not declare {CAPABILITY}")
    _, id = await start_task(probe)
    other = await probe.open_another()
    listed = [task.get("taskId") for page in await other.pages("tasks/list", "tasks") for task in page["tasks"]]
    await cancel_tasks(probe, id)
    if id in listed:
        raise other.violation("the list has a task of another session")


@task_rule(
    "tasks/own-requests",
    "should",
    case="all requests from the server",
    at=f"{_PLACE}#capability-negotiation",
    cause="All requests have `task`: check the client capability `tasks` first.",
)
def tasks_own_requests(logs: Sequence[MessageLog]) -> JudgedItems:
    """The server adds `task` to a request only if the client declared tasks for it."""
    for each in received_messages(logs):
        if "method" in each.message and "id" in each.message:
            yield
            if "task" in get_object(each.message, "params") and "tasks" not in each.log.client_capabilities:
                raise each.violation(
                    f"{preview_json(each.message['method'])} has `task`, but the client did not declare tasks for it"
                )
