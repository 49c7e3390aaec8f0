"""The tasks extension (2026-07-28): which clients get tasks, and the differences to the tasks of 2025-11-25."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial

from accord.check.engine.rule import CaseVariant, JudgedItems, NotObserved, RuleFamily, Violation, rule
from accord.check.probes.content import get_object, preview_json
from accord.check.probes.extension_tasks import (
    CAPABILITY,
    EXTENSION,
    PAGE,
    PROPOSAL,
    SINCE,
    TASK_METHODS,
    call_tool,
    callable_tools,
    cancel_tasks,
    declares_extension,
    finish_task,
    is_task,
    send_request,
    start_task,
    task_tools,
)
from accord.check.probes.message_log import MessageLog
from accord.check.probes.message_reader import answered_requests
from accord.check.probes.probe import Probe
from accord.check.probes.tasks import call_params
from accord.errors import INVALID_PARAMS, METHOD_NOT_FOUND, MISSING_CLIENT_CAPABILITY
from accord.messages.base import JSONObject

_NEGOTIATED = f"{PAGE}#capability-negotiation"
_LEGACY: JSONObject = {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}}
"""The capability `tasks` of a client of 2025-11-25."""
_FEW = 3
"""Number of tools that are called."""


@rule(
    "ext-tasks/undeclared",
    "must",
    variants=[CaseVariant("all results", since=SINCE)],
    needs=CAPABILITY,
    at=_NEGOTIATED,
    since="2025-11-25",
    cause="Capabilities are stored for the connection, or not read: read those of each request. In "
    "2025-11-25, the extension does not exist.",
)
def ext_tasks_undeclared(logs: Sequence[MessageLog]) -> JudgedItems:
    """A call becomes a task only if its own request declares the tasks extension."""
    for answered in answered_requests(logs):
        if isinstance(answered.result, dict) and not declares_extension(answered.request):
            if answered.request["method"] == "tools/call":
                yield
            if is_task(answered.result):
                raise answered.violation("a request without the extension returned a task")


@ext_tasks_undeclared.case(
    "a call without the extension, after a call with it", since=SINCE, needs=CAPABILITY, calls=True
)
async def ext_tasks_undeclared_later_call(probe: Probe) -> None:
    tool = (await task_tools(probe))[0]
    await cancel_tasks(probe, await start_task(probe))
    if is_task((await call_tool(probe, tool, ours=probe.client_capabilities)).result):
        raise probe.violation("a call without the extension became a task")


@ext_tasks_undeclared.case(
    "calls of a client of 2025-11-25 that declares the extension",
    kind="own",
    until=SINCE,
    needs="tasks",
    calls=True,
    capabilities={"extensions": {EXTENSION: {}}},
)
async def ext_tasks_undeclared_earlier_revision(probe: Probe) -> None:
    for tool in (await probe.callable_tools())[:_FEW]:
        if is_task((await probe.request("tools/call", call_params(tool))).result):
            raise probe.violation(f"a call became a task of an extension that {probe.revision} does not have")


ext_task_rule: RuleFamily = partial(rule, since=SINCE, needs=CAPABILITY)


@ext_task_rule(
    "ext-tasks/needed",
    "must",
    case="calls without the extension, of tools that became tasks",
    kind="own",
    calls=True,
    at=_NEGOTIATED,
    cause="The refusal is a tool error, or has another code (-32003 in drafts): the client does not "
    "learn what to declare.",
)
async def ext_tasks_needed(probe: Probe) -> None:
    """A call that must become a task, but does not declare the extension, returns error -32021 with its name."""
    for tool in (await task_tools(probe))[:_FEW]:
        error = await _refusal(probe, tool)
        if error and (error.get("code") == MISSING_CLIENT_CAPABILITY or await _works(probe, tool)):
            wanted = get_object(error, "data", "requiredCapabilities", "extensions")
            if error.get("code") != MISSING_CLIENT_CAPABILITY or EXTENSION not in wanted:
                raise probe.violation(
                    f"a call of {tool.get('name')!r} without the extension returned {preview_json(error)}"
                )
            return
    raise NotObserved("each tool that becomes a task can also be called without one")


async def _refusal(probe: Probe, tool: JSONObject) -> JSONObject:
    """Return the error of a call without the extension; empty if it succeeds, or times out."""
    with contextlib.suppress(NotObserved):
        return (await call_tool(probe, tool, ours=probe.client_capabilities)).error or {}
    return {}


async def _works(probe: Probe, tool: JSONObject) -> bool:
    """Return whether the same call succeeds as a task."""
    result = (await call_tool(probe, tool)).result
    return is_task(result) and (await finish_task(probe, str(result.get("taskId")))).get("status") == "completed"


@ext_task_rule(
    "ext-tasks/gated",
    "must",
    case="requests for an unknown task",
    at=f"{PAGE}#protocol-errors",
    cause="Only the request that created the task was checked: each request declares its capabilities.",
)
async def ext_tasks_gated(probe: Probe) -> None:
    # that there is no such task is as true: "Invalid or nonexistent `taskId`: `-32602`"
    """Without the declared extension, tasks/get, tasks/update and tasks/cancel return error -32021."""
    await _require_refused(
        probe, probe.unknown_name, probe.client_capabilities, MISSING_CLIENT_CAPABILITY, INVALID_PARAMS
    )


@ext_tasks_gated.case("requests for a new task", needs=CAPABILITY, calls=True)
async def ext_tasks_gated_new_task(probe: Probe) -> None:
    id = await start_task(probe)
    try:
        await _require_refused(probe, id, probe.client_capabilities, MISSING_CLIENT_CAPABILITY)
    finally:
        await cancel_tasks(probe, id)


@ext_task_rule(
    "ext-tasks/legacy-client",
    "must",
    case="a call, and requests for a task",
    calls=True,
    at=f"{PROPOSAL}#backward-compatibility",
    cause="The client capability `tasks` is taken for the extension.",
)
async def ext_tasks_legacy_client(probe: Probe) -> None:
    """The capability `tasks` of 2025-11-25 does not declare the extension."""
    tool, id = (await task_tools(probe))[0], await start_task(probe)
    legacy = {**probe.client_capabilities, "tasks": _LEGACY}
    try:
        await _require_refused(probe, id, legacy, MISSING_CLIENT_CAPABILITY)
    finally:
        await cancel_tasks(probe, id)
    if is_task((await call_tool(probe, tool, ours=legacy)).result):
        raise probe.violation("a call of such a client became a task")


async def _require_refused(probe: Probe, id: str, ours: JSONObject, *codes: int) -> None:
    for method in TASK_METHODS:
        more: JSONObject = {"inputResponses": {}} if method == "tasks/update" else {}
        answer = await send_request(probe, method, {"taskId": id, **more}, ours=ours, misbehaved=True)
        if answer.code not in codes:
            raise probe.violation(f"{method} returned {preview_json(answer.error or answer.result)}")


@ext_task_rule(
    "ext-tasks/legacy-declared",
    "must",
    case="the server capabilities",
    at=f"{PROPOSAL}#backward-compatibility",
    cause="The same capabilities are sent in all revisions.",
)
async def ext_tasks_legacy_declared(probe: Probe) -> None:
    """A server with the tasks extension does not declare the capability `tasks` of 2025-11-25."""
    if "tasks" in probe.capabilities:
        raise Violation(f"the capabilities are {preview_json(probe.capabilities)}")


@ext_task_rule(
    "ext-tasks/task-param",
    "must",
    case="calls with `task`, of tools that do not become tasks",
    kind="own",
    calls=True,
    at=f"{PROPOSAL}#backward-compatibility",
    cause="The parameter still requests a task, or is refused.",
)
async def ext_tasks_task_param(probe: Probe) -> None:
    """The server ignores the parameter `task` of 2025-11-25."""
    done = [each for each in answered_requests(probe.peer_logs, "tools/call") if declares_extension(each.request)]
    tasks = {get_object(each.request, "params").get("name") for each in done if is_task(each.result)}
    plain = {
        get_object(each.request, "params").get("name") for each in done if "content" in get_object(each.result)
    } - tasks
    for tool in [tool for tool in await callable_tools(probe) if tool.get("name") in plain][:_FEW]:
        answer = await call_tool(probe, tool, task={"ttl": 60_000})
        if answer.error is not None or is_task(answer.result):
            raise probe.violation(f"a call with `task` returned {preview_json(answer.error or answer.result)}")
    if not plain:
        raise NotObserved("no tool is known to return an ordinary result")


@ext_task_rule(
    "ext-tasks/removed",
    "must",
    case="tasks/result of an unknown task",
    at=f"{PROPOSAL}#backward-compatibility",
    cause="The methods of both revisions are in one table.",
)
async def ext_tasks_removed(probe: Probe) -> None:
    """tasks/result, a method of 2025-11-25, returns error -32601."""
    answer = await send_request(probe, "tasks/result", {"taskId": probe.unknown_name}, misbehaved=True)
    probe.require_error(answer, METHOD_NOT_FOUND)
